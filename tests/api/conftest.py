# SPDX-License-Identifier: Apache-2.0
"""The api as its own process in front of a stand-in of the engine (fake_engine.c)."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from described import Described

BUILD = Path(os.environ.get("DEMILUNE_BUILD", Path(__file__).resolve().parents[2] / "build"))
DESCRIBED = Described(json.loads((BUILD / "src/api/openapi.json").read_text()))


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the local socket."""

    def __init__(self, path: str, timeout: float = 15) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    """Status, header fields and bytes of one answer."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Api:
    """A running pair of stand-in and api."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "api.sock")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = (folder / "log").open("w+b")
        self.process = subprocess.Popen(
            [BUILD / "tests/api/fake-engine", BUILD / "src/api/demilune-api", self.path, f"127.0.0.1:{self.port}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log)
        for _ in range(100):
            try:
                if self.ask("GET", "/healthz").status == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(self.text())

    def text(self) -> str:
        self.log.seek(0)
        return self.log.read().decode()

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None, tcp: bool = False,
            wait: float = 15, **fields: str) -> Answer:
        connection: http.client.HTTPConnection = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=wait) if tcp
            else UnixConnection(self.path, timeout=wait))
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, body=data, headers=headers)
            answer = Answer(connection.getresponse())
            kind = answer.headers["Content-Type"]
            DESCRIBED.check(method, path, answer.status, kind, answer.json if kind == "application/json" and method != "HEAD" else None)
            return answer
        finally:
            connection.close()

    def raw(self, tcp: bool = False) -> socket.socket:
        if tcp:
            return socket.create_connection(("127.0.0.1", self.port), timeout=15)
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(15)
        plain.connect(self.path)
        return plain

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=20)


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("api")
    running = Api(folder)
    yield running
    status = running.stop()
    assert status == 0, running.text()
    assert "Sanitizer" not in running.text(), running.text()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Api]:
    """One of its own, for tests that break something."""
    running = Api(tmp_path)
    yield running
    running.stop()
    assert "Sanitizer" not in running.text(), running.text()


@pytest.fixture
def sandbox(api: Api) -> Iterator[str]:
    made = api.ask("POST", "/v1/sandboxes", {"template": "code-interpreter"})
    assert made.status == 201, made.body
    path = f"/v1/sandboxes/{made.json['id']}"
    yield path
    assert api.ask("DELETE", path).status == 204
