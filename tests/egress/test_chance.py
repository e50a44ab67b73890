# SPDX-License-Identifier: Apache-2.0
"""Attack by chance: requests of good and bad parts, mixed, pipelined and damaged, on all ways out of a sandbox at once. Whatever comes of each: what
servers saw are requests that the policy takes, written in one form, each of them counted by an allowed verdict of its rule; name servers were
asked for names of rules alone; nobody else was spoken to. DEMILUNE_SEED=N takes that walk instead."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from daemon import wait_until
from outside import OK, Seen
from world import HERE, POLICY, World

SEEDS = [int(os.environ["DEMILUNE_SEED"])] if "DEMILUNE_SEED" in os.environ else [1, 2, 3]
STEPS, AT_ONCE = 1000, 250
NAMED = ("plain.test", "allowed.test")
NAMES = (*NAMED, *NAMED, *NAMED, "evil.test", "x.plain.test", "PLAIN.test", "allowed.test.", "plain.test.evil.test", "127.0.0.1", "[::1]", "93.184.216.36", "localhost",
         "evil.test@plain.test", "plain.test@evil.test", "plain.test\\@evil.test", "plain%2etest", "", "xn--a", "a" * 64 + ".test", "169.254.169.254", "2130706433")
PORTS = ("", "", "", "", ":80", ":443", ":8080", ":0", ":", ":080", ":80:443")
METHODS = ("GET",) * 8 + ("POST", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "CONNECT", "get", "G(T", "PRI")
PATHS = ("/v1/x",) * 5 + ("/v1/", "/", "/other", "/v1", "/v1/../other", "/v1/%2e%2e/other", "//evil.test/v1/x", "/v1/a%2fb", "/v1/%zz", "/v1/a;b", "/v1/a\\b", "*", "v1/x", "",
                          "/v1/" + "a" * 9000, "/V1/x", "/v1/\x01", "/v1/\xe9", "/v1/x#y")
QUERIES = ("",) * 5 + ("?q=1", "?page=2", "?q=1&page=2", "?other=1", "?q=1&q=2", "?", "?api_key=1", "?q=%zz", "?q=http://evil.test/")
FIELDS = ("Accept: */*", "User-Agent: x", "Accept-Encoding: gzip", "Connection: close", "Connection: keep-alive", "X-A: b", "Content-Type: text/plain", "Authorization: Bearer x",
          "Cookie: a=b", "Proxy-Authorization: Basic eDp5", "X-Forwarded-Host: evil.test", "Host: evil.test", "Host : plain.test", "Connection: host", "Upgrade: h2c",
          "Upgrade: websocket", "Expect: 100-continue", "Expect: x", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding : chunked",
          "Transfer-Encoding: xchunked", "Transfer-Encoding:\r\n chunked", "Content-Length: 3", "Content-Length: 3, 3", "Content-Length: +3", "Content-Length: 0", "TE: trailers",
          "Content-Length: 99999999999999999999", "X-A: b\r\n folded", "X-A: b\nX-B: c", "X-A: \x00", "X-HTTP-Method-Override: DELETE", "no colon", ": b", "Trailer: Host",
          "Range: bytes=0-1", "X: " + "a" * 9000, "Max-Forwards: 0", "Via: 1.1 x", "Forwarded: host=evil.test")
BODIES = (b"",) * 3 + (b"abc", b"3\r\nabc\r\n0\r\n\r\n", b"0\r\n\r\n", b"3\r\nabc\r\n0\r\nHost: evil.test\r\n\r\n", b"3;a\r\nabc\r\n0\r\n\r\n", b"03\r\nabc\r\n0\r\n\r\n",
                       b"3\nabc\n0\n\n", b"5\r\nabc\r\n0\r\n\r\n", b"GET /other HTTP/1.1\r\nHost: evil.test\r\n\r\n")


@pytest.fixture(scope="module")
def made() -> Iterator[World]:
    plenty = "budgets: {connections: 1000000, requests: 1000000, handshakes: 1000000, names: 10000}\n"
    with World({"test": POLICY + plenty}) as world:
        yield world


# ---- what is tried ----


def request(chance: random.Random, name: str, absolute: bool) -> bytes:
    own = name if chance.random() < 0.9 else chance.choice(NAMES)
    host = own + chance.choice(PORTS) if chance.random() < 0.15 else own
    path = chance.choice(PATHS[:5] if chance.random() < 0.6 else PATHS) + chance.choice(QUERIES[:8] if chance.random() < 0.7 else QUERIES)
    target = f"http{'s' * (chance.random() < 0.1)}://{host if chance.random() < 0.9 else chance.choice(NAMES)}{path}" if absolute else path
    version = "HTTP/1.1" if chance.random() < 0.95 else chance.choice(("HTTP/1.0", "HTTP/2.0", "http/1.1", ""))
    method = chance.choice(METHODS[:11] if chance.random() < 0.8 else METHODS)
    lines = [f"{method} {target} {version}", f"Host: {host}", *chance.sample(FIELDS[:7], chance.choice((0, 1, 2))), *chance.sample(FIELDS, chance.choice((0, 0, 0, 0, 1, 2)))]
    body = chance.choice(BODIES[:6]) if method in ("POST", "PUT") else chance.choice(BODIES) if chance.random() < 0.1 else b""
    if body and chance.random() < 0.8:
        lines.append("Transfer-Encoding: chunked" if body[:1].isdigit() else f"Content-Length: {len(body)}")
    if chance.random() < 0.05:
        chance.shuffle(lines)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def damaged(chance: random.Random, data: bytes) -> bytes:
    at, size = chance.randrange(len(data)), chance.randrange(1, 20)
    return chance.choice((data[:at] + bytes([chance.randrange(256)]) + data[at + 1:], data[:at] + data[at + size:], data[:at] + data[at:at + size] + data[at:],
                          data[:at] + b"\r\n" + data[at:], data[:at]))


def step(chance: random.Random) -> dict[str, object]:
    way = chance.choice(("plain", "plain", "proxy", "tls", "connect"))
    name = {"plain": "plain.test", "proxy": "plain.test"}.get(way, "allowed.test")
    if way == "proxy" and chance.random() < 0.2:
        name = chance.choice(NAMES)
    send = b"".join(request(chance, name, way == "proxy" or chance.random() < 0.1) for _ in range(chance.choice((1, 1, 1, 2, 3))))
    if chance.random() < 0.2:
        send = damaged(chance, send)
    dial = name if chance.random() < 0.9 else chance.choice(NAMES)
    one: dict[str, object] = {"dial": dial, "port": 443 if way == "tls" else 80, "sni": None, "send": base64.b64encode(send).decode()}
    if way in ("tls", "connect"):
        one["sni"] = name if chance.random() < 0.8 else chance.choice((None, "", "evil.test", "plain.test", "ALLOWED.test", "x.allowed.test"))
    if way in ("proxy", "connect"):
        one |= {"dial": "127.0.0.1", "port": 3128}
    if way == "connect":
        to = (name if chance.random() < 0.8 else chance.choice(NAMES)) + (":443" if chance.random() < 0.8 else chance.choice((*PORTS, ":22")))
        said = f"CONNECT {to} HTTP/1.1\r\nHost: {to if chance.random() < 0.9 else 'evil.test'}\r\n\r\n".encode("latin-1")
        one["connect"] = base64.b64encode(said if chance.random() < 0.9 else damaged(chance, said)).decode()
    return one


# ---- what servers may see, said a second time and otherwise than by the gateway ----

LINE = re.compile(rb"(GET|HEAD|POST|PUT|DELETE|OPTIONS) (/[A-Za-z0-9._~!$&'()*+,=:@/-]*)(?:\?([A-Za-z0-9._~!$&'()*+,=:@/?%-]*))? HTTP/1\.1")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t\x20-\x7e\x80-\xff]*)")
NEVER = {b"authorization", b"cookie", b"proxy-authorization", b"upgrade", b"te", b"trailer", b"expect", b"x-http-method-override", b"proxy-connection"}


@dataclass
class Request:
    method: str
    path: str
    query: list[str] | None
    host: str
    body: int


def requests_of(data: bytes) -> list[Request]:
    """The requests of one connection, the last perhaps without an end; AssertionError for what is not written as the gateway writes."""
    found = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        if not end:
            assert b"\n" not in head.replace(b"\r\n", b""), head
        first, *lines = head.split(b"\r\n")
        line = LINE.fullmatch(first)
        assert line is not None, first
        assert b"/../" not in line[2] + b"/" and b"/./" not in line[2] + b"/" and b"//" not in line[2], first
        fields: dict[bytes, bytes] = {}
        for one in lines:
            field = FIELD.fullmatch(one)
            assert field is not None, one
            key = field[1].lower()
            assert key not in fields or key not in (b"host", b"content-length", b"transfer-encoding"), one
            fields[key] = field[2]
        assert end, head
        assert not NEVER & set(fields), head
        assert not (b"content-length" in fields and b"transfer-encoding" in fields), head
        size = 0
        if b"transfer-encoding" in fields:
            assert fields[b"transfer-encoding"] == b"chunked"
            while True:
                count, there, rest = data.partition(b"\r\n")
                assert re.fullmatch(rb"[0-9a-fA-F]*", count), count
                if not there:
                    data = b""
                    break
                n = int(count, 16)
                size += n
                if len(rest) < n + 2:
                    data = b""
                    break
                assert rest[n:n + 2] == b"\r\n", rest[:40]  # behind the last one: no trailers
                data = rest[n + 2:]
                if n == 0:
                    break
        elif b"content-length" in fields:
            assert re.fullmatch(rb"0|[1-9]\d*", fields[b"content-length"]), head
            size = int(fields[b"content-length"])
            data = data[size:]
        query = None if line[3] is None else [] if not line[3] else [pair.split("=")[0] for pair in line[3].decode().split("&")]
        found.append(Request(line[1].decode(), line[2].decode(), query, fields[b"host"].decode(), size))
    return found


def rule_of(name: str, r: Request) -> int | None:
    """The rule of world.POLICY that takes it, counted from 1."""
    listed = r.query is None or (set(r.query) <= {"q", "page"} and len(set(r.query)) == len(r.query))
    below = r.path.startswith("/v1/")
    if r.host != name:
        return None
    if name == "allowed.test":
        return 1 if below and listed and r.method in ("GET", "POST") and (r.method == "POST" or r.body == 0) else None
    if below and listed and r.method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
        return 2
    return 3 if r.query is None and r.method in ("GET", "HEAD") and r.body == 0 else None


def answer(sock: socket.socket, seen: Seen, request: bytes) -> None:
    sock.sendall(OK.partition(b"fine")[0] if request.startswith(b"HEAD") else OK)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_tried(made: World, seed: int) -> None:
    world, chance = made, random.Random(seed)
    task, box = world.sandbox("test")
    world.client.write(box, "/workspace/walk.py", (HERE / "walk.py").read_bytes()).expect(200, 201, 204)
    for origin in world.outside.origins:
        origin.forget()
        origin.answers["*"] = answer
    world.resolver.forget()
    statuses: Counter[int] = Counter()
    for _ in range(STEPS // AT_ONCE):
        world.client.write(box, "/workspace/steps", json.dumps([step(chance) for _ in range(AT_ONCE)]).encode()).expect(200, 201, 204)
        done = world.client.exec(box, ["python3", "/workspace/walk.py", "/workspace/steps"], timeout_s=120)
        assert done["exit_code"] == 0, done
        statuses.update(json.loads(done["stdout"]))
    # Of all kinds there were enough: else the rest says little.
    assert statuses[200] > STEPS // 20 and statuses[400] > STEPS // 20 and statuses[403] > STEPS // 50 and statuses[421] > 5, statuses
    assert [(o.address, o.port, bytes(o.data[:200])) for o in world.evil if o.connections] == []
    assert {name for name, _ in world.resolver.asked} <= set(NAMED)
    seen: Counter[tuple[str, int, int]] = Counter()
    for name, origin in (("plain.test", world.plain), ("allowed.test", world.allowed)):
        for connection in list(origin.seen):
            for r in requests_of(bytes(connection.data)):
                rule = rule_of(name, r)
                assert rule is not None, r
                seen[name, origin.port, rule] += 1
    assert len(seen) == 3, seen

    def recorded() -> bool:
        allowed: Counter[tuple[str, int, int]] = Counter()
        for row in world.verdicts(task):
            if row["verdict"] == "allowed":
                allowed[row["name"], row["port"], row["rule"]] += row["count"]
        return set(allowed) <= set(seen) and all(allowed[kind] >= count for kind, count in seen.items())

    wait_until(f"each is counted by a verdict of its rule: {seen}", recorded, 5)
    assert world.run("true", box)["exit_code"] == 0
