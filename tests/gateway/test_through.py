# SPDX-License-Identifier: Apache-2.0
"""Rows H (WebSockets), tunnels of tcp and passthrough rules, brokered rules (K4, K9)."""

import base64
import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import certs
import pytest
import rig
from cases import request
from test_places import hello

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
UPGRADE = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {KEY}"]


def accept(key: bytes) -> bytes:
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


class Through:
    def __init__(self) -> None:
        self.ws = rig.Origin(b"")
        self.raw = rig.Origin(lambda _, s, data: s.sendall(data.upper()))
        self.secure = rig.Origin(lambda _, s, data: s.sendall(data.upper()), tls=certs.server("pinned", "DNS:pinned.test"))
        self.answer: dict[str, Any] = {}
        document = rig.policy(
            rig.fetch("http://ws.test/ws/**", websocket=True),
            {"host": "raw.test", "kind": "tcp", "port": 9000},
            {"host": "pinned.test", "kind": "passthrough", "port": 443},
            {
                "credential": {"header": "Authorization", "prefix": "Bearer ", "secret": "carrier"},
                "fields": ["eta", "status"],
                "host": "api.test",
                "kind": "brokered",
                "methods": ["GET"],
                "path": "/v1/track/*",
                "port": 443,
                "query": ["number"],
                "response_max": 65536,
            },
            rig.fetch("http://flood.test/ws", websocket=True, methods=["GET", "POST"], request_max=65536, response_max=65536),
        )
        self.g = rig.Gateway(
            document,
            {
                ("ws.test", 80): self.ws.port,
                ("flood.test", 80): self.ws.port,
                ("raw.test", 9000): self.raw.port,
                ("pinned.test", 443): self.secure.port,
            },
            roots=certs.authority(),
            broker=lambda _: self.answer,
        )

    def told(self, reason: str) -> int:
        return self.g.told(reason)


@pytest.fixture(scope="module")
def t() -> Iterator[Through]:
    x = Through()
    yield x
    x.g.close()


def switches(text: bytes = b"", key: bytes | None = None, extra: bytes = b"") -> Any:
    def answer(_: rig.Origin, s: socket.socket, data: bytes) -> None:
        if data.startswith(b"GET "):
            theirs = next(x for x in data.split(b"\r\n") if x.lower().startswith(b"sec-websocket-key: ")).split(b": ")[1]
            s.sendall(
                text
                or b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + extra
                + b"Sec-WebSocket-Accept: "
                + accept(key or theirs)
                + b"\r\n\r\n"
                + b"first frame"
            )
        else:
            s.sendall(data.upper())

    return answer


def test_H4_a_websocket_by_rule_is_relayed_and_counted(t: Through) -> None:
    t.ws.answer = switches()
    s = t.g.dial("ws.test", 80)
    s.sendall(request("GET /ws/x HTTP/1.1", "ws.test", *UPGRADE, "Origin: http://ws.test", "Sec-WebSocket-Extensions: permessage-deflate"))
    s.settimeout(5)
    got = b""
    while not got.endswith(b"first frame"):
        got += s.recv(4096)
    assert got.startswith(b"HTTP/1.1 101 ") and b"Sec-WebSocket-Accept: " + accept(KEY.encode()) in got
    sent = t.ws.heard[-1]
    assert KEY.encode() not in sent and b"xtensions" not in sent and b"Origin: http://ws.test" in sent
    s.sendall(b"hello")
    assert s.recv(100) == b"HELLO"
    assert t.g.wait(lambda: sum(f["bytes_out"] for f in t.g.flows if f["name"] == "ws.test") >= len(sent) + 5, 3)
    s.close()


def flood_of(size: int) -> Any:
    """A server that answers what it was told with so many bytes behind the handshake, in frames of 16 KiB."""
    hands = switches()

    def answer(o: rig.Origin, s: socket.socket, data: bytes) -> None:
        if data.startswith(b"GET "):
            hands(o, s, data)
            for _ in range(size // 16388):
                s.sendall(b"\x82\x7e\x40\x00" + b"x" * 16384)

    return answer


def opened(t: Through) -> socket.socket:
    s = t.g.dial("flood.test", 80)
    s.sendall(request("GET /ws HTTP/1.1", "flood.test", *UPGRADE))
    return s


def test_H4_what_a_websocket_brings_is_bounded_by_response_max(t: Through) -> None:
    t.ws.answer = flood_of(1 << 20)
    before = t.told("resp-limit")
    got, how = rig.drain(opened(t), 5)
    head, _, rest = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ") and how == "reset"
    assert len(rest) <= 65536
    assert t.g.wait(lambda: t.told("resp-limit") > before)
    assert t.g.verdict("resp-limit")["verdict"] == "aborted"


def test_H4_up_to_the_maximum_all_comes(t: Through) -> None:
    t.ws.answer = flood_of(3 * 16388)
    s = opened(t)
    s.settimeout(5)
    got = b""
    while got.count(b"x") < 3 * 16384:
        got += s.recv(65536)
    s.close()


def test_H4_what_a_websocket_sends_is_bounded_by_request_max(t: Through) -> None:
    t.ws.answer = flood_of(0)
    before, n = t.told("body-limit"), len(t.ws.heard)
    s = opened(t)
    s.settimeout(5)
    got = b""
    while not got.endswith(b"first frame"):
        got += s.recv(4096)
    with pytest.raises(ConnectionError):
        for _ in range(500):
            s.sendall(b"~" * 16384)
            time.sleep(0.01)
    assert t.g.wait(lambda: t.told("body-limit") > before)
    assert t.g.verdict("body-limit")["verdict"] == "aborted"
    assert b"".join(t.ws.heard[n:]).count(b"~") <= 65536


HANDSHAKES = {
    "H2_no_key": ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "H2_bad_key": UPGRADE[:3] + ["Sec-WebSocket-Key: x"],
    "H2_version": UPGRADE[:2] + ["Sec-WebSocket-Version: 8", UPGRADE[3]],
    "H2_another_protocol_too": ["Connection: Upgrade", "Upgrade: websocket, h2c", *UPGRADE[2:]],
    "H2_two_upgrades": [*UPGRADE, "Upgrade: h2c"],
    "H2_no_connection": UPGRADE[1:],
    "H9_connect_udp": ["Connection: Upgrade", "Upgrade: connect-udp", *UPGRADE[2:]],
}


@pytest.mark.parametrize("case", HANDSHAKES)
def test_H2_a_handshake_that_is_none(t: Through, case: str) -> None:
    before, reaches, heard = t.told("upgrade"), len(t.g.reaches), len(b"".join(t.ws.heard))
    s = t.g.dial("ws.test", 80)
    s.sendall(request("GET /ws/x HTTP/1.1", "ws.test", *HANDSHAKES[case]))
    got, _ = rig.drain(s)
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 426 ")), got
    assert t.g.wait(lambda: t.told("upgrade") > before)
    assert (len(t.g.reaches), len(b"".join(t.ws.heard))) == (reaches, heard)


ANSWERS = {
    "H3_200": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "H3_another_protocol": b"HTTP/1.1 101 x\r\nUpgrade: foo\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
    "H3_no_accept": b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "H3_no_connection": b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n",
}


@pytest.mark.parametrize("case", [*ANSWERS, "H3_wrong_accept", "H3_extension_nobody_offered", "H3_accept_of_the_programs_key"])
def test_H3_no_relay_before_a_101_that_proves_itself(t: Through, case: str) -> None:
    if case == "H3_wrong_accept":
        t.ws.answer = switches(key=b"AAAAAAAAAAAAAAAAAAAAAA==")
    elif case == "H3_accept_of_the_programs_key":
        t.ws.answer = switches(key=KEY.encode())
    elif case == "H3_extension_nobody_offered":
        t.ws.answer = switches(extra=b"Sec-WebSocket-Extensions: permessage-deflate\r\n")
    else:
        t.ws.answer = switches(ANSWERS[case])
    s = t.g.dial("ws.test", 80)
    s.sendall(request("GET /ws/x HTTP/1.1", "ws.test", *UPGRADE))
    s.sendall(b"too early")
    got, _ = rig.drain(s)
    assert got.startswith(b"HTTP/1.1 502 ") and b"first frame" not in got, got
    assert not any(b"too early" in h.lower() for h in t.ws.heard)


# ---- tunnels ----


def test_a_tcp_rule_passes_bytes_both_ways_and_counts_them(t: Through) -> None:
    s = t.g.dial("raw.test", 9000)
    s.settimeout(5)
    s.sendall(b"SSH-2.0-x\r\n")
    assert s.recv(100) == b"SSH-2.0-X\r\n"
    v = [v for v in t.g.verdicts if v["name"] == "raw.test"][-1]
    assert (v["verdict"], v["scheme"], v["rule"], v["address"]) == ("allowed", "tcp", 1, "192.0.2.7")
    s.shutdown(socket.SHUT_WR)
    assert rig.drain(s, 3)[1] in ("end", "reset")
    assert t.g.wait(lambda: sum(f["bytes_in"] for f in t.g.flows if f["name"] == "raw.test") == 11, 3)


def test_a_connect_to_a_tcp_rule(t: Through) -> None:
    s = t.g.proxy()
    s.sendall(b"CONNECT raw.test:9000 HTTP/1.1\r\nHost: raw.test:9000\r\n\r\nearly")
    s.settimeout(5)
    got = b""
    while not got.endswith(b"EARLY"):
        got += s.recv(4096)
    assert got == b"HTTP/1.1 200 Connection established\r\n\r\nEARLY"
    s.close()


def test_passthrough_is_not_intercepted(t: Through) -> None:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=certs.authority().decode())
    s = context.wrap_socket(t.g.dial("pinned.test", 443), server_hostname="pinned.test")
    s.sendall(b"hello")
    assert s.recv(100) == b"HELLO"
    v = [v for v in t.g.verdicts if v["name"] == "pinned.test"][-1]
    assert (v["verdict"], v["scheme"]) == ("allowed", "passthrough")
    s.close()


@pytest.mark.parametrize("raw,reason", [(b"SSH-2.0-x\r\n", "not-tls"), ("evil.test", "name-mismatch"), ("", "no-sni")])
def test_G2_G6_passthrough_wants_the_server_name(t: Through, raw: bytes | str, reason: str) -> None:
    before, reaches = t.told(reason), len(t.g.reaches)
    s = t.g.dial("pinned.test", 443)
    s.sendall(raw if isinstance(raw, bytes) else hello(raw or None))
    assert rig.drain(s, 5)[1] != "open"
    assert t.g.wait(lambda: t.told(reason) > before)
    assert len(t.g.reaches) == reaches


def with_extension(first: bytes, kind: int, data: bytes) -> bytes:
    """A ClientHello with one extension more."""
    body = first[9:]
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    extensions = body[at + 2 :] + kind.to_bytes(2, "big") + len(data).to_bytes(2, "big") + data
    body = body[:at] + len(extensions).to_bytes(2, "big") + extensions
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


def test_G8_passthrough_refuses_ech(t: Through) -> None:
    before, reaches = t.told("ech"), len(t.g.reaches)
    s = t.g.dial("pinned.test", 443)
    s.sendall(with_extension(hello("pinned.test"), 0xFE0D, b"\0" * 32))
    assert rig.drain(s, 5) in ((b"", "end"), (b"", "reset"))
    assert t.g.wait(lambda: t.told("ech") > before)
    assert len(t.g.reaches) == reaches


def test_G8_an_intercepted_place_ignores_ech_and_answers_the_outer_name(t: Through) -> None:
    s = t.g.dial("api.test", 443)
    s.sendall(with_extension(hello("api.test"), 0xFE0D, b"\0" * 32))
    s.settimeout(5)
    assert s.recv(5)[0] == 22, "a ServerHello"
    s.close()


# ---- brokered ----


def brokered(t: Through, line: str, *fields: str, answer: dict[str, Any] | None = None) -> tuple[int, dict[str, str], bytes]:
    t.answer = answer or {"answer": b'{"eta":"2026-12-01","status":"on its way"}'}
    s = t.g.dial_tls("api.test")
    s.sendall(request(line, "api.test", *fields))
    return rig.answer_of(s)


def test_brokered_verdict_then_lease_then_broker_and_nothing_else(t: Through) -> None:
    n = len(t.g.verdicts)
    status, fields, body = brokered(t, "GET /v1/track/7?number=a%20b HTTP/1.1")
    assert status == 200 and json.loads(body) == {"eta": "2026-12-01", "status": "on its way"}
    assert fields["content-type"] == "application/json"
    v = next(v for v in t.g.verdicts[n:] if v["path"] == "/v1/track/7")
    assert (v["verdict"], v["rule"], v["path"], v["query"]) == ("allowed", 3, "/v1/track/7", b"number\0")
    assert t.g.leases[-1] == {"rule": 3, "digest": v["digest"]}
    assert t.g.brokered[-1] == {"lease": b"\2" * 10, "rule": 3, "name": "api.test", "path": "/v1/track/7", "query": b"number\0a b\0"}
    assert not any(r["host"] == "api.test" for r in t.g.reaches)


@pytest.mark.parametrize("field", ["Authorization: Bearer mine", "authorization: x", "X-API-Key: k", "Cookie: a=b"])
def test_K4_K9_a_brokered_host_takes_no_credential_of_the_program(t: Through, field: str) -> None:
    n, asked = len(t.g.leases), len(t.g.brokered)
    status, _, body = brokered(t, "GET /v1/track/7?number=1 HTTP/1.1", field)
    assert status == 403 and json.loads(body)["code"] == "cred-scope"
    assert (len(t.g.leases), len(t.g.brokered)) == (n, asked)


@pytest.mark.parametrize(
    "line,reason",
    [("POST /v1/track/7 HTTP/1.1", "method"), ("GET /v1/track/7/8 HTTP/1.1", "path"), ("GET /v1/track/7?other=1 HTTP/1.1", "query")],
)
def test_brokered_what_its_rule_does_not_take(t: Through, line: str, reason: str) -> None:
    n, asked = len(t.g.leases), len(t.g.brokered)
    status, _, body = brokered(t, line)
    assert status in (403, 405) and json.loads(body)["code"] == reason
    assert (len(t.g.leases), len(t.g.brokered)) == (n, asked)


@pytest.mark.parametrize(
    "answer,status,reason",
    [
        ({"reason": "broker"}, (502, 503), "broker"),
        ({"reason": "tls-verify"}, (502,), "tls-verify"),
        ({"answer": b"[]"}, (502, 503), "broker"),
        ({"answer": b'{"a": 1}'}, (502, 503), "broker"),
        ({"answer": b'{"a":1}x'}, (502, 503), "broker"),
        ({"answer": b""}, (502, 503), "broker"),
    ],
)
def test_brokered_failures_are_answers(t: Through, answer: dict[str, Any], status: tuple[int, ...], reason: str) -> None:
    got, _, body = brokered(t, "GET /v1/track/7 HTTP/1.1", answer=answer)
    assert got in status and json.loads(body)["code"] == reason


@pytest.mark.parametrize("said,status", [(201, 200), (404, 404), (301, 502), (401, 502), (500, 500)])
def test_brokered_the_status_says_something_of_the_answer_alone(t: Through, said: int, status: int) -> None:
    assert brokered(t, "GET /v1/track/7 HTTP/1.1", answer={"status": said})[0] == status


def test_brokered_without_a_lease(t: Through) -> None:
    t.g.lease_reason, asked = "quota", len(t.g.brokered)
    status, _, body = brokered(t, "GET /v1/track/7 HTTP/1.1")
    t.g.lease_reason = "none"
    assert status in (403, 429) and json.loads(body)["code"] == "quota"
    assert len(t.g.brokered) == asked


def test_brokered_with_a_broker_that_goes_away(t: Through) -> None:
    """The last of this file: what was handed over is not handed over twice."""
    t.g.broker = None
    s = t.g.dial_tls("api.test")
    asked = len(t.g.brokered)
    s.sendall(request("GET /v1/track/7 HTTP/1.1", "api.test"))
    assert t.g.wait(lambda: len(t.g.brokered) == asked + 1)
    threading.Timer(0.1, t.g.cut, ("BROKER",)).start()
    status, _, body = rig.answer_of(s)
    assert status in (502, 503) and json.loads(body)["code"] == "broker"
    time.sleep(0.1)
    assert len(t.g.brokered) == asked + 1
    assert brokered(t, "GET /v1/track/7 HTTP/1.1")[0] in (502, 503)
