# SPDX-License-Identifier: Apache-2.0
"""A caller that makes and ends sandboxes until it is killed: caller.py SOCKET. Writes a byte for each that was made."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from daemon import Client


def main() -> None:
    client = Client(Path(sys.argv[1]))
    body = json.dumps({"template": "python", "ttl_seconds": 2}).encode()
    number = 0
    while True:
        made = client.request("POST", "/v1/sandboxes", body, {"Content-Type": "application/json"})
        if made.status != 201:
            continue
        os.write(1, b".")
        number += 1
        if number % 5 == 0:
            client.exec(made.json["id"], "echo x >/tmp/x; sleep 0.01 &")
        client.kill(made.json["id"])


main()
