# SPDX-License-Identifier: Apache-2.0
"""Every resource once, as existing clients and our own would use it."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import struct
import time
from typing import Any

import pytest
from conftest import Api


def events(body: bytes) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for frame in body.decode("ascii").split("\n\n"):
        lines = frame.split("\n")
        if lines[0].startswith("event: "):
            assert len(lines) == 2, frame
            found.append((lines[0][7:], json.loads(lines[1][6:])))
    return found


def test_public_paths(api: Api) -> None:
    assert api.ask("GET", "/healthz", tcp=True).json == {"status": "ok"}
    assert api.ask("GET", "/readyz", tcp=True).json == {"status": "ready"}
    assert api.ask("GET", "/version", tcp=True).json["service"] == "demilune"
    assert api.ask("GET", "/openapi.json", tcp=True).json["openapi"] == "3.1.0"


def test_create_get_list_kill(api: Api) -> None:
    made = api.ask("POST", "/v1/sandboxes", {
        "template": "code-interpreter", "ttl_seconds": 60.5, "idle_limit_seconds": 30, "persistent": False, "volumes": [],
        "metadata": {"a": "b", "ü": "ä"}, "cpu": 2, "memory_mb": None, "disk_gb": "x", "from_snapshot": None,
        "limits": {"memory_mb": 256}})
    assert made.status == 201
    row = made.json
    assert re.fullmatch(r"sb_[0-9a-z]{16}", row["id"])
    assert row["template"] == "python" and row["template_asked"] == "code-interpreter"
    assert row["status"] == "running" and row["persistent"] is False and row["metadata"] == {"a": "b", "ü": "ä"}
    assert row["boundary"]["kind"] == "container" and "kernel" in row["boundary"]["statement"]
    assert row["ttl_seconds"] == 60 and row["idle_limit_seconds"] == 30
    for key in ("cpu", "memory_mb", "boot_ms"):
        assert isinstance(row[key], int)
    assert None not in row.values()
    path = f"/v1/sandboxes/{row['id']}"
    assert api.ask("GET", path).json["id"] == row["id"]
    assert row["id"] in [s["id"] for s in api.ask("GET", "/v1/sandboxes").json]
    page = api.ask("GET", "/v1/sandboxes?limit=1").json
    assert len(page["items"]) == 1 and isinstance(page["more"], bool)
    gone = api.ask("DELETE", path)
    assert gone.status == 204 and gone.body == b""
    assert api.ask("GET", path).status == 404
    assert api.ask("GET", path + "?ended=1").json["proof"]["processes"] == 0


def test_life(api: Api, sandbox: str) -> None:
    assert api.ask("POST", sandbox + "/pause").status == 204
    assert api.ask("POST", sandbox + "/exec", {"cmd": "echo x"}).status == 409
    assert api.ask("POST", sandbox + "/resume", b"", content_type="text/plain;charset=UTF-8").status == 204
    changed = api.ask("PATCH", sandbox + "/lifecycle", {"ttl_seconds": 120})
    assert changed.status == 200 and changed.json["ttl_seconds"] == 120
    assert api.ask("PATCH", sandbox + "/lifecycle", {"persistent": True}).json["persistent"] is True
    assert api.ask("GET", sandbox + "/lifecycle").json["ttl_seconds"] == 120
    assert api.ask("PATCH", sandbox + "/lifecycle", {}).status == 400
    assert api.ask("GET", sandbox + "/metrics").json["pid"] == 4242


@pytest.mark.parametrize("what", ["hibernate", "wake", "snapshots", "fork", "fork-tree", "promote"])
def test_microvm_only(api: Api, sandbox: str, what: str) -> None:
    refused = api.ask("POST", f"{sandbox}/{what}", {"count": 2} if what == "fork-tree" else None)
    assert refused.status == 501 and "microvm" in refused.json["error"]


@pytest.mark.parametrize("path", ["/v1/databases", "/v1/apps/x", "/v1/functions/x/invoke", "/v1/schedules"])
def test_later(api: Api, path: str) -> None:
    for method in ("GET", "POST", "DELETE", "PATCH", "PUT"):
        answer = api.ask(method, path)
        assert answer.status == 501 and isinstance(answer.json["error"], str)


def test_empty_lists(api: Api) -> None:
    assert api.ask("GET", "/v1/volumes").json == []
    assert api.ask("POST", "/v1/volumes", {"name": "x"}).status == 501
    assert api.ask("GET", "/v1/snapshots?sandbox_id=x").json == {"snapshots": []}
    assert api.ask("GET", "/v1/templates/builds").json == []
    assert api.ask("POST", "/v1/templates/build", b"--x", content_type="multipart/form-data").status == 501


def test_templates(api: Api) -> None:
    assert api.ask("GET", "/v1/templates").json[0]["aliases"] == ["code-interpreter", "ubuntu-24.04"]
    assert api.ask("GET", "/v1/templates/python").json["name"] == "python"
    assert api.ask("GET", "/v1/templates/none").status == 404


def test_tokens(api: Api) -> None:
    made = api.ask("POST", "/v1/me/tokens", {"label": "ci", "expires_in_days": 1})
    assert made.status == 201
    token, prefix = made.json["token"], made.json["prefix"]
    assert re.fullmatch(r"dml_[0-9a-hjkmnp-tv-z]{40}", token) and prefix == token[:12]
    assert api.ask("GET", "/v1/me", token=token, tcp=True).json["auth_method"] == "token"
    assert api.ask("GET", f"/v1/me?access_token={token}", tcp=True).status == 200
    listed = api.ask("GET", "/v1/me/tokens")
    assert token.encode() not in listed.body and prefix in [t["prefix"] for t in listed.json["items"]]
    assert api.ask("DELETE", f"/v1/me/tokens/{prefix}").status == 204
    refused = api.ask("GET", "/v1/me", token=token, tcp=True)
    assert refused.status == 401 and refused.headers["WWW-Authenticate"] == "Bearer"
    assert api.ask("DELETE", "/v1/me/tokens/short").status == 404


def test_who(api: Api) -> None:
    assert api.ask("GET", "/v1/me").json["auth_method"] == "local"
    assert api.ask("GET", "/v1/me", tcp=True).status == 401
    assert api.ask("GET", "/v1/volumes", tcp=True).status == 401
    assert api.ask("GET", "/v1/databases", tcp=True).status == 401
    # A local caller that names a token is that token, not its uid.
    assert api.ask("GET", "/v1/me", token="dml_wrong").status == 401
    for bad in ("Basic x", "Bearer", "Bearer a b"):
        assert api.ask("GET", "/v1/me", Authorization=bad).status == 401


def test_two_authorizations(api: Api) -> None:
    plain = api.raw()
    plain.sendall(b"GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n")
    assert plain.recv(65536).startswith(b"HTTP/1.1 401")


def test_exec(api: Api, sandbox: str) -> None:
    done = api.ask("POST", sandbox + "/exec", {"cmd": "echo hallo", "timeout_seconds": 5})
    assert done.status == 200
    answer = done.json
    assert (answer["stdout"], answer["stderr"], answer["exit_code"], answer["reason"]) == ("hallo\n", "", 0, "exited")
    assert answer["stdout_bytes"] == {"seen": 6, "kept": 6, "dropped": 0, "head": 6}
    assert answer["wall_ms"] == 1.5 and answer["holders"] is False and re.fullmatch(r"ex_\w{16}", answer["job"])
    assert api.ask("POST", sandbox + "/exec", {"argv": ["exit 7"]}).json["exit_code"] == 7
    killed = api.ask("POST", sandbox + "/exec", {"cmd": "kill 9"}).json
    assert killed["exit_code"] == 137 and killed["signal"] == 9 and killed["reason"] == "signalled"
    missing = api.ask("POST", sandbox + "/exec", {"argv": ["missing"]}).json
    assert missing["exit_code"] == 127 and missing["reason"] == "not_started"
    assert api.ask("POST", sandbox + "/exec", {"cmd": "holders"}).json["holders"] is True
    assert api.ask("POST", sandbox + "/exec", {"cmd": "err bad", "env": {"A": "b"}, "cwd": "/tmp", "user": "root"}).json[
        "stderr"] == "bad"


def test_exec_stdin(api: Api, sandbox: str) -> None:
    text = "x" * 300000
    assert api.ask("POST", sandbox + "/exec", {"cmd": "cat", "stdin": text}).json["stdout"] == text


def test_exec_timeout(api: Api, sandbox: str) -> None:
    began = time.monotonic()
    late = api.ask("POST", sandbox + "/exec", {"cmd": "sleep 5000", "timeout_seconds": 0.2})
    assert time.monotonic() - began < 2
    assert late.status == 504 and "timeout" in late.json["error"] and late.json["code"] == "timeout"
    assert late.json["stdout"] == "begun\n" and late.json["exit_code"] == 124


def test_exec_lost(api: Api, sandbox: str) -> None:
    lost = api.ask("POST", sandbox + "/exec", {"cmd": "lost"})
    assert lost.status == 409 and lost.json["code"] == "sandbox_ended" and lost.json["stdout"] == "partial"


def test_exec_bytes(api: Api, sandbox: str) -> None:
    odd = api.ask("POST", sandbox + "/exec", {"cmd": "raw 61ff00e282ac"}).json
    assert odd["stdout"] == "a\ufffd\0\u20ac" and base64.b64decode(odd["stdout_base64"]) == b"a\xff\0\xe2\x82\xac"
    assert "stdout_base64" not in api.ask("POST", sandbox + "/exec", {"cmd": "raw e282ac"}).json


def test_exec_truncated(api: Api, sandbox: str) -> None:
    flood = api.ask("POST", sandbox + "/exec", {"cmd": "flood 5000000", "output_limit": 10000}).json
    assert flood["stdout_bytes"] == {"seen": 5000000, "kept": 10000, "dropped": 4990000, "head": 5000}
    head, marker, tail = flood["stdout"].split("\n")
    assert len(head) == len(tail) == 5000 and "4990000 bytes left out" in marker
    alphabet = "abcdefghijklmnopqrstuvwxyz" * 200000
    assert head == alphabet[:5000] and tail == alphabet[5000000 - 5000:5000000]


def test_exec_early_head(api: Api, sandbox: str) -> None:
    plain = api.raw()
    plain.settimeout(40)
    body = b'{"cmd":"sleep 22000"}'
    plain.sendall(b"POST %s/exec HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (sandbox.encode(), len(body)) + body)
    began = time.monotonic()
    head = plain.recv(65536)
    assert 19 < time.monotonic() - began < 21.5 and head.startswith(b"HTTP/1.1 200")
    text = head
    while not text.endswith(b"0\r\n\r\n"):
        text += plain.recv(65536)
    chunks = text.split(b"\r\n\r\n", 1)[1].split(b"\r\n")
    assert json.loads(b"".join(chunks[1::2]))["stdout"] == "begun\n"


def test_detach_and_jobs(api: Api, sandbox: str) -> None:
    started = api.ask("POST", sandbox + "/exec", {"cmd": "sleep 60000", "detach": True})
    assert started.status == 202
    job = started.json["job"]
    assert api.ask("GET", f"{sandbox}/jobs/{job}").json["reason"] == "running"
    assert job in [j["id"] for j in api.ask("GET", sandbox + "/jobs").json["items"]]
    assert api.ask("DELETE", f"{sandbox}/jobs/{job}").status == 204
    ended = api.ask("GET", f"{sandbox}/jobs/{job}/output")
    assert ended.status == 200 and ended.json["reason"] == "cancelled" and ended.json["stdout"] == "begun\n"
    second = api.ask("POST", sandbox + "/exec", {"cmd": "sleep 60000", "detach": True}).json["job"]
    assert api.ask("POST", f"{sandbox}/jobs/{second}/signal", {"signal": 15}).status == 204
    assert api.ask("GET", f"{sandbox}/jobs/{second}").json["code"] == 15
    assert api.ask("POST", f"{sandbox}/jobs/{second}/signal", {"signal": 99}).status == 400
    assert api.ask("GET", f"{sandbox}/jobs/ex_0000000000000000").status == 404


def test_stream(api: Api, sandbox: str) -> None:
    done = api.ask("POST", sandbox + "/exec/stream", {"cmd": "raw 61e282ac62c3a9"})
    assert done.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert done.headers["Transfer-Encoding"] == "chunked" and done.headers["X-Demilune-Job"].startswith("ex_")
    assert b"\r" not in done.body and done.body.endswith(b"\n\n")
    told = events(done.body)
    assert "".join(data["chunk"] for name, data in told if name == "stdout") == "a\u20acb\u00e9"
    assert told[-1][0] == "exit" and told[-1][1]["exit_code"] == 0
    late = events(api.ask("POST", sandbox + "/exec/stream", {"cmd": "sleep 9000", "timeout_seconds": 0.1}).body)
    assert late[-1][0] == "error" and "timeout" in late[-1][1]["error"]
    lost = events(api.ask("POST", sandbox + "/exec/stream", {"cmd": "lost"}).body)
    assert lost[-1][0] == "error"


def test_stream_reattach(api: Api, sandbox: str) -> None:
    first = api.ask("POST", sandbox + "/exec/stream", {"cmd": "flood 100000"})
    job = first.headers["X-Demilune-Job"]
    again = events(api.ask("GET", f"{sandbox}/jobs/{job}/stream?stdout_from=99990").body)
    assert again[0] == ("stdout", {"chunk": ("abcdefghijklmnopqrstuvwxyz" * 4000)[99990:100000], "offset": 99990})
    assert again[-1][0] == "exit"
    assert api.ask("GET", f"{sandbox}/jobs/{job}/stream?stdout_from=-1").status == 400


def test_stream_slow_reader(api: Api, sandbox: str) -> None:
    """A reader that takes its time gets every byte; what waits for it is bounded by the relay."""
    plain = api.raw(tcp=False)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    body = b'{"cmd":"flood 3000000"}'
    plain.sendall(b"POST %s/exec/stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" %
                  (sandbox.encode(), len(body)) + body)
    time.sleep(1)
    assert api.ask("GET", "/healthz").status == 200
    text = b""
    while piece := plain.recv(1 << 20):
        text += piece
    assert text.endswith(b"0\r\n\r\n") and sum(map(len, re.findall(rb'"chunk":"([a-z]*)"', text))) == 3000000


def test_files(api: Api, sandbox: str) -> None:
    for data in (b"", b"x", bytes(range(256)), os.urandom(3 << 20)):
        put = api.ask("PUT", sandbox + "/fs?path=/workspace/a+b%2Bc", data, content_type="application/octet-stream")
        assert put.status == 200 and put.json == {"path": "/workspace/a b+c", "bytes": len(data)}
        assert api.ask("GET", sandbox + "/fs?path=/workspace/a+b%2Bc").body == data
    stat = api.ask("GET", sandbox + "/fs/stat?path=/workspace/a+b%2Bc").json
    assert stat["size"] == 3 << 20 and stat["is_dir"] is False and isinstance(stat["mtime"], int) and "path" not in stat
    assert api.ask("POST", sandbox + "/fs/mkdir?path=/workspace/d").status == 201
    listed = api.ask("GET", sandbox + "/fs/dir?path=/workspace").json
    assert {e["name"]: e["is_dir"] for e in listed["entries"]} == {"a b+c": False, "d": True}
    assert api.ask("GET", sandbox + "/fs/dir").json["path"] == "/"
    assert api.ask("DELETE", sandbox + "/fs?path=/workspace/a+b%2Bc").status == 204
    for route in ("fs", "fs/stat"):
        gone = api.ask("GET", f"{sandbox}/{route}?path=/workspace/a+b%2Bc")
        assert gone.status == 404 and gone.json["code"] == "file_not_found"
    assert api.ask("GET", sandbox + "/fs?path=/workspace/d").json["code"] == "file"
    full = api.ask("PUT", sandbox + "/fs?path=/full/x", b"data")
    assert full.status == 413 and full.json["code"] == "no_space"
    assert api.ask("DELETE", sandbox + "/fs?path=/").status == 400


def test_trees(api: Api, sandbox: str) -> None:
    data = os.urandom(1 << 20)
    put = api.ask("PUT", sandbox + "/fs/tree?path=/workspace/t", data, content_type="application/x-tar")
    assert put.json["bytes"] == 1 << 20
    got = api.ask("GET", sandbox + "/fs/tree?path=/workspace/t")
    assert got.body == data and got.headers["Content-Type"] == "application/x-tar"


def test_upload_cut_off_leaves_nothing(api: Api, sandbox: str) -> None:
    plain = api.raw()
    plain.sendall(b"PUT %s/fs?path=/workspace/cut HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc" % sandbox.encode())
    time.sleep(0.2)
    plain.close()
    time.sleep(0.2)
    assert api.ask("GET", sandbox + "/fs?path=/workspace/cut").status == 404
    last = api.ask("GET", sandbox + "/jobs").json["items"]
    assert [j["reason"] for j in last if j["kind"] == "file_write"][-1] == "cancelled"


def test_tasks(api: Api) -> None:
    made = api.ask("POST", "/v1/tasks", {"labels": {"ticket": "48221"}, "ttl_seconds": 60})
    assert made.status == 201 and made.json["labels"] == {"ticket": "48221"}
    path = f"/v1/tasks/{made.json['id']}"
    assert api.ask("GET", path).json["state"] == "open"
    assert api.ask("GET", "/v1/tasks/48221").status == 200
    assert api.ask("GET", "/v1/tasks/none").status == 404
    assert len(api.ask("GET", "/v1/tasks?label=ticket=48221").json["items"]) == 1
    assert api.ask("GET", "/v1/tasks?label=x").status == 400
    data = os.urandom(200000)
    put = api.ask("PUT", path + "/inputs?path=/workspace/in.bin&mode=600", data)
    assert put.status == 201 and put.json["size"] == 200000
    assert "/workspace/in.bin" in [i["path"] for i in api.ask("GET", path + "/inputs").json["items"]]
    assert api.ask("DELETE", path + "/inputs?path=/workspace/in.bin").status == 204
    assert api.ask("DELETE", path + "/inputs").status == 400
    keyed = api.ask("POST", path + "/resume", Idempotency_Key="k1")
    assert keyed.status == 400 and "Idempotency-Key" in keyed.json["error"]
    assert api.ask("POST", path + "/resume").status == 201
    assert api.ask("POST", path + "/close").json["state"] == "closed"


def test_audit(api: Api, sandbox: str) -> None:
    page = api.ask("GET", "/v1/audit/48221?limit=3").json
    assert [r["number"] for r in page["records"]] == [1, 2, 3] and page["more"] is True and page["next"] == 3
    assert page["records"][0]["record"]["event"] == "job.end" and page["records"][0]["digest"].startswith("sha256:")
    assert page["task"].startswith("tk_")
    assert api.ask("GET", "/v1/audit/48221?after=3").status == 400, "the ticket may have another task by now"
    assert api.ask("GET", f"/v1/audit/{page['task']}?after=3&limit=2").json["next"] == 5
    lines = api.ask("GET", f"/v1/audit/{page['task']}?format=ndjson&after=10")
    assert lines.headers["Content-Type"] == "application/x-ndjson"
    assert [json.loads(x)["number"] for x in lines.body.splitlines()] == list(range(11, 451))
    whole = api.ask("GET", "/v1/audit/48221", Accept="application/x-ndjson")
    assert whole.body.count(b"\n") == 450 and whole.headers["X-Demilune-Task"].startswith("tk_")
    assert api.ask("GET", "/v1/audit/none?format=ndjson").status == 404


def test_logs_events(api: Api, sandbox: str) -> None:
    api.ask("POST", sandbox + "/exec", {"cmd": "echo one"})
    logs = api.ask("GET", sandbox + "/logs?stream=both&follow=false", Accept="application/json")
    assert logs.headers["Content-Type"] == "text/plain; charset=utf-8" and logs.body.endswith(b"exited 0 echo one\n")
    assert "events" in api.ask("GET", sandbox + "/events?tail=2").json
    assert api.ask("GET", sandbox + "/ports").json == []


def test_logs_follow(api: Api, sandbox: str) -> None:
    plain = api.raw()
    plain.sendall(b"GET %s/logs?follow=true HTTP/1.1\r\nHost: x\r\n\r\n" % sandbox.encode())
    assert plain.recv(65536).startswith(b"HTTP/1.1 200")
    api.ask("POST", sandbox + "/exec", {"cmd": "echo two"})
    text = b""
    while b"echo two" not in text:
        text += plain.recv(65536)
    assert b"event: line\ndata: {" in text
    plain.close()


def frame(opcode: int, data: bytes) -> bytes:
    mask = os.urandom(4)
    assert len(data) < 126
    head = bytes([0x80 | opcode, 0x80 | len(data)])
    return head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data))


def read_frames(plain: socket.socket) -> list[tuple[int, bytes]]:
    text = b""
    found: list[tuple[int, bytes]] = []
    while True:
        while len(text) < 2 or len(text) < 2 + (text[1] if text[1] < 126 else 2 + struct.unpack(">H", text[2:4])[0]):
            piece = plain.recv(65536)
            if not piece:
                return found
            text += piece
        size, at = (text[1], 2) if text[1] < 126 else (struct.unpack(">H", text[2:4])[0], 4)
        found.append((text[0] & 15, text[at:at + size]))
        text = text[at + size:]
        if found[-1][0] == 8:
            return found


@pytest.mark.parametrize("route", ["exec/pty", "ssh"])
def test_pty(api: Api, sandbox: str, route: str) -> None:
    plain = api.raw()
    plain.sendall(b"GET %s/%s?rows=30&cols=100&exit=1 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" %
                  (sandbox.encode(), route.encode(), base64.b64encode(os.urandom(16))))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += plain.recv(1)
    assert head.startswith(b"HTTP/1.1 101")
    plain.sendall(frame(2, b"ls\n") + frame(1, b'{"resize":{"rows":50,"cols":132}}') + frame(9, b"hi") +
                  frame(1, b'{"stdin":"exit\\n"}'))
    got = read_frames(plain)
    output = b"".join(data for opcode, data in got if opcode == 2)
    assert output == b"ls\n[50x132]exit\n"
    assert (10, b"hi") in got and (1, b'{"exit":3}') in got
    assert got[-1][0] == 8 and struct.unpack(">H", got[-1][1][:2])[0] == 1000
    assert plain.recv(10) == b""


def test_pty_refused(api: Api, sandbox: str) -> None:
    assert api.ask("GET", sandbox + "/exec/pty").status == 400
    assert api.ask("GET", sandbox + "/exec/pty?rows=0&cols=5000").status == 400


def test_repl(api: Api, sandbox: str) -> None:
    made = api.ask("POST", sandbox + "/repl/sessions", {"language": "python"})
    assert made.status == 201, made.body
    run = f"{sandbox}/repl/sessions/{made.json['id']}/run"
    first = api.ask("POST", run, {"code": "import sys\nx = 41\nprint('ü', file=sys.stderr)\nx + 1", "timeout_ms": 5000}).json
    assert first["stderr"] == "ü\n" and first["exit"] == 0 and first["results"] == [{"text/plain": "42"}]
    assert api.ask("POST", run, {"code": "x"}).json["results"] == [{"text/plain": "41"}]
    assert "error" not in first
    bad = api.ask("POST", run, {"code": "1/0"}).json
    assert bad["exit"] == 1 and bad["error"].startswith("ZeroDivisionError") and "Traceback" in bad["stderr"]
    shell = api.ask("POST", run, {"code": "import os; os.system('echo child')"}).json
    assert shell["stdout"] == "child\n" and shell["results"] == [{"text/plain": "0"}]
    code = "class A:\n def _repr_json_(self): return {'a': 1}\n def _repr_png_(self): return b'\\x89'\nA()"
    rich = api.ask("POST", run, {"code": code}).json
    assert json.loads(rich["results"][0]["application/json"]) == {"a": 1} and rich["results"][0]["image/png"] == "iQ=="
    began = time.monotonic()
    late = api.ask("POST", run, {"code": "while True: pass", "timeout_ms": 300})
    assert late.status == 504, late.body
    assert "timeout" in late.json["error"] and time.monotonic() - began < 2
    assert api.ask("POST", run, {"code": "x"}).json["results"] == [{"text/plain": "41"}], "it lives on"
    code = "import signal; signal.signal(2, signal.SIG_IGN)\nwhile True: pass"
    stubborn = api.ask("POST", run, {"code": code, "timeout_ms": 200})
    assert stubborn.status == 504 and api.ask("POST", run, {"code": "1"}).status == 404


def test_repl_recorded(api: Api, sandbox: str) -> None:
    """The stand-in engine aborts when a cell is sent that it did not record; what it refuses to record is not run."""
    run = f"{sandbox}/repl/sessions/{api.ask('POST', sandbox + '/repl/sessions').json['id']}/run"
    assert api.ask("POST", run, {"code": "x = 1"}).json["exit"] == 0
    refused = api.ask("POST", run, {"code": "# refuse\nx = 2"})
    assert refused.status == 503 and refused.json["error"] == "it cannot be recorded"
    assert api.ask("POST", run, {"code": "x"}).json["results"] == [{"text/plain": "1"}], "it was not run, the context lives"
    # Without a record of its end there is no answer, and no further cell.
    refused = api.ask("POST", run, {"code": "raise SystemExit(77)"})
    assert refused.status == 503 and refused.json["error"] == "its end cannot be recorded"
    assert api.ask("POST", run, {"code": "x"}).status == 404
    assert api.ask("POST", run, {"code": "x" * 163841}).status == 400
    assert api.ask("POST", run, {"code": "x"}, token="dml_none").status == 401


def test_repl_one_at_a_time(api: Api, sandbox: str) -> None:
    """A cell whose caller left goes on; until it ended and that is recorded the context takes no other."""
    run = f"{sandbox}/repl/sessions/{api.ask('POST', sandbox + '/repl/sessions').json['id']}/run"
    body = json.dumps({"code": "import time; time.sleep(1.5); x = 5"}).encode()
    left = api.raw()
    left.sendall(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                 % (run.encode(), len(body), body))
    time.sleep(0.5)
    left.close()
    time.sleep(0.2)
    assert api.ask("POST", run, {"code": "2"}).status == 409
    until = time.monotonic() + 5
    while (done := api.ask("POST", run, {"code": "x"})).status == 409 and time.monotonic() < until:
        time.sleep(0.05)
    assert done.json["results"] == [{"text/plain": "5"}]


def test_repl_ends(api: Api, sandbox: str) -> None:
    ids = [api.ask("POST", sandbox + "/repl/sessions").json["id"] for _ in range(8)]
    assert api.ask("POST", sandbox + "/repl/sessions").json["code"] == "quota"
    assert {s["id"] for s in api.ask("GET", sandbox + "/repl/sessions").json} == set(ids)
    token = api.ask("POST", "/v1/me/tokens", {}).json["token"]
    assert api.ask("POST", f"{sandbox}/repl/sessions/{ids[0]}/run", {"code": "1"}, token=token).status == 404, "not its own"
    ended = api.ask("POST", f"{sandbox}/repl/sessions/{ids[0]}/run", {"code": "import os; os._exit(3)"})
    assert ended.status == 409
    for one in ids[1:]:
        assert api.ask("DELETE", f"{sandbox}/repl/sessions/{one}").status == 204
    assert api.ask("GET", sandbox + "/repl/sessions").json == []
    assert api.ask("POST", sandbox + "/repl/sessions", {"language": "ruby"}).status == 400
    assert api.ask("GET", sandbox + "/repl/languages").json == ["python"]


def test_idempotency(api: Api) -> None:
    body = {"template": "python"}
    key = os.urandom(8).hex()
    first = api.ask("POST", "/v1/sandboxes", body, Idempotency_Key=key).json
    again = api.ask("POST", "/v1/sandboxes", body, Idempotency_Key=key).json
    assert first["id"] == again["id"] and (first["replayed"], again["replayed"]) == (False, True)
    other = api.ask("POST", "/v1/sandboxes", {"template": "python", "ttl_seconds": 5}, Idempotency_Key=key)
    assert other.status == 409 and other.json["code"] == "idempotency_mismatch"
    token = api.ask("POST", "/v1/me/tokens", {}).json["token"]
    assert api.ask("POST", "/v1/sandboxes", body, Idempotency_Key=key, token=token).json["id"] != first["id"]
    assert api.ask("POST", "/v1/sandboxes", body, Idempotency_Key="a b").status == 400
    assert api.ask("POST", "/v1/sandboxes", body, Idempotency_Key="x" * 256).status == 400


def test_refusals_of_the_engine(api: Api) -> None:
    assert "template catalog" in api.ask("POST", "/v1/sandboxes", {"template": "nowhere"}).json["error"]
    denied = api.ask("POST", "/v1/sandboxes", {"template": "forbidden"})
    assert denied.status == 403 and "another way is refused too" in denied.json["error"]
    busy = api.ask("POST", "/v1/sandboxes", {"template": "rate"})
    assert busy.status == 429 and busy.headers["Retry-After"] == "2"


def test_request_id(api: Api) -> None:
    named = api.ask("GET", "/v1/tasks/none", X_Request_Id="abc-1.2_3")
    assert named.headers["X-Request-Id"] == named.json["request_id"] == "abc-1.2_3"
    for odd in ("x" * 65, "a b", 'a"b'):
        assert re.fullmatch("[0-9a-f]{16}", api.ask("GET", "/healthz", X_Request_Id=odd).headers["X-Request-Id"])
