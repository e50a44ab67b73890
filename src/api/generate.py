#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns body.def and route.def into C and into the OpenAPI document.

    generate.py --out DIR --version V    writes body_gen.h, body_gen.c, text_gen.c and openapi.json
    generate.py --guide                  prints docs/guide/api.md
    generate.py --check FILE             says in TAP whether FILE is that
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Row = tuple[str, list[str]]


def rows(path: Path) -> list[Row]:
    """(word, arguments) of each row of a table."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    found: list[Row] = []
    for line in text.splitlines():
        line = line.strip()
        if not line:
            continue
        if line == "END":
            found.append(("END", []))
            continue
        match = re.match(r"^(\w+)\((.*)\)$", line)
        if not match:
            sys.exit(f"{path.name}: not a row: {line}")
        args = [a.strip().strip('"') for a in re.findall(r'\s*("[^"]*"|[^,]+)', match.group(2))]
        found.append((match.group(1), [a for a in args if a]))
    return found


Bodies = dict[str, tuple[str, list[Row]]]


def load_bodies() -> Bodies:
    bodies: Bodies = {}
    name = ""
    for word, args in rows(HERE / "body.def"):
        if word == "BODY":
            name = args[0]
            bodies[name] = (args[1], [])
        elif word != "END":
            bodies[name][1].append((word, args))
    return bodies


MEMBER = {"STR": "field_str", "NEED": "field_str", "INT": "field_int", "BOOL": "field_bool",
          "MAP": "field_json", "LIST": "field_json", "OBJECT": "field_json"}
BANNER = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by src/api/generate.py from body.def and route.def. */\n"


def header(bodies: Bodies) -> str:
    out = [BANNER + '#pragma once\n\n#include "lib/json/fields.h"\n\nenum body_name {']
    out += [f"\tBODY_{name}," for name in bodies] + ["\tBODY_none,", "\tBODY_MAX = BODY_none", "};\n"]
    for name, (prose, fields) in bodies.items():
        out.append(f"/* {prose} */\nstruct body_{name} {{")
        for word, args in fields:
            if word == "SECONDS":
                out.append(f"\tstruct field_int {args[0]}_ms;")
            elif word in MEMBER:
                out.append(f"\tstruct {MEMBER[word]} {args[0]};")
            if word == "OBJECT":
                out.append(f"\tstruct body_{args[1]} {args[0]}_in;")
        out.append("};\n")
    return "\n".join(out)


def field_row(body: str, word: str, a: list[str]) -> str:
    at = f'"{a[0]}", struct body_{body}, {a[0]}'
    if word == "STR":
        return f"FIELD_STR({at}, .nullable = true, .min = {a[1]}, .max = {a[2]})"
    if word == "NEED":
        return f"FIELD_STR({at}, .required = true, .min = {a[1]}, .max = {a[2]})"
    if word == "INT":
        return f"FIELD_INT({at}, .nullable = true, .min = {a[1]}, .max = {a[2]})"
    if word == "BOOL":
        return f"FIELD_BOOL({at}, .nullable = true)"
    if word == "MAP":
        return (f"FIELD_STR_MAP({at}, .nullable = true, .max_entries = {a[1]}, .max_key_bytes = {a[2]}, "
                f".max = {a[3]})")
    if word == "LIST":
        return f"FIELD_STR_LIST({at}, .nullable = true, .min_entries = 1, .max_entries = {a[1]}, .max = {a[2]})"
    return f"FIELD_OBJECT({at}, .nullable = true)"


def extra_row(body: str, word: str, a: list[str]) -> str:
    if word == "SECONDS":
        return f'{{EXTRA_SECONDS, "{a[0]}", offsetof(struct body_{body}, {a[0]}_ms), {a[1]}, NULL, BODY_none}}'
    if word == "OBJECT":
        return (f'{{EXTRA_OBJECT, "{a[0]}", offsetof(struct body_{body}, {a[0]}_in), 0, NULL, BODY_{a[1]}}}')
    kind = "EXTRA_LATER" if word == "LATER" else "EXTRA_IGNORED"
    return f'{{{kind}, "{a[0]}", 0, 0, "{a[1]}", BODY_none}}'


def source(bodies: Bodies) -> str:
    out = [BANNER + '#include "body_table.h"\n']
    for name, (_, fields) in bodies.items():
        plain = [field_row(name, w, a) for w, a in fields if w in MEMBER]
        extra = [extra_row(name, w, a) for w, a in fields if w in ("SECONDS", "IGNORED", "LATER", "OBJECT")]
        out.append(f"static const struct field {name}_rows[] = {{\n" + "".join(f"\t{r},\n" for r in plain) + "};")
        out.append(f"static const struct extra {name}_extras[] = {{\n" + "".join(f"\t{r},\n" for r in extra) +
                   "\t{0} /* so that none is empty */\n};\n")
    out.append("const struct body_table body_tables[BODY_MAX] = {")
    for name, (_, fields) in bodies.items():
        extras = sum(1 for w, _ in fields if w in ("SECONDS", "IGNORED", "LATER", "OBJECT"))
        out.append(f"\t[BODY_{name}] = {{{name}_rows, ARRAY_LEN({name}_rows), {name}_extras, {extras}, "
                   f"sizeof(struct body_{name})}},")
    out.append("};\n")
    return "\n".join(out)


def schema(bodies: Bodies, name: str) -> dict[str, Any]:
    prose, fields = bodies[name]
    properties: dict[str, Any] = {}
    required = []
    for word, a in fields:
        s: dict[str, Any]
        if word in ("STR", "NEED"):
            s = {"type": "string" if word == "NEED" else ["string", "null"], "maxLength": int(a[2])}
        elif word == "INT":
            s = {"type": ["integer", "null"], "minimum": int(a[1]), "maximum": int(a[2])}
        elif word == "BOOL":
            s = {"type": ["boolean", "null"]}
        elif word == "MAP":
            s = {"type": ["object", "null"], "maxProperties": int(a[1]),
                 "additionalProperties": {"type": "string", "maxLength": int(a[3])}}
        elif word == "LIST":
            s = {"type": ["array", "null"], "minItems": 1, "maxItems": int(a[1]),
                 "items": {"type": "string", "maxLength": int(a[2])}}
        elif word == "OBJECT":
            s = {"$ref": f"#/components/schemas/{a[1]}"}
        elif word == "SECONDS":
            s = {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": int(a[1])}
        else:
            s = {}
        s["description"] = a[-1] + (" (ignored)" if word == "IGNORED" else "")
        if word == "LATER":
            s["description"] = f"null, empty or absent; all else answers 501: {a[-1]}"
        if word == "NEED":
            required.append(a[0])
        properties[a[0]] = s
    done: dict[str, Any] = {"type": "object", "description": prose, "additionalProperties": False,
                            "properties": properties}
    if required:
        done["required"] = required
    return done


BODY_TYPE = {"FEED": "application/octet-stream", "DROP": "*/*"}


def openapi(bodies: Bodies, version: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for _, a in rows(HERE / "route.def"):
        method, path, handler, kind, body, scope, prose = a
        shown = path.replace("{...}", "{rest}")
        operation: dict[str, Any] = {
            "operationId": f"{handler}_{method.lower()}_{shown.count('/')}_{len(paths)}", "summary": prose,
            "responses": {"default": {"description": "the answer, or an error", "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/error"}}}}}}
        names = re.findall(r"\{(\w+)\}", shown)
        if names:
            operation["parameters"] = [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}}
                                       for n in names]
        if kind in ("JSON", "MAYBE"):
            operation["requestBody"] = {"required": kind == "JSON", "content": {
                "application/json": {"schema": {"$ref": f"#/components/schemas/{body}"}}}}
        elif kind in BODY_TYPE:
            operation["requestBody"] = {"content": {BODY_TYPE[kind]: {}}}
        if scope == "PUBLIC":
            operation["security"] = []
        methods = ["get", "put", "post", "delete", "patch"] if method == "ANY" else [method.lower()]
        for m in methods:
            if m == "get" and "requestBody" in operation:
                paths.setdefault(shown, {})[m] = {k: v for k, v in operation.items() if k != "requestBody"}
            else:
                paths.setdefault(shown, {})[m] = operation
    schemas = {name: schema(bodies, name) for name in bodies}
    schemas["error"] = {"type": "object", "required": ["error", "code", "request_id"], "properties": {
        "error": {"type": "string", "description": "one sentence for a person"},
        "code": {"type": "string", "description": "stable; proto/errors.def"},
        "request_id": {"type": "string"}}}
    return {"openapi": "3.1.0", "info": {"title": "Demilune", "version": version, "license": {
        "name": "Apache-2.0", "identifier": "Apache-2.0"}}, "security": [{"token": []}], "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}}


def guide() -> str:
    out = ["# The HTTP API", "", "Made by `src/api/generate.py --guide` from `src/api/route.def`; bodies and their fields: "
           "`GET /openapi.json`.", "", "| method | path | body | what |", "|---|---|---|---|"]
    for _, (method, path, _, kind, body, scope, prose) in ((w, tuple(a)) for w, a in rows(HERE / "route.def")):
        shown = {"NONE": "", "FEED": "bytes", "DROP": ""}.get(kind, body)
        note = " (no token needed)" if scope == "PUBLIC" else ""
        out.append(f"| {method} | `{path}` | {shown} | {prose}{note} |")
    return "\n".join(out) + "\n"


def c_bytes(name: str, text: str) -> str:
    data = text.encode()
    lines = [", ".join(str(b) for b in data[i:i + 24]) for i in range(0, len(data), 24)]
    return (f"\nconst unsigned char {name}[] = {{\n\t" + ",\n\t".join(lines) +
            f"}};\nconst size_t {name}_bytes = sizeof({name});\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="tables of the api to C, OpenAPI and Markdown")
    parser.add_argument("--out")
    parser.add_argument("--version", default="0")
    parser.add_argument("--guide", action="store_true")
    parser.add_argument("--check", type=Path)
    arguments = parser.parse_args()
    if arguments.guide:
        print(guide(), end="")
        return 0
    if arguments.check:
        same = arguments.check.read_text() == guide()
        print("1..1\n" + ("ok" if same else "not ok") + " 1 - the guide is what route.def says")
        return 0 if same else 1
    bodies = load_bodies()
    out = Path(arguments.out)
    text = json.dumps(openapi(bodies, arguments.version), separators=(",", ":"))
    (out / "body_gen.h").write_text(header(bodies))
    (out / "body_gen.c").write_text(source(bodies))
    (out / "openapi.json").write_text(text)
    (out / "text_gen.c").write_text(BANNER + '#include "text.h"\n' + c_bytes("openapi_json", text) +
                                    c_bytes("repl_driver", (HERE / "repl_driver.py").read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
