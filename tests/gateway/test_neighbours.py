# SPDX-License-Identifier: Apache-2.0
"""What the engine is told and when, budgets, neighbours that are slow or gone, and rows L (a program or a server that takes resources)."""

import contextlib
import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import certs
import pytest
import rig
import wire
from cases import request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GET = request("GET /x HTTP/1.1", "plain.test")


class Place:
    def __init__(self, **more: Any) -> None:
        self.o = rig.Origin(OK)
        document = rig.policy(
            rig.fetch("http://plain.test/**", methods=["GET", "POST"], request_max=1 << 24, response_max=1 << 30),
            rig.fetch("http://*.wild.test/**", labels="one", host="wild.test"),
            {"host": "tunnel.test", "kind": "tcp", "labels": "one", "port": 9000},
        )
        self.g = rig.Gateway(document, {("plain.test", 80): self.o.port}, **more)

    def dial(self) -> socket.socket:
        return self.g.dial("plain.test", 80)

    def ask(self, raw: bytes = GET) -> tuple[int, dict[str, str], bytes]:
        s = self.dial()
        s.sendall(raw)
        got = rig.answer_of(s)
        s.close()
        return got

    def close(self) -> None:
        self.g.close()
        self.o.close()


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[Place] = []

    def one(**more: Any) -> Place:
        made.append(Place(**more))
        return made[-1]

    yield one
    for p in made:
        p.close()


def code(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, str]:
    return answer[0], json.loads(answer[2])["code"]


# ---- records ----


def test_no_byte_leaves_before_its_verdict_is_kept(make: Any) -> None:
    p = make(keep=None)  # an engine that never answers
    s = p.dial()
    s.sendall(request("POST /x HTTP/1.1", "plain.test", "Content-Length: 3", body=b"abc"))
    assert p.g.verdict("none")["address"] == "192.0.2.7"
    time.sleep(0.5)
    assert not any(p.o.heard) and not rig.ready(s, 0)
    assert code(rig.answer_of(s)) == (503, "audit-unavailable")
    assert not any(p.o.heard)


def test_a_verdict_that_is_not_kept_is_a_refusal(make: Any) -> None:
    p = make(keep="contained")
    assert code(p.ask())[1] == "contained"
    assert not any(p.o.heard)


def test_what_was_on_record_is_not_any_more_when_one_is_not_kept(make: Any) -> None:
    p = make()
    assert all(p.ask()[0] == 200 for _ in range(100))
    n = sum(h.count(b"GET") for h in p.o.heard)
    p.g.keep = "contained"
    results = [p.ask() for _ in range(120)]
    refused = [i for i, r in enumerate(results) if r[0] != 200]
    assert refused and all(i in refused for i in range(refused[0], 120)), refused
    assert sum(h.count(b"GET") for h in p.o.heard) == n + refused[0]


def test_above_the_rate_a_kind_is_counted_exactly(make: Any) -> None:
    p = make()
    s = p.dial()
    for _ in range(500):
        s.sendall(GET)
        assert rig.answer_of(s)[0] == 200
    told = len(p.g.verdicts)
    assert 64 <= told <= 200
    assert p.g.wait(lambda: len(p.g.verdicts) + sum(f["count"] for f in p.g.flows) == 500, 3)
    assert p.g.wait(lambda: sum(f["bytes_in"] for f in p.g.flows) == 500 * len(OK), 3)
    heard = sum(len(h) for h in p.o.heard)
    assert sum(f["bytes_out"] for f in p.g.flows) == heard


def test_L8_refusals_of_many_kinds_are_bounded_and_counted(make: Any) -> None:
    p = make()
    n = 1500
    s = p.g.proxy()
    for i in range(n):
        s = p.g.proxy()
        s.sendall(f"CONNECT n{i}.evil.test:443 HTTP/1.1\r\nHost: n{i}.evil.test:443\r\n\r\n".encode())
        assert s.recv(100).startswith(b"HTTP/1.1 403")
        s.close()
    told = len(p.g.verdicts)
    assert 512 <= told < 900, told
    assert p.g.wait(lambda: len(p.g.verdicts) + sum(f["count"] for f in p.g.flows) == n, 4)
    rest = [f for f in p.g.flows if f["name"] == "" and f["reason"] == "no-rule"]
    assert rest


def test_L8_no_control_byte_comes_to_the_record(make: Any) -> None:
    p = make()
    for raw in (
        b"GET /x\x1b[31m HTTP/1.1\r\nHost: plain.test\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: plain.test\r\n\r\n",
        b"G\r\nET / HTTP/1.1\r\n\r\n",
    ):
        s = p.dial()
        s.sendall(raw)
        rig.drain(s, 3)
    p.g.wait(lambda: len(p.g.verdicts) >= 3, 3)
    for v in p.g.verdicts:
        assert all(32 < ord(c) < 127 for c in v["path"] + v["name"] + v["method"]), v


# ---- neighbours that are away ----


def test_an_engine_that_reads_slowly_is_not_told_more_than_it_takes(make: Any) -> None:
    """A program asks and leaves, over and over: what waits for the engine is bounded, and the edge to it does not break."""
    p = make()
    p.g.cut("ENGINE")
    stalled = threading.Event()

    def slow(s: socket.socket) -> None:
        first = True
        while (got := wire.receive(s)) is not None:
            name, tag, _ = got
            if name == "ALLOTMENT_ASK":
                rig.say(s, "ALLOTMENT", tag, total={**rig.BUDGETS, "connections": 1 << 30, "requests": 1 << 30}, over=True)
            elif name == "VERDICT" and first:
                first = False
                stalled.wait(60)
            if name == "VERDICT":
                rig.say(s, "VERDICT_KEPT", tag, kept=True, reason="none")

    p.g.edge("ENGINE", slow)
    raw = request("GET /" + "x" * 1000 + " HTTP/1.1", "plain.test")
    address = p.g.address("plain.test")
    refused = 0
    for _ in range(110):
        some = [socket.create_connection((address, 80), 20) for _ in range(100)]
        for s in some:
            s.sendall(raw)
        time.sleep(0.03)
        for s in some:
            if rig.ready(s, 0) and s.recv(65536).startswith(b"HTTP/1.1 503"):
                refused += 1
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
    assert refused > 100, refused  # how many are heard in time is the machine's; without the bound it is none
    stalled.set()
    until = time.monotonic() + 20
    while (code_now := p.ask()[0]) != 200 and time.monotonic() < until:
        time.sleep(0.2)
    assert code_now == 200


def test_an_engine_that_is_away_is_waited_for(make: Any) -> None:
    p = make()
    assert p.ask()[0] == 200
    p.g.cut("ENGINE")
    time.sleep(0.2)
    s = p.dial()
    s.sendall(GET)
    assert not rig.ready(s, 1)
    p.g.edge("ENGINE", p.g._engine)
    assert rig.answer_of(s)[0] == 200


def test_an_engine_that_stays_away_is_a_refusal(make: Any) -> None:
    p = make()
    assert p.ask()[0] == 200
    p.g.cut("ENGINE")
    time.sleep(0.2)
    n = sum(len(h) for h in p.o.heard)
    began = time.monotonic()
    assert code(p.ask())[1] == "audit-unavailable"
    assert 4 < time.monotonic() - began < 7
    assert sum(len(h) for h in p.o.heard) == n
    p.g.edge("ENGINE", p.g._engine)
    assert p.ask()[0] == 200
    assert p.g.wait(
        lambda: any(v["reason"] == "audit-unavailable" for v in p.g.verdicts) or any(f["reason"] == "audit-unavailable" for f in p.g.flows)
    )


def test_a_dialer_that_is_away_is_waited_for(make: Any) -> None:
    p = make()
    p.g.cut("DIALER")
    time.sleep(0.2)
    s = p.dial()
    s.sendall(GET)
    assert not rig.ready(s, 1)
    p.g.edge("DIALER", p.g._dialer)
    assert rig.answer_of(s)[0] == 200


def test_a_dialer_that_stays_away_is_a_refusal(make: Any) -> None:
    p = make()
    p.g.cut("DIALER")
    assert code(p.ask())[1] == "unreachable"


def test_no_more_reaches_than_the_dialer_takes(make: Any) -> None:
    p = make()
    p.g.to[("plain.test", 80)] = "silent"
    live = [p.dial() for _ in range(60)]
    for s in live:
        s.sendall(GET)
    assert p.g.wait(lambda: len(p.g.reaches) >= 32)
    time.sleep(0.3)
    assert len(p.g.reaches) == 32


# ---- budgets ----


def test_requests_of_the_budget_and_no_more(make: Any) -> None:
    p = make(lend={"requests": 3})
    assert [p.ask()[0] for _ in range(3)] == [200] * 3
    n = sum(h.count(b"GET") for h in p.o.heard)
    assert code(p.ask()) == (429, "quota")
    assert sum(h.count(b"GET") for h in p.o.heard) == n == 3


def test_connections_of_the_budget_and_no_more(make: Any) -> None:
    p = make(lend={"connections": 2})
    assert [p.ask()[0] for _ in range(2)] == [200] * 2
    with contextlib.suppress(ConnectionResetError):  # when it is quicker than the dialling
        assert rig.drain(p.dial(), 5)[1] != "open"
    assert p.g.verdict("quota")


def of_wild(p: Place, name: str) -> tuple[int, str]:
    """To the explicit proxy: no question of DNS comes before it."""
    s = p.g.proxy()
    s.sendall(request(f"GET http://{name}.wild.test/ HTTP/1.1", f"{name}.wild.test"))
    return code(rig.answer_of(s))


def test_names_of_the_budget_and_no_more_without_a_question(make: Any) -> None:
    p = make(lend={"names": 2})
    first, second, third = (f"n{i}" for i in range(3))
    assert [of_wild(p, n)[1] for n in (first, second, first, third, second)] == ["dns-fail"] * 3 + ["quota", "dns-fail"]
    assert [r["host"] for r in p.g.reaches] == [f"{n}.wild.test" for n in (first, second, first, second)]
    assert p.g._resolve("n3.wild.test")[0] == 2
    assert p.g._resolve(f"{first}.wild.test")[1] is not None
    s = p.g.proxy()
    s.sendall(b"CONNECT n4.tunnel.test:9000 HTTP/1.1\r\nHost: n4.tunnel.test:9000\r\n\r\n")
    assert rig.drain(s, 5) == (b"HTTP/1.1 200 Connection established\r\n\r\n", "reset")
    assert p.g.wait(lambda: p.g.told("quota") == 3) and len(p.g.reaches) == 4


def test_who_waits_for_a_name_is_not_refused_before_its_time(make: Any) -> None:
    p = make(lend={"names": 0})
    p.g.over = False
    p.g.mute = True
    s = p.g.proxy()
    s.sendall(b"CONNECT n1.tunnel.test:9000 HTTP/1.1\r\nHost: n1.tunnel.test:9000\r\n\r\n")
    begun = time.monotonic()
    assert rig.drain(s, 8)[1] == "reset" and not p.g.reaches
    assert time.monotonic() - begun < 7
    assert p.g.wait(lambda: p.g.told("quota") == 1)


def test_more_is_asked_for_in_time_and_waited_for(make: Any) -> None:
    """Slices of two requests: the engine lends more each time it is asked."""
    p = make()
    p.g.slices, p.g.over = 2, False
    p.g.cut("ENGINE")
    p.g.edge("ENGINE", p.g._engine)
    p.g.wait(lambda: len(p.g.asks) > 1)
    assert all(p.ask()[0] == 200 for _ in range(40))
    assert len(p.g.asks) > 10


def test_bytes_in_of_the_budget_cut_the_answer(make: Any) -> None:
    p = make(lend={"bytes_in": 100000})
    p.o.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"a" * 1000000
    s = p.dial()
    s.sendall(GET)
    got, how = rig.drain(s, 8)
    assert how == "reset" and len(got) <= 100000
    assert p.g.verdict("quota")["verdict"] == "aborted"


def test_L6_handshakes_of_the_budget_and_no_more() -> None:
    g = rig.Gateway(rig.policy(rig.fetch("https://secure.test/**")), lend={"handshakes": 2}, roots=certs.authority())
    for _ in range(2):
        g.dial_tls("secure.test").close()
    with pytest.raises(OSError):
        g.dial_tls("secure.test")
    assert g.verdict("quota")["scheme"] == "https"
    g.close()


@pytest.mark.parametrize("way", ["bytes_in", "bytes_out"])
def test_who_waits_for_a_budget_stands_still_and_not_for_ever(make: Any, way: str) -> None:
    p = make(lend={way: 50000})
    p.g.over = False
    p.g.cut("ENGINE")
    p.g.edge("ENGINE", p.g._engine)
    assert p.g.wait(lambda: len(p.g.asks) > 1)
    p.g.mute = True
    p.o.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"a" * 1000000
    s = p.dial()
    cpu = cpu_ms(p)
    began = time.monotonic()
    with contextlib.suppress(ConnectionError):
        s.sendall(GET if way == "bytes_in" else request("POST /x HTTP/1.1", "plain.test", "Content-Length: 300000", body=b"a" * 300000))
    got, how = rig.drain(s, 9)
    assert how in ("reset", "end") and (b"quota" in got or how == "reset"), (got[:80], how)
    assert 4 < time.monotonic() - began < 8
    assert p.g.verdict("quota")["verdict"] == "aborted"
    assert cpu_ms(p) - cpu < 150


def cpu_ms(p: Place) -> int:
    with open(f"/proc/{p.g.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 10


def test_bytes_out_of_the_budget_cut_the_request(make: Any) -> None:
    p = make(lend={"bytes_out": 50000})
    s = p.dial()
    s.sendall(request("POST /x HTTP/1.1", "plain.test", "Content-Length: 1000000"))
    with contextlib.suppress(OSError):
        s.sendall(b"a" * 1000000)
    assert p.g.verdict("quota")["verdict"] == "aborted"
    assert sum(len(h) for h in p.o.heard) <= 50000
    s.close()


def test_what_was_used_is_told_at_the_end(make: Any) -> None:
    p = make()
    assert p.ask()[0] == 200
    n = len(p.g.asks)
    p.g.supervisor.close()
    p.g.process.wait(5)
    assert p.g.wait(lambda: len(p.g.asks) > n or not p.g.alive(), 1)
    time.sleep(0.2)
    assert p.g.asks[-1]["requests"] == 1 and p.g.asks[-1]["connections"] >= 1
    assert sum(f["bytes_in"] for f in p.g.flows) == len(OK)
    p.g.alive = lambda: True


# ---- rows L ----


def test_L2_at_its_cap_nothing_more_is_accepted_and_the_rest_lives(make: Any) -> None:
    p = make()
    first = p.dial()
    idle = [p.dial() for _ in range(300)]
    time.sleep(0.5)
    fds = len(subprocess.run(["ls", f"/proc/{p.g.process.pid}/fd"], capture_output=True, check=True).stdout.split())
    assert fds < 256 + 40, fds
    first.sendall(GET)
    assert rig.answer_of(first)[0] == 200
    idle[-1].sendall(GET)
    assert not rig.ready(idle[-1], 0.5)
    for s in idle[:-1]:
        s.close()
    assert rig.answer_of(idle[-1])[0] == 200


def test_L1_a_head_of_one_byte_a_second_ends_after_10_s(make: Any) -> None:
    p = make()
    s = p.dial()
    began = time.monotonic()
    for byte in GET:
        if rig.ready(s, 0.8):
            break
        s.sendall(bytes([byte]))
    assert 8 < time.monotonic() - began < 13
    status, _, body = rig.answer_of(s)
    assert (status, json.loads(body)["code"]) == (408, "timeout")
    assert not any(p.o.heard) and not p.g.reaches


def test_L1_a_body_of_one_byte_a_second_ends(make: Any) -> None:
    p = make()
    s = p.dial()
    s.sendall(request("POST /x HTTP/1.1", "plain.test", "Content-Length: 100000"))
    began = time.monotonic()
    while not rig.ready(s, 0.8) and time.monotonic() - began < 20:
        s.sendall(b"a")
    assert 9 < time.monotonic() - began < 14
    assert rig.drain(s, 2)[0].startswith((b"HTTP/1.1 408", b"HTTP/1.1 504"))
    assert p.g.verdict("timeout")["verdict"] == "aborted"


@pytest.mark.skipif(rig.SANITIZED, reason="memory is measured")
def test_L9_a_program_that_reads_nothing_holds_nothing_for_long(make: Any) -> None:
    """What waits for it is bounded, and others are served meanwhile."""
    p = make()
    p.o.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 33554432\r\n\r\n" + b"a" * 33554432
    stuck = [p.dial() for _ in range(20)]
    for s in stuck:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(GET)
    time.sleep(1.5)
    p.o.answer = OK
    began = time.monotonic()
    assert p.ask()[0] == 200
    assert time.monotonic() - began < 0.5
    with open(f"/proc/{p.g.process.pid}/status", encoding="ascii") as file:
        assert int(file.read().split("VmRSS:")[1].split()[0]) < 24 * 1024
    for s in stuck:
        s.close()


def test_L9_resets_and_half_open_servers(make: Any) -> None:
    p = make()
    p.o.answer = lambda _, s, __: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0") or s.close()
    assert all(p.ask()[0] == 502 for _ in range(50))
    p.o.answer = OK
    assert p.ask()[0] == 200


def test_L11_the_end_of_the_supervisor_is_the_end(make: Any) -> None:
    p = make()
    p.o.answer = lambda *_: None
    s = p.dial()
    s.sendall(GET)
    assert p.g.wait(lambda: any(p.o.heard) or bool(p.g.verdicts))
    p.g.supervisor.close()
    assert p.g.process.wait(5) == 0
    assert rig.drain(s, 3)[1] in ("reset", "end")
    p.g.alive = lambda: True
