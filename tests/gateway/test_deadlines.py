# SPDX-License-Identifier: Apache-2.0
"""Deadlines of a gateway whose clock the test puts forward: nobody is waited for without one, whoever it is and whatever moves."""

import contextlib
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
from test_through import UPGRADE, switches

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GET = request("GET /x HTTP/1.1", "plain.test")
BIG = 32 << 20
TRACK = request("GET /v1/track/7 HTTP/1.1", "api.test")


class Late:
    def __init__(self, **more: Any) -> None:
        self.o = rig.Origin(OK)
        document = rig.policy(
            rig.fetch("http://plain.test/**", methods=["GET", "POST"], request_max=1 << 26, response_max=1 << 30, websocket=True),
            {"host": "raw.test", "kind": "tcp", "port": 9000},
            {
                "credential": {"header": "Authorization", "prefix": "Bearer ", "secret": "carrier"},
                "fields": ["eta"],
                "host": "api.test",
                "kind": "brokered",
                "methods": ["GET"],
                "path": "/v1/track/*",
                "port": 443,
                "response_max": 65536,
            },
        )
        self.g = rig.Gateway(
            document, {("plain.test", 80): self.o.port, ("raw.test", 9000): self.o.port}, roots=certs.authority(), clock=True, **more
        )

    def ask(self, raw: bytes = GET) -> socket.socket:
        s = self.g.dial("plain.test", 80)
        s.sendall(raw)
        return s

    def mute(self) -> None:
        """From now on the engine lends nothing and says nothing of it."""
        assert self.g.address("plain.test")  # the first slices have come
        self.g.over, self.g.mute = False, True
        self.g.cut("ENGINE")
        self.g.edge("ENGINE", self.g._engine)
        assert self.g.wait(lambda: len(self.g.asks) > 1)

    def silent(self, s: socket.socket) -> None:
        assert not rig.ready(s, 0.3), s.recv(300)


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[Late] = []

    def one(**more: Any) -> Late:
        made.append(Late(**more))
        return made[-1]

    yield one
    for p in made:
        p.g.close()
        p.o.close()


def code(s: socket.socket) -> tuple[int, str]:
    status, _, body = rig.answer_of(s)
    return status, json.loads(body)["code"]


# ---- neighbours that stand still: there, and without a word ----


def test_an_engine_that_leases_nothing_is_waited_for_5_s(make: Any) -> None:
    p = make()
    p.g.lease_reason = ""
    s = p.g.dial_tls("api.test")
    s.sendall(TRACK)
    assert p.g.wait(lambda: len(p.g.leases) == 1)
    p.g.later(4)
    p.silent(s)
    p.g.later(2)
    assert code(s) == (502, "broker")
    assert p.g.verdict("broker")["verdict"] == "aborted" and not p.g.brokered


def test_a_broker_that_stands_still_is_waited_for_40_s(make: Any) -> None:
    p = make()  # it hears, and does not answer
    s = p.g.dial_tls("api.test")
    s.sendall(TRACK)
    assert p.g.wait(lambda: len(p.g.brokered) == 1)
    p.g.later(38)
    p.silent(s)
    p.g.later(3)
    assert code(s) == (502, "broker")
    assert p.g.verdict("broker")["verdict"] == "aborted"
    time.sleep(0.2)
    assert len(p.g.brokered) == 1, "what was handed over is not handed over twice"


def test_a_dialer_that_stands_still_is_waited_for_10_s(make: Any) -> None:
    p = make()
    p.g.to[("plain.test", 80)] = "silent"
    s = p.ask()
    assert p.g.wait(lambda: len(p.g.reaches) == 1)
    p.g.later(9)
    p.silent(s)
    p.g.later(3)
    assert code(s) == (504, "timeout")


def test_an_engine_that_keeps_nothing_is_waited_for_5_s(make: Any) -> None:
    p = make(keep=None)
    s = p.ask()
    assert p.g.verdict("none")
    p.g.later(4)
    p.silent(s)
    p.g.later(2)
    assert code(s) == (503, "audit-unavailable")
    assert not any(p.o.heard)


def test_an_engine_that_lends_no_request_is_waited_for_5_s_whatever_is_said_meanwhile(make: Any) -> None:
    p = make(lend={"requests": 1})
    p.mute()
    assert rig.answer_of(p.ask())[0] == 200
    s = p.ask(request("POST /x HTTP/1.1", "plain.test", "Content-Length: 100"))
    for seconds in (1, 2):
        p.g.later(seconds)
        s.sendall(b"a")
        p.silent(s)
    p.g.later(2)
    assert rig.ready(s, 1.5) and code(s) == (429, "quota")


def test_a_request_whose_head_is_more_than_what_may_leave_is_429_and_not_a_part_of_it_leaves(make: Any) -> None:
    p = make(lend={"bytes_out": 20})
    assert code(p.ask()) == (429, "quota")
    assert p.g.verdict("quota")["verdict"] == "aborted", "its record had been kept"
    assert not any(p.o.heard)


def test_an_engine_that_lends_no_bytes_for_a_head_is_waited_for_5_s(make: Any) -> None:
    p = make(lend={"bytes_out": 20})
    p.mute()
    s = p.ask(request("POST /x HTTP/1.1", "plain.test", "Content-Length: 100"))
    assert p.g.verdict("none")
    for seconds in (1, 2):
        p.g.later(seconds)
        s.sendall(b"a")
        p.silent(s)
    p.g.later(2)
    assert rig.ready(s, 1.5) and code(s) == (429, "quota")
    assert not any(p.o.heard)


@pytest.mark.parametrize("kind", ["tcp", "websocket"])
def test_a_tunnel_whose_budget_does_not_come_is_cut_after_5_s(make: Any, kind: str) -> None:
    p = make(lend={"bytes_out": 1000})
    p.o.answer = switches() if kind == "websocket" else lambda _, s, data: s.sendall(data)
    p.mute()
    if kind == "tcp":
        s = p.g.dial("raw.test", 9000)
    else:
        s = p.ask(request("GET /x HTTP/1.1", "plain.test", *UPGRADE))
    s.sendall(b"first")
    assert rig.ready(s, 5) and s.recv(4096)
    time.sleep(0.3)
    while rig.ready(s, 0.3):
        s.recv(4096)
    s.sendall(b"a" * 2000)
    p.g.later(4)
    p.silent(s)
    p.g.later(2)
    assert rig.drain(s, 5)[1] == "reset"
    assert p.g.verdict("quota")["verdict"] == "aborted"
    assert not any(b"aaa" in h for h in p.o.heard)


# ---- programs and servers that are slow ----


def test_L1_a_program_that_takes_nothing_is_cut_after_30_s(make: Any) -> None:
    p = make()
    p.o.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG + b"a" * BIG
    s = p.g.dial("plain.test", 80)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(GET)
    assert p.g.wait(lambda: any(f["bytes_in"] for f in p.g.flows))
    time.sleep(0.5)
    p.g.later(24)
    time.sleep(1.2)
    assert not p.g.told("timeout")
    p.g.later(31)  # buffers of the kernel may have taken some a moment ago
    assert p.g.verdict("timeout")["verdict"] == "aborted"
    assert rig.drain(s, 5)[1] == "reset"


def test_L1_a_program_that_reads_one_byte_a_second_ends_and_holds_nobody_back(make: Any) -> None:
    p = make()
    p.o.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG + b"a" * BIG
    s = p.g.dial("plain.test", 80)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(GET)
    assert rig.ready(s, 5)
    p.o.answer = OK
    seconds = 0
    with contextlib.suppress(ConnectionResetError):
        while seconds <= 900 and not p.g.told("timeout"):
            assert s.recv(1)
            p.g.later(1)
            seconds += 1
            if seconds == 10:
                assert rig.answer_of(p.ask())[0] == 200
    assert 25 < seconds <= 901, seconds
    assert p.g.verdict("timeout")["verdict"] == "aborted"


def test_a_server_that_takes_nothing_is_cut_after_30_s(make: Any) -> None:
    p = make()
    stop = threading.Event()
    p.o.answer = lambda *_: stop.wait(60) and None
    s = p.ask(request("POST /x HTTP/1.1", "plain.test", f"Content-Length: {BIG}"))
    s.settimeout(1)
    with contextlib.suppress(TimeoutError):
        s.sendall(b"a" * BIG)
    for _ in range(2):
        p.g.later(10)
        time.sleep(1.2)
    assert not p.g.told("timeout")
    for _ in range(2):  # it is looked at in between, and tried
        p.g.later(10)
        time.sleep(1.2)
    assert p.g.verdict("timeout")["verdict"] == "aborted"
    assert rig.drain(s, 5)[0].startswith(b"HTTP/1.1 504 ")
    stop.set()


def test_an_exchange_ends_after_15_minutes_whatever_moves(make: Any) -> None:
    p = make()
    turn = threading.Semaphore(0)

    def slow(_: rig.Origin, s: socket.socket, __: bytes) -> None:
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while turn.acquire(timeout=20):
            s.sendall(b"a")

    p.o.answer = slow
    s = p.ask()
    s.settimeout(5)
    got = s.recv(4096)
    assert got.startswith(b"HTTP/1.1 200 ")
    for _ in range(14):
        p.g.later(60)
        turn.release()
        assert s.recv(10) == b"a"
    assert not p.g.told("timeout")
    p.g.later(62)
    assert rig.drain(s, 5) == (b"", "reset")
    assert p.g.verdict("timeout")["verdict"] == "aborted"


def test_a_server_without_a_word_is_waited_for_120_s(make: Any) -> None:
    p = make()
    p.o.answer = lambda *_: None
    s = p.ask()
    assert p.g.wait(lambda: any(p.o.heard))
    p.g.later(118)
    time.sleep(1.2)
    p.silent(s)
    p.g.later(4)
    assert code(s) == (504, "timeout")
