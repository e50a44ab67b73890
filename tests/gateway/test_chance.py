# SPDX-License-Identifier: Apache-2.0
"""Programs, servers and neighbours that do anything at any time, by a seeded chance: the gateway lives, and answers the next honest
request."""

import os
import random
import socket
import threading
import time

import rig
from cases import request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ANSWERS = [
    OK,
    OK,
    OK,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"a" * 300000,
    b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + OK,
    OK + b"more",
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Le",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
    b"",
]
UPGRADE = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]


def asked(r: random.Random) -> bytes:
    one = [
        request("GET /x HTTP/1.1", "plain.test"),
        request("HEAD /x HTTP/1.1", "plain.test"),
        request("GET /x HTTP/1.0", "plain.test"),
        request("POST /x HTTP/1.1", "plain.test", "Content-Length: 5", body=b"hello"),
        request("POST /x HTTP/1.1", "plain.test", "Content-Length: 200000", body=b"b" * 200000),
        request("POST /x HTTP/1.1", "plain.test", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n\r\n"),
        request("GET /ws HTTP/1.1", "plain.test", *UPGRADE),
        request("POST /x HTTP/1.1", "plain.test", "Transfer-Encoding: chunked", body=b"5\r\nhelloXX"),
        request("GET /x HTTP/1.1", "evil.test"),
        request("GET /y/../x HTTP/1.1", "plain.test"),
        request("POST /x HTTP/1.1", "plain.test", "Content-Length: 3", "Expect: 100-continue", body=b"abc"),
        b"\x16\x03\x01\x00\x05hello",
        b"CONNECT plain.test:80 HTTP/1.1\r\nHost: plain.test:80\r\n\r\n",
        b"GET http://plain.test/x HTTP/1.1\r\nHost: plain.test\r\n\r\n",
        b"CONNECT raw.test:9000 HTTP/1.1\r\nHost: raw.test:9000\r\n\r\n",
        b"CONNECT no.test:443 HTTP/1.1\r\nHost: no.test:443\r\n\r\n",
    ]
    text = b"".join(r.choice(one) for _ in range(r.choice([1, 1, 1, 2, 5])))
    if r.random() < 0.3:
        text = text[: r.randrange(len(text) + 1)]
    if r.random() < 0.1 and text:
        at = r.randrange(len(text))
        text = text[:at] + bytes([r.randrange(256)]) + text[at + 1 :]
    return text


def program(g: rig.Gateway, addresses: list[tuple[str, int]], seed: int, until: float) -> None:
    r = random.Random(seed)
    while time.monotonic() < until and g.alive():
        try:
            s = socket.create_connection(r.choice(addresses), 5)
            text = asked(r)
            while text:
                n = r.choice([len(text), len(text), r.randrange(1, len(text) + 1)])
                s.sendall(text[:n])
                text = text[n:]
                if r.random() < 0.1:
                    time.sleep(r.random() / 50)
            what = r.random()
            if what < 0.2:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            elif what < 0.4:
                s.shutdown(socket.SHUT_WR)
            if what < 0.9:
                s.settimeout(r.random() / 5)
                while s.recv(65536):
                    pass
            s.close()
        except OSError:
            pass


def test_anything_at_any_time() -> None:
    seed = int(os.environ.get("DEMILUNE_SEED", "5"))
    r = random.Random(seed)

    def answer(_: rig.Origin, s: socket.socket, data: bytes) -> None:
        text = r.choice(ANSWERS)
        if r.random() < 0.1:
            text = text[: r.randrange(len(text) + 1)]
        s.sendall(text)
        if r.random() < 0.2 or text in (ANSWERS[4], b""):
            if r.random() < 0.5:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
        del data

    o = rig.Origin(answer)
    g = rig.Gateway(
        rig.policy(
            rig.fetch("http://plain.test/*", methods=["GET", "HEAD", "POST"], request_max=1 << 20, response_max=200000, websocket=True),
            {"host": "raw.test", "kind": "tcp", "port": 9000},
        ),
        {("plain.test", 80): o.port, ("raw.test", 9000): o.port},
        lend={"connections": 1 << 30, "requests": 1 << 30},
    )
    g.over, g.slices = False, 5
    addresses = [(g.address("plain.test"), 80), (g.address("raw.test"), 9000), ("127.0.0.1", 3128)]
    until = time.monotonic() + float(os.environ.get("DEMILUNE_CHANCE_S", "6"))
    programs = [threading.Thread(target=program, args=(g, addresses, seed * 100 + i, until)) for i in range(12)]
    for t in programs:
        t.start()
    while time.monotonic() < until and g.alive():
        time.sleep(0.3)
        what = r.randrange(6)
        if what == 0:
            g.cut("ENGINE")
            time.sleep(r.random() / 2)
            g.edge("ENGINE", g._engine)
        elif what == 1:
            g.cut("DIALER")
            time.sleep(r.random() / 2)
            g.edge("DIALER", g._dialer)
        elif what == 2:
            g.to[("plain.test", 80)] = r.choice(["no_name", "address_mixed", "timeout"])
            time.sleep(0.1)
            g.to[("plain.test", 80)] = o.port
        elif what == 3:
            g.keep = "contained"
            time.sleep(0.1)
            g.keep = True
    for t in programs:
        t.join()
    assert g.alive()
    o.answer = OK
    time.sleep(0.3)
    s = g.dial("plain.test", 80)
    s.sendall(request("GET /x HTTP/1.1", "plain.test"))
    assert rig.answer_of(s)[0] == 200
    g.close()
