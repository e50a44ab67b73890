# SPDX-License-Identifier: Apache-2.0
"""Messages of the edges, from the tables of proto/: what the tests say in the place of engine, dialer, broker and supervisor."""

import array
import importlib.util
import socket
import struct
import sys
from pathlib import Path
from typing import Any

PROTO = Path(__file__).resolve().parents[2] / "proto" / "generate.py"
_spec = importlib.util.spec_from_file_location("proto_generate", PROTO)
assert _spec is not None and _spec.loader is not None
_generate = importlib.util.module_from_spec(_spec)
sys.modules["proto_generate"] = _generate
_spec.loader.exec_module(_generate)
TABLES = _generate.load()
NUMBER = {m.name: i for i, m in enumerate(TABLES.messages)}
SIZE = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "bool": "?"}


def _put(f: Any, v: Any) -> bytes:
    if f.type in SIZE:
        return struct.pack(">" + SIZE[f.type], v)
    if f.type in TABLES.enums:
        return bytes([[w for _, w in TABLES.enums[f.type].values].index(v)])
    if f.type in TABLES.structs:
        return b"".join(_put(x, v[x.name]) for x in TABLES.structs[f.type].fields)
    if f.type in ("id", "digest"):
        return bytes(v)
    raw = v.encode() if isinstance(v, str) else bytes(v)
    if f.type == "text":
        return raw.ljust(f.bound, b"\0")
    return struct.pack(">I", len(raw)) + raw


def _get(f: Any, body: bytes, at: int) -> tuple[Any, int]:
    if f.type in SIZE:
        n = struct.calcsize(">" + SIZE[f.type])
        return struct.unpack_from(">" + SIZE[f.type], body, at)[0], at + n
    if f.type in TABLES.enums:
        return TABLES.enums[f.type].values[body[at]][1], at + 1
    if f.type in TABLES.structs:
        ret = {}
        for x in TABLES.structs[f.type].fields:
            ret[x.name], at = _get(x, body, at)
        return ret, at
    if f.type in ("id", "digest"):
        n = 10 if f.type == "id" else 32
        return body[at : at + n], at + n
    if f.type == "text":
        return body[at : at + f.bound].rstrip(b"\0").decode(), at + f.bound
    n = struct.unpack_from(">I", body, at)[0]
    raw = body[at + 4 : at + 4 + n]
    return (raw.decode() if f.type == "str" else raw), at + 4 + n


def send(sock: socket.socket, message: str, tag: int = 0, fds: tuple[int, ...] = (), /, **fields: Any) -> None:
    m = TABLES.messages[NUMBER[message]]
    body = b"".join(_put(f, fields[f.name]) for f in m.fields)
    head = struct.pack(">HHIQ", NUMBER[message], len(fds), len(body), tag)
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([head + body], control)


def receive(sock: socket.socket) -> tuple[str, int, dict[str, Any]] | None:
    """None: the other end closed. A reset stands once in front of what it had said before (src/lib/ipc/datagram.c)."""
    try:
        raw = sock.recv(1 << 18)
    except ConnectionResetError:
        return receive(sock)
    except OSError:
        return None
    if not raw:
        return None
    number, _, _, tag = struct.unpack_from(">HHIQ", raw)
    m = TABLES.messages[number]
    at, ret = 16, {}
    for f in m.fields:
        ret[f.name], at = _get(f, raw, at)
    assert at == len(raw), m.name
    return m.name, tag, ret
