# SPDX-License-Identifier: Apache-2.0
"""Rows I (answers of a hostile server), and what a program sees of an answer."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import rig
from cases import request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Answers:
    """One gateway; the server says what the test wants."""

    def __init__(self) -> None:
        self.origin = rig.Origin(OK)
        self.g = rig.Gateway(
            rig.policy(rig.fetch("http://plain.test/**", methods=["GET", "HEAD", "POST"], request_max=1 << 20, response_max=1 << 20)),
            {("plain.test", 80): self.origin.port},
        )

    def told(self, reason: str) -> int:
        return self.g.told(reason)

    def ask(self, answer: Any, line: str = "GET / HTTP/1.1", *fields: str, body: bytes = b"") -> socket.socket:
        self.origin.answer = answer
        s = self.g.dial("plain.test", 80)
        s.sendall(request(line, "plain.test", *fields, body=body))
        return s

    def refused(self, answer: Any, reason: str, line: str = "GET / HTTP/1.1") -> None:
        before = self.told(reason)
        got, how = rig.drain(self.ask(answer, line), 10)
        assert got.startswith(b"HTTP/1.1 502 "), got[:200]
        assert how == "end"
        assert f'"{reason}"'.encode() in got or line.startswith("HEAD"), got
        assert self.g.wait(lambda: self.told(reason) > before)
        assert self.g.alive()


def closing(text: bytes) -> Callable[[rig.Origin, socket.socket, bytes], None]:
    def answer(_: rig.Origin, s: socket.socket, __: bytes) -> None:
        s.sendall(text)
        s.shutdown(socket.SHUT_RDWR)

    return answer


@pytest.fixture(scope="module")
def a() -> Iterator[Answers]:
    x = Answers()
    yield x
    x.g.close()


HEADS = {
    "I1_no_status_line": (b"hello\r\n\r\n", "answer-framing"),
    "I1_icy": (b"ICY 200 OK\r\n\r\n", "answer-framing"),
    "I1_no_blank": (b"HTTP/1.1 200OK\r\nContent-Length: 0\r\n\r\n", "answer-framing"),
    "I1_status_99": (b"HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n", "answer-framing"),
    "I1_status_1000": (b"HTTP/1.1 1000 x\r\nContent-Length: 0\r\n\r\n", "answer-framing"),
    "I1_status_letters": (b"HTTP/1.1 2xx x\r\n\r\n", "answer-framing"),
    "I2_a_thousand_interim": (b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + OK, "header-limit"),
    "I2_103_early_hints": (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 9 + OK, "header-limit"),
    "I3_101_that_nobody_asked_for": (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "answer-framing",
    ),
    "I4_length_and_coding": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "answer-framing"),
    "I4_length_twice": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", "answer-framing"),
    "I4_coding_in_1_0": (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "answer-framing"),
    "I7_a_head_of_a_mebibyte": (b"HTTP/1.1 200 OK\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n", "header-limit"),
    "I7_ten_thousand_fields": (b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 10000 + b"\r\n", "header-limit"),
    "I7_one_field_of_64_kib": (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 65536 + b"\r\n\r\n", "header-limit"),
    "I9_length_of_10_gib": (b"HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n", "resp-limit"),
    "I11_407": (b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n", "answer-framing"),
    "I12_control_in_the_phrase": (b"HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n", "answer-framing"),
    "I12_fold": (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n", "answer-framing"),
    "I12_bare_lf": (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "answer-framing"),
    "I_nothing_at_all": (b"", "answer-framing"),
    "I_half_a_head": (b"HTTP/1.1 200 OK\r\nContent-Le", "answer-framing"),
}


@pytest.mark.parametrize("case", HEADS)
def test_an_answer_that_is_none_is_502(a: Answers, case: str) -> None:
    text, reason = HEADS[case]
    a.refused(closing(text), reason)


@pytest.mark.parametrize(
    "text", [b"<html>", b"H", b"HTTP/2.0 ", b"\r\nHTTP/1.1 200 OK\r\n", b"SSH-2.0-x", b"HTTP/1.1 100 Continue\r\n\r\nhello"]
)
def test_I1_what_cannot_begin_a_head_is_refused_at_once(a: Answers, text: bytes) -> None:
    """The server says no more, and does not close."""
    before = a.told("answer-framing")
    s = a.ask(lambda _, s, __: s.sendall(text))
    if text == b"H":
        assert not rig.ready(s, 0.5), "it can be the beginning of one"
        s.close()
        return
    began = time.monotonic()
    assert rig.answer_of(s)[0] == 502
    assert time.monotonic() - began < 3
    assert a.g.wait(lambda: a.told("answer-framing") > before)


BODIES = {
    "I4_chunk_size": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n+3\r\nabc\r\n0\r\n\r\n", "answer-framing"),
    "I4_chunk_without_crlf": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n", "answer-framing"),
    "I9_chunks_without_end": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b"a" * 65536 + b"\r\n",
        "answer-framing",
    ),
    "I9_chunks_over_the_rule": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b"a" * 65536 + b"\r\n") * 17,
        "resp-limit",
    ),
    "I9_until_the_end_over_the_rule": (b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * ((1 << 20) + 1), "resp-limit"),
    "I_length_cut_off": (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "answer-framing"),
}


@pytest.mark.parametrize("case", BODIES)
def test_an_answer_that_breaks_is_cut_with_a_reset_never_ended(a: Answers, case: str) -> None:
    """I9, K11: a program can never take the part for the whole."""
    text, reason = BODIES[case]
    before = a.told(reason)
    s = a.ask(closing(text))
    got, how = rig.drain(s, 10)
    assert how == "reset", (got[-40:], how)
    assert not got.endswith(b"0\r\n\r\n")
    assert a.g.wait(lambda: a.told(reason) > before)
    assert [v for v in a.g.verdicts if v["reason"] == reason][-1]["verdict"] in ("aborted", "refused")


def test_I11_D7_what_would_outlive_the_answer_is_taken_out(a: Answers) -> None:
    names = [
        "Set-Cookie: a=b",
        "Set-Cookie2: a",
        'Alt-Svc: h3=":443"',
        "Strict-Transport-Security: max-age=1",
        'Clear-Site-Data: "*"',
        "NEL: {}",
        "Report-To: {}",
        "Proxy-Authenticate: Basic",
        "Keep-Alive: timeout=5",
        "Connection: keep-alive, X-Hop",
        "X-Hop: 1",
        "Trailer: X",
        "Upgrade: h2c",
    ]
    text = "\r\n".join(["HTTP/1.1 200 OK", *names, "X-Stays: yes", "Content-Length: 2", "", "ok"]).encode()
    status, fields, body = rig.answer_of(a.ask(text))
    assert (status, body) == (200, b"ok")
    assert fields == {"x-stays": "yes", "content-length": "2"}


def test_I2_some_interim_answers_are_read_and_not_passed(a: Answers) -> None:
    s = a.ask(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 8 + OK)
    assert rig.answer_of(s)[:1] == (200,)


def test_I6_more_than_the_answer_ends_the_connection_to_the_server(a: Answers) -> None:
    s = a.ask(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
    assert rig.answer_of(s)[2] == b"ok"
    n = len(a.origin.heard)
    a.origin.answer = OK
    s.sendall(request("GET /next HTTP/1.1", "plain.test"))
    assert rig.answer_of(s)[2] == b"ok"
    assert len(a.origin.heard) == n + 1


def test_I6_an_answer_on_an_idle_connection_is_nobodys(a: Answers) -> None:
    def late(_: rig.Origin, s: socket.socket, __: bytes) -> None:
        s.sendall(OK)
        threading.Timer(0.2, lambda: s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")).start()

    s = a.ask(late)
    assert rig.answer_of(s)[2] == b"ok"
    time.sleep(0.5)
    n = len(a.origin.heard)
    a.origin.answer = OK
    s.sendall(request("GET /next HTTP/1.1", "plain.test"))
    assert rig.answer_of(s)[2] == b"ok"
    assert len(a.origin.heard) == n + 1


def test_E28_a_connection_with_odd_framing_is_not_used_again(a: Answers) -> None:
    s = a.ask(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\n\r\n")
    s.settimeout(5)
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        got += s.recv(4096)
    assert got.endswith(b"\r\n\r\n2\r\nok\r\n0\r\n\r\n")
    n = len(a.origin.heard)
    a.origin.answer = OK
    s.sendall(request("GET /next HTTP/1.1", "plain.test"))
    assert rig.answer_of(s)[2] == b"ok"
    assert len(a.origin.heard) == n + 1


def test_C8_a_clean_connection_is_used_again_for_the_same_place(a: Answers) -> None:
    s = a.ask(OK)
    assert rig.answer_of(s)[0] == 200
    n, reaches = len(a.origin.heard), len(a.g.reaches)
    for _ in range(5):
        s.sendall(request("GET /again HTTP/1.1", "plain.test"))
        assert rig.answer_of(s)[0] == 200
    assert (len(a.origin.heard), len(a.g.reaches)) == (n, reaches)


def test_a_server_that_closed_its_idle_connection_is_asked_once_more(a: Answers) -> None:
    """Closed while our request was under way: a GET without effect is sent again on a new connection, a POST is not."""
    doomed: set[socket.socket] = set()

    def dies(_: rig.Origin, s: socket.socket, data: bytes) -> None:
        if data.startswith(b"GET /first"):
            doomed.add(s)
            s.sendall(OK)
        elif s in doomed:
            s.shutdown(socket.SHUT_RDWR)
        else:
            s.sendall(OK)

    s = a.ask(dies, "GET /first HTTP/1.1")
    assert rig.answer_of(s)[0] == 200
    s.sendall(request("GET /second HTTP/1.1", "plain.test"))
    assert rig.answer_of(s)[0] == 200
    assert sum(h.count(b"GET /second") for h in a.origin.heard) == 2
    s = a.ask(dies, "GET /first HTTP/1.1")
    assert rig.answer_of(s)[0] == 200
    s.sendall(request("POST /third HTTP/1.1", "plain.test", "Content-Length: 1", body=b"x"))
    assert rig.answer_of(s)[0] == 502
    assert sum(h.count(b"POST /third") for h in a.origin.heard) == 1


def test_the_record_has_the_address_that_was_asked_in_the_end(a: Answers) -> None:
    doomed: set[socket.socket] = set()

    def dies(_: rig.Origin, s: socket.socket, data: bytes) -> None:
        if s in doomed:
            s.shutdown(socket.SHUT_RDWR)
            return
        if data.startswith(b"GET /one"):
            doomed.add(s)
        s.sendall(OK)

    s = a.ask(dies, "GET /one HTTP/1.1")
    assert rig.answer_of(s)[0] == 200
    a.g.far = "192.0.2.8"
    s.sendall(request("GET /two HTTP/1.1", "plain.test"))
    assert rig.answer_of(s)[0] == 200
    a.g.far = "192.0.2.7"
    assert [v["address"] for v in a.g.verdicts if v["path"] == "/two"] == ["192.0.2.7", "192.0.2.8"]


def test_until_the_end_becomes_chunks(a: Answers) -> None:
    s = a.ask(closing(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nall of it"))
    s.settimeout(5)
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        got += s.recv(4096)
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head and body == b"9\r\nall of it\r\n0\r\n\r\n"
    a.origin.answer = OK
    s.sendall(request("GET /next HTTP/1.1", "plain.test"))
    assert rig.answer_of(s)[0] == 200


@pytest.mark.parametrize(
    "text", [b"HTTP/1.1 200 OK\r\n\r\nall", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nall\r\n0\r\n\r\n"]
)
def test_a_program_of_http_1_0_gets_the_body_up_to_the_end(a: Answers, text: bytes) -> None:
    got, how = rig.drain(a.ask(closing(text), "GET / HTTP/1.0"))
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"ransfer-Encoding" not in head and b"Connection: close" in head
    assert (body, how) == (b"all", "end")


def test_keep_alive_of_http_1_0(a: Answers) -> None:
    s = a.ask(OK, "GET / HTTP/1.0", "Connection: keep-alive")
    for _ in range(3):
        status, fields, _ = rig.answer_of(s)
        assert (status, fields["connection"]) == (200, "keep-alive")
        s.sendall(request("GET / HTTP/1.0", "plain.test", "Connection: keep-alive"))
    s.close()


@pytest.mark.parametrize("head", [b"Content-Length: 12345", b"Transfer-Encoding: chunked", b"X: y"])
def test_answers_to_head_have_no_body(a: Answers, head: bytes) -> None:
    s = a.ask(closing(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n"), "HEAD / HTTP/1.1", "Connection: close")
    got, how = rig.drain(s)
    assert how == "end" and got.endswith(b"\r\n\r\n") and got.count(b"\r\n\r\n") == 1
    assert (b"Content-Length: 12345" in got) == head.startswith(b"Content-Length")


@pytest.mark.parametrize("status", [204, 304])
def test_answers_without_a_body(a: Answers, status: int) -> None:
    s = a.ask(b"HTTP/1.1 %d x\r\nX: y\r\n\r\n" % status)
    s.settimeout(5)
    got = s.recv(4096)
    assert got.startswith(b"HTTP/1.1 %d " % status) and got.endswith(b"\r\n\r\n") and b"ength" not in got
    a.origin.answer = OK
    s.sendall(request("GET /next HTTP/1.1", "plain.test"))
    assert rig.answer_of(s)[2] == b"ok"


def test_the_server_sees_one_form_only(a: Answers) -> None:
    s = a.ask(OK, "POST /x HTTP/1.1", "content-length: 3", "x-a:   b  ", body=b"abc")
    assert rig.answer_of(s)[0] == 200
    assert a.origin.heard[-1].endswith(b"POST /x HTTP/1.1\r\nHost: plain.test\r\nx-a: b\r\nContent-Length: 3\r\n\r\nabc")


def test_I8_a_coded_body_is_passed_as_it_is_and_counted_on_the_wire(a: Answers) -> None:
    bomb = gzip.compress(b"\0" * (4 << 20))
    s = a.ask(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb)
    status, fields, body = rig.answer_of(s)
    assert (status, fields["content-encoding"], body) == (200, "gzip", bomb)


def test_an_answer_before_the_request_is_complete_is_the_last(a: Answers) -> None:
    """I6: passed on, and nothing is used again."""

    def early(_: rig.Origin, s: socket.socket, __: bytes) -> None:
        s.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")

    s = a.ask(early, "POST / HTTP/1.1", "Content-Length: 100000", body=b"x" * 10)
    status, fields, _ = rig.answer_of(s)
    assert (status, fields["connection"]) == (413, "close")
    assert rig.drain(s, 4)[1] in ("end", "reset")
    n = len(a.origin.heard)
    assert rig.answer_of(a.ask(OK))[0] == 200
    assert len(a.origin.heard) == n + 1
