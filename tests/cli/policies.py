# SPDX-License-Identifier: Apache-2.0
"""Documents of policies as the compiler makes them, and what the daemon says of one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

BUDGETS = {"brokered": 200, "bytes_in": 2 << 30, "bytes_out": 64 << 20, "connections": 10000, "handshakes": 5000, "names": 100,
           "requests": 20000}
DOCS = {"host": "docs.example.com", "kind": "fetch", "methods": ["GET", "HEAD"], "path": "/help/**", "port": 443, "query": ["lang"],
        "response_max": 8 << 20, "tls": True}
TRACK = {"credential": {"header": "Authorization", "prefix": "Bearer ", "secret": "carrier"}, "fields": ["eta", "status"],
         "host": "api.carrier.example", "kind": "brokered", "methods": ["GET"], "path": "/v1/track/*", "port": 443, "query": ["number"],
         "response_max": 256 << 10}
MIRROR = {"address": "10.0.3.7", "host": "mirror.internal", "kind": "tcp", "port": 873}
PINNED = {"host": "pinned.example", "kind": "passthrough", "port": 443}


def document(*rules: dict[str, Any], name: str = "support", **more: Any) -> dict[str, Any]:
    return {"budgets": BUDGETS | more.pop("budgets", {}), "name": name, "rules": list(rules), "v": 1} | more


def digest(policy: dict[str, Any]) -> str:
    text = json.dumps(policy, sort_keys=True, separators=(",", ":")).encode()
    return "sha256:" + hashlib.sha256(b"demilune-egress-v1\0" + text).hexdigest()


def row(policy: dict[str, Any], current: bool = True, sandboxes: int = 0) -> dict[str, Any]:
    """As the daemon answers."""
    return {"name": policy["name"], "digest": digest(policy), "current": current, "sandboxes": sandboxes, "policy": policy}


SUPPORT = document(DOCS, TRACK, MIRROR, PINNED)
