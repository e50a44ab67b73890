# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server on a Unix socket or a loopback port that answers as a test says, rightly or wrongly."""

from __future__ import annotations

import json
import os
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

SANDBOX = "sb_0123456789abcdef"
TASK = "tk_0123456789abcdef"
JOB = "ex_0123456789abcdef"
BINARY = Path(os.environ["DEMILUNE_BUILD"]) / "src/cli/demilune"


@dataclass
class Seen:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[["Handler", Seen], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def address_string(self) -> str:
        return "local"

    def any(self) -> None:
        fake: Fake = self.server.fake  # type: ignore[attr-defined]
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length", "0"))
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        seen = Seen(self.command, unquote(parts.path), query, dict(self.headers.items()), self.rfile.read(length))
        fake.seen.append(seen)
        self.close_connection = True
        answer = fake.answers.get((self.command, seen.path))
        try:
            if answer is None:
                self.refuse(404, "not_found", f"no route for {self.command} {seen.path}")
            else:
                answer(self, seen)
        except (BrokenPipeError, ConnectionResetError):
            fake.cut.set()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = any

    def refuse(self, status: int, code: str, text: str) -> None:
        self.answer(status, {"error": text, "code": code, "request_id": "rq"})

    def answer(self, status: int, what: Any = None) -> None:
        body = b"" if what is None else json.dumps(what, ensure_ascii=False).encode()
        self.send_response(status)
        if what is not None:
            self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, name: str, what: Any) -> None:
        self.chunk(f"event: {name}\ndata: {json.dumps(what)}\n\n".encode())

    def end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


class UnixServer(ThreadingHTTPServer):
    address_family = socketserver.socket.AF_UNIX  # type: ignore[attr-defined]

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "local", 0


@dataclass
class Fake:
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    cut: threading.Event = field(default_factory=threading.Event)
    socket: str = ""
    port: int = 0

    def on(self, method: str, path: str, answer: Answer | int, what: Any = None) -> None:
        """Answers with a function, or with a status and JSON."""
        if isinstance(answer, int):
            status = answer
            self.answers[method, path] = lambda h, s: h.answer(status, what)
        else:
            self.answers[method, path] = answer

    def raw(self, method: str, path: str, data: bytes) -> None:
        self.answers[method, path] = lambda h, s: (h.wfile.write(data), h.wfile.flush(), None)[-1]

    def sandbox(self, what: dict[str, Any] | None = None) -> None:
        """Creation and end of a sandbox."""
        self.on("POST", "/v1/sandboxes", 201, {"id": SANDBOX, "task": TASK} | (what or {}))
        self.on("DELETE", f"/v1/sandboxes/{SANDBOX}", 204)

    def exec(self, events: list[tuple[str, Any]]) -> None:
        def answer(h: Handler, s: Seen) -> None:
            h.stream("text/event-stream; charset=utf-8", {"X-Demilune-Job": JOB})
            for name, what in events:
                h.event(name, what)
            h.end()

        self.on("POST", f"/v1/sandboxes/{SANDBOX}/exec/stream", answer)

    def asked(self, method: str, path: str) -> Seen:
        found = [s for s in self.seen if (s.method, s.path) == (method, path)]
        assert found, f"nobody asked {method} {path}, but {[(s.method, s.path) for s in self.seen]}"
        return found[-1]

    def wait_for(self, method: str, path: str, seconds: float = 10) -> Seen:
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            for s in self.seen:
                if (s.method, s.path) == (method, path):
                    return s
            time.sleep(0.01)
        raise AssertionError(f"nobody asked {method} {path} in {seconds} s")

    def environment(self, **more: str) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "DEMILUNE_SOCKET": self.socket} | more

    def start(self, *args: str, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([BINARY, *args], env=self.environment(**more.pop("env", {})),
                                stdin=more.pop("stdin", subprocess.DEVNULL), stdout=more.pop("stdout", subprocess.PIPE),
                                stderr=subprocess.PIPE, **more)

    def run(self, *args: str, env: dict[str, str] | None = None, input: bytes | None = None,
            code: int | None = 0) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run([str(BINARY), *args], env=self.environment(**(env or {})), timeout=60, check=False,
                              capture_output=True, input=b"" if input is None else input)
        assert code is None or done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done
