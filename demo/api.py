# SPDX-License-Identifier: Apache-2.0
"""The API of the daemon over its Unix socket, as the demo uses it: one request, one answer, standard library only."""

import http.client
import json
import socket
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ApiError(Exception):
    """An answer that the story does not go on with."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def want(self, *statuses: int) -> Any:
        """The object of an answer that has one of these statuses."""
        if self.status not in statuses:
            raise ApiError(f"HTTP {self.status}: {self.body[:500].decode(errors='replace')}")
        return self.json() if self.body else {}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


@dataclass(frozen=True)
class Api:
    """A caller: with a token its tenant's, without one the local user's (root: administrator)."""

    path: Path
    token: str = ""
    timeout: float = 120

    def call(self, method: str, target: str, body: Any = None, **query: str) -> Answer:
        """`body`: bytes as they are, anything else as JSON."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        data: bytes | None = None
        if isinstance(body, bytes):
            data, headers["Content-Type"] = body, "application/octet-stream"
        elif body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        if query:
            target += "?" + urllib.parse.urlencode(query)
        connection = UnixConnection(self.path, self.timeout)
        try:
            connection.request(method, target, data, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()
