# SPDX-License-Identifier: Apache-2.0
"""Tables, ids, tokens, files, and answers that are broken, too large or slow."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import stat
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from fake import BINARY, SANDBOX, TASK, Fake, Handler, Seen

BOX = {"id": SANDBOX, "task": TASK, "tenant": "acme", "template": "python", "status": "running", "reason": "none",
       "metadata": {"ticket": "48221"}, "ttl_left_seconds": 250, "ttl_seconds": 600,
       "limits": {"memory_mb": 512, "disk_mb": 256}, "boundary": {"statement": "a container"}}
EVIL = "\x1b[2J\x1b]0;owned\x07\u202etxt\n"


def page(items: list[Any], more: bool = False) -> dict[str, Any]:
    return {"items": items, "more": more}


# ---- tables ----


def test_sandbox_list(fake: Fake) -> None:
    fake.on("GET", "/v1/sandboxes", 200, page([BOX]))
    lines = fake.run("sandbox", "list").stdout.decode().splitlines()
    assert lines[0].split() == ["SANDBOX", "STATE", "TENANT", "TEMPLATE", "TASK", "LEFT", "MEMORY", "LABELS"]
    assert lines[1].split() == [SANDBOX, "running", "acme", "python", TASK, "4m10s", "512", "MiB", "ticket=48221"]


def test_lists_go_on_from_page_to_page(fake: Fake) -> None:
    pages = {"": page([BOX | {"id": "sb_1"}], True), "sb_1": page([BOX | {"id": "sb_2"}], True),
             "sb_2": page([BOX | {"id": "sb_3"}])}
    fake.on("GET", "/v1/sandboxes", lambda h, s: h.answer(200, pages[s.query.get("after", "")]))
    done = json.loads(fake.run("sandbox", "list", "--json", "--label", "a b=c&d").stdout)
    assert [s["id"] for s in done] == ["sb_1", "sb_2", "sb_3"]
    assert {s.query["label"] for s in fake.seen} == {"a b=c&d"}


@pytest.mark.parametrize("what", [[], {"items": 5}, {}, page([{}], True), page([], True), page([BOX], True)])
def test_lists_that_do_not_end_or_are_none(fake: Fake, what: Any) -> None:
    fake.on("GET", "/v1/sandboxes", 200, what)
    assert fake.run("sandbox", "list", code=1).stderr.startswith(b"demilune: the daemon's")


def test_text_of_strangers_in_tables(fake: Fake) -> None:
    fake.on("GET", "/v1/sandboxes", 200, page([
        BOX | {"metadata": {"note": EVIL, EVIL: "x"}, "tenant": EVIL, "template": EVIL}]))
    fake.on("GET", f"/v1/sandboxes/{SANDBOX}", 200,
            BOX | {"metadata": {"note": EVIL}, "tenant": EVIL, "boundary": {"statement": EVIL}})
    for args in (["sandbox", "list"], ["sandbox", "show", SANDBOX]):
        out = fake.run(*args).stdout.decode()
        assert "\x1b" not in out and "\x07" not in out and "\u202e" not in out
        assert "\\x1b[2J" in out and "\\u{202e}" in out
    done = fake.run("sandbox", "list", "--json").stdout
    assert done.isascii() and b"\x1b" not in done and json.loads(done)[0]["tenant"] == EVIL


def test_text_of_strangers_in_refusals(fake: Fake) -> None:
    fake.on("GET", "/v1/sandboxes", lambda h, s: h.refuse(400, "bad", f"no {EVIL}" + "x" * 1000))
    err = fake.run("sandbox", "list", code=1).stderr
    assert b"\x1b" not in err and b"\\x1b[2J" in err and err.endswith(b"x" * 1000 + b"\n") and err.count(b"\n") == 1


def test_colours_only_on_a_terminal(fake: Fake) -> None:
    fake.on("GET", "/v1/sandboxes", 200, page([BOX]))

    def on_terminal(**env: str) -> bytes:
        ours, theirs = pty.openpty()
        with fake.start("sandbox", "list", env={"TERM": "xterm"} | env, stdout=theirs) as child:
            os.close(theirs)
            child.wait(timeout=10)
        return os.read(ours, 65536)

    assert b"\x1b[1m" in on_terminal() and b"\x1b[32mrunning\x1b[0m" in on_terminal()
    assert b"\x1b" not in on_terminal(NO_COLOR="1")
    assert b"\x1b" not in on_terminal(TERM="dumb")
    assert b"\x1b" not in fake.run("sandbox", "list", env={"TERM": "xterm"}).stdout


def test_sandbox_create_prints_the_id(fake: Fake) -> None:
    fake.sandbox()
    assert fake.run("sandbox", "create", "--tenant", "acme").stdout.decode() == f"{SANDBOX}\n"


def test_kill_tells_the_proof(fake: Fake) -> None:
    proof = {k: 0 for k in ("processes", "cgroups", "mounts", "namespaces", "journal")}
    fake.on("DELETE", f"/v1/sandboxes/{SANDBOX}", 200, BOX | {"proof": proof})
    assert b"0 processes, 0 cgroups, 0 mounts, 0 namespaces" in fake.run("sandbox", "kill", SANDBOX).stdout
    assert fake.seen[-1].query == {"proof": "1"}
    fake.on("DELETE", f"/v1/sandboxes/{SANDBOX}", 200, BOX | {"proof": proof | {"mounts": 2}})
    assert b"2 mounts" in fake.run("sandbox", "kill", SANDBOX, code=1).stdout
    fake.on("DELETE", f"/v1/sandboxes/{SANDBOX}", 200, BOX | {"proof": {}})
    fake.run("sandbox", "kill", SANDBOX, code=1)


def test_kill_goes_on_behind_a_failure(fake: Fake) -> None:
    fake.sandbox()
    other = "sb_fedcba9876543210"
    done = fake.run("sandbox", "kill", other, "nonsense", SANDBOX, code=1)
    assert f"killed         {SANDBOX}".encode() in done.stdout
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("name", ["sb_", "sb_0123", SANDBOX.upper(), SANDBOX + "0", "../x", TASK, "sb_0123456789abcde/"])
def test_ids_are_exact(fake: Fake, name: str) -> None:
    for verb in ("show", "pause", "resume", "kill"):
        fake.run("sandbox", verb, name, code=1)
    assert fake.seen == []


def test_pause_and_resume(fake: Fake) -> None:
    fake.on("POST", f"/v1/sandboxes/{SANDBOX}/pause", 204)
    fake.on("POST", f"/v1/sandboxes/{SANDBOX}/resume", 204)
    assert fake.run("sandbox", "pause", SANDBOX).stdout == b""
    assert fake.run("sandbox", "resume", SANDBOX).stdout == b""


# ---- tasks and tokens ----


def test_tasks(fake: Fake) -> None:
    task = {"id": TASK, "tenant": "acme", "state": "open", "labels": {"ticket": "48221"}, "sandboxes": 3,
            "sandboxes_live": 1, "jobs": 9, "inputs": 1, "records": 40, "created_at": "2026-11-29T16:13:04.123Z"}
    inputs = page([{"path": "/work/t.eml", "mode": "0644", "size": 2048, "content": "sha256:00"}])
    fake.on("GET", "/v1/tasks", 200, page([task]))
    fake.on("GET", "/v1/tasks/48221", 200, task)
    fake.on("GET", "/v1/tasks/a/b ?", 200, task)
    fake.on("GET", f"/v1/tasks/{TASK}/inputs", 200, inputs)
    fake.on("POST", f"/v1/tasks/{TASK}/close", 200, task)
    fake.on("POST", f"/v1/tasks/{TASK}/resume", 201, {"id": SANDBOX})
    assert "2026-11-29 16:13:04  1/3" in re.sub(" +", lambda m: m.group(0)[:2], fake.run("task", "list").stdout.decode())
    out = fake.run("task", "show", "48221").stdout.decode()
    assert "ticket=48221" in out and "/work/t.eml" in out and "2 KiB" in out
    fake.run("task", "show", "a/b ?")
    assert fake.run("task", "resume", "48221").stdout.decode() == f"{SANDBOX}\n"
    assert fake.run("task", "close", TASK).stdout == b""
    assert "/work/t.eml" in fake.run("task", "input", TASK).stdout.decode()


def test_expired_tokens_are_told(fake: Fake) -> None:
    soon = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + 60))
    ago = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 2))
    fake.on("GET", "/v1/me/tokens", 200, {"items": [
        {"prefix": "dml_a", "expires_at": soon}, {"prefix": "dml_b", "expires_at": ago}, {"prefix": "dml_c"},
        {"prefix": "dml_d", "expires_at": ago, "revoked_at": ago}, {"prefix": "dml_e", "expires_at": EVIL}]})
    rows = fake.run("token", "list").stdout.decode().splitlines()[1:]
    assert [row.split()[-1] for row in rows] == ["valid", "expired", "valid", "revoked", "valid"]


@pytest.mark.parametrize("text", [EVIL, "dml_a b", "dml_\u00e9", "dml_a\nb", "", 5])
def test_a_token_is_checked_before_it_is_printed(fake: Fake, text: Any) -> None:
    fake.on("POST", "/v1/me/tokens", 201, {"token": text, "prefix": "dml_"})
    for more in ([], ["--print"], ["--json"]):
        done = fake.run("token", "create", *more, code=1)
        assert done.stdout == b"" and b"has no token" in done.stderr


@pytest.mark.parametrize("odd", ["sb_\x1b[2J0123456789a", TASK, "", SANDBOX + "\n", None])
def test_ids_are_checked_before_they_are_printed(fake: Fake, odd: Any) -> None:
    fake.on("POST", "/v1/sandboxes", 201, {"id": odd})
    fake.on("POST", f"/v1/tasks/{TASK}/resume", 201, {"id": odd})
    fake.on("POST", "/v1/tasks", 201, {"id": SANDBOX if odd == TASK else odd})
    for verb in (["sandbox", "create"], ["task", "resume", TASK], ["task", "create"]):
        done = fake.run(*verb, code=1)
        assert done.stdout == b"" and done.stderr == b"demilune: the daemon's answer has no id\n"


def test_token_create(fake: Fake) -> None:
    made = {"token": "dml_secret", "prefix": "dml_secret"[:8], "tenant": "acme"}
    fake.on("POST", "/v1/me/tokens", 201, made)
    assert fake.run("token", "create", "--tenant", "acme", "--print").stdout == b"dml_secret\n"
    out = fake.run("token", "create", "--tenant", "acme", "--name", "ci", "--expires", "30d").stdout.decode()
    assert out.splitlines()[-1] == "dml_secret"
    assert fake.seen[-1].json() == {"tenant": "acme", "label": "ci", "expires_in_seconds": 2592000.0}


def test_token_list_and_revoke(fake: Fake) -> None:
    fake.on("GET", "/v1/me/tokens", 200, page([
        {"prefix": "dml_aaaaaaaa", "tenant": "acme", "label": "ci"},
        {"prefix": "dml_bbbbbbbb", "tenant": "acme", "label": "old", "revoked_at": "2026-01-01T00:00:00.000Z"}]))
    fake.on("DELETE", "/v1/me/tokens/dml_aaaaaaaa", 204)
    out = fake.run("token", "list").stdout.decode().splitlines()
    assert out[1].endswith("valid") and out[2].endswith("revoked")
    fake.run("token", "revoke", "dml_aaaaaaaa")


# ---- where the daemon is ----


def test_socket_sends_no_token_of_the_file(fake: Fake, tmp_path: Path) -> None:
    token_file(tmp_path, 0o600)
    fake.on("GET", "/v1/sandboxes", 200, page([]))
    fake.run("sandbox", "list", env={"HOME": str(tmp_path)})
    assert "Authorization" not in fake.seen[-1].headers
    fake.run("sandbox", "list", env={"DEMILUNE_TOKEN": "dml_x"})
    assert fake.seen[-1].headers["Authorization"] == "Bearer dml_x"


def token_file(home: Path, mode: int, text: str = "dml_file\n") -> Path:
    path = home / ".config/demilune/token"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_url_takes_the_token_of_the_file(fake: Fake, tmp_path: Path) -> None:
    token_file(tmp_path, 0o600)
    fake.on("GET", "/v1/sandboxes", 200, page([]))
    for host in ("127.0.0.1", "localhost"):
        fake.run("sandbox", "list", "--api", f"http://{host}:{fake.port}", env={"HOME": str(tmp_path)})
        assert fake.seen[-1].headers["Authorization"] == "Bearer dml_file"
        assert fake.seen[-1].headers["Host"] == f"{host}:{fake.port}"
    fake.run("sandbox", "list", env={"HOME": str(tmp_path), "DEMILUNE_API": f"http://127.0.0.1:{fake.port}/",
                                     "DEMILUNE_TOKEN": "dml_env"})
    assert fake.seen[-1].headers["Authorization"] == "Bearer dml_env"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_a_token_file_that_others_can_read(fake: Fake, tmp_path: Path, mode: int) -> None:
    path = token_file(tmp_path, mode)
    done = fake.run("sandbox", "list", "--api", f"http://127.0.0.1:{fake.port}", env={"HOME": str(tmp_path)}, code=1)
    assert f"chmod 600 {path}" in done.stderr.decode() and fake.seen == []


@pytest.mark.parametrize("text", ["", "\n", "a b\n", "dml_a\ndml_b\n", "x" * 513, "dml_\u00e9\n", "a\x01"])
def test_a_token_file_that_holds_none(fake: Fake, tmp_path: Path, text: str) -> None:
    token_file(tmp_path, 0o600, text)
    fake.run("sandbox", "list", "--api", f"http://127.0.0.1:{fake.port}", env={"HOME": str(tmp_path)}, code=1)
    assert fake.seen == []


def test_token_files_of_other_kinds(fake: Fake, tmp_path: Path) -> None:
    path = token_file(tmp_path, 0o600)
    url = ["sandbox", "list", "--api", f"http://127.0.0.1:{fake.port}"]
    if os.geteuid() == 0:
        os.chown(path, 12345, 0)
        assert b"of your own" in fake.run(*url, env={"HOME": str(tmp_path)}, code=1).stderr
    path.unlink()
    assert b"needs a token" in fake.run(*url, env={"HOME": str(tmp_path)}, code=1).stderr
    os.mkfifo(path, 0o600)
    fake.run(*url, env={"HOME": str(tmp_path)}, code=1)
    assert fake.seen == []


@pytest.mark.parametrize("url", [
    "https://127.0.0.1:1", "http://10.0.0.1:80", "http://example.org:80", "http://127.0.0.1", "http://127.0.0.1:",
    "127.0.0.1:1",
    "http://127.0.0.1:0", "http://127.0.0.1:65536", "http://127.0.0.1:80/v1", "http://127.0.0.1:80@evil.org",
    "http://127.0.0.1:80.evil.org", "http://u:p@127.0.0.1:80", "http://127.0.0.1:080", "http://localhost.evil.org:80", ""])
def test_urls_that_would_leak_the_token(fake: Fake, url: str) -> None:
    done = fake.run("sandbox", "list", "--api", url, env={"DEMILUNE_TOKEN": "dml_x"}, code=2 if url == "" else 1)
    assert b"must not" in done.stderr


def test_no_daemon(fake: Fake, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path / ("x" * 200)):
        assert fake.run("sandbox", "list", "--socket", str(path), code=1).stderr.startswith(b"demilune: ")
    fake.run("run", "--socket", str(tmp_path / "nothing"), "x", code=125)
    fake.run("sandbox", "list", "--socket", "/a", "--api", "http://127.0.0.1:1", code=1)


# ---- broken, oversized and slow answers ----


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("data", [
    b"", b"HTTP", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.1 99 x\r\n\r\n",
    HEAD + b"Content-Length: 5\r\n\r\n{}", HEAD + b"Content-Length: -1\r\n\r\n{}",
    HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Content-Length: 3\r\n\r\n{]\n", HEAD + b"Content-Length: 9\r\n\r\n\"string\" ",
    HEAD + b"Content-Length: 2\r\n\r\n\xff\xfe",
    HEAD + b"Content-Length: 13\r\n\r\n{\"a\":1,\"a\":2}", HEAD + b"X: " + b"y" * 40000 + b"\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 50 + HEAD + b"Content-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 500 x\r\nContent-Length: 9\r\n\r\n<html>no!",
    b"HTTP/1.1 500 x\r\nContent-Length: 100000\r\n\r\n" + b" " * 100000,
    b"HTTP/1.1 500 x\r\nContent-Length: 13\r\n\r\n{\"error\":null}",
    HEAD + b"Content-Length: 2\r\n\r\n[]", HEAD + b"Content-Length: 200\r\n\r\n" + b"[" * 100 + b"]" * 100])
def test_broken_answers(fake: Fake, data: bytes) -> None:
    fake.raw("POST", "/v1/sandboxes", data)
    done = fake.run("run", "x", code=125)
    assert done.stdout == b"" and len(done.stderr.splitlines()) == 1 and len(fake.seen) == 1


def test_an_answer_that_is_too_large(fake: Fake) -> None:
    def answer(h: Handler, s: Seen) -> None:
        h.stream("application/json")
        h.chunk(b'{"items":["')
        while not fake.cut.is_set():
            h.chunk(b"x" * 1048576)

    fake.on("GET", "/v1/sandboxes", answer)
    assert b"larger than" in fake.run("sandbox", "list", code=1).stderr
    assert fake.cut.wait(5)


def test_a_slow_answer_is_waited_for_and_can_be_left(fake: Fake) -> None:
    def answer(h: Handler, s: Seen) -> None:
        time.sleep(0.5)
        data = HEAD + b"Content-Length: 25\r\n\r\n" + b'{"items":[],"more":false}'
        for i in range(len(data)):
            h.wfile.write(data[i:i + 1])
            h.wfile.flush()
            time.sleep(0.002)

    fake.on("GET", "/v1/sandboxes", answer)
    assert fake.run("sandbox", "list", "--json").stdout == b"[]\n"


def test_nobody_reads_a_table(fake: Fake) -> None:
    fake.on("GET", "/v1/sandboxes", 200, page([BOX] * 700))
    read, write = os.pipe()
    os.close(read)
    with fake.start("sandbox", "list", stdout=write) as child:
        os.close(write)
        assert child.wait(timeout=10) == 141
        assert child.stderr is not None and child.stderr.read() == b""


def test_a_full_disk(fake: Fake) -> None:
    fake.on("GET", "/v1/sandboxes", 200, page([BOX]))
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BINARY, "sandbox", "list"], env=fake.environment(), stdout=full, stderr=subprocess.PIPE,
                              check=False)
    assert done.returncode == 1 and b"No space" in done.stderr


# ---- files ----


FS = f"/v1/sandboxes/{SANDBOX}/fs"


def test_copy_in(fake: Fake, tmp_path: Path) -> None:
    fake.on("PUT", FS, 200, {"path": "/work/a", "bytes": 3})
    local = tmp_path / "a b"
    local.write_bytes(b"\0\xff" * 100000)
    local.chmod(0o755)
    fake.run("sandbox", "cp", str(local), f"{SANDBOX}:/work/")
    assert fake.seen[-1].query == {"path": "/work/a b", "mode": "755"} and fake.seen[-1].body == local.read_bytes()
    fake.run("sandbox", "cp", str(local), f"{SANDBOX}:/work/x&y")
    assert fake.seen[-1].query["path"] == "/work/x&y"


def test_copy_out(fake: Fake, tmp_path: Path) -> None:
    data = os.urandom(300000)

    def answer(h: Handler, s: Seen) -> None:
        h.stream("application/octet-stream")
        for at in range(0, len(data), 7777):
            h.chunk(data[at:at + 7777])
        h.end()

    fake.on("GET", FS, answer)
    fake.run("sandbox", "cp", f"{SANDBOX}:/work/out.bin", str(tmp_path))
    assert (tmp_path / "out.bin").read_bytes() == data
    assert (tmp_path / "out.bin").stat().st_mode & 0o111 == 0
    assert fake.seen[-1].query == {"path": "/work/out.bin"}
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "victim")
    asked = len(fake.seen)
    for there in (link, tmp_path / "out.bin"):
        assert b"--force" in fake.run("sandbox", "cp", f"{SANDBOX}:/work/out.bin", str(there), code=1).stderr
    assert link.is_symlink() and len(fake.seen) == asked
    fake.run("sandbox", "cp", "-f", f"{SANDBOX}:/work/out.bin", str(link))
    assert not link.is_symlink() and not (tmp_path / "victim").exists()


@pytest.mark.parametrize("how", [[], ["--force"]])
def test_a_device_is_written_into_and_never_replaced(fake: Fake, tmp_path: Path, how: list[str]) -> None:
    def answer(h: Handler, s: Seen) -> None:
        h.stream("application/octet-stream")
        h.chunk(b"bytes")
        h.end()

    fake.on("GET", FS, answer)
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    fake.run("sandbox", "cp", *how, f"{SANDBOX}:/f", str(device))
    assert stat.S_ISCHR(device.lstat().st_mode) and sorted(tmp_path.glob("*.part")) == []
    for output in ("-", "/dev/stdout"):
        assert fake.run("sandbox", "cp", *how, f"{SANDBOX}:/f", output).stdout == b"bytes"


def test_a_file_that_comes_up_meanwhile_stays(fake: Fake, tmp_path: Path) -> None:
    def answer(h: Handler, s: Seen) -> None:
        (tmp_path / "f").write_bytes(b"mine")
        h.stream("application/octet-stream")
        h.chunk(b"evil")
        h.end()

    fake.on("GET", FS, answer)
    assert b"--force" in fake.run("sandbox", "cp", f"{SANDBOX}:/f", str(tmp_path / "f"), code=1).stderr
    assert (tmp_path / "f").read_bytes() == b"mine" and not list(tmp_path.glob("*.part"))


def test_a_copy_that_breaks_off_leaves_what_was(fake: Fake, tmp_path: Path) -> None:
    def answer(h: Handler, s: Seen) -> None:
        h.stream("application/octet-stream")
        h.chunk(b"half")

    old = tmp_path / "f"
    old.write_bytes(b"old")
    fake.on("GET", FS, answer)
    assert b"cut off" in fake.run("sandbox", "cp", "--force", f"{SANDBOX}:/f", str(old), code=1).stderr
    assert old.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir() if p.name != "api.sock"] == ["f"]


@pytest.mark.parametrize("pair", [
    ("here", "there"), (f"{SANDBOX}:/a", f"{SANDBOX}:/b"), (f"{SANDBOX}:/..", "."), (f"{SANDBOX}:/a/", "."),
    ("sb_bad:/a", "."), ("/nonexistent", f"{SANDBOX}:/a"), ("/dev/null", f"{SANDBOX}:/a"), ("/tmp", f"{SANDBOX}:/a"),
    (f"{SANDBOX}:/a", "/nonexistent/"), ("", "")])
def test_copies_that_cannot_be(fake: Fake, pair: tuple[str, str]) -> None:
    fake.run("sandbox", "cp", *pair, code=1)
    assert fake.seen == []


def archive(*entries: tarfile.TarInfo, data: bytes = b"evil") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in entries:
            if entry.isreg():
                entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()[:sum(512 + (-(-e.size // 512) * 512 if e.isreg() else 0) for e in entries) + 1024]


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


def serve_tree(fake: Fake, data: bytes) -> None:
    def answer(h: Handler, s: Seen) -> None:
        h.stream("application/x-tar")
        for at in range(0, len(data), 333):
            h.chunk(data[at:at + 333])
        h.end()

    fake.on("GET", f"{FS}/tree", answer)


def names(top: Path) -> list[str]:
    return sorted(str(p.relative_to(top)) for p in top.rglob("*"))


def test_a_tree_comes_out(fake: Fake, tmp_path: Path) -> None:
    out = tmp_path / "out"
    serve_tree(fake, archive(entry("d", tarfile.DIRTYPE, mode=0o755), entry("d/f", mode=0o6777),
                             entry("d/l", tarfile.SYMTYPE, "f"), entry("up", tarfile.SYMTYPE, "../../etc/passwd")))
    done = fake.run("sandbox", "cp", "-r", f"{SANDBOX}:/work", str(out), code=1)
    assert b"up -> ../../etc/passwd" in done.stderr and names(out) == ["d", "d/f", "d/l"]
    assert (out / "d/f").stat().st_mode & 0o7111 == 0


@pytest.mark.parametrize("entries", [
    [entry("../escape")], [entry("/tmp/escape")], [entry("a/../../escape")],
    [entry("l", tarfile.SYMTYPE, "d"), entry("l/escape")],
    [entry("d", tarfile.DIRTYPE), entry("l", tarfile.SYMTYPE, "d"), entry("l/escape")],
    [entry("d", tarfile.DIRTYPE), entry("d/x", tarfile.DIRTYPE), entry("l", tarfile.SYMTYPE, "d"), entry("l/x/escape")],
    [entry("h", tarfile.LNKTYPE, "/etc/passwd")], [entry("p", tarfile.FIFOTYPE)], [entry("c", tarfile.CHRTYPE)],
    [entry("no/parent/escape")]])
def test_trees_that_would_escape(fake: Fake, tmp_path: Path, entries: list[tarfile.TarInfo]) -> None:
    out = tmp_path / "out"
    serve_tree(fake, archive(*entries))
    fake.run("sandbox", "cp", "-r", f"{SANDBOX}:/work", str(out), code=1)
    assert not [n for n in names(tmp_path) if n.endswith(("escape", "/h", "/p", "/c"))]


def test_a_tree_is_not_written_through_links_that_are_there(fake: Fake, tmp_path: Path) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    victim.mkdir()
    (victim / "file").write_bytes(b"mine")
    (out / "f").symlink_to(victim / "file")
    (out / "d").symlink_to(victim)
    serve_tree(fake, archive(entry("f")))
    assert b"--force" in fake.run("sandbox", "cp", "-r", f"{SANDBOX}:/work", str(out), code=1).stderr
    assert (out / "f").is_symlink()
    fake.run("sandbox", "cp", "-rf", f"{SANDBOX}:/work", str(out))
    assert (out / "f").read_bytes() == b"evil" and not (out / "f").is_symlink()
    for entries in ([entry("d", tarfile.DIRTYPE)], [entry("d/file")]):
        serve_tree(fake, archive(*entries))
        fake.run("sandbox", "cp", "-rf", f"{SANDBOX}:/work", str(out), code=1)
    assert (victim / "file").read_bytes() == b"mine" and names(victim) == ["file"]


@pytest.mark.parametrize("taken", [entry(".git/config"), entry(".git/config", tarfile.SYMTYPE, "evil")])
def test_a_tree_replaces_nothing_unless_told(fake: Fake, tmp_path: Path, taken: tarfile.TarInfo) -> None:
    config = tmp_path / "out/.git/config"
    config.parent.mkdir(parents=True)
    config.write_bytes(b"mine")
    serve_tree(fake, archive(entry(".git", tarfile.DIRTYPE, mode=0o755), entry(".git/new"), taken, entry("later")))
    done = fake.run("sandbox", "cp", "-r", f"{SANDBOX}:/work", str(tmp_path / "out"), code=1)
    assert b".git/config is there already" in done.stderr and b"--force" in done.stderr
    assert not config.is_symlink() and config.read_bytes() == b"mine" and not (tmp_path / "out/later").exists()
    fake.run("sandbox", "cp", "-r", "--force", f"{SANDBOX}:/work", str(tmp_path / "out"))
    assert (tmp_path / "out/later").exists() and (config.is_symlink() or config.read_bytes() == b"evil")


def test_a_tree_that_breaks_off(fake: Fake, tmp_path: Path) -> None:
    data = archive(entry("a"), entry("b"))
    for cut in (1, 100, 512, 513, 1024, len(data) - 1, len(data) - 512, len(data) - 1024):
        serve_tree(fake, data[:cut])
        fake.run("sandbox", "cp", "-rf", f"{SANDBOX}:/work", str(tmp_path / "out"), code=1)
    serve_tree(fake, data)
    fake.run("sandbox", "cp", "-rf", f"{SANDBOX}:/work", str(tmp_path / "out"))


# ---- the shell's terminal ----


def test_a_shell_needs_a_terminal(fake: Fake) -> None:
    assert b"needs a terminal" in fake.run("sandbox", "shell", SANDBOX, code=125).stderr
    assert fake.seen == []


