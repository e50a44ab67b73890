# SPDX-License-Identifier: Apache-2.0
"""`demilune operation check`, what demilune-config hands over, and what `demilune doctor` says about files of authority."""

from __future__ import annotations

import array
import errno
import fcntl
import json
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from daemon import Daemon, wait_until
from fake import BINARY

CONFIG = BINARY.parent.parent / "config/demilune-config"
SAMPLE = (Path(__file__).resolve().parents[1] / "unit/config/sample.yaml").read_text()
PROVIDER = "providers:\n  one: {origin: https://one.example, account: a, environment: e}\n"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "DEMILUNE_SOCKET": "/nonexistent"}


def operation(name: str, provider: str = "one") -> str:
    return (f"operations:\n  {name}:\n    version: 1\n    effect: external\n    describe: d\n"
            f"    parameters: {{a: {{type: boolean}}}}\n"
            f"    request: {{provider: {provider}, method: POST, path: /{name}, success: [200]}}\n")


def demilune(*args: str | Path, code: int = 0) -> str:
    done = subprocess.run([BINARY, *map(str, args)], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, (done.returncode, done.stdout[-3000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def check(path: Path, code: int = 0) -> str:
    """What is told, without the path."""
    return demilune("operation", "check", path, code=code).replace(str(path), "", 1).replace("\n" + str(path), "\n")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "operations.d"
    folder.mkdir()
    return folder


def put(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o644)
    return path


# ---- a file and a directory ----


def test_a_file_alone(here: Path) -> None:
    path = put(here, "shop.yaml", SAMPLE)
    assert check(path) == ": 1 operation, no faults\n"
    put(here, "shop.yaml", SAMPLE.replace("quorum: 1\n", "quorum: 0\n", 1))
    assert check(path, 1) == (":56:15: quorum 0 is only for read and draft: what is irreversible needs at least one person\n")
    put(here, "shop.yaml", operation("x"))
    assert check(path, 1) == ':7:25: there is no provider "one"; describe it below providers\n'


def test_the_name_of_a_single_file_is_not_looked_at(here: Path) -> None:
    assert check(put(here, "draft.txt", SAMPLE)) == ": 1 operation, no faults\n"


def test_files_of_a_directory_are_one_text(here: Path) -> None:
    put(here, "a.yaml", operation("zeta"))
    put(here, "b.yaml", operation("alpha"))
    put(here, "z.yaml", PROVIDER)
    assert check(here) == ": 2 operations, no faults\n"
    put(here, "c.yaml", operation("alpha") + "  beta: 1\n")
    assert check(here, 1) == ("/c.yaml:2:3: the operation alpha stands in b.yaml too (line 2); keep one\n"
                              "/c.yaml:8:9: an operation is a mapping: lines of `name: value` below it\n")


def test_a_fault_anywhere_refuses_all(here: Path) -> None:
    put(here, "a.yaml", PROVIDER + operation("fine"))
    put(here, "b.yaml", "operations: {\n")
    assert check(here, 1) == "/b.yaml:2:1: this is not YAML: did not find expected node content\n"


def test_an_empty_directory(here: Path) -> None:
    assert check(here) == ": 0 operations, no faults\n"


def test_what_editors_and_packages_leave_is_passed_over(here: Path) -> None:
    put(here, "a.yaml", SAMPLE)
    for name in (".a.yaml", ".a.yaml.swp", "a.yaml~", "a.yaml.dpkg-old", "README", "a.yaml.bak"):
        put(here, name, "{{{ nothing")
    assert check(here) == ": 1 operation, no faults\n"


def link(folder: Path) -> None:
    (folder / "x.yaml").symlink_to(put(folder.parent, "elsewhere", SAMPLE))


def fifo(folder: Path) -> None:
    os.mkfifo(folder / "x.yaml")


def large(folder: Path) -> None:
    put(folder, "x.yaml", b"#" * (256 * 1024 + 1))


def writable(folder: Path) -> None:
    put(folder, "x.yaml", SAMPLE).chmod(0o664)


@pytest.mark.parametrize(("make", "told"), [
    (link, "/x.yaml:1:1: this is a symbolic link; put the file itself here\n"),
    (fifo, "/x.yaml:1:1: this is not a regular file\n"),
    (lambda d: (d / "x.yaml").mkdir(), "/x.yaml:1:1: this is not a regular file\n"),
    (large, "/x.yaml:1:1: the file is larger than 256 KiB; divide it\n"),
    (writable, "/x.yaml:1:1: others than its owner may write this file; take that away: chmod go-w\n"),
    (lambda d: put(d, "x.yml", SAMPLE), "/x.yml:1:1: only files whose names end in .yaml are read; rename it\n"),
    (lambda d: put(d, "x y.yaml", SAMPLE), ":1:1: a file in the directory has a name that is longer than 63 bytes or has more than "
                                           "letters, digits, '.', '_' and '-'\n"),
    (lambda d: put(d, "x" * 60 + ".yaml", SAMPLE), ":1:1: a file in the directory has a name that is longer than 63 bytes or has "
                                                   "more than letters, digits, '.', '_' and '-'\n"),
])
def test_files_that_are_refused(here: Path, make: Callable[[Path], Any], told: str) -> None:
    put(here, "good.yaml", PROVIDER + operation("good"))
    make(here)
    assert check(here, 1) == told


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_file_of_somebody_else(here: Path) -> None:
    os.chown(put(here, "x.yaml", SAMPLE), 12345, 12345)
    assert check(here, 1) == "/x.yaml:1:1: somebody else owns this file and may change it: chown root\n"


def test_at_most_64_files(here: Path) -> None:
    put(here, "p.yaml", PROVIDER)
    for i in range(63):
        put(here, f"o{i}.yaml", operation(f"o{i}"))
    assert check(here) == ": 63 operations, no faults\n"
    put(here, "q.yaml", operation("q"))
    assert ":1:1: the directory has more than 64 such files\n" in check(here, 1)


def test_a_file_of_exactly_256_kib(here: Path) -> None:
    put(here, "x.yaml", SAMPLE + "#" * (256 * 1024 - len(SAMPLE)))
    assert check(here) == ": 1 operation, no faults\n"


def test_faults_beyond_a_hundred_are_counted(here: Path) -> None:
    told = check(put(here, "x.yaml", "".join(f"k{i}: 1\n" for i in range(250))), 1)
    assert told.count("a file of operations has no") == 100 and told.endswith(": 150 more faults\n")


def test_what_cannot_be_checked(tmp_path: Path) -> None:
    assert "No such file" in demilune("operation", "check", tmp_path / "none", code=1)
    assert "is not a file" in demilune("operation", "check", "/dev/null", code=1)
    assert "is not a file" in demilune("check", tmp_path, code=1)
    demilune("operation", "check", code=2)


def test_the_text_of_a_file_is_made_safe(here: Path) -> None:
    told = check(put(here, "x.yaml", '"\\e[2Jx": 1\n'), 1)
    assert "\x1b" not in told and told.startswith(":1:1: a file of operations has no")


def test_check_of_a_configuration(tmp_path: Path) -> None:
    path = put(tmp_path, "demilune.yaml", "uids: {broker: 64101}\n")
    assert demilune("check", path, code=1).startswith(f"{path}:1:1: uids.engine, uids.api")
    put(tmp_path, "demilune.yaml", "actions: {pending: 3}\n")
    assert demilune("check", path) == f"{path}: no faults\n"


def test_the_commands_of_the_guide_are_understood() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/guide/operations.md").read_text()
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", page, re.S)).replace("\\\n", " ")
    commands = [shlex.split(line, comments=True) for line in blocks.splitlines() if line.startswith("demilune ")]
    assert len(commands) >= 5
    for command in commands:
        assert "demilune " in demilune(*command[1:], "--help"), command


# ---- what is handed over ----


def compiled(source: Path) -> tuple[list[bytes], list[int]]:
    """Messages of demilune-config, and the descriptors that came with one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fd = os.open(source, os.O_RDONLY)

    def child() -> None:
        low = fcntl.fcntl(fd, fcntl.F_DUPFD, 20), fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD, 20)
        os.dup2(low[0], 3)
        os.dup2(low[1], 4)
        os.closerange(5, 64)

    process = subprocess.Popen([CONFIG, "operations"], env={}, close_fds=False, preexec_fn=child, stderr=subprocess.PIPE)
    theirs.close()
    os.close(fd)
    messages, fds = [], array.array("i")
    ours.settimeout(20)
    while True:
        data, ancillary, _, _ = ours.recvmsg(1 << 18, 64)
        if not data:
            break
        messages.append(data)
        for _, _, sent in ancillary:
            fds.frombytes(sent[:len(sent) - len(sent) % fds.itemsize])
    ours.close()
    assert process.wait(timeout=20) == 0, process.stderr.read() if process.stderr else b""
    if process.stderr:
        process.stderr.close()
    return messages, list(fds)


def test_what_is_handed_over_is_sealed(here: Path) -> None:
    put(here, "a.yaml", SAMPLE)
    messages, fds = compiled(here)
    try:
        assert len(messages) == 2 and len(fds) == 2
        kind, count, length, _ = struct.unpack(">HHIQ", messages[0][:16])
        assert (count, length) == (2, 40)
        assert struct.unpack(">II", messages[0][16:24]) == (1, 2)
        for fd in fds:
            seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
            assert seals & 0xf == fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
            for change in (lambda fd=fd: os.pwrite(fd, b"x", 0), lambda fd=fd: os.ftruncate(fd, 0),
                           lambda fd=fd: os.ftruncate(fd, 1 << 20)):
                with pytest.raises(OSError) as refused:
                    change()
                assert refused.value.errno == errno.EPERM
            assert os.lseek(fd, 0, os.SEEK_CUR) == 0
        catalogue = os.pread(fds[0], 1 << 20, 0)
        expected = (Path(__file__).resolve().parents[1] / "unit/config/sample.json").read_bytes()
        assert catalogue == struct.pack(">I", len(expected)) + expected
        assert json.loads(os.pread(fds[1], 1 << 20, 0)) == {"origins": [
            {"host": "api.payments.example", "port": 443},
            {"address": "127.0.0.1", "host": "orders.example", "port": 8080}]}
    finally:
        for fd in fds:
            os.close(fd)


def test_nothing_is_handed_over_with_a_fault(here: Path) -> None:
    put(here, "a.yaml", SAMPLE.replace("header: Authorization", "header: Host"))
    messages, fds = compiled(here)
    assert fds == [] and len(messages) == 2
    assert b"a.yaml" in messages[0] and b"the broker writes the header Host itself" in messages[0]


def test_no_directory_is_no_operation(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for source in (empty, Path("/dev/null")):
        messages, fds = compiled(source)
        assert len(messages) == 2 and len(fds) == 2
        assert os.pread(fds[0], 100, 0) == b"" and os.pread(fds[1], 100, 0) == b'{"origins":[]}'
        for fd in fds:
            os.close(fd)


# ---- doctor ----


class Host:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.chmod(0o755)
        self.dirs = {name: root / name for name in ("secrets", "trust", "operations")}
        for name, path in self.dirs.items():
            path.mkdir()
            path.chmod(0o700 if name == "secrets" else 0o755)
        self.files = {"secrets": put(self.dirs["secrets"], "payments", "hunter2"),
                      "trust": put(self.dirs["trust"], "approvers", ""),
                      "operations": put(self.dirs["operations"], "a.yaml", "")}
        self.files["secrets"].chmod(0o600)
        self.config = put(root, "demilune.yaml", "actions:\n" + "".join(f"  {n}: {p}\n" for n, p in self.dirs.items()))

    def doctor(self) -> dict[str, Any]:
        done = subprocess.run([BINARY, "doctor", "--json", "--config", str(self.config)], env=ENVIRONMENT, capture_output=True,
                              text=True, timeout=60, check=False)
        return {check["check"]: check for check in json.loads(done.stdout)}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    root = tmp_path / "host"
    root.mkdir()
    return Host(root)


ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="what it makes must belong to root")


@ROOT_ONLY
def test_doctor_finds_nothing_wrong(host: Host) -> None:
    checks = host.doctor()
    for name in ("secrets", "trust", "operations"):
        assert (checks[name]["state"], checks[name]["findings"]) == ("ok", []), checks[name]
        assert checks[name]["detail"] == f"1 in {host.dirs[name]}"


@ROOT_ONLY
def test_doctor_reads_the_approvers(host: Host) -> None:
    host.files["trust"].write_text("# people\nanna may=refund nonsense\n")
    found = host.doctor()["trust"]
    assert found["state"] == "wrong" and len(found["findings"]) == 1
    assert "approvers counts for nothing" in found["findings"][0] and "line 2" in found["findings"][0]


def mended(host: Host, name: str, path: Path, part: str) -> None:
    """The one finding names the path; its command, run by a shell, is what mends it."""
    found = host.doctor()[name]
    assert found["state"] == "wrong" and len(found["findings"]) == 1, found
    assert found["findings"][0].startswith(str(path)) and part in found["findings"][0], found["findings"]
    command = found["findings"][0].rsplit(": ", 1)[1].split(", and ")[0]
    assert str(path) in shlex.split(command)
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert host.doctor()[name]["findings"] == []


@ROOT_ONLY
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666, 0o644])
def test_doctor_finds_a_secret_that_others_open(host: Host, mode: int) -> None:
    host.files["secrets"].chmod(mode)
    mended(host, "secrets", host.files["secrets"], "others can open it")


@ROOT_ONLY
def test_doctor_finds_a_directory_of_secrets_that_others_open(host: Host) -> None:
    host.dirs["secrets"].chmod(0o755)
    mended(host, "secrets", host.dirs["secrets"], "mode 0755")


@ROOT_ONLY
@pytest.mark.parametrize("name", ["secrets", "trust", "operations"])
def test_doctor_finds_links(host: Host, name: str) -> None:
    elsewhere = put(host.root, "elsewhere", "x")
    host.files[name].unlink()
    host.files[name].symlink_to(elsewhere)
    mended(host, name, host.files[name], "symbolic link")
    assert elsewhere.read_text() == "x"


@ROOT_ONLY
def test_doctor_finds_a_linked_directory(host: Host) -> None:
    real = host.root / "real"
    host.dirs["secrets"].rename(real)
    host.dirs["secrets"].symlink_to(real)
    mended(host, "secrets", host.dirs["secrets"], "symbolic link")
    assert (real / "payments").exists()


@ROOT_ONLY
@pytest.mark.parametrize("name", ["trust", "operations"])
@pytest.mark.parametrize("mode", [0o664, 0o646, 0o622])
def test_doctor_finds_approvers_and_operations_that_others_write(host: Host, name: str, mode: int) -> None:
    host.files[name].chmod(mode)
    mended(host, name, host.files[name], "others can")
    host.dirs[name].chmod(0o777)
    mended(host, name, host.dirs[name], "others can")


@ROOT_ONLY
@pytest.mark.parametrize("name", ["secrets", "trust", "operations"])
def test_doctor_finds_an_owner_who_is_not_root(host: Host, name: str) -> None:
    os.chown(host.files[name], 12345, 0)
    mended(host, name, host.files[name], "12345")


@ROOT_ONLY
def test_a_secret_may_belong_to_the_broker(host: Host) -> None:
    os.chown(host.files["secrets"], 64106, 64106)
    assert host.doctor()["secrets"]["state"] == "ok"


@ROOT_ONLY
def test_doctor_quotes_names_and_tells_all(host: Host) -> None:
    strange = put(host.dirs["secrets"], "it's $(touch x)", "y")
    host.files["secrets"].chmod(0o644)
    found = host.doctor()["secrets"]
    assert len(found["findings"]) == 2 and found["detail"].startswith("2 things to mend")
    host.files["secrets"].chmod(0o600)
    mended(host, "secrets", strange, "others can open it")
    told = demilune("doctor", "--config", host.config, code=1)
    assert "others can" not in told
    host.dirs["trust"].chmod(0o775)
    assert f"chmod go-w {host.dirs['trust']}" in demilune("doctor", "--config", host.config, code=1)


def test_doctor_of_a_configuration_with_faults(tmp_path: Path) -> None:
    path = put(tmp_path, "demilune.yaml", "nothing: 1\n")
    assert "has faults; demilune check tells them" in demilune("doctor", "--config", path, code=1)


# ---- the daemon ----


@ROOT_ONLY
def test_the_daemon_takes_them_and_takes_them_anew(host: Host) -> None:
    put(host.dirs["operations"], "a.yaml", SAMPLE)
    with Daemon({f"actions.{name}": str(path) for name, path in host.dirs.items()}) as daemon:
        def operations() -> list[dict[str, Any]]:
            done = subprocess.run([BINARY, "operation", "list", "--json"], capture_output=True, check=True, timeout=60,
                                  env=ENVIRONMENT | {"DEMILUNE_SOCKET": str(daemon.run / "api.sock")})
            return list(json.loads(done.stdout))

        def anew(text: str, said: str) -> None:
            put(host.dirs["operations"], "a.yaml", text)
            supervisor = daemon.supervisor
            os.kill(supervisor, signal.SIGHUP)
            wait_until(said, lambda: said in daemon.log())
            wait_until("the daemon is ready again", daemon.client.ready)

        def grant_state() -> str:
            done = subprocess.run([BINARY, "grant", "list", task], capture_output=True, check=True, timeout=60, text=True,
                                  env=ENVIRONMENT | {"DEMILUNE_SOCKET": str(daemon.run / "api.sock")})
            return done.stdout.splitlines()[1].split()[1]

        assert [(o["name"], o["version"]) for o in operations()] == [("refund", 1)]
        task = daemon.client.request("POST", "/v1/tasks", {"template": "python"}).expect(201).json["id"]
        daemon.client.request("POST", "/v1/grants", {"task": task, "operation": "refund", "uses": 1, "ttl_seconds": 600}).expect(201)
        assert grant_state() == "valid"
        anew(SAMPLE.replace("header: Authorization", "header: Host"),
             f"{host.dirs['operations']}/a.yaml:7:44: the broker writes the header Host itself")
        assert [(o["name"], o["version"]) for o in operations()] == [("refund", 1)]
        anew(SAMPLE.replace("version: 1", "version: 2"), "1 operations, 2 origins and 0 policies from now on")
        assert [(o["name"], o["version"]) for o in operations()] == [("refund", 2)]
        assert grant_state() == "changed", "it was issued for another operation of that name"
