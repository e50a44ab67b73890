# SPDX-License-Identifier: Apache-2.0
"""The fake daemon, on a socket and on a loopback port at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from fake import Fake, Handler, UnixServer


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    fake = Fake(socket=str(tmp_path / "api.sock"))
    servers = [UnixServer(fake.socket, Handler), ThreadingHTTPServer(("127.0.0.1", 0), Handler)]  # type: ignore[arg-type]
    fake.port = servers[1].server_address[1]
    threads = []
    for server in servers:
        server.daemon_threads = True
        server.block_on_close = False
        server.fake = fake  # type: ignore[attr-defined]
        threads.append(threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True))
        threads[-1].start()
    yield fake
    for server in servers:
        server.shutdown()
        server.server_close()
