# SPDX-License-Identifier: Apache-2.0
"""A gateway from its start to its end: who may say what when, which neighbours may go and come, and what it costs while it waits."""

import contextlib
import hashlib
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import wire
from rig import SANITIZED, Gateway, Origin, answer_of, fetch, policy, sealed

RULES = (fetch("http://plain.test/**"), fetch("https://docs.example/**"))
DOCUMENT = policy(*RULES)


def digest(document: bytes) -> bytes:
    return hashlib.sha256(b"demilune-egress-v1\0" + document).digest()


@contextmanager
def waiting() -> Iterator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    """One that is nobody's yet, and its supervisor's edge."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = Gateway._start(theirs)
    theirs.close()
    try:
        yield mine, process
    finally:
        mine.close()
        process.kill()
        process.wait()


def name(s: socket.socket, document: bytes = DOCUMENT, told: bytes | None = None, fd: int | None = None) -> None:
    fd = sealed(document) if fd is None else fd
    wire.send(s, "GATEWAY_POLICY", 0, (fd,), sandbox=b"\1" * 10, policy=digest(document) if told is None else told)
    os.close(fd)


def begin(s: socket.socket, document: bytes = DOCUMENT, told: bytes | None = None, fd: int | None = None) -> None:
    name(s, document, told, fd)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a bad policy ended it already
        wire.send(s, "GATEWAY_BEGIN", 0)


def listener(s: socket.socket, kind: str = "port", port: int = 8080) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as one:
        wire.send(s, "LISTENER", 0, (one.fileno(),), kind=kind, port=port)


def ends_with(process: subprocess.Popen[bytes], code: int) -> None:
    assert process.wait(10) == code


def test_it_ends_with_its_supervisor() -> None:
    for begun in (False, True):
        with waiting() as (s, process):
            if begun:
                begin(s)
            time.sleep(0.1)
            assert process.poll() is None
            s.close()
            ends_with(process, 0)


def test_it_ends_while_a_connection_lingers() -> None:
    """Behind its refusal; a build with a leak detector has nothing to say of it."""
    g = Gateway(DOCUMENT)
    with g.dial("plain.test", 80) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        assert answer_of(s)[0] == 421
        g.close()


def test_it_waits_without_an_end() -> None:
    """A spare is taken when a sandbox needs it."""
    with waiting() as (s, process):
        time.sleep(1)
        assert process.poll() is None
        begin(s)
        time.sleep(0.1)
        assert process.poll() is None


def test_a_policy_that_is_another_than_was_told_ends_it() -> None:
    with waiting() as (s, process):
        begin(s, told=digest(policy(*RULES, name="other")))
        ends_with(process, 1)


def test_a_policy_that_can_change_ends_it() -> None:
    with waiting() as (s, process):
        fd = os.memfd_create("policy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, DOCUMENT)
        begin(s, fd=fd)
        ends_with(process, 1)


@pytest.mark.parametrize("document", [b"", b"{}", DOCUMENT[:-1], DOCUMENT + b" ", DOCUMENT.replace(b'"v":1', b'"v":2')])
def test_a_policy_that_is_none_ends_it(document: bytes) -> None:
    with waiting() as (s, process):
        begin(s, document)
        ends_with(process, 1)


def test_what_is_told_after_the_beginning_ends_it() -> None:
    for late in ("LISTENER", "ROOTS", "GATEWAY_POLICY", "GATEWAY_BEGIN"):
        with waiting() as (s, process):
            begin(s)
            if late == "LISTENER":
                listener(s)
            elif late == "ROOTS":
                with open("/dev/null") as f:
                    wire.send(s, "ROOTS", 0, (f.fileno(),), name="late")
            elif late == "GATEWAY_POLICY":
                name(s)
            else:
                wire.send(s, "GATEWAY_BEGIN", 0)
            ends_with(process, 1)


def test_what_is_told_in_another_order_ends_it() -> None:
    with waiting() as (s, process):
        wire.send(s, "GATEWAY_BEGIN", 0)
        ends_with(process, 1)
    with waiting() as (s, process):
        name(s)
        name(s)
        ends_with(process, 1)


def test_it_says_nothing_before_the_beginning() -> None:
    with waiting() as (s, process):
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with mine, theirs:
            wire.send(s, "GATEWAY_ENGINE", 0, (theirs.fileno(),))
            name(s)
            listener(s)
            mine.settimeout(0.3)
            with pytest.raises(TimeoutError):
                mine.recv(1)
            wire.send(s, "GATEWAY_BEGIN", 0)
            mine.settimeout(10)
            got = wire.receive(mine)
            assert got is not None and got[0] == "GATEWAY_READY"


@pytest.mark.parametrize("message", [
    b"", b"x", struct.pack(">HHIQ", 0xffff, 0, 0, 0), struct.pack(">HHIQ", wire.NUMBER["VERDICT_KEPT"], 0, 2, 0) + b"\1\0",
    struct.pack(">HHIQ", wire.NUMBER["GATEWAY_POLICY"], 0, 42, 0) + b"\0" * 42,
    struct.pack(">HHIQ", wire.NUMBER["GATEWAY_POLICY"], 1, 41, 0) + b"\0" * 41,
    struct.pack(">HHIQ", wire.NUMBER["GATEWAY_BEGIN"], 0, 42, 0) + b"\0" * 42])
def test_a_supervisor_that_breaks_the_table_ends_it(message: bytes) -> None:
    with waiting() as (s, process):
        s.send(message)
        assert process.wait(10) in (0, 1)  # an empty message is what a closed edge looks like


def test_sockets_have_a_number() -> None:
    with waiting() as (s, process):
        for port in range(1000, 1064):
            listener(s, port=port)
        time.sleep(0.1)
        assert process.poll() is None
        listener(s, port=1064)
        ends_with(process, 1)


def test_neighbours_go_and_come() -> None:
    """Each engine hears first that it listens; a dialer and a broker that come again are used."""
    origin = Origin()
    g = Gateway(DOCUMENT, {("plain.test", 80): origin.port})

    def fetched() -> int:
        with g.dial("plain.test", 80) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: plain.test\r\nConnection: close\r\n\r\n")
            return answer_of(s)[0]

    try:
        first = g.ready
        assert first["certificate"].startswith(b"-----BEGIN CERTIFICATE-----") and first["keystore"][:4] == b"\xfe\xed\xfe\xed"
        assert first["system_roots"] is False
        assert fetched() == 200
        for name, serve in (("ENGINE", g._engine), ("DIALER", g._dialer), ("BROKER", g._broker)):
            g.cut(name)
            time.sleep(0.1)
            g.ready = {}
            g.edge(name, serve)
            if name == "ENGINE":
                assert g.wait(lambda: bool(g.ready)) and g.ready == first
            assert fetched() == 200
        # A new one in place of one that is still there.
        g.ready = {}
        g.edge("ENGINE", g._engine)
        assert g.wait(lambda: g.ready == first)
        assert fetched() == 200
    finally:
        g.close()
        origin.close()


@pytest.mark.parametrize("name", ["ENGINE", "DIALER", "BROKER"])
def test_a_neighbour_that_breaks_the_table_is_lost_and_nothing_else(name: str) -> None:
    g = Gateway(DOCUMENT)
    try:
        for nonsense in (b"x", struct.pack(">HHIQ", wire.NUMBER["GATEWAY_BEGIN"], 0, 0, 0), struct.pack(">HHIQ", 0xffff, 0, 0, 0)):
            mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            wire.send(g.supervisor, "GATEWAY_" + name, 0, (theirs.fileno(),))
            theirs.close()
            mine.settimeout(5)
            if name == "ENGINE":
                assert wire.receive(mine) is not None  # GATEWAY_READY
            mine.send(nonsense)
            while mine.recv(1 << 18):
                pass
            mine.close()
        assert g.alive()
        g.edge("ENGINE", g._engine)
        assert g.address("plain.test")
    finally:
        g.close()


def test_with_opaque_rules_programs_need_the_system_s_roots_too() -> None:
    tcp_rule = {"host": "mirror.test", "kind": "tcp", "port": 873}
    for rules, roots, certificate in (((*RULES, tcp_rule), True, True), ((tcp_rule,), False, False), ((RULES[0],), False, False)):
        g = Gateway(policy(*rules))
        try:
            assert (g.ready["system_roots"], bool(g.ready["certificate"]), bool(g.ready["keystore"])) == (roots, certificate, certificate)
        finally:
            g.close()


@pytest.mark.skipif(SANITIZED, reason="memory is measured")
def test_what_one_costs_that_waits_and_one_that_serves() -> None:
    """Below 10 MB; started and confined long before a sandbox is created."""
    def own(process: subprocess.Popen[bytes], what: str) -> int:
        with open(f"/proc/{process.pid}/smaps_rollup") as f:
            return next(int(line.split()[1]) for line in f if line.startswith(what + ":"))

    with waiting() as (s, process):
        time.sleep(0.2)
        before = own(process, "Rss")
        started = time.monotonic()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wire.send(s, "GATEWAY_ENGINE", 0, (theirs.fileno(),))
        begin(s)
        got = wire.receive(mine)
        took = time.monotonic() - started
        assert got is not None and got[0] == "GATEWAY_READY"
        after, mine_alone = own(process, "Rss"), own(process, "Private_Dirty")
        print(f"waiting: {before} KiB; begun: {after} KiB, of it its own {mine_alone} KiB; after {took * 1000:.1f} ms")
        assert after < 10240
