# SPDX-License-Identifier: Apache-2.0
"""The unmodified SDK of PyPI (pandastack 0.10.0) against a running daemon: every method that applies to containers."""

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandastack
import pytest
from pandastack import exceptions
from place import Caller, record

BINARY = bytes(range(256)) * 17 + b"\x00\xff\xfe\r\n\xc3\x28"
TEXT = "Grüße, 日本語, 😀, \u2028 and \u0085"


@pytest.fixture
def client(caller: Caller) -> Iterator[pandastack.Client]:
    made = pandastack.Client(api_url=caller.url, api_key=caller.token)
    pandastack.set_default_client(made)
    yield made
    pandastack.set_default_client(None)


@pytest.fixture
def box(client: pandastack.Client) -> Iterator[pandastack.Sandbox]:
    made = client.sandboxes.create(ttl_seconds=120)
    yield made
    with contextlib.suppress(exceptions.NotFoundError):
        made.kill()


# ---- errors ----


def test_no_key_is_refused_before_anything_is_sent(caller: Caller) -> None:
    with pytest.raises(exceptions.AuthError):
        pandastack.Client(api_url=caller.url, api_key="").me()


def test_unknown_key(caller: Caller) -> None:
    with pytest.raises(exceptions.AuthError):
        pandastack.Client(api_url=caller.url, api_key="dml_" + "0" * 40).sandboxes.list()


def test_revoked_key(caller: Caller, client: pandastack.Client) -> None:
    token = client.tokens.create("short-lived", expires_in_days=1)
    second = pandastack.Client(api_url=caller.url, api_key=token.token)
    assert second.me()["tenant"] == client.me()["tenant"]
    assert token.prefix in [t.prefix for t in client.tokens.list()]
    client.tokens.revoke(token.prefix)
    with pytest.raises(exceptions.AuthError):
        second.me()


@pytest.mark.parametrize("name", ["sb_0000000000000000", "no-such-sandbox", "x"])
def test_unknown_sandbox(client: pandastack.Client, name: str) -> None:
    with pytest.raises(exceptions.NotFoundError):
        client.sandboxes.get(name)


def test_unknown_template(client: pandastack.Client) -> None:
    with pytest.raises((exceptions.NotFoundError, exceptions.BadRequestError), match="no-such-template"):
        client.sandboxes.create(template="no-such-template")


@pytest.mark.parametrize("ttl", [-1, 0, 10**18])
def test_impossible_ttl(client: pandastack.Client, ttl: int) -> None:
    with pytest.raises(exceptions.BadRequestError):
        client.sandboxes.create(ttl_seconds=ttl)


def test_refused_create_leaves_nothing(client: pandastack.Client) -> None:
    before = len(client.sandboxes.list())
    with pytest.raises(exceptions.BadRequestError):
        client.sandboxes.create(ttl_seconds=-1)
    assert len(client.sandboxes.list()) == before


def test_another_tenant_finds_nothing(box: pandastack.Sandbox, stranger: Caller) -> None:
    other = pandastack.Client(api_url=stranger.url, api_key=stranger.token)
    assert box.id not in [s.id for s in other.sandboxes.list()]
    with pytest.raises(exceptions.NotFoundError):
        other.sandboxes.get(box.id)
    with pytest.raises(exceptions.NotFoundError):
        other.sandboxes.delete(box.id)
    assert box.exec("echo still here").stdout == "still here\n"


def test_no_daemon() -> None:
    with pytest.raises(exceptions.APIConnectionError):
        pandastack.Client(api_url="http://127.0.0.1:9", api_key="dml_x").me()


def test_cancelled_create(client: pandastack.Client) -> None:
    event = threading.Event()
    event.set()
    with pytest.raises(exceptions.CreateCancelled):
        client.sandboxes.create(cancel=event)


# ---- life ----


def test_default_template_and_fields(box: pandastack.Sandbox) -> None:
    assert box.status == "running"
    assert box.cpu >= 1
    assert box.memory_mb >= 16
    assert box.persistent is False
    assert box.created_at is not None
    assert box.boot_ms is not None


def test_default_template_of_the_other_sdk(client: pandastack.Client) -> None:
    with client.sandboxes.create(template="ubuntu-24.04") as box:
        assert box.exec("echo yes").stdout == "yes\n"


def test_create_of_the_class(client: pandastack.Client) -> None:
    with pandastack.Sandbox.create(metadata={"ticket": "4001", "trust": "none"}) as box:
        assert box.metadata == {"ticket": "4001", "trust": "none"}
        again = pandastack.Sandbox.get(box.id)
        assert again.metadata == box.metadata
        assert again.persistent is False
        assert box.id in [s.id for s in pandastack.Sandbox.list()]
    with pytest.raises(exceptions.NotFoundError):
        client.sandboxes.get(box.id)


def test_persistent_outlives_with(client: pandastack.Client) -> None:
    with client.sandboxes.create(persistent=True, ttl_seconds=60) as box:
        assert box.persistent is True
    with client.sandboxes.get(box.id) as again:
        assert again.persistent is True
    client.sandboxes.delete(box.id)


def test_kill_twice(box: pandastack.Sandbox) -> None:
    box.kill()
    box.kill()  # it is gone, which is what was asked for
    with pytest.raises(exceptions.NotFoundError):
        box.refresh()


def test_ttl_ends_it(client: pandastack.Client) -> None:
    box = client.sandboxes.create(ttl_seconds=1)
    deadline = time.monotonic() + 5
    while box.id in [s.id for s in client.sandboxes.list()]:
        assert time.monotonic() < deadline, "it lives on after its time"
        time.sleep(0.1)
    with pytest.raises(exceptions.NotFoundError):
        box.refresh()


def test_lifecycle(box: pandastack.Sandbox) -> None:
    assert box.lifecycle()["ttl_seconds"] == 120
    assert box.set_ttl(300)["ttl_seconds"] >= 300
    assert box.set_persistent(True)["persistent"] is True
    assert box.refresh().persistent is True
    assert box.set_persistent(False)["persistent"] is False
    assert box.lifecycle()["idle_seconds"] >= 0


def test_pause_and_resume(box: pandastack.Sandbox) -> None:
    box.exec("(while :; do date +%s%N > /tmp/clock; sleep 0.05; done) > /dev/null 2>&1 &")
    box.pause()
    assert box.refresh().status == "paused"
    with pytest.raises(exceptions.BadRequestError):
        box.exec("echo not now")
    box.resume()
    assert box.refresh().status == "running"
    one = box.exec("cat /tmp/clock").stdout
    time.sleep(0.3)
    assert box.exec("cat /tmp/clock").stdout != one


def test_twenty_at_once(caller: Caller) -> None:
    def one(number: int) -> str:
        client = pandastack.Client(api_url=caller.url, api_key=caller.token)
        with client.sandboxes.create(metadata={"number": str(number)}) as box:
            box.filesystem.write("/work/number", str(number))
            return str(box.exec("cat /work/number; ls /work | wc -l").stdout)

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(one, range(20))) == [f"{n}1\n" for n in range(20)]


def test_twenty_commands_in_one(box: pandastack.Sandbox) -> None:
    with ThreadPoolExecutor(20) as pool:
        said = list(pool.map(lambda n: box.exec(f"sleep 0.2; echo {n}; exit {n}"), range(20)))
    assert [(r.stdout, r.exit_code) for r in said] == [(f"{n}\n", n) for n in range(20)]


# ---- commands ----


def test_exec(box: pandastack.Sandbox) -> None:
    ran = box.exec("echo out; echo err >&2; exit 7")
    assert (ran.stdout, ran.stderr, ran.exit_code) == ("out\n", "err\n", 7)
    assert box.commands.run("printf '%s' \"$0\"").exit_code == 0


def test_exec_check(box: pandastack.Sandbox) -> None:
    with pytest.raises(exceptions.CommandFailed) as failed:
        box.exec("echo no >&2; exit 3", check=True)
    assert (failed.value.exit_code, failed.value.stderr) == (3, "no\n")


def test_exec_of_what_is_not_there(box: pandastack.Sandbox) -> None:
    assert box.exec("no-such-program").exit_code == 127


def test_exec_timeout(box: pandastack.Sandbox) -> None:
    began = time.monotonic()
    with pytest.raises(exceptions.SandboxTimeout):
        box.exec("setsid sleep 60 & sleep 60", timeout_seconds=1)
    assert time.monotonic() - began < 5
    assert box.exec("pgrep -c sleep").stdout == "0\n"


def test_exec_text_of_all_kinds(box: pandastack.Sandbox) -> None:
    assert box.exec(f"cat <<'END'\n{TEXT}\nEND").stdout == TEXT + "\n"
    assert box.exec("printf 'a\\377b'").stdout == "a\ufffdb"
    assert box.exec("printf ''").stdout == ""


def test_exec_much_output(box: pandastack.Sandbox) -> None:
    ran = box.exec("seq 1 100000")
    assert ran.stdout == "".join(f"{n}\n" for n in range(1, 100001))
    flood = box.exec("head -c 50000000 /dev/zero | tr '\\0' x; echo end")
    assert flood.exit_code == 0
    assert len(flood.stdout) < 4 << 20
    assert flood.stdout.startswith("xxx")
    assert flood.stdout.endswith("end\n")


def test_background_server_lives_on(box: pandastack.Sandbox) -> None:
    box.exec("cd /tmp && (python3 -m http.server 8000 --bind 127.0.0.1 > /dev/null 2>&1 &)")
    asked = "for i in $(seq 50); do curl -sf http://127.0.0.1:8000/ > /dev/null && break; sleep 0.1; done"
    assert box.exec(f"{asked}; curl -sf http://127.0.0.1:8000/").exit_code == 0


def test_stream(box: pandastack.Sandbox) -> None:
    out: list[tuple[float, str]] = []
    err: list[str] = []
    code = box.exec_stream(
        "echo one; sleep 0.5; echo two; echo bad >&2; exit 5",
        on_stdout=lambda text: out.append((time.monotonic(), text)),
        on_stderr=err.append,
    )
    assert code == 5
    assert "".join(text for _, text in out) == "one\ntwo\n"
    assert err == ["bad\n"]
    assert out[-1][0] - out[0][0] > 0.3, "the output came at once at the end"


def test_stream_text_of_all_kinds(box: pandastack.Sandbox) -> None:
    said: list[str] = []
    assert box.exec_stream(f"cat <<'END'\n{TEXT}\nEND", on_stdout=said.append) == 0
    assert "".join(said) == TEXT + "\n"


def test_stream_timeout(box: pandastack.Sandbox) -> None:
    with pytest.raises(exceptions.SandboxTimeout):
        box.exec_stream("sleep 60", timeout_seconds=1)


def test_stream_is_told_when_the_sandbox_ends(client: pandastack.Client, box: pandastack.Sandbox) -> None:
    timer = threading.Timer(0.5, lambda: client.sandboxes.delete(box.id))
    timer.start()
    with pytest.raises((exceptions.ServerError, exceptions.ExecInterrupted)):
        box.exec_stream("echo begun; sleep 60")
    timer.join()


def test_run_code(box: pandastack.Sandbox) -> None:
    assert box.run_code("print(6 * 7)").stdout == "42\n"
    assert box.run_code("echo \"it's\" $((6 * 7))", language="bash").stdout == "it's 42\n"
    assert "ZeroDivisionError" in box.run_code("1 / 0").stderr


def test_code_context(box: pandastack.Sandbox) -> None:
    with box.create_code_context() as context:
        assert context.run_code("x = 41").error is None
        done = context.run_code("print('said')\nx + 1")
        assert (done.text, done.stdout, done.exit_code) == ("42", "said\n", 0)
        broken = context.run_code("1 / 0")
        assert broken.error is not None
        assert "ZeroDivisionError" in broken.error
        assert context.run_code("x").text == "41"
        with pytest.raises(exceptions.SandboxTimeout):
            context.run_code("import time; time.sleep(60)", timeout_seconds=1)


def test_code_context_is_recorded(caller: Caller, client: pandastack.Client) -> None:
    """Each cell before it starts and after it ended, in order, with what the caller was told; an open one with its job."""
    box = client.sandboxes.create(ttl_seconds=120, metadata={"ticket": "cells"})
    with box.create_code_context() as context:
        context.run_code("print('said')")
        context.run_code("1 / 0")
        with pytest.raises(exceptions.SandboxTimeout):
            context.run_code("import time; time.sleep(60)", timeout_seconds=1)
        with pytest.raises(exceptions.PandastackError):
            context.run_code("import os; os._exit(7)")
    box.kill()
    story = [r for r in record(caller, "cells") if r["event"].startswith(("cell.", "job.start", "job.end"))]
    assert [r["event"] for r in story] == ["job.start", *["cell.start", "cell.end"] * 4, "job.end"]
    assert len({r["job"] for r in story}) == 1
    cells = [r["data"] for r in story[1:-1]]
    assert [c["cell"] for c in cells] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [c["text"] for c in cells[::2]][:2] == ["print('said')", "1 / 0"]
    ends = [(c["reason"], c.get("code"), c["source"]) for c in cells[1::2]]
    assert ends == [("exited", 0, "api"), ("exited", 1, "api"), ("timeout", 1, "api"), ("exited", None, "engine")]
    assert cells[1]["stdout_seen"] == 5 and cells[3]["stderr_seen"] > 0 and cells[5]["wall_us"] >= 1_000_000


def test_logs(box: pandastack.Sandbox) -> None:
    box.exec("echo of-no-interest; exit 3")
    lines = list(box.logs())
    assert any("exit 3" in line for line in lines)


def test_logs_follow(client: pandastack.Client, box: pandastack.Sandbox) -> None:
    box.exec("true first")
    lines = box.logs(follow=True)
    assert "true first" in next(lines)
    box.exec("true second")
    assert "true second" in next(lines)
    client.sandboxes.delete(box.id)
    assert list(lines) == []


# ---- files ----


@pytest.mark.parametrize("content", [b"", b"x", BINARY, b"\x00" * 65536 + b"end", bytes(5 << 20)], ids=len)
def test_files_are_exact(box: pandastack.Sandbox, content: bytes) -> None:
    said = box.filesystem.write("/work/deep/er/file.bin", content)
    assert said["bytes"] == len(content)
    assert box.filesystem.read("/work/deep/er/file.bin") == content
    assert box.filesystem.stat("/work/deep/er/file.bin").size == len(content)


def test_up_and_download(box: pandastack.Sandbox, tmp_path: Path) -> None:
    (tmp_path / "up").write_bytes(BINARY)
    box.filesystem.upload(tmp_path / "up", "/tmp/a b+c%20&d.bin")
    box.filesystem.download("/tmp/a b+c%20&d.bin", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == BINARY
    assert box.exec("ls /tmp").stdout == "a b+c%20&d.bin\n"


def test_text_is_utf8(box: pandastack.Sandbox) -> None:
    box.filesystem.write("/tmp/text", TEXT)
    assert box.filesystem.read("/tmp/text").decode() == TEXT
    assert box.exec("cat /tmp/text").stdout == TEXT


def test_exists_and_stat(box: pandastack.Sandbox) -> None:
    assert box.filesystem.exists("/etc/passwd")
    assert not box.filesystem.exists("/no/such/file")
    with pytest.raises(exceptions.NotFoundError):
        box.filesystem.stat("/no/such/file")
    with pytest.raises(exceptions.NotFoundError):
        box.filesystem.read("/no/such/file")
    found = box.filesystem.stat("/etc")
    assert (found.name, found.path, found.is_dir) == ("etc", "/etc", True)
    assert found.mtime > 0


def test_listdir_and_walk(box: pandastack.Sandbox) -> None:
    box.exec("mkdir -p /work/tree/one/two && cd /work/tree && echo x > a && echo yy > one/b && ln -s / one/two/loop")
    entries = {e.name: e for e in box.filesystem.listdir("/work/tree")}
    assert set(entries) == {"a", "one"}
    assert (entries["a"].size, entries["a"].is_dir, entries["a"].path) == (2, False, "/work/tree/a")
    assert entries["one"].is_dir
    walk = box.filesystem.walk("/work/tree")
    assert {(at, tuple(d.name for d in dirs), tuple(f.name for f in files)) for at, dirs, files in walk} == {
        ("/work/tree", ("one",), ("a",)),
        ("/work/tree/one", ("two",), ("b",)),
        ("/work/tree/one/two", (), ("loop",)),
    }


@pytest.mark.parametrize("path", ["relative", "/work/../etc/passwd", "/usr/bin/x", "/proc/1/mem", "/" + "x" * 5000])
def test_paths_that_are_refused(box: pandastack.Sandbox, path: str) -> None:
    with pytest.raises((exceptions.BadRequestError, exceptions.NotFoundError)):
        box.filesystem.write(path, b"x")


def test_full_disk_is_told(box: pandastack.Sandbox) -> None:
    assert box.exec("dd if=/dev/zero of=/work/fill bs=1M").exit_code == 1
    with pytest.raises(exceptions.BadRequestError, match="disk budget"):
        box.filesystem.write("/work/more", BINARY * 20)
    box.exec("rm /work/fill")
    box.filesystem.write("/work/more", BINARY)


# ---- what surrounds them ----


def test_me(client: pandastack.Client) -> None:
    assert client.me()["tenant"] == "compat"


def test_templates(client: pandastack.Client) -> None:
    names = [t.name for t in client.templates.list()]
    assert "python" in names
    assert client.templates.get("code-interpreter").name == "python"
    assert client.templates.builds() == []
    with pytest.raises(exceptions.NotFoundError):
        client.templates.get("no-such-template")


def test_volumes_and_snapshots_are_empty(client: pandastack.Client, box: pandastack.Sandbox) -> None:
    assert client.volumes.list() == []
    assert client.snapshots.list() == []
    assert client.snapshots.list(sandbox_id=box.id) == []
    assert box.preview_urls() == {}


@pytest.mark.parametrize("method", ["hibernate", "wake", "snapshot", "fork"])
def test_what_needs_a_microvm(box: pandastack.Sandbox, method: str) -> None:
    with pytest.raises(exceptions.ServerError, match="microvm"):
        getattr(box, method)()
    with pytest.raises(exceptions.ServerError, match="microvm"):
        box.fork_tree(2)
    assert box.exec("echo still").stdout == "still\n"


def test_what_is_not_there_yet(client: pandastack.Client) -> None:
    for ask in (client.databases.list, client.apps.list, client.functions.list, client.schedules.list):
        with pytest.raises(exceptions.ServerError):
            ask()
    with pytest.raises(exceptions.ServerError):
        client.volumes.create("data", 64)
    with pytest.raises(exceptions.ServerError):
        client.sandboxes.create(from_snapshot="snap")
