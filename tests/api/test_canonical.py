# SPDX-License-Identifier: Apache-2.0
"""
Canonical bytes through the whole api, against another program's idea of them (Python's): however a value is written down, it has one
sequence of bytes, which reads back as the value, and every change of it is another sequence. Seeded, so that a failure comes again.
"""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from conftest import Api

ALPHABET = ["a", "Z", "0", "_", " ", '"', "\\", "/", "\n", "\t", "\x7f", "\x80", "é", "e\u0301", "ß", "π", "\u2028", "\u202e",
            "\u200b", "\ufeff", "漢", "\ue000", "\U00010000", "\U0001f602", "\ufffd"]
INTEGERS = [0, 1, -1, 42, 2**31, -2**31, 2**53 - 1, -(2**53 - 1), 9007199254740990]


def text(r: random.Random) -> str:
    return "".join(r.choice(ALPHABET) for _ in range(r.randrange(12)))


def key(r: random.Random) -> str:
    return r.choice("abcXYZ") + "".join(r.choice("abZ09_") for _ in range(r.randrange(6)))


def value(r: random.Random, depth: int) -> Any:
    kind = r.randrange(7 if depth > 0 else 5)
    if kind == 5:
        return [value(r, depth - 1) for _ in range(r.randrange(4))]
    if kind == 6:
        return {key(r): value(r, depth - 1) for _ in range(r.randrange(5))}
    return [None, True, False, r.choice([*INTEGERS, r.randrange(-10**15, 10**15)]), text(r)][kind]


def written(r: random.Random, what: Any) -> str:
    """One of the many ways to write it: other order, white space, escapes."""
    space = r.choice(["", " ", "\n", "\t ", "\r\n"])
    if isinstance(what, dict):
        members = [f"{written(r, k)}{space}:{space}{written(r, v)}" for k, v in what.items()]
        r.shuffle(members)
        return "{" + space + f"{space},{space}".join(members) + space + "}"
    if isinstance(what, list):
        return "[" + space + f",{space}".join(written(r, v) for v in what) + space + "]"
    if isinstance(what, str):
        return '"' + "".join(escaped(r, c) for c in what) + '"'
    return json.dumps(what) if what != 0 or isinstance(what, bool) else r.choice(["0", "-0"])


def escaped(r: random.Random, c: str) -> str:
    if r.random() < 0.3:
        units = c.encode("utf-16-be")
        return "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))
    return json.dumps(c)[1:-1] if c in '"\\\n\t' else "\\/" if c == "/" and r.random() < 0.5 else c


def canonical(what: Any) -> bytes:
    return json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def bytes_of(api: Api, arguments: str) -> bytes:
    body = '{"task":"48221","operation":"echo","arguments":' + arguments + "}"
    answer = api.ask("POST", "/v1/proposals", body.encode(), Content_Type="application/json")
    assert answer.status == 201, (body, answer.body)
    return base64.b64decode(answer.json["record"], validate=True)


def changed(r: random.Random, what: Any) -> Any:
    """The same but for one thing somewhere in it."""
    if isinstance(what, dict) and what:
        name = r.choice(list(what))
        if r.random() < 0.3:
            return {k: v for k, v in what.items() if k != name} | {name + "x": what[name]}
        return what | {name: changed(r, what[name])}
    if isinstance(what, list) and what:
        i = r.randrange(len(what))
        return [*what[:i], changed(r, what[i]), *what[i + 1:]]
    others: list[Any] = [None, True, False, "", [], {}, 0, "0", {"a": None}, {"a": ""}, [None], [[]]]
    if isinstance(what, str):
        others += [what + "a", what + " ", what + "\n", "e\u0301" + what]
    if isinstance(what, int) and not isinstance(what, bool):
        others += [str(what), what - 1 if what > 0 else what + 1]
    return r.choice([one for one in others if canonical(one) != canonical(what)])


def test_one_value_has_one_sequence_of_bytes(api: Api) -> None:
    r = random.Random(48221)
    for _ in range(400):
        arguments = {key(r): value(r, 4) for _ in range(r.randrange(6))}
        want = canonical({"arguments": arguments, "note": "", "operation": "echo"})
        got = {bytes_of(api, written(r, arguments)) for _ in range(2)}
        assert got == {want}, arguments
        assert json.loads(want)["arguments"] == arguments


def test_every_change_is_another_sequence(api: Api) -> None:
    r = random.Random(7)
    for _ in range(400):
        arguments = {key(r): value(r, 3) for _ in range(1 + r.randrange(4))}
        other = changed(r, arguments)
        assert bytes_of(api, written(r, arguments)) != bytes_of(api, written(r, other)), (arguments, other)
