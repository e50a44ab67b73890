#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A provider for tests and the demo: a real HTTP(S) server with a ledger of its own and scripted misbehaviour.

    provider.py --dir DIR [--address 127.0.0.1] [--port 0] [--cert FILE --key FILE]

It prints `port N` when it serves. In DIR:

    orders.json   what GET /v1/orders/ID answers; made with order 48221 of tenant acme when it is not there
    script        one line per misbehaviour, `KIND WHAT [NUMBER]`; the first of the request's kind (effect, read, lookup) is taken
                  out and followed; without one it behaves
    effects       one JSON line for each effect that really happened: this is what tests count
    requests      one line for each request that came, `METHOD PATH`
    headers       one JSON line for each GET: its header fields as they came

Effects are POSTs (refunds, messages, notes). A repeated Idempotency-Key with the same body is answered as before and does nothing.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import hashlib
import json
import os
import ssl
import sys
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

ORDERS = {"48221": {"tenant": "acme", "paid_cents": 9000, "status": "paid", "customer": "kim"},
          "777": {"tenant": "globex", "paid_cents": 9000, "status": "paid", "customer": "lee"}}
HUGE_BYTES = 100 << 20
Json = dict[str, Any]


class World:
    """What the provider knows, in its directory; one lock for all threads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lock = threading.Lock()
        self.effects: list[Json] = []
        self.answers: dict[str, tuple[str, Json]] = {}  # key: digest of the body, answer
        path = directory / "effects"
        if path.exists():
            self.effects = [json.loads(line) for line in path.read_text().splitlines()]
            for one in self.effects:
                if one["key"]:
                    self.answers[one["key"]] = (one["digest"], self.answer(one))
        orders = directory / "orders.json"
        if not orders.exists():
            orders.write_text(json.dumps(ORDERS))

    def order(self, name: str) -> Json | None:
        orders: dict[str, Json] = json.loads((self.directory / "orders.json").read_text())
        return orders.get(name)

    def script(self, kind: str) -> tuple[str, float]:
        """The next misbehaviour of this kind, taken out of the file."""
        path = self.directory / "script"
        if not path.exists():
            return "ok", 0.0
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = file.read().splitlines()
            for i, line in enumerate(lines):
                words = line.split()
                if words and words[0] == kind:
                    del lines[i]
                    file.seek(0)
                    file.truncate()
                    file.write("".join(one + "\n" for one in lines))
                    return words[1], float(words[2]) if len(words) > 2 else 0.0
        return "ok", 0.0

    def note(self, text: str) -> None:
        with self.lock, (self.directory / "requests").open("a") as file:
            file.write(text + "\n")

    def note_headers(self, items: Iterable[tuple[str, str]]) -> None:
        with self.lock, (self.directory / "headers").open("a") as file:
            file.write(json.dumps(list(items)) + "\n")

    @staticmethod
    def answer(effect: Json) -> Json:
        body = dict(effect["body"])
        return {"id": effect["id"], "status": "succeeded", **body}

    def execute(self, path: str, key: str, body: Json, digest: str) -> Json:
        with self.lock:
            effect = {"id": f"re_{len(self.effects) + 1}", "path": path, "key": key, "body": body, "digest": digest,
                      "ms": time.time_ns() // 1000000}
            self.effects.append(effect)
            with (self.directory / "effects").open("a") as file:
                file.write(json.dumps(effect) + "\n")
                file.flush()
                os.fsync(file.fileno())
            answer = self.answer(effect)
            if key:
                self.answers[key] = (digest, answer)
            return answer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    world: World

    def log_message(self, format: str, *args: object) -> None:
        """Silence: requests are in a file."""

    def reply(self, status: int, value: object, headers: dict[str, str] | None = None) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def drop(self) -> None:
        """Nothing more on this connection, not even an end of the answer."""
        self.close_connection = True

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.world.note(f"GET {self.path}")
        self.world.note_headers(self.headers.items())
        if url.path == "/v1/executions":
            self.lookup(parse_qs(url.query).get("key", [""])[0])
            return
        what, number = self.world.script("read")
        if what == "stall":
            time.sleep(number)
        elif what == "status":
            self.reply(int(number), {"error": "scripted"})
            return
        elif what == "garbage":
            self.reply(200, b"<html>")
            return
        elif what == "drop":
            self.drop()
            return
        elif what == "redirect":
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            self.reply(int(number), {"status": "moved"}, {"Location": f"/v1/orders/777?was={token}"})
            return
        elif what == "huge":
            self.huge()
            return
        elif what == "failed":  # a status with a body that is no JSON
            self.reply(int(number), b"<html>")
            return
        elif what == "wide":  # fields of many bytes
            self.reply(200, {"status": "x" * 1024, "customer": "y" * 1024, "tenant": "z" * 60000})
            return
        order = self.world.order(url.path.rsplit("/", 1)[-1])
        if order is None:
            self.reply(404, {"error": "no such order"})
        elif what == "echo":
            self.reply(200, order | {"status": self.headers.get("Authorization", "")})
        else:
            self.reply(200, order)

    def lookup(self, key: str) -> None:
        what, number = self.world.script("lookup")
        if what == "slow":
            time.sleep(number)
        with self.world.lock:
            found = [World.answer(one) for one in self.world.effects if one["key"] == key]
        if what == "empty":
            found = []
        elif what == "pending":
            found = [one | {"status": "pending"} for one in found]
        elif what == "failed":
            found = [{"id": "re_failed", "status": "failed"}]
        elif what == "twice":
            found = [*found, *found]
        elif what == "status":
            self.reply(int(number), {"error": "scripted"})
            return
        self.reply(200, {"data": found})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.world.note(f"POST {self.path}")
        try:
            body = json.loads(raw)
        except ValueError:
            self.reply(400, {"error": "not JSON"})
            return
        key = self.headers.get("Idempotency-Key", "")
        digest = hashlib.sha256(raw).hexdigest()
        before = self.world.answers.get(key) if key else None
        if before is not None:
            if before[0] == digest:
                self.reply(200, before[1])
            else:
                self.reply(422, {"error": "the key belongs to another request"})
            return
        self.effect(key, digest, body)

    def effect(self, key: str, digest: str, body: Json) -> None:
        what, number = self.world.script("effect")
        # Nothing happens in these.
        if what == "status":
            self.reply(int(number), {"error": "scripted"})
        elif what == "retry":  # 429: come back in so many seconds
            self.reply(429, {"error": "later"}, {"Retry-After": str(int(number))})
        elif what == "drop":
            self.drop()
        else:
            if what == "slow":  # it happens after so many seconds
                time.sleep(number)
            self.done(what, number, self.world.execute(self.path, key, body, digest))

    def done(self, what: str, number: float, answer: Json) -> None:
        """It happened; the answer is another matter."""
        credential = self.headers.get("Authorization", "")
        if what == "executes_then_drops":
            self.drop()
        elif what == "executes_then":  # any status
            self.reply(int(number), {"error": "scripted"}, {"Location": "/elsewhere"} if number // 100 == 3 else None)
        elif what == "executes_then_stalls":
            time.sleep(number)
            self.reply(201, answer)
        elif what == "other_amount":
            self.reply(201, answer | {"amount": answer.get("amount", 0) * 10})
        elif what == "same_receipt":
            self.reply(201, answer | {"id": self.world.effects[0]["id"]})
        elif what == "truncated":
            text = json.dumps(answer).encode()
            self.send_response(201)
            self.send_header("Content-Length", str(len(text) + 10))
            self.end_headers()
            self.wfile.write(text)
            self.drop()
        elif what == "garbage":
            self.reply(201, b"\x00\xffnot JSON")
        elif what == "echo":
            token = credential.removeprefix("Bearer ")
            self.reply(201, answer | {"id": f"re {token}", "status": base64.b64encode(b"x" + token.encode()).decode()})
        elif what == "huge":
            self.huge()
        else:
            self.reply(201, answer)

    def huge(self) -> None:
        self.send_response(201)
        self.send_header("Content-Length", str(HUGE_BYTES))
        self.end_headers()
        try:
            for _ in range(HUGE_BYTES >> 16):
                self.wfile.write(b" " * 65536)
        except OSError:
            pass  # the client had enough
        self.drop()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no fault here."""


def main() -> None:
    options = argparse.ArgumentParser(description="a provider for tests")
    options.add_argument("--dir", type=Path, required=True)
    options.add_argument("--address", default="127.0.0.1")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--cert")
    options.add_argument("--key")
    given = options.parse_args()
    Handler.world = World(given.dir)
    server = Server((given.address, given.port), Handler)
    if given.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(given.cert, given.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    sys.stdout.write(f"port {server.server_address[1]}\n")  # in one piece: whoever reads it may close then
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
