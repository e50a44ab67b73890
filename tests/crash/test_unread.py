# SPDX-License-Identifier: Apache-2.0
"""Callers that do not read what they asked for: the api's memory has a bound, and others are served."""

from __future__ import annotations

import json
import socket
import time

from daemon import Daemon, read, wait_until

LOUD = "head -c 4194304 /dev/zero | tr '\\0' '\\1'; head -c 4194304 /dev/zero | tr '\\0' '\\1' >&2"
HELD_KB = 450_000  # limits.def: HELD_BYTES, one answer in the making beside it, and the process itself


def memory_kb(pid: int) -> int:
    return next(int(line.split()[1]) for line in read(f"/proc/{pid}/status").splitlines() if line.startswith("VmRSS:"))


def test_unread_answers() -> None:
    with Daemon() as daemon:
        client = daemon.client
        token = client.request("POST", "/v1/me/tokens", {"tenant": "acme"}).expect(201).json["token"]
        bearer = f"Authorization: Bearer {token}\r\n"
        box = client.create({"Authorization": f"Bearer {token}"})["id"]
        own = client.create()["id"]
        api = daemon.by_role("api")
        body = json.dumps({"cmd": LOUD, "output_limit": 4194304}).encode()
        head = f"POST /v1/sandboxes/{box}/exec HTTP/1.1\r\nHost: x\r\n{bearer}Content-Length: {len(body)}\r\n\r\n"
        deaf = []
        for _ in range(16):
            plain = socket.socket(socket.AF_UNIX)
            plain.connect(str(daemon.run / "api.sock"))
            plain.sendall(head.encode() + body)
            deaf.append(plain)
        worst, end = 0, time.monotonic() + 12
        while time.monotonic() < end:
            worst = max(worst, memory_kb(api[0]))
            assert client.exec(own, "echo other")["stdout"] == "other\n"
            time.sleep(0.05)
        assert 50_000 < worst < HELD_KB, worst
        begun = [plain.recv(12) for plain in deaf]
        assert {line for line in begun} == {b"HTTP/1.1 200", b"HTTP/1.1 413"} or b"HTTP/1.1 503" in begun, begun
        for plain in deaf:
            plain.close()
        headers = {"Authorization": f"Bearer {token}"}
        again = wait_until("it is given back", lambda: client.request(
            "POST", f"/v1/sandboxes/{box}/exec", body, headers).status == 200, 20)
        assert again and daemon.by_role("api") == api
