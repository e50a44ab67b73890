# SPDX-License-Identifier: Apache-2.0
"""What a hostile or broken client sends: each gets one JSON sentence and nothing of it stays."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import Api


def talk(api: Api, data: bytes, tcp: bool = False) -> bytes:
    """Sends, half-closes, reads to the end."""
    plain = api.raw(tcp)
    plain.sendall(data)
    plain.shutdown(socket.SHUT_WR)
    text = b""
    while piece := plain.recv(65536):
        text += piece
    plain.close()
    return text


def request(body: bytes, path: str = "/v1/sandboxes", extra: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body


def refused(answer: bytes, status: int) -> dict[str, Any]:
    head, body = answer.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 %d " % status), answer
    error: dict[str, Any] = json.loads(body)
    assert isinstance(error["error"], str) and error["error"] and error["code"] and error["request_id"]
    return error


BODIES = [
    b"", b"{", b"[]", b"null", b"1", b"{}{}", b'{"template":"a"', b"\xff\xfe{}", b"\xef\xbb\xbf{}",
    b'{"ttl_seconds":-1}', b'{"ttl_seconds":0}',
    b'{"ttl_seconds":1e18}', b'{"ttl_seconds":NaN}', b'{"ttl_seconds":315360000}',
    b'{"ttl_seconds":"60"}', b'{"ttl_seconds":true}', b'{"ttl_seconds":1e999}', b'{"ttl_seconds":[]}',
    b'{"ttl_seconds":99999999999999999999}', b'{"idle_limit_seconds":-0.5}',
    b'{"template":"a","template":"b"}', b'{"template":"\xff"}', b'{"template":"\\ud800"}', b'{"template":"a\\u0000"}',
    b'{"template":""}', b'{"template":1}', b'{"template":"' + b"x" * 129 + b'"}', b'{"unknown":1}', b'{"Template":"x"}',
    b'{"metadata":{"a":1}}', b'{"metadata":[]}', b'{"metadata":{"":"x"}}', b'{"metadata":{"a":"' + b"x" * 1025 + b'"}}',
    b'{"metadata":{' + b",".join(b'"%d":""' % i for i in range(65)) + b"}}",
    b'{"limits":{"memory_mb":1}}', b'{"limits":{"memory_mb":1.5}}', b'{"limits":{"bytes":1}}', b'{"limits":3}',
    b'{"task":"tk_x"}', b'{"task":"sb_0000000000000000"}', b'{"persistent":"yes"}', b'{"persistent":0}',
    b'{"a":' * 9 + b"1" + b"}" * 9, b"[" * 100000, b'{"metadata":{"a":"b"}} x', b"{'template':'a'}", b'{"template":"a",}',
]


@pytest.mark.parametrize("body", [b for b in BODIES if b != b""], ids=lambda b: repr(b[:40]))
def test_create_bodies(api: Api, body: bytes) -> None:
    answer = api.ask("POST", "/v1/sandboxes", body)
    assert answer.status in (400, 413), answer.body
    assert isinstance(answer.json["error"], str)


def test_nothing_was_created(api: Api) -> None:
    before = len(api.ask("GET", "/v1/sandboxes").json)
    for body in BODIES[1:]:
        api.ask("POST", "/v1/sandboxes", body)
    assert len(api.ask("GET", "/v1/sandboxes").json) == before


@pytest.mark.parametrize("body", [
    {"from_snapshot": "sn_1"}, {"volumes": [{"name": "v", "read_only": True}]}])
def test_later_fields(api: Api, body: dict[str, Any]) -> None:
    assert api.ask("POST", "/v1/sandboxes", body).status == 501


@pytest.mark.parametrize("body", [
    {}, {"cmd": ""}, {"cmd": None}, {"cmd": 1}, {"cmd": "a", "argv": ["b"]}, {"argv": []}, {"argv": [""]}, {"argv": [1]},
    {"argv": "ls"}, {"cmd": "x" * 131072}, {"argv": ["x" * 90000, "y" * 90000]}, {"cmd": "a\0b"},
    {"cmd": "a", "cwd": "relative"}, {"cmd": "a", "cwd": "/" + "x" * 4095}, {"cmd": "a", "env": {"A=B": "c"}},
    {"cmd": "a", "env": {"A": "c\0"}}, {"cmd": "a", "env": {str(i): "x" * 1000 for i in range(100)}},
    {"cmd": "a", "user": "nobody"}, {"cmd": "a", "timeout_seconds": 0}, {"cmd": "a", "timeout_seconds": -1},
    {"cmd": "a", "timeout_seconds": 86401}, {"cmd": "a", "timeout_seconds": 1e18}, {"cmd": "a", "timeout_seconds": 0.0001},
    {"cmd": "a", "output_limit": 10}, {"cmd": "a", "output_limit": 1 << 40}, {"cmd": "a", "args": ["b"]},
    {"cmd": "a", "pty": 1}], ids=lambda b: repr(b)[:50])
def test_exec_bodies(api: Api, sandbox: str, body: dict[str, Any]) -> None:
    for route in ("exec", "exec/stream"):
        answer = api.ask("POST", f"{sandbox}/{route}", body)
        assert answer.status in (400, 413), answer.body


def test_not_a_number(api: Api, sandbox: str) -> None:
    assert api.ask("POST", sandbox + "/exec", b'{"cmd":"echo a","timeout_seconds":NaN}').status == 400


@pytest.mark.parametrize("path", [
    "", "path=", "path=relative", "path=/a/../b", "path=/..", "path=../x", "path=/a%00b", "path=/" + "x" * 5000,
    "path=/%ff",
    "path=/a&path=/b", "path=%", "path=/%zz", "Path=/a"])
@pytest.mark.parametrize("route", [("GET", "fs"), ("PUT", "fs"), ("DELETE", "fs"), ("GET", "fs/stat"), ("POST", "fs/mkdir"),
                                   ("GET", "fs/tree"), ("PUT", "fs/tree")])
def test_paths(api: Api, sandbox: str, route: tuple[str, str], path: str) -> None:
    answer = api.ask(route[0], f"{sandbox}/{route[1]}?{path}", b"data" if route[0] == "PUT" else None)
    assert answer.status == 400, answer.body
    assert isinstance(answer.json["error"], str)


@pytest.mark.parametrize("path", [
    "/", "/v1", "/v1/", "/v1/sandboxes/", "//v1/sandboxes", "/v1//sandboxes", "/v1/sandbox%65s", "/v1/sandboxes/x", "/v2/me",
    "/v1/sandboxes/sb_0000000000000000", "/v1/sandboxes/sb_0000000000000000/exec/x", "/v1/./me", "/v1/x/../me", "/V1/me",
    "/v1/sandboxes/sb_000000000000000000000", "/v1/sandboxes/tk_0000000000000000", "/v1/sandboxes/%2e%2e", "/v1/me%2f",
    "/v1/tasks/%ff", "/a/b/c/d/e/f/g/h/i/j/k/l"])
def test_no_such_path(api: Api, path: str) -> None:
    answer = api.ask("GET", path)
    assert answer.status == 404 and answer.json["code"] == "not_found"


def test_method(api: Api) -> None:
    answer = api.ask("PATCH", "/v1/sandboxes", {})
    assert answer.status == 405 and answer.headers["Allow"] == "GET, POST"
    assert api.ask("BREW", "/v1/sandboxes").status == 501


@pytest.mark.parametrize("head,status", [
    (b"GET /healthz\r\n\r\n", 400), (b"GET /healthz HTTP/1.1\n\n", 400), (b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n", 505),
    (b"GET /healthz HTTP/1.1\r\n\r\n", 400), (b"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400),
    (b"GET /healthz HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", 400),
    (b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    (b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    (b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    (b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 40000 + b"\r\n\r\n", 431),
    (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"".join(b"A%d: b\r\n" % i for i in range(120)) + b"\r\n", 431),
    (b"\x16\x03\x01\x02\x00\x01\x00", 400), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None),
    (b"GET http://user@x/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400)], ids=lambda h: repr(h)[:50])
def test_heads(api: Api, head: bytes, status: int | None) -> None:
    answer = talk(api, head)
    if status is None:
        assert not answer.startswith(b"HTTP/1.1 2")
    else:
        error = refused(answer, status)
        assert "x" * 50 not in error["error"]
        assert b"Connection: close" in answer
    assert api.ask("GET", "/healthz").status == 200


def test_cut_off(api: Api, sandbox: str) -> None:
    assert talk(api, b"GET /heal") == b""
    assert talk(api, request(b'{"template":"x"}')[:-3]).startswith(b"HTTP/1.1 400")
    assert talk(api, b"") == b""


def test_too_large(api: Api, sandbox: str) -> None:
    big = refused(talk(api, request(b"x" * (1 << 20) + b"x")), 413)
    assert "at most 1 MiB" in big["error"]
    head = f"PUT {sandbox}/fs?path=/a HTTP/1.1\r\nHost: x\r\nContent-Length: {(256 << 20) + 1}\r\n\r\n".encode()
    assert "at most 256 MiB" in refused(talk(api, head), 413)["error"]
    chunks = b"".join(b"8000\r\n" + b"x" * 32768 + b"\r\n" for _ in range(40)) + b"0\r\n\r\n"
    answer = talk(api, b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    refused(answer, 413)


def test_bodies_where_none_belong(api: Api) -> None:
    head = b"DELETE /v1/me/tokens/dml_00000000 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"
    assert talk(api, head + b"{}").startswith(b"HTTP/1.1 400")
    assert talk(api, b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}").startswith(b"HTTP/1.1 400")
    assert api.ask("DELETE", "/v1/me/tokens/dml_00000000", Content_Length="0").status == 404


def test_pipelining(api: Api) -> None:
    one = b"GET /v1/tasks/none HTTP/1.1\r\nHost: x\r\nX-Request-Id: r%d\r\n\r\n"
    answer = talk(api, b"".join(one % i for i in range(200)) + request(b'{"template":"python"}') + one % 200)
    ids = [line[14:] for line in answer.replace(b"\n", b"").split(b"\r") if line.startswith(b"X-Request-Id: r")]
    assert ids == [b"r%d" % i for i in range(201)]
    assert answer.count(b"HTTP/1.1 404") == 201 and answer.count(b"HTTP/1.1 201") == 1


def test_half_close(api: Api, sandbox: str) -> None:
    answer = talk(api, request(b'{"cmd":"sleep 300"}', sandbox + "/exec"))
    assert answer.startswith(b"HTTP/1.1 200") and b"begun" in answer


def test_byte_by_byte(api: Api) -> None:
    plain = api.raw(tcp=True)
    for byte in request(b'{"label":"x"}', "/v1/me/tokens"):
        plain.send(bytes([byte]))
    assert plain.recv(65536).startswith(b"HTTP/1.1 401")


def test_one_write_per_answer(api: Api) -> None:
    plain = api.raw()
    for _ in range(20):
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert plain.recv(65536).endswith(b'{"status":"ok"}')


def test_expect(api: Api) -> None:
    plain = api.raw()
    plain.sendall(request(b'{"template":"python"}', extra="Expect: 100-continue\r\n")[:-21])
    assert plain.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    plain.sendall(b'{"template":"python"}')
    assert plain.recv(65536).startswith(b"HTTP/1.1 201")


def test_http_1_0(api: Api, sandbox: str) -> None:
    plain = talk(api, f"GET {sandbox} HTTP/1.0\r\n\r\n".encode())
    assert plain.startswith(b"HTTP/1.1 200") and b"Connection: close" in plain
    body = b'{"cmd":"echo a"}'
    head = f"POST {sandbox}/exec/stream HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    assert talk(api, head + body).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("frames", [
    b"\x82\x03abc",                                    # not masked
    b"\xc2\x80\0\0\0\0",                               # reserved bit
    b"\x83\x80\0\0\0\0",                               # unknown opcode
    b"\x80\x80\0\0\0\0",                               # a continuation of nothing
    b"\x89\xfe\0\x7e\0\0\0\0" + b"x" * 126,            # long ping
    b"\x82\xff" + struct.pack(">Q", 1 << 40) + b"\0\0\0\0",
    b"\x81\x81\0\0\0\0\xff",                           # not UTF-8
    b"\x81\x81\0\0\0\0x"])                             # not JSON
def test_sockets(api: Api, sandbox: str, frames: bytes) -> None:
    plain = api.raw()
    plain.sendall(f"GET {sandbox}/ssh HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
    assert plain.recv(65536).startswith(b"HTTP/1.1 101")
    plain.sendall(frames)
    text = b""
    while piece := plain.recv(65536):
        text += piece
    assert text[0] == 0x88 and struct.unpack(">H", text[2:4])[0] in (1002, 1007, 1009)


def test_socket_version(api: Api, sandbox: str) -> None:
    answer = talk(api, f"GET {sandbox}/ssh HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 426") and b"Sec-WebSocket-Version: 13" in answer


def test_slow_heads_are_dropped(api: Api) -> None:
    """Bytes that trickle in do not keep a connection: the whole head has 10 s."""
    slow = [api.raw(tcp=True) for _ in range(30)]
    began = time.monotonic()
    ended: dict[int, float] = {}
    while len(ended) < len(slow) and time.monotonic() - began < 14:
        for i, plain in enumerate(slow):
            if i in ended:
                continue
            try:
                plain.send(b"G" if time.monotonic() - began < 0.2 else b"x")
                plain.settimeout(0.001)
                if plain.recv(1) == b"":
                    ended[i] = time.monotonic() - began
            except TimeoutError:
                pass
            except OSError:
                ended[i] = time.monotonic() - began
        time.sleep(0.3)
    assert len(ended) == len(slow) and all(9 < t < 12 for t in ended.values()), ended


def test_slow_body_is_answered(fresh: Api) -> None:
    plain = fresh.raw()
    plain.settimeout(40)
    plain.sendall(b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    began = time.monotonic()
    refused(plain.recv(65536), 408)
    assert 28 < time.monotonic() - began < 32


def test_many_connections(fresh: Api) -> None:
    """TCP callers cannot keep a local one out, and idle ones give way to new ones."""
    crowd = []
    for _ in range(500):
        crowd.append(fresh.raw(tcp=True))
    assert fresh.ask("GET", "/healthz").status == 200
    assert fresh.ask("GET", "/healthz", tcp=True).status == 200
    for plain in crowd:
        plain.close()
    assert fresh.ask("GET", "/healthz", tcp=True).status == 200
    busy = []
    for _ in range(520):
        busy.append(fresh.raw(tcp=True))
        busy[-1].send(b"G")  # in the middle of a head: none of these gives way
    time.sleep(0.3)
    assert fresh.ask("GET", "/healthz").status == 200
    for plain in busy:
        plain.close()


def test_reset_in_the_middle(api: Api, sandbox: str) -> None:
    for route, body in (("exec", b'{"cmd":"sleep 200"}'), ("exec/stream", b'{"cmd":"sleep 200"}'),
                        ("exec/stream", b'{"cmd":"flood 3000000"}'), ("exec", b'{"cmd":"flood 3000000"}')):
        plain = api.raw(tcp=False)
        plain.sendall(request(body, f"{sandbox}/{route}"))
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(0.05)
        plain.close()
    time.sleep(0.5)
    assert api.ask("POST", sandbox + "/exec", {"cmd": "echo ok"}).json["stdout"] == "ok\n"


def test_engine_restart(fresh: Api) -> None:
    """While the engine is away callers get 503 at once and keep their connection; then all works."""
    made = fresh.ask("POST", "/v1/sandboxes", {}).json["id"]
    path = f"/v1/sandboxes/{made}"
    before = fresh.raw()
    before.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert before.recv(65536).startswith(b"HTTP/1.1 200")
    broken = fresh.ask("POST", path + "/exec", {"cmd": "crash"})
    assert broken.status == 503 and broken.json["code"] == "unavailable" and "Retry-After" not in broken.headers
    plain = fresh.raw()
    plain.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert plain.recv(65536).startswith(b"HTTP/1.1 503")
    assert fresh.ask("GET", "/readyz").status == 503 and fresh.ask("GET", "/healthz").status == 200
    time.sleep(1.3)
    for kept in (plain, before):  # the new engine is told who is at them
        kept.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert kept.recv(65536).startswith(b"HTTP/1.1 200")
    assert fresh.ask("POST", path + "/exec", {"cmd": "echo back"}).json["stdout"] == "back\n"


def test_local_callers_come_and_go(api: Api, sandbox: str) -> None:
    """The engine is told of each and of its end: more of them than it has room for, some with a command that outlives them."""
    for number in range(1100):
        if number % 10 == 0:
            plain = api.raw()
            plain.sendall(request(b'{"cmd":"sleep 200"}', f"{sandbox}/exec"))
            plain.close()
        assert api.ask("GET", sandbox).status == 200


def test_engine_breaks_the_table(fresh: Api) -> None:
    """An answer to a question that was not asked: that engine is not believed any more."""
    path = "/v1/sandboxes/" + fresh.ask("POST", "/v1/sandboxes", {}).json["id"]
    assert fresh.ask("POST", path + "/exec", {"cmd": "rubbish"}).status == 503
    assert fresh.process.wait(5) == 4, "the supervisor starts it again, with a new edge"
    assert "not asked" in fresh.text()


def test_engine_gives_up(fresh: Api) -> None:
    """The engine closes the edge and lives: no new edge comes, so the api ends itself. Until then it refuses."""
    path = "/v1/sandboxes/" + fresh.ask("POST", "/v1/sandboxes", {}).json["id"]
    assert fresh.ask("POST", path + "/exec", {"cmd": "hang up"}).status == 503
    assert fresh.ask("GET", path).status == 503
    assert fresh.process.wait(5) == 4
    assert "no new edge" in fresh.text()


def test_burst_of_pages(fresh: Api) -> None:
    """More answers at once than the queue between engine and api may hold."""
    def page(_: int) -> tuple[int, int]:
        answer = fresh.ask("GET", "/v1/audit/fat?limit=200")
        return answer.status, len(answer.body)

    with ThreadPoolExecutor(40) as pool:
        for status, size in pool.map(page, range(80)):
            assert status == 200 and size > 800_000
    assert "gone" not in fresh.text()


def test_burst_of_questions(fresh: Api) -> None:
    """More questions at once than the queue may hold; the engine sleeps first, so that they do pile up."""
    path = "/v1/sandboxes/" + fresh.ask("POST", "/v1/sandboxes", {}).json["id"]
    words = "echo " + "x" * 130000

    def run(_: int) -> int:
        return fresh.ask("POST", path + "/exec", {"cmd": words}).status

    with ThreadPoolExecutor(151) as pool:
        sleeping = pool.submit(fresh.ask, "POST", path + "/exec", {"cmd": "stall 2000"})
        time.sleep(0.2)
        assert set(pool.map(run, range(150))) == {200}
        assert sleeping.result().status == 200
    assert "gone" not in fresh.text()


def test_engine_takes_nothing(fresh: Api) -> None:
    """What cannot be asked in time is refused with a sentence, and nothing is lost."""
    path = "/v1/sandboxes/" + fresh.ask("POST", "/v1/sandboxes", {}).json["id"]
    words = "echo " + "x" * 130000

    def run(_: int) -> tuple[int, str]:
        answer = fresh.ask("POST", path + "/exec", {"cmd": words}, wait=60)
        return answer.status, answer.json.get("code", "")

    with ThreadPoolExecutor(61) as pool:
        sleeping = pool.submit(fresh.ask, "POST", path + "/exec", {"cmd": "stall 18000"}, wait=60)
        time.sleep(0.2)
        assert set(pool.map(run, range(60))) == {(503, "unavailable")}
        sleeping.result()
    assert fresh.ask("POST", path + "/exec", {"cmd": "echo ok"}).json["stdout"] == "ok\n"
    assert "gone" not in fresh.text()


def test_access_token_that_is_none(api: Api) -> None:
    """A parameter that should be a token never becomes the right of the local uid."""
    for value in ("", "a%20b", "a%22b", "x" * 257, "%7f"):
        assert api.ask("GET", f"/v1/me?access_token={value}").status == 401, value
    assert api.ask("GET", "/v1/me").json["admin"] is True


def test_connections_of_one_caller(fresh: Api) -> None:
    """One caller cannot have all the connections; others are served meanwhile."""
    token = fresh.ask("POST", "/v1/me/tokens", {}).json["token"]
    path = "/v1/sandboxes/" + fresh.ask("POST", "/v1/sandboxes", {}).json["id"]
    bearer = f"Authorization: Bearer {token}\r\n"
    crowd = []
    for _ in range(256):
        time.sleep(0.004)
        crowd.append(fresh.raw())
        crowd[-1].sendall(request(b'{"cmd":"sleep 6000"}', f"{path}/exec", extra=bearer))
    time.sleep(0.5)
    assert fresh.ask("GET", "/v1/me", token=token).status == 429
    assert fresh.ask("GET", "/v1/me").status == 200
    for plain in crowd:
        assert plain.recv(12) == b"HTTP/1.1 200"
        plain.close()
    assert fresh.ask("GET", "/v1/me", token=token).status == 200


def test_many_bodies_at_once(fresh: Api) -> None:
    """What requests hold is counted for their caller: beyond its share they are refused before they begin."""
    token = fresh.ask("POST", "/v1/me/tokens", {}).json["token"]
    path = "/v1/sandboxes/" + fresh.ask("POST", "/v1/sandboxes", {}).json["id"]
    body = request(b" " * 1048576, f"{path}/exec", extra=f"Authorization: Bearer {token}\r\n")[:700000]
    crowd, refusals = [], []
    for _ in range(150):
        crowd.append(fresh.raw())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            crowd[-1].sendall(body)
    time.sleep(1)
    for plain in crowd:
        plain.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            refusals.append(plain.recv(65536))
    assert 5 < len(refusals) < 60 and all(r.startswith(b"HTTP/1.1 503 ") and b"being held" in r for r in refusals)
    assert fresh.ask("GET", "/v1/me").status == 200
    for plain in crowd:
        plain.close()
    time.sleep(0.5)
    assert fresh.ask("POST", path + "/exec", {"cmd": "echo ok"}, token=token).status == 200


def test_two_keys(api: Api) -> None:
    body = b"{}"
    for head in (b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n", b"Idempotency-Key: a\r\nIdempotency-Key: a\r\n",
                 b"Idempotency-Key: \r\n"):
        plain = api.raw()
        plain.sendall(request(body, "/v1/sandboxes", extra=head.decode()))
        assert plain.recv(65536).startswith(b"HTTP/1.1 400 "), head
        plain.close()
    keyed = api.ask("POST", "/v1/me/tokens", {}, Idempotency_Key="k")
    assert keyed.status == 400 and "list the tokens" in keyed.json["error"]


def test_revoked_while_open(fresh: Api) -> None:
    """A stream, a terminal and a long command of a token that is revoked end soon, and their jobs with them."""
    token = fresh.ask("POST", "/v1/me/tokens", {}).json["token"]
    path = "/v1/sandboxes/" + fresh.ask("POST", "/v1/sandboxes", {}).json["id"]
    bearer = f"Authorization: Bearer {token}\r\n"
    stream, command, shell = fresh.raw(), fresh.raw(), fresh.raw()
    for plain in (stream, command, shell):
        plain.settimeout(40)
    stream.sendall(request(b'{"cmd":"sleep 100000"}', f"{path}/exec/stream", extra=bearer))
    command.sendall(request(b'{"cmd":"sleep 100000"}', f"{path}/exec", extra=bearer))
    shell.sendall((f"GET {path}/exec/pty HTTP/1.1\r\nHost: x\r\n{bearer}Connection: Upgrade\r\nUpgrade: websocket\r\n"
                   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode())
    assert shell.recv(65536).startswith(b"HTTP/1.1 101 ")
    time.sleep(0.3)
    assert fresh.ask("DELETE", f"/v1/me/tokens/{token[:12]}").status == 204
    began = time.monotonic()

    def rest(plain: socket.socket, end: bytes) -> bytes:
        got = b""
        while end not in got:
            piece = plain.recv(65536)
            if not piece:
                break
            got += piece
        return got

    assert b"event: error" in rest(stream, b"0\r\n\r\n") and time.monotonic() - began < 12
    assert b"revoked" in rest(shell, b"revoked") and time.monotonic() - began < 12
    assert b'"code":"unauthorized"' in rest(command, b"0\r\n\r\n")
    jobs = fresh.ask("GET", path + "/jobs").json["items"]
    assert [job["reason"] for job in jobs] == ["cancelled"] * 3, jobs


def test_engine_silent(fresh: Api) -> None:
    path = "/v1/sandboxes/" + fresh.ask("POST", "/v1/sandboxes", {}).json["id"]
    plain = fresh.raw()
    plain.sendall(request(b'{"template":"silent"}'))
    assert fresh.ask("GET", path).status == 200
    plain.close()
    assert fresh.ask("GET", path).status == 200


def test_stop(tmp_path: Path) -> None:
    running = Api(tmp_path)
    waiting = running.raw()
    waiting.sendall(request(b'{"template":"silent"}'))
    time.sleep(0.1)
    assert running.stop() == 0
    assert waiting.recv(10) == b""
