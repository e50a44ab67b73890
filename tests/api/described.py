# SPDX-License-Identifier: Apache-2.0
"""Holds answers of the api against its own OpenAPI document."""

from __future__ import annotations

import re
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {"object": (dict,), "array": (list,), "string": (str,), "integer": (int,),
                                      "number": (int, float), "boolean": (bool,), "null": (type(None),)}


class Described:
    """The document, and what was seen of it."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.seen: set[tuple[str, str, str]] = set()
        self.paths = [(re.compile("/".join(".+" if s == "{rest}" else "[^/]+" if s.startswith("{") else re.escape(s)
                                           for s in path.split("/"))), path) for path in document["paths"]]
        self.paths.sort(key=lambda one: one[1].count("{"))

    def faults(self, schema: dict[str, Any], value: Any, where: str) -> list[str]:
        """What of the value is not as the schema says."""
        if "oneOf" in schema:
            told = [self.faults(s, value, where) for s in schema["oneOf"]]
            return [] if sum(not t for t in told) == 1 else told[0]
        if "$ref" in schema:
            return self.faults(self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], value, where)
        want = schema.get("type", [])
        if want and (not isinstance(value, TYPES[want]) or (isinstance(value, bool) and want != "boolean")):
            return [f"{where} is no {want}: {value!r}"]
        found = []
        if want == "array":
            for i, item in enumerate(value):
                found += self.faults(schema["items"], item, f"{where}[{i}]")
        if want == "object":
            members, more = schema.get("properties", {}), schema.get("additionalProperties")
            found += [f"{where}.{name} is missing" for name in schema.get("required", []) if name not in value]
            for name, item in value.items():
                if name in members or isinstance(more, dict):
                    found += self.faults(members.get(name, more), item, f"{where}.{name}")
                elif members:
                    found.append(f"{where}.{name} is not described")
        return found

    def check(self, method: str, target: str, status: int, kind: str | None, body: Any) -> None:
        """Fails unless an answer is one that the document tells. A body is given when it is JSON."""
        path = target.partition("?")[0]
        name = next((shown for pattern, shown in self.paths if pattern.fullmatch(path)), None)
        operation = self.document["paths"].get(name, {}).get(method.lower())
        if operation is None:
            assert status >= 400, f"{method} {path} answers {status} and is not described"
            return
        told = operation["responses"].get(str(status))
        self.seen.add((method, str(name), str(status) if told else "default"))
        assert told or status >= 400, f"{method} {name} answers {status}, which is not described"
        content = (told or operation["responses"]["default"]).get("content", {})
        media = None if kind is None else kind.partition(";")[0]
        assert (media is None and not content) or media in content, f"{method} {name} {status}: {kind}"
        if body is None or media != "application/json":
            return
        schema = content[media]["schema"]
        if told is None or status == 501:
            body = {k: v for k, v in body.items() if k in ("error", "code", "request_id")}
        faults = self.faults(schema, body, "answer")
        assert not faults, f"{method} {name} {status}: {faults[:5]}"
