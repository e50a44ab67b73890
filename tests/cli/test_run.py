# SPDX-License-Identifier: Apache-2.0
"""demilune run and sandbox exec: exit codes, output, and that no sandbox stays."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from fake import BINARY, JOB, SANDBOX, TASK, Answer, Fake, Handler, Seen

STREAM = f"/v1/sandboxes/{SANDBOX}/exec/stream"
KILL = f"/v1/sandboxes/{SANDBOX}"
CANCEL = f"/v1/sandboxes/{SANDBOX}/jobs/{JOB}"


def exit_event(code: int, **more: Any) -> tuple[str, Any]:
    return "exit", {"exit_code": code, "reason": "exited", "holders": False} | more


def test_output_code_and_end(fake: Fake) -> None:
    fake.sandbox()
    fake.exec([("stdout", {"chunk": "forty", "offset": 0}), ("stderr", {"chunk": "oops\n", "offset": 0}),
               ("stdout", {"chunk": "-two é\n", "offset": 5}), exit_event(7)])
    done = fake.run("run", "--tenant", "acme", "--label", "ticket=48221", "--", "python3", "-c", "print(6*7)", code=7)
    assert done.stdout == "forty-two é\n".encode()
    assert done.stderr == b"oops\n"
    assert fake.asked("POST", "/v1/sandboxes").json() == {
        "tenant": "acme", "limits": {}, "metadata": {"ticket": "48221"}}
    assert fake.asked("POST", STREAM).json() == {"argv": ["python3", "-c", "print(6*7)"]}
    assert [(s.method, s.path) for s in fake.seen] == [("POST", "/v1/sandboxes"), ("POST", STREAM), ("DELETE", KILL)]


def test_every_option_is_sent(fake: Fake) -> None:
    fake.sandbox()
    fake.exec([exit_event(0)])
    fake.run("run", "--template", "python", "--ttl", "10m", "--idle", "1500ms", "--memory", "1GiB", "--cpu", "1500m",
             "--disk", "64MiB", "--pids", "99", "--env", "A=1", "-e", "B=x=y", "--cwd", "/work", "-u", "root",
             "--timeout=30s", "-it", "cat", "-n", input=b"hello")
    assert fake.asked("POST", "/v1/sandboxes").json() == {
        "template": "python", "ttl_seconds": 600.0, "idle_limit_seconds": 1.5,
        "limits": {"memory_mb": 1024, "disk_mb": 64, "pids": 99, "cpu_milli": 1500}}
    assert fake.asked("POST", STREAM).json() == {
        "argv": ["cat", "-n"], "cwd": "/work", "user": "root", "timeout_seconds": 30.0, "pty": True,
        "env": {"A": "1", "B": "x=y"}, "stdin": "hello"}


def test_stdin_is_left_alone_unless_asked(fake: Fake) -> None:
    fake.sandbox()
    fake.exec([exit_event(0)])
    fake.run("run", "true", input=b"secret of the caller")
    assert "stdin" not in fake.asked("POST", STREAM).json()


@pytest.mark.parametrize("text", [b"\xff\xfe", b"x" * 524289])
def test_stdin_that_cannot_be_sent(fake: Fake, text: bytes) -> None:
    fake.sandbox()
    done = fake.run("run", "-i", "cat", input=text, code=125)
    assert b"standard input must be" in done.stderr
    fake.asked("DELETE", KILL)


def test_bytes_that_are_no_text(fake: Fake) -> None:
    raw = bytes(range(256)) * 3
    fake.sandbox()
    fake.exec([("stdout", {"chunk": "?", "offset": 0, "base64": base64.b64encode(raw).decode()}), exit_event(0)])
    assert fake.run("run", "cat").stdout == raw


def test_output_is_raw_and_live(fake: Fake) -> None:
    """The first line is there long before the command ends; control characters are the command's own."""
    def answer(h: Handler, s: Seen) -> None:
        h.stream("text/event-stream", {"X-Demilune-Job": JOB})
        h.event("stdout", {"chunk": "\x1b[31mred\n", "offset": 0})
        h.chunk(b": hb\n\n")
        time.sleep(1.5)
        h.event("exit", {"exit_code": 0})
        h.end()

    fake.sandbox()
    fake.on("POST", STREAM, answer)
    began = time.monotonic()
    with fake.start("run", "x") as child:
        assert child.stdout is not None
        assert os.read(child.stdout.fileno(), 100) == b"\x1b[31mred\n"
        assert time.monotonic() - began < 1
        assert child.wait() == 0


def test_events_cut_anywhere(fake: Fake) -> None:
    def answer(h: Handler, s: Seen) -> None:
        h.stream("text/event-stream")
        for byte in b": hi\n\nevent: stdout\ndata: {\"chunk\":\"a\"}\n\nevent: exit\ndata: {\"exit_code\":3}\n\n":
            h.chunk(bytes([byte]))
        h.end()

    fake.sandbox()
    fake.on("POST", STREAM, answer)
    assert fake.run("run", "x", code=3).stdout == b"a"


def test_timeout_is_124(fake: Fake) -> None:
    fake.sandbox()
    fake.exec([("stdout", {"chunk": "so far\n"}), ("error", {"error": "timeout: ran for 1 s", "code": "timeout"})])
    done = fake.run("run", "--timeout", "1s", "sleep", "9", code=124)
    assert done.stdout == b"so far\n" and done.stderr == b"demilune: timeout: ran for 1 s\n"
    fake.asked("DELETE", KILL)


@pytest.mark.parametrize(("end", "code", "said"), [
    ({"reason": "not_started", "not_started": "No such file \x1b[2J"}, 127, b"no-such was not started: No such file \\x1b[2J"),
    ({"reason": "not_started", "not_started": "Permission denied"}, 126, b"no-such was not started: Permission denied\n"),
    ({"reason": "oom"}, 137, b"--memory"), ({"reason": "pids"}, 1, b"--pids"), ({"reason": "disk"}, 1, b"--disk"),
    ({"reason": "sandbox_ended"}, 125, b"the sandbox ended")])
def test_an_end_that_the_code_does_not_explain(fake: Fake, end: dict[str, Any], code: int, said: bytes) -> None:
    fake.exec([exit_event(code, **end)])
    done = fake.run("sandbox", "exec", SANDBOX, "--", "no-such", code=code)
    assert said in done.stderr and done.stderr.count(b"\n") == 1 and b"\x1b" not in done.stderr


@pytest.mark.parametrize(("code", "text", "todo"), [
    ("not_found", "no such sandbox", b"; demilune sandbox list"), ("not_found", "no such task or ticket", b"; demilune task list"),
    ("unauthorized", "no such token", b"; demilune token create"), ("bad_request", "limits.pids must be", b"; that is --pids"),
    ("quota", "kill a sandbox first", b"kill a sandbox first\n")])
def test_refusals_say_what_to_do(fake: Fake, code: str, text: str, todo: bytes) -> None:
    fake.on("GET", f"/v1/sandboxes/{SANDBOX}", lambda h, s: h.refuse(400, code, text))
    assert todo in fake.run("sandbox", "show", SANDBOX, code=1).stderr


def test_a_verb_without_its_second_word(fake: Fake) -> None:
    assert fake.run("task", code=2).stderr == b"demilune: task what? list, show, create, resume, close, input\n"
    assert fake.run("task", "--help").stdout.startswith(b"demilune task list\n    tasks, newest first\ndemilune task show TASK\n")
    assert fake.run("task", "-h").stdout == fake.run("task", "--help").stdout


@pytest.mark.parametrize("code", [0, 1, 126, 127, 137, 255])
def test_exit_codes_pass_through(fake: Fake, code: int) -> None:
    fake.exec([exit_event(code)])
    fake.run("sandbox", "exec", SANDBOX, "--", "x", code=code)


@pytest.mark.parametrize("end", [
    [("exit", {"exit_code": 256})], [("exit", {"exit_code": -1})], [("exit", {"exit_code": "0"})], [("exit", {})],
    [("exit", {"exit_code": None})], [("exit", [])], [], [("stdout", {"chunk": "x"})],
    [("exit", {"exit_code": 0}), ("stdout", {"chunk": "late"})], [("error", {})], [("error", {"error": "lost"})],
    [("stdout", {"chunk": "x", "base64": "A"})], [("stdout", {"chunk": "x", "base64": "AA=A"})],
])
def test_a_stream_without_a_good_end_is_no_success(fake: Fake, end: list[tuple[str, Any]]) -> None:
    fake.sandbox()
    fake.exec(end)
    done = fake.run("run", "x", code=125)
    assert done.stderr.startswith(b"demilune: ")
    fake.asked("DELETE", KILL)


@pytest.mark.parametrize("data", [
    b"event: exit\r\ndata: {}\r\n\r\n", b"data: nonsense\n\n", b"event: a\nevent: b\n\n", b"event: exit\n\n",
    b"data: {}\ndata: {}\n\n", b"id: 4\n\n", b"event: " + b"x" * 40 + b"\ndata: {}\n\n", b"data: [[[[\n\n",
    b"data: " + b"x" * 1100000, b"event: exit\ndata: {\"exit_code\":0,\"exit_code\":0}\n\n", b"\xff\n\n"])
def test_broken_event_streams(fake: Fake, data: bytes) -> None:
    def answer(h: Handler, s: Seen) -> None:
        h.stream("text/event-stream", {"X-Demilune-Job": JOB})
        h.chunk(data)
        h.end()

    fake.sandbox()
    fake.on("DELETE", CANCEL, 204)
    fake.on("POST", STREAM, answer)
    fake.run("run", "x", code=125)
    fake.asked("DELETE", CANCEL)
    fake.asked("DELETE", KILL)


def test_the_sentence_of_a_refusal(fake: Fake) -> None:
    fake.on("POST", "/v1/sandboxes", lambda h, s: h.refuse(409, "quota", "acme may have 64 sandboxes; kill one first"))
    done = fake.run("run", "x", code=125)
    assert done.stderr == b"demilune: acme may have 64 sandboxes; kill one first\n"
    assert done.stdout == b""


def test_a_refused_command_leaves_no_sandbox(fake: Fake) -> None:
    fake.sandbox()
    fake.on("POST", STREAM, lambda h, s: h.refuse(409, "sandbox_ended", "the sandbox ended"))
    assert fake.run("run", "x", code=125).stderr == (
        b"demilune: the sandbox ended; demilune sandbox show --ended tells why\n")
    fake.asked("DELETE", KILL)


def test_keep(fake: Fake) -> None:
    fake.sandbox()
    fake.exec([exit_event(5)])
    done = fake.run("run", "--keep", "x", code=5)
    assert done.stderr.decode() == f"{SANDBOX}\n"
    assert not [s for s in fake.seen if s.method == "DELETE"]


def test_a_sandbox_that_cannot_be_killed_is_named(fake: Fake) -> None:
    fake.sandbox()
    fake.exec([exit_event(0)])
    fake.on("DELETE", KILL, lambda h, s: h.refuse(503, "unavailable", "the host is stopping"))
    done = fake.run("run", "x")
    assert SANDBOX.encode() in done.stderr and b"the host is stopping" in done.stderr
    fake.on("DELETE", KILL, lambda h, s: h.refuse(404, "not_found", "it ended"))
    assert fake.run("run", "x").stderr == b""


@pytest.mark.parametrize("what", [{"id": None}, {"id": 5}, {"id": ""}, {"id": "../../x"}, {"id": SANDBOX + "?"}, []])
def test_odd_ids_of_the_daemon(fake: Fake, what: Any) -> None:
    fake.on("POST", "/v1/sandboxes", 201, what)
    fake.run("run", "x", code=125)
    assert len(fake.seen) == 1


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_and_kills(fake: Fake, sent: signal.Signals) -> None:
    def answer(h: Handler, s: Seen) -> None:
        h.stream("text/event-stream", {"X-Demilune-Job": JOB})
        h.event("stdout", {"chunk": "working\n"})
        for _ in range(200):
            h.chunk(b": hb\n\n")
            time.sleep(0.05)

    fake.sandbox()
    fake.on("POST", STREAM, answer)
    fake.on("DELETE", CANCEL, 204)
    with fake.start("run", "x") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"working\n"
        child.send_signal(sent)
        assert child.wait(timeout=10) == 128 + sent
    fake.asked("DELETE", CANCEL)
    fake.asked("DELETE", KILL)


def late(answer: Answer) -> Answer:
    def later(h: Handler, s: Seen) -> None:
        time.sleep(0.7)
        answer(h, s)

    return later


def test_a_signal_during_creation(fake: Fake) -> None:
    """The sandbox under way is waited for and killed; no command runs in it."""
    fake.sandbox()
    fake.on("POST", f"/v1/tasks/{TASK}/resume", 201, {"id": SANDBOX})
    for path, verb in (("/v1/sandboxes", ["run", "x"]), ("/v1/sandboxes", ["sandbox", "create"]),
                       (f"/v1/tasks/{TASK}/resume", ["task", "resume", TASK])):
        made = fake.answers["POST", path]
        fake.on("POST", path, late(made))
        fake.seen.clear()
        with fake.start(*verb) as child:
            fake.wait_for("POST", path)
            child.send_signal(signal.SIGINT)
            assert child.wait(timeout=5) == 130
            assert child.stdout is not None and child.stdout.read() == b""
        assert [(s.method, s.path) for s in fake.seen] == [("POST", path), ("DELETE", KILL)]
        fake.on("POST", path, made)


def test_a_second_signal_during_creation_leaves(fake: Fake) -> None:
    fake.on("POST", "/v1/sandboxes", lambda h, s: time.sleep(20))
    with fake.start("run", "x") as child:
        fake.wait_for("POST", "/v1/sandboxes")
        child.send_signal(signal.SIGINT)
        assert child.stderr is not None and b"waiting for the sandbox" in child.stderr.readline()
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=2) == 143
        assert b"may be left" in child.stderr.read()


def test_creation_that_does_not_end_is_left_in_time(fake: Fake) -> None:
    fake.on("POST", "/v1/sandboxes", lambda h, s: time.sleep(20))
    with fake.start("run", "x") as child:
        fake.wait_for("POST", "/v1/sandboxes")
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=15) == 130 and 9 < time.monotonic() - began < 12
        assert child.stderr is not None and b"may be left" in child.stderr.read()


def test_a_signal_before_creation_makes_nothing(fake: Fake) -> None:
    fake.on("POST", "/v1/tasks", lambda h, s: time.sleep(20))
    with fake.start("run", "--input", f"{BINARY}:/work/x", "x") as child:
        fake.wait_for("POST", "/v1/tasks")
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=2) == 130
    assert [s.path for s in fake.seen] == ["/v1/tasks"]


def test_nobody_reads_the_output(fake: Fake) -> None:
    def answer(h: Handler, s: Seen) -> None:
        h.stream("text/event-stream", {"X-Demilune-Job": JOB})
        for _ in range(400):
            h.event("stdout", {"chunk": "y\n" * 1000})
            time.sleep(0.01)

    fake.sandbox()
    fake.on("POST", STREAM, answer)
    fake.on("DELETE", CANCEL, 204)
    read, write = os.pipe()
    with fake.start("run", "yes", stdout=write) as child:
        os.close(write)
        os.read(read, 100)
        os.close(read)
        assert child.wait(timeout=10) == 141
    fake.asked("DELETE", CANCEL)
    fake.asked("DELETE", KILL)


def test_inputs_make_a_task_first(fake: Fake, tmp_path: Path) -> None:
    ticket = tmp_path / "a:b ticket.eml"
    ticket.write_bytes(b"\0mail" * 50000)
    ticket.chmod(0o640)
    empty = tmp_path / "empty"
    empty.touch()
    fake.sandbox()
    fake.on("POST", "/v1/tasks", 201, {"id": TASK})
    fake.on("PUT", f"/v1/tasks/{TASK}/inputs", 201, {"path": "/work/ticket é.eml"})
    fake.exec([exit_event(0)])
    fake.run("run", "--label", "ticket=1", "--input", f"{ticket}:/work/ticket é.eml", "--input", f"{empty}:/work/e", "x")
    assert [(s.method, s.path) for s in fake.seen[:4]] == [
        ("POST", "/v1/tasks"), ("PUT", f"/v1/tasks/{TASK}/inputs"), ("PUT", f"/v1/tasks/{TASK}/inputs"),
        ("POST", "/v1/sandboxes")]
    assert fake.seen[0].json()["labels"] == {"ticket": "1"}
    assert fake.seen[1].query == {"path": "/work/ticket é.eml", "mode": "640"}
    assert fake.seen[1].body == ticket.read_bytes()
    assert fake.seen[2].body == b""
    assert fake.seen[3].json()["task"] == TASK


def test_a_task_by_its_ticket(fake: Fake) -> None:
    fake.sandbox()
    fake.on("GET", "/v1/tasks/48221", 200, {"id": TASK})
    fake.exec([exit_event(0)])
    fake.run("run", "--task", "48221", "x")
    assert fake.asked("POST", "/v1/sandboxes").json()["task"] == TASK


def test_a_task_of_a_tenant_by_its_ticket(fake: Fake) -> None:
    fake.sandbox()
    fake.on("GET", "/v1/tasks", 200, {"more": False, "items": [
        {"id": "tk_fedcba9876543210", "tenant": "b"}, {"id": TASK, "tenant": "acme"}]})
    fake.exec([exit_event(0)])
    fake.run("run", "--tenant", "acme", "--task", "48221", "x")
    assert fake.asked("POST", "/v1/sandboxes").json()["task"] == TASK


def test_json(fake: Fake) -> None:
    fake.sandbox()
    fake.on("POST", f"/v1/sandboxes/{SANDBOX}/exec", 200, {"stdout": "4\u202e2", "stderr": "", "exit_code": 9})
    done = fake.run("run", "--json", "x", code=9)
    assert json.loads(done.stdout) == {
        "stdout": "4\u202e2", "stderr": "", "exit_code": 9, "sandbox": SANDBOX, "task": TASK}
    assert done.stdout.isascii()
    fake.asked("DELETE", KILL)


def test_json_of_a_timeout(fake: Fake) -> None:
    fake.on("POST", f"/v1/sandboxes/{SANDBOX}/exec", 504,
            {"stdout": "part", "stderr": "", "exit_code": 124, "error": "timeout: 1 s", "code": "timeout"})
    done = fake.run("sandbox", "exec", "--json", SANDBOX, "x", code=124)
    assert json.loads(done.stdout)["stdout"] == "part"


def test_a_gap_is_told_once(fake: Fake) -> None:
    gap = ("gap", {"output": "stdout", "from": 1, "to": 9})
    fake.exec([("stdout", {"chunk": "a"}), gap, gap, exit_event(0)])
    assert fake.run("sandbox", "exec", SANDBOX, "x").stderr == b"demilune: a part of the output was left out\n"


@pytest.mark.parametrize("args", [
    ["run"], ["run", "--ttl", "10", "x"], ["run", "--ttl", "-1s", "x"], ["run", "--ttl", "1e9s", "x"],
    ["run", "--ttl", "99999999999d", "x"], ["run", "--memory", "512", "x"], ["run", "--memory", "512MB", "x"],
    ["run", "--memory", "1KiB", "x"], ["run", "--cpu", "0", "x"], ["run", "--cpu", "0.5", "x"], ["run", "--pids", "0", "x"],
    ["run", "--label", "x", "y"], ["run", "--label", "=x", "y"], ["run", "--env", "A", "y"], ["run", "--ttl"],
    ["run", "--ttl", "", "x"], ["run", "--ttl", "1s", "--ttl", "2s", "x"], ["run", "--keep=1", "x"], ["run", "--nope", "x"],
    ["run", "-z", "x"], ["run", "-ie", "A=1", "x"], ["run", "--input", "here", "x"], ["run", "--input", ":/there", "x"],
    ["sandbox"], ["sandbox", "frob"], ["frob"], ["sandbox", "exec", SANDBOX], ["sandbox", "list", "extra"],
    ["sandbox", "list", "--ttl", "1s"], ["check"], ["token", "revoke"], [],
])
def test_wrong_use(fake: Fake, args: list[str]) -> None:
    done = fake.run(*args, code=2)
    assert done.stdout == b"" and done.stderr and fake.seen == []
    assert len(done.stderr.splitlines()) == 1 or not args


def test_words_of_the_command_are_its_own(fake: Fake) -> None:
    fake.exec([exit_event(0)])
    fake.run("sandbox", "exec", "-e", "A=1", SANDBOX, "-u", "root", "ls", "--json", "-h", "--", "-u")
    assert fake.asked("POST", STREAM).json() == {
        "argv": ["ls", "--json", "-h", "--", "-u"], "env": {"A": "1"}, "user": "root"}
    fake.run("sandbox", "exec", SANDBOX, "--", "--help")
    assert fake.asked("POST", STREAM).json() == {"argv": ["--help"]}


def test_words_that_are_not_utf8(fake: Fake) -> None:
    done = subprocess.run([str(BINARY), "sandbox", "exec", SANDBOX, b"\xff"], env=fake.environment(), check=False,
                          capture_output=True)
    assert done.returncode == 125 and b"not UTF-8" in done.stderr and fake.seen == []
