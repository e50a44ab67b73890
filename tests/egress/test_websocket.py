# SPDX-License-Identifier: Apache-2.0
"""WebSocket by rule (research: egress, H2 to H4)."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
from collections.abc import Iterator

import pytest
from outside import Seen
from world import World

POLICY = 'egress:\n  - fetch: {url: "http://plain.test/ws", websocket: true, response_max: 64KiB}\n'


@pytest.fixture
def world() -> Iterator[World]:
    with World({"test": POLICY}) as made:
        yield made


def hand(*lines: str, key: str = "AAAAAAAAAAAAAAAAAAAAAA==", version: str = "13", upgrade: str = "websocket") -> bytes:
    return ("GET /ws HTTP/1.1\r\nHost: plain.test\r\nConnection: Upgrade\r\n"
            f"Upgrade: {upgrade}\r\nSec-WebSocket-Version: {version}\r\nSec-WebSocket-Key: {key}\r\n" + "".join(f"{x}\r\n" for x in lines) + "\r\n").encode()


def accept(request: bytes) -> str:
    found = re.search(rb"[Ss]ec-[Ww]eb[Ss]ocket-[Kk]ey: (\S+)", request)
    assert found
    return base64.b64encode(hashlib.sha1(found[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()


def echo(sock: socket.socket, seen: Seen, request: bytes) -> None:
    sock.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept(request)}\r\n\r\n".encode())
    while data := sock.recv(65536):
        seen.note(data)
        sock.sendall(b"\x82\x03abc")
    raise OSError


FRAME = b"\x82\x83\x01\x02\x03\x04" + bytes(a ^ b for a, b in zip(b"xyz", b"\x01\x02\x03", strict=True))


def test_H2_a_handshake_by_rule(world: World) -> None:
    world.plain.answers["*"] = echo
    got = world.talk("plain.test", 80, hand(), FRAME, pause=0.5, wait=1)
    assert got.status == 101
    assert accept(b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==").encode() in got.data
    assert got.data.endswith(b"\x82\x03abc")
    assert b"AAAAAAAAAAAAAAAAAAAAAA==" not in world.plain.data, "the key upstream is the gateway's own"


@pytest.mark.parametrize("request_", [hand(key="short"), hand(version="8"), hand(upgrade="websocket, h2c"), hand("Upgrade: h2c")], ids=["key", "version", "two", "twice"])
def test_H2_a_bad_handshake(world: World, request_: bytes) -> None:
    with world.refused(("upgrade", "framing")):
        got = world.talk("plain.test", 80, request_)
    assert got.status in (400, 403, 426)


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: Upgrade\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
], ids=["accept", "other", "none"])
def test_H3_an_answer_that_is_no_handshake(world: World, answer: bytes) -> None:
    world.plain.answers["*"] = answer
    with world.refused(("answer-framing", "upgrade"), verdict=None, silent=False):
        got = world.talk("plain.test", 80, hand(), FRAME, pause=0.3)
    assert got.status == 502
    assert b"xyz" not in world.plain.data and FRAME not in world.plain.data, "bytes were passed on before the handshake held"


def test_H3_a_server_that_does_not_switch(world: World) -> None:
    got = world.talk("plain.test", 80, hand())
    assert got.status in (200, 502)


def test_H4_bytes_are_counted_to_the_rules_maximum(world: World) -> None:
    def flood(sock: socket.socket, seen: Seen, request: bytes) -> None:
        sock.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept(request)}\r\n\r\n".encode())
        for _ in range(64):
            sock.sendall(b"\x82\x7e\x40\x00" + b"x" * 16384)
        raise OSError

    world.plain.answers["*"] = flood
    with world.refused("resp-limit", verdict="aborted", silent=False):
        got = world.talk("plain.test", 80, hand(), wait=3)
    assert got.status == 101 and got.reset
    assert got.length < 200 * 1024
