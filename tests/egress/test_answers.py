# SPDX-License-Identifier: Apache-2.0
"""Servers that lie (research: egress, I), redirects (D), and connections that are used again (C8, E26 to E28)."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from outside import OK, Seen
from world import World

GET = b"GET /v1/x HTTP/1.1\r\nHost: plain.test\r\n\r\n"
TLS_GET = b"GET /v1/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
BAD = ("answer-framing", "resp-limit", "header-limit")


@pytest.fixture(scope="module")
def made() -> Iterator[World]:
    with World() as world:
        yield world


@pytest.fixture
def world(made: World) -> Iterator[World]:
    yield made
    for origin in made.outside.origins:
        origin.answers.clear()


def ok(*lines: str, body: bytes = b"fine.\n", status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\n".encode() + b"".join(line.encode("latin-1") + b"\r\n" for line in lines) + b"\r\n" + body


ANSWERS: list[tuple[str, bytes]] = [
    ("I1_no_status_line", b"<html>hello</html>"),
    ("I1_icy", b"ICY 200 OK\r\n\r\n"),
    ("I1_no_blank", b"HTTP/1.1 200OK\r\nContent-Length: 0\r\n\r\n"),
    ("I1_status_99", ok("Content-Length: 0", body=b"", status="99 X")),
    ("I1_status_1000", ok("Content-Length: 0", body=b"", status="1000 X")),
    ("I1_status_2xx", ok("Content-Length: 0", body=b"", status="2xx X")),
    ("I1_version", b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("I2_many_100", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + OK),
    ("I2_many_103", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 20 + OK),
    ("I3_101", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
    ("I4_both", ok("Content-Length: 6", "Transfer-Encoding: chunked")),
    ("I4_two_lengths", ok("Content-Length: 6", "Content-Length: 7")),
    ("I4_chunked_1_0", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("I4_length_sign", ok("Content-Length: +6")),
    ("I4_identity_chunked", ok("Transfer-Encoding: identity, chunked", body=b"0\r\n\r\n")),
    ("I7_head_1MiB", ok("X: " + "a" * (1 << 20))),
    ("I7_10000_fields", ok(*(f"X-{n}: a" for n in range(10000)))),
    ("I7_field_64KiB", ok("X: " + "a" * 65536)),
    ("I11_407", ok("Content-Length: 0", body=b"", status="407 Proxy Authentication Required")),
    ("I12_phrase", ok("Content-Length: 0", body=b"", status="200 O\x01K")),
    ("I12_fold", ok("X: a", " b", "Content-Length: 6")),
    ("I12_bare_lf", b"HTTP/1.1 200 OK\nContent-Length: 6\n\nfine.\n"),
]


@pytest.mark.parametrize(("case", "answer"), ANSWERS, ids=[case for case, _ in ANSWERS])
@pytest.mark.parametrize("way", ["plain", "tls"])
def test_I1_to_I12_a_head_that_is_not_one(world: World, case: str, answer: bytes, way: str) -> None:
    origin = world.plain if way == "plain" else world.allowed
    origin.answers["*"] = answer
    with world.refused(BAD, verdict=None, silent=False):
        if way == "plain":
            got = world.talk("plain.test", 80, GET)
        else:
            got = world.talk("allowed.test", 443, TLS_GET, tls="allowed.test")
    assert got.status == 502, got
    assert b"\r\nHTTP/1.1 " not in got.data


CUT: list[tuple[str, bytes, bool]] = [
    ("I4_chunk_sign", ok("Transfer-Encoding: chunked", body=b"+3\r\nabc\r\n0\r\n\r\n"), False),
    ("I4_chunk_end", ok("Transfer-Encoding: chunked", body=b"3\r\nabcXX0\r\n\r\n"), False),
    ("E17_half", ok("Content-Length: 100", body=b"short"), True),
    ("E17_half_chunked", ok("Transfer-Encoding: chunked", body=b"3\r\nabc\r\n"), True),
    ("I9_10GiB", ok("Content-Length: 10737418240", body=b"x" * 1000), True),
]


@pytest.mark.parametrize(("case", "answer", "close"), CUT, ids=[case for case, _, _ in CUT])
@pytest.mark.parametrize("way", ["plain", "tls"])
def test_I4_E17_what_breaks_off_never_looks_complete(world: World, case: str, answer: bytes, close: bool, way: str) -> None:
    def script(sock: socket.socket, seen: Seen, request: bytes) -> None:
        sock.sendall(answer)
        if close:
            time.sleep(0.1)
            sock.shutdown(socket.SHUT_RDWR)

    origin = world.plain if way == "plain" else world.allowed
    origin.answers["*"] = script
    with world.refused(BAD, verdict=None, silent=False):
        if way == "plain":
            got = world.talk("plain.test", 80, GET)
        else:
            got = world.talk("allowed.test", 443, TLS_GET, tls="allowed.test")
    assert got.status == 502 or got.reset or got.error, "it looks like a complete answer"
    assert not got.data.endswith(b"0\r\n\r\n")


def test_I9_an_answer_above_the_rules_maximum_is_reset(world: World) -> None:
    def script(sock: socket.socket, seen: Seen, request: bytes) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(10 * 16):
            sock.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        sock.sendall(b"0\r\n\r\n")

    world.plain.answers["*"] = script
    with world.refused("resp-limit", verdict="aborted", silent=False):
        got = world.talk("plain.test", 80, GET, most=64 << 20)
    assert got.reset
    assert 1 << 20 < got.length < 9 << 20  # of the 8 MiB some are lost with the reset
    assert not got.data.endswith(b"0\r\n\r\n")


def test_I11_what_would_steer_the_program_is_taken_out(world: World) -> None:
    world.plain.answers["*"] = ok("Content-Length: 6", "Set-Cookie: a=b", "Alt-Svc: h3=\":443\"", "Strict-Transport-Security: max-age=1", "Clear-Site-Data: \"*\"",
                                  "NEL: {}", "Report-To: {}", "Keep-Alive: timeout=5", "Connection: X-Hop", "X-Hop: 1", "X-Kept: yes")
    got = world.talk("plain.test", 80, GET)
    head = got.data.lower()
    assert got.status == 200 and b"x-kept: yes" in head
    for field in (b"set-cookie", b"alt-svc", b"strict-transport", b"clear-site", b"nel:", b"report-to", b"x-hop", b"keep-alive: timeout"):
        assert field not in head, field


@pytest.mark.parametrize(("status", "location", "then", "reasons"), [
    (302, "http://169.254.169.254/latest/meta-data/", "169.254.169.254", ("ip-literal",)),
    (302, "http://allowed.test/v1/", "allowed.test", ("scheme", "port")),
    (307, "http://evil.test/v1/", "evil.test", ("no-rule",)),
    (308, "//evil.test/x", "evil.test", ("no-rule",)),
    (302, "http:evil.test", "", ("url-syntax", "host-syntax")),
])
def test_D1_D2_D3_D6_redirects_are_handed_back_and_judged_anew(world: World, status: int, location: str, then: str, reasons: tuple[str, ...]) -> None:
    world.plain.answers["*"] = ok(f"Location: {location}", "Content-Length: 0", body=b"", status=f"{status} Elsewhere")
    before = len(world.plain.seen)
    got = world.talk("plain.test", 80, GET)
    assert got.status == status
    assert f"location: {location}".encode() in got.data.lower().replace(b"Location", b"location") or location.encode() in got.data
    assert len(world.plain.seen) - before <= 1
    follow = location if not location.startswith("//") else "http:" + location
    with world.refused(reasons):
        world.proxy(f"GET {follow} HTTP/1.1\r\nHost: {then or 'evil.test'}\r\n\r\n".encode())


def test_D1_a_client_that_follows_is_stopped(world: World) -> None:
    world.plain.answers["/v1/x"] = ok("Location: http://169.254.169.254/latest/meta-data/", "Content-Length: 0", body=b"", status="302 Found")
    done = world.run("curl -sS -L -m 5 http://plain.test/v1/x")
    assert done["exit_code"] in (7, 52, 56), done
    done = world.run("curl -sS -L -m 5 -x http://127.0.0.1:3128 -o - -w '%{http_code}' http://plain.test/v1/x")
    assert done["stdout"].endswith("403"), done


def test_E26_E27_each_request_of_a_connection_is_judged(world: World) -> None:
    allowed = b"GET /v1/a HTTP/1.1\r\nHost: plain.test\r\n\r\n"
    for second, status, reasons in ((b"GET /v1/b HTTP/1.1\r\nHost: evil.test\r\n\r\n", b"421", ("name-mismatch",)),
                                    (b"DELETE /other HTTP/1.1\r\nHost: plain.test\r\n\r\n", b"403", ("method", "path"))):
        world.plain.forget()
        with world.refused(reasons, silent=False):
            got = world.talk("plain.test", 80, allowed + second + allowed)
        assert got.data.count(b"HTTP/1.1 200") == 1 and b"HTTP/1.1 " + status in got.data
        assert world.plain.data.count(b"GET /v1/a") == 1
        assert b"/v1/b" not in world.plain.data and b"/other" not in world.plain.data


def test_E26_a_second_request_hidden_behind_length_0(world: World) -> None:
    world.plain.forget()
    got = world.talk("plain.test", 80, b"POST /v1/a HTTP/1.1\r\nHost: plain.test\r\nContent-Length: 0\r\n\r\nGET /v1/b HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    assert b"HTTP/1.1 421" in got.data
    assert b"/v1/b" not in world.plain.data


def test_E16_trailers_and_E14_extensions_are_dropped(world: World) -> None:
    world.plain.forget()
    got = world.talk("plain.test", 80, b"POST /v1/a HTTP/1.1\r\nHost: plain.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                                       b"3;token\r\nabc\r\n0\r\nHost: evil.test\r\nAuthorization: x\r\n\r\n")
    assert got.status == 200
    data = world.plain.data
    assert b"evil" not in data and b"uthorization" not in data and b"token" not in data
    assert data.count(b"\r\n\r\n") >= 1 and b"abc" in data


def test_H1_an_offer_of_h2c_is_taken_out(world: World) -> None:
    """Some libraries make it with each request in the clear; it may be ignored, and the server never hears of it."""
    world.plain.forget()
    got = world.talk("plain.test", 80, b"GET /v1/x HTTP/1.1\r\nHost: plain.test\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                                       b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
    assert got.status == 200
    data = world.plain.data.lower()
    assert b"get /v1/x" in data and b"upgrade" not in data and b"http2-settings" not in data and b"h2c" not in data


def test_E22_the_gateway_answers_100_itself_and_only_after_the_decision(world: World) -> None:
    post = b"POST %s HTTP/1.1\r\nHost: plain.test\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    got = world.talk("plain.test", 80, post % b"/v1/x", b"abc", pause=0.3)
    assert got.data.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    assert b"xpect" not in world.plain.data
    with world.refused("path"):
        got = world.talk("plain.test", 80, post % b"/v2/x", wait=1)
    assert b"100 Continue" not in got.data


def test_C8_a_connection_is_used_again_and_C9_only_by_its_own_sandbox(world: World) -> None:
    boxes = [world.sandbox("test")[1] for _ in range(2)]
    world.plain.forget()
    world.resolver.forget()
    for _ in range(3):
        assert world.probe(boxes[0], do="talk", host="plain.test", port=80, send=[GET], wait=1).status == 200
    assert world.plain.connections == 1
    assert world.resolver.asked.count(("plain.test", 1)) == 1
    got = world.probe(boxes[1], do="talk", host="plain.test", port=80, send=[GET], wait=1)
    assert got.status == 200 and world.plain.connections == 2


def test_E28_I6_odd_framing_is_not_used_again(world: World) -> None:
    world.plain.answers["*"] = OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain"
    for _ in range(3):
        got = world.talk("plain.test", 80, GET, wait=1)
        assert got.data.endswith(b"fine.\n"), "an answer that nobody asked for was handed out"


def test_A18_A19_A21_A28_names_in_other_forms_are_the_same_name() -> None:
    policy = 'egress:\n  - fetch: {url: "http://plain.test/v1/**"}\n  - fetch: {url: "http://bücher.test/v1/**"}\n'
    names = {"plain.test": ["93.184.216.35"], "xn--bcher-kva.test": ["93.184.216.35"]}
    with World({"test": policy}, names) as world:
        for target, host in (("http://plain.test./v1/x", "plain.test."), ("HTTP://PLAIN.test/v1/x", "Plain.Test"), ("http://plain.test:80/v1/x", "plain.test"),
                             ("http://xn--bcher-kva.test/v1/x", "xn--bcher-kva.test"), ("http://XN--BCHER-KVA.test/v1/x", "xn--bcher-kva.test")):
            world.plain.forget()
            got = world.proxy(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert got.status == 200, (target, got)
            assert world.plain.data.splitlines()[1] in (b"Host: plain.test", b"Host: xn--bcher-kva.test")


def test_A29_one_label_or_more() -> None:
    policy = 'egress:\n  - fetch: {url: "http://*.one.test/**"}\n  - fetch: {url: "http://**.many.test/**"}\n'
    names = {name: ["93.184.216.35"] for name in ("one.test", "a.one.test", "b.a.one.test", "xone.test", "many.test", "a.many.test", "b.a.many.test")}
    with World({"test": policy}, names) as world:
        for name, allowed in (("a.one.test", True), ("a.many.test", True), ("b.a.many.test", True), ("one.test", False), ("many.test", False),
                              ("b.a.one.test", False), ("xone.test", False), ("evil.test", False)):
            if allowed:
                assert world.proxy(f"GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n".encode()).status == 200
            else:
                with world.refused("no-rule", name=name):
                    world.proxy(f"GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())


def test_B24_an_address_by_an_exact_rule() -> None:
    with World({"test": 'egress:\n  - fetch: {url: "https://1.1.1.1/**"}\n'}) as world:
        site = world.outside.origin("1.1.1.1", 443, tls=["IP:1.1.1.1"])
        got = world.proxy(b"GET / HTTP/1.1\r\nHost: 1.1.1.1\r\n\r\n", connect="1.1.1.1:443", tls="")
        assert got.status == 200, got
        assert site.connections == 1 and world.resolver.asked == []
