# SPDX-License-Identifier: Apache-2.0
"""The command against a real daemon: what a person does, from the first run to the record. Needs root and a template."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path

import pytest
from daemon import Daemon
from fake import BINARY

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(tcp=True) as one:
        yield one


def environment(daemon: Daemon, **more: str) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "DEMILUNE_SOCKET": str(daemon.run / "api.sock")} | more


@pytest.fixture
def run(daemon: Daemon) -> Run:
    def call(*args: str, code: int = 0, input: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run([str(BINARY), *args], env=environment(daemon) | env, input=input, capture_output=True,
                              timeout=60, check=False)
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done

    return call


def text(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stdout.decode().strip()


def test_run(run: Run) -> None:
    done = run("run", "--tenant", "acme", "--label", "ticket=1", "--", "python3", "-c", "print(6*7)")
    assert (done.stdout, done.stderr) == (b"42\n", b"")
    assert "SANDBOX" in text(run("sandbox", "list")) and "ticket=1" not in text(run("sandbox", "list"))


@pytest.mark.parametrize(("words", "code"), [
    (["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137), (["no-such-command"], 127),
    (["/etc/passwd"], 126)])
def test_exit_codes(run: Run, words: list[str], code: int) -> None:
    run("run", "--tenant", "acme", "--", *words, code=code)


def test_timeout(run: Run) -> None:
    began = time.monotonic()
    run("run", "--tenant", "acme", "--timeout", "300ms", "sleep", "20", code=124)
    assert time.monotonic() - began < 5


def test_bytes_pass_through(run: Run) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 2000)"
    assert run("run", "--tenant", "acme", "python3", "-c", code).stdout == bytes(range(256)) * 2000


def test_options_reach_the_command(run: Run) -> None:
    done = run("run", "--tenant", "acme", "-i", "-e", "A=b c", "-w", "/tmp", "-u", "root", "--memory", "128MiB", "sh", "-c",
               "pwd; echo $A; id -u; cat", input="é from stdin\n".encode())
    assert done.stdout.decode() == "/tmp\nb c\n0\né from stdin\n"


def test_inputs_and_a_second_round(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.eml").write_bytes(b"\0hostile\xff")
    run("run", "--tenant", "acme", "--label", "ticket=2", "--input", f"{tmp_path}/t.eml:/work/t.eml", "sh", "-c",
        "cp /work/t.eml /work/left")
    sandbox = text(run("task", "resume", "2"))
    assert run("sandbox", "exec", sandbox, "sh", "-c", "cat /work/t.eml; ls /work").stdout == b"\0hostile\xfft.eml\n"
    run("task", "close", "2")
    run("sandbox", "exec", sandbox, "true", code=125)


def test_a_signal_leaves_no_sandbox(daemon: Daemon, run: Run) -> None:
    with subprocess.Popen([str(BINARY), "run", "--tenant", "acme", "--label", "ticket=3", "sh", "-c", "echo on; sleep 60"],
                          env=environment(daemon), stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"on\n"
        assert "ticket=3" in text(run("sandbox", "list"))
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 130
    assert "ticket=3" not in text(run("sandbox", "list"))
    end = [line for line in text(run("audit", "3")).splitlines() if "job.end" in line]
    assert len(end) == 1 and ("cancelled" in end[0] or "sandbox_ended" in end[0])


def test_files(run: Run, tmp_path: Path) -> None:
    sandbox = text(run("sandbox", "create", "--tenant", "acme"))
    data = os.urandom(3_000_000)
    (tmp_path / "in").write_bytes(data)
    run("sandbox", "cp", str(tmp_path / "in"), f"{sandbox}:/work/a b")
    run("sandbox", "cp", f"{sandbox}:/work/a b", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == data
    run("sandbox", "cp", f"{sandbox}:/work/nothing", str(tmp_path / "no"), code=1)
    run("sandbox", "cp", f"{sandbox}:/dev/zero", str(tmp_path / "no"), code=1)
    assert not (tmp_path / "no").exists()
    assert b"0 processes" in run("sandbox", "kill", sandbox).stdout


def test_trees(run: Run, tmp_path: Path) -> None:
    sandbox = text(run("sandbox", "create", "--tenant", "acme"))
    top = tmp_path / "in"
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/data").write_bytes(os.urandom(700_001))
    (top / "a/run.sh").write_text("echo ran\n")
    (top / "a/run.sh").chmod(0o755)
    (top / "empty").mkdir()
    (top / "a/link").symlink_to("b/data")
    run("sandbox", "cp", "-r", str(top), f"{sandbox}:/work/new/place")
    assert text(run("sandbox", "exec", sandbox, "sh", "-c", "cd /work/new/place; a/run.sh; readlink a/link; ls")) == (
        "ran\nb/data\na\nempty")
    out = tmp_path / "out"
    run("sandbox", "cp", "-r", f"{sandbox}:/work/new/place", str(out))
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*")) == ["a", "a/b", "a/b/data", "a/link", "a/run.sh", "empty"]
    assert (out / "a/b/data").read_bytes() == (top / "a/b/data").read_bytes()
    assert os.readlink(out / "a/link") == "b/data" and (out / "a/run.sh").stat().st_mode & 0o111 == 0
    run("sandbox", "exec", sandbox, "ln", "-s", "/etc/passwd", "/work/new/place/evil")
    assert b"--force" in run("sandbox", "cp", "-r", f"{sandbox}:/work/new/place", str(out), code=1).stderr
    done = run("sandbox", "cp", "-rf", f"{sandbox}:/work/new/place", str(out), code=1)
    assert b"left out, it leads out of the tree: evil -> /etc/passwd" in done.stderr and not os.path.lexists(out / "evil")
    os.mkfifo(top / "pipe")
    run("sandbox", "cp", "-r", str(top), f"{sandbox}:/work/new", code=1)
    run("sandbox", "cp", "-r", str(top / "a/run.sh"), f"{sandbox}:/work/new", code=1)
    run("sandbox", "kill", sandbox)


def test_pause(run: Run) -> None:
    sandbox = text(run("sandbox", "create", "--tenant", "acme"))
    run("sandbox", "pause", sandbox)
    assert "paused" in text(run("sandbox", "show", sandbox))
    run("sandbox", "resume", sandbox)
    run("sandbox", "exec", sandbox, "true")
    run("sandbox", "kill", sandbox)
    assert b"ended" in run("sandbox", "show", sandbox, code=1).stderr
    assert "0 processes" in text(run("sandbox", "show", "--ended", sandbox))


def test_the_record(run: Run, tmp_path: Path) -> None:
    run("run", "--tenant", "acme", "--label", "ticket=4", "sh", "-c", "exit 9", code=9)
    table = text(run("audit", "4"))
    assert "exit 9" in table and "sh -c 'exit 9'" in table and "0 left over" in table
    export = tmp_path / "export"
    export.write_bytes(run("audit", "--json", "4").stdout)
    assert run("audit", "verify", str(export)).stdout.splitlines() == run("audit", "verify", "4").stdout.splitlines()[:1]
    lines = export.read_bytes().splitlines(keepends=True)
    export.write_bytes(b"".join(lines).replace(b'"code":9', b'"code":0'))
    assert b"was changed" in run("audit", "verify", str(export), code=1).stderr


def test_the_signed_log(run: Run, tmp_path: Path) -> None:
    """What a person holds elsewhere, and what it proves later, with the real broker's signature."""
    run("run", "--tenant", "acme", "--label", "ticket=log", "--", "true")
    key, held, receipt = text(run("audit", "key")), tmp_path / "held", tmp_path / "receipt"
    held.write_bytes(run("audit", "checkpoint", "--key", key).stdout)
    run("run", "--tenant", "acme", "--label", "ticket=log2", "--", "true")
    for task in ("log", "log2"):
        out = text(run("audit", "verify", "--key", key, "--checkpoint", str(held), task))
        assert "the log continues the checkpoint" in out and "came along" not in out
    run("audit", "export", "--out", str(receipt), "log")
    assert "all in the log demilune.local/audit of" in text(run("audit", "verify", "--key", key, str(receipt)))
    receipt.write_bytes(receipt.read_bytes().replace(b'"leaf":', b'"leaf":1', 1))
    assert b"is not in the log that was signed" in run("audit", "verify", str(receipt), code=1).stderr
    # Another log of the same name, as a host that was made anew would have it.
    other = tmp_path / "other"
    other.write_text(held.read_text().replace("\n", "/2\n", 1))
    assert run("audit", "verify", "--key", key, "--checkpoint", str(other), "log", code=1).stderr


def test_tokens(daemon: Daemon, run: Run) -> None:
    url = f"http://127.0.0.1:{daemon.port}"
    token = text(run("token", "create", "--tenant", "acme", "--print"))
    other = text(run("token", "create", "--tenant", "other", "--print"))
    run("run", "--label", "ticket=5", "true", DEMILUNE_API=url, DEMILUNE_TOKEN=token)
    run("audit", "5", DEMILUNE_API=url, DEMILUNE_TOKEN=token)
    assert run("audit", "5", DEMILUNE_API=url, DEMILUNE_TOKEN=other, code=1).stderr
    run("run", "--tenant", "acme", "true", DEMILUNE_API=url, DEMILUNE_TOKEN=other, code=125)
    run("token", "revoke", token[:12])
    run("sandbox", "list", DEMILUNE_API=url, DEMILUNE_TOKEN=token, code=1)


def test_templates_and_doctor(run: Run, tmp_path: Path) -> None:
    assert "code-interpreter" in text(run("template", "list"))
    assert "/work" in text(run("template", "show", "ubuntu-24.04"))
    run("template", "show", "none", code=1)
    state = os.environ["DEMILUNE_STATE"]
    nowhere = {"DEMILUNE_SOCKET": "/nonexistent"}
    assert "code-interpreter" in text(run("template", "list", "--state", state, **nowhere))
    assert json.loads(run("template", "show", "python", "--state", state, **nowhere).stdout)["digest"]
    run("template", "list", code=1, **nowhere)
    assert b"demilune-template" in run("template", "build", "no-such-template", "--state", str(tmp_path), "--source",
                                       "/nonexistent", code=1).stderr
    checks = json.loads(run("doctor", "--json").stdout)
    assert {c["state"] for c in checks if c["needed"]} == {"ok"}
    assert "says the daemon" in text(run("doctor", DEMILUNE_STATE=str(tmp_path)))
    assert f"in {state}/templates/index" in text(run("doctor", DEMILUNE_STATE=state, **nowhere))
    assert f"{tmp_path}/templates/index" in text(run("doctor", "--state", str(tmp_path), code=1))
    assert "none at /nonexistent" in text(run("doctor", "--state", state, **nowhere))
    done = run("template", "build", "no-such-template", "--source", "/nonexistent", code=1, DEMILUNE_STATE=str(tmp_path / "s"))
    assert b"demilune-template" in done.stderr


# ---- the shell ----


def read_until(fd: int, wanted: bytes, seconds: float = 10) -> bytes:
    out, limit = b"", time.monotonic() + seconds
    while wanted not in out and time.monotonic() < limit:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                out += os.read(fd, 65536)
            except OSError:
                break
    assert wanted in out, out
    return out


def set_size(fd: int, rows: int, columns: int) -> None:
    ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@pytest.fixture
def shell(daemon: Daemon, run: Run) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    sandbox = text(run("sandbox", "create", "--tenant", "acme"))
    ours, theirs = pty.openpty()
    set_size(ours, 33, 99)

    def own_terminal() -> None:
        os.setsid()
        ioctl(0, termios.TIOCSCTTY, 0)

    child = subprocess.Popen([str(BINARY), "sandbox", "shell", sandbox], env=environment(daemon, TERM="xterm"), stdin=theirs,
                             stdout=theirs, stderr=theirs, preexec_fn=own_terminal)
    os.set_inheritable(theirs, False)
    child.terminal = theirs  # type: ignore[attr-defined]
    yield ours, child
    if child.poll() is None:
        child.kill()
        child.wait(5)
    os.close(theirs)
    os.close(ours)
    run("sandbox", "kill", sandbox)


def restored(child: subprocess.Popen[bytes]) -> bool:
    flags: int = termios.tcgetattr(child.terminal)[3]  # type: ignore[attr-defined]
    return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)


def test_shell(shell: tuple[int, subprocess.Popen[bytes]]) -> None:
    fd, child = shell
    read_until(fd, b"$ ")
    assert not restored(child)
    os.write(fd, b"stty size\n")
    read_until(fd, b"33 99")
    set_size(fd, 44, 111)
    child.send_signal(signal.SIGWINCH)
    time.sleep(0.2)
    os.write(fd, b"stty size\n")
    read_until(fd, b"44 111")
    os.write(fd, b"sleep 30\n")
    time.sleep(0.2)
    os.write(fd, b"\x03echo after=$?\n")  # Ctrl-C is for the command inside
    read_until(fd, b"after=130")
    os.write(fd, b"exit 42\n")
    assert child.wait(10) == 42
    assert restored(child)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal(shell: tuple[int, subprocess.Popen[bytes]], sent: signal.Signals) -> None:
    fd, child = shell
    read_until(fd, b"$ ")
    child.send_signal(sent)
    assert child.wait(10) == 128 + sent
    assert restored(child)


def test_the_end_of_the_sandbox_restores_the_terminal(shell: tuple[int, subprocess.Popen[bytes]], run: Run) -> None:
    fd, child = shell
    read_until(fd, b"$ ")
    os.write(fd, b"kill -9 $$\n")
    assert child.wait(10) == 137
    assert restored(child)
