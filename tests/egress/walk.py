# SPDX-License-Identifier: Apache-2.0
"""Runs inside of a sandbox, with Python's standard library only: takes the steps of a file (test_chance.py), sixteen at a time, and says for
each the status of the first answer, or 0. A step: connect to dial:port, with `connect` speak to the proxy first, with `sni` TLS, send, hear."""

import base64
import concurrent.futures
import json
import socket
import ssl
import sys
from typing import Any

context = ssl.create_default_context()
context.check_hostname = False


def head_of(sock: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        data = sock.recv(4096)
        if not data:
            break
        got += data
    return got


def take(step: dict[str, Any]) -> int:
    got = b""
    try:
        sock: socket.socket = socket.create_connection((step["dial"], step["port"]), 5)
    except (OSError, UnicodeError):
        return 0
    try:
        sock.settimeout(5)
        if "connect" in step:
            sock.sendall(base64.b64decode(step["connect"]))
            got = head_of(sock)
            if not got.startswith(b"HTTP/1.1 200"):
                return int(got[9:12]) if got[9:12].isdigit() else 0
        if step["sni"] is not None:
            sock = context.wrap_socket(sock, server_hostname=step["sni"] or None)
        sock.sendall(base64.b64decode(step["send"]))
        sock.settimeout(0.3)
        got = b""
        while len(got) < 65536:
            data = sock.recv(65536)
            if not data:
                break
            got += data
    except (OSError, UnicodeError, ValueError):
        pass
    finally:
        sock.close()
    return int(got[9:12]) if got[9:12].isdigit() else 0


with open(sys.argv[1]) as steps, concurrent.futures.ThreadPoolExecutor(16) as pool:
    print(json.dumps(list(pool.map(take, json.load(steps)))))
