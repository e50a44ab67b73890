# SPDX-License-Identifier: Apache-2.0
"""A token is revoked while a command of its caller is being streamed: the stream ends, and the command is killed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from daemon import Daemon, wait_until


def test_revoked_while_streaming() -> None:
    with Daemon() as daemon:
        client = daemon.client
        token = client.request("POST", "/v1/me/tokens", {"tenant": "acme"}).expect(201).json["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        box = f"/v1/sandboxes/{client.create(bearer)['id']}"
        with ThreadPoolExecutor(1) as pool:
            stream = pool.submit(client.request, "POST", box + "/exec/stream", {"cmd": "sleep 600"}, bearer)
            wait_until("it runs", lambda: client.request("GET", box + "/jobs").json["items"])
            job = client.request("GET", box + "/jobs").json["items"][0]["id"]
            assert client.request("DELETE", f"/v1/me/tokens/{token[:12]}").status == 204
            began = time.monotonic()
            assert client.request("DELETE", f"{box}/jobs/{job}", headers=bearer).status == 401
            body = stream.result(30).body
            assert time.monotonic() - began < 12
            assert b"event: error" in body and b"revoked" in body
        ended = wait_until("it is killed", lambda: [row for row in client.request("GET", box + "/jobs").json["items"]
                                                   if row["reason"] != "running"])
        assert ended[0]["reason"] == "cancelled"
