#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns body.def, route.def and answer.def into C, into the OpenAPI document and into the guide.

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


Answers = dict[str, list[list[str]]]


def load_answers() -> tuple[Bodies, Answers]:
    """Shapes by name, and (status, form, shape) by handler; each handler of route.def has one and no other has."""
    shapes: Bodies = {}
    answers: Answers = {}
    name = ""
    for word, args in rows(HERE / "answer.def"):
        if word == "SHAPE":
            name = args[0]
            shapes[name] = (args[1], [])
        elif word == "ANSWER":
            answers.setdefault(args[0], []).append(args[1:])
        elif word != "END":
            shapes[name][1].append((word, args))
    if shared := {*shapes, "error"} & set(load_bodies()):
        sys.exit(f"answer.def and body.def both have {', '.join(sorted(shared))}")
    handlers = {a[2] for _, a in rows(HERE / "route.def")}
    if handlers != set(answers):
        sys.exit(f"answer.def and route.def differ: {', '.join(sorted(handlers ^ set(answers)))}")
    return shapes, answers


SECONDS = ("SECONDS", "HOST_SECONDS")
EXTRAS = (*SECONDS, "IGNORED", "LATER", "OBJECT")
HOST_NOTE = "this host may allow less"
MEMBER = {"STR": "field_str", "NEED": "field_str", "INT": "field_int", "HOST_INT": "field_int", "BOOL": "field_bool", "ANY": "field_json",
          "MAP": "field_json", "LIST": "field_json", "OBJECT": "field_json"}
BANNER = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by src/api/generate.py from body.def and route.def. */\n"


def header(bodies: Bodies) -> str:
    out = [BANNER + '#pragma once\n\n#include "lib/json/fields.h"\n\nenum body_name {']
    out += [f"\tBODY_{name}," for name in bodies] + ["\tBODY_none,", "\tBODY_MAX = BODY_none", "};\n"]
    for name, (prose, fields) in bodies.items():
        out.append(f"/* {prose} */\nstruct body_{name} {{")
        for word, args in fields:
            if word in SECONDS:
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
    if word == "HOST_INT":
        return f'FIELD_INT({at}, .nullable = true, .min = {a[1]}, .max = {a[2]}, .note = "{HOST_NOTE}")'
    if word == "BOOL":
        return f"FIELD_BOOL({at}, .nullable = true)"
    if word == "ANY":
        return f"FIELD_OBJECT({at}, .required = true)"
    if word == "MAP":
        return (f"FIELD_STR_MAP({at}, .nullable = true, .max_entries = {a[1]}, .max_key_bytes = {a[2]}, "
                f".max = {a[3]})")
    if word == "LIST":
        return f"FIELD_STR_LIST({at}, .nullable = true, .min_entries = 1, .max_entries = {a[1]}, .max = {a[2]})"
    return f"FIELD_OBJECT({at}, .nullable = true)"


def extra_row(body: str, word: str, a: list[str]) -> str:
    if word in SECONDS:
        note = f'"{HOST_NOTE}"' if word == "HOST_SECONDS" else "NULL"
        return (f'{{EXTRA_SECONDS, "{a[0]}", offsetof(struct body_{body}, {a[0]}_ms), {a[1]}, {note}, NULL, '
                "BODY_none}")
    if word == "OBJECT":
        return f'{{EXTRA_OBJECT, "{a[0]}", offsetof(struct body_{body}, {a[0]}_in), 0, NULL, NULL, BODY_{a[1]}}}'
    kind = "EXTRA_LATER" if word == "LATER" else "EXTRA_IGNORED"
    return f'{{{kind}, "{a[0]}", 0, 0, NULL, "{a[1]}", BODY_none}}'


def source(bodies: Bodies) -> str:
    out = [BANNER + '#include "body_table.h"\n']
    for name, (_, fields) in bodies.items():
        plain = [field_row(name, w, a) for w, a in fields if w in MEMBER]
        extra = [extra_row(name, w, a) for w, a in fields if w in EXTRAS]
        names = [f'"{a[0]}"' for w, a in fields if w != "IGNORED"]
        out.append(f"static const struct field {name}_rows[] = {{\n" + "".join(f"\t{r},\n" for r in plain) + "};")
        out.append(f"static const struct extra {name}_extras[] = {{\n" + "".join(f"\t{r},\n" for r in extra) +
                   "\t{0} /* so that none is empty */\n};")
        out.append(f"static const char *const {name}_names[] = {{{', '.join(names)}}};\n")
    out.append("const struct body_table body_tables[BODY_MAX] = {")
    for name, (_, fields) in bodies.items():
        extras = sum(1 for w, _ in fields if w in EXTRAS)
        out.append(f"\t[BODY_{name}] = {{{name}_rows, ARRAY_LEN({name}_rows), {name}_extras, {extras}, "
                   f"{name}_names, ARRAY_LEN({name}_names), sizeof(struct body_{name})}},")
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
        elif word in ("INT", "HOST_INT"):
            s = {"type": ["integer", "null"], "minimum": int(a[1]), "maximum": int(a[2])}
        elif word == "BOOL":
            s = {"type": ["boolean", "null"]}
        elif word == "ANY":
            s = {"type": "object"}
        elif word == "MAP":
            s = {"type": ["object", "null"], "maxProperties": int(a[1]),
                 "additionalProperties": {"type": "string", "maxLength": int(a[3])}}
        elif word == "LIST":
            s = {"type": ["array", "null"], "minItems": 1, "maxItems": int(a[1]),
                 "items": {"type": "string", "maxLength": int(a[2])}}
        elif word == "OBJECT":
            s = {"$ref": f"#/components/schemas/{a[1]}"}
        elif word in SECONDS:
            s = {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": int(a[1])}
        else:
            s = {}
        s["description"] = a[-1] + (" (ignored)" if word == "IGNORED" else "")
        if word.startswith("HOST_"):
            s["description"] += f"; {HOST_NOTE} ({a[-2]} in its configuration)"
        if word == "LATER":
            s["description"] = f"null, empty or absent; all else answers 501: {a[-1]}"
        if word in ("NEED", "ANY"):
            required.append(a[0])
        properties[a[0]] = s
    done: dict[str, Any] = {"type": "object", "description": prose, "additionalProperties": False,
                            "properties": properties}
    if required:
        done["required"] = required
    return done


SCALAR: dict[str, dict[str, Any]] = {
    "TEXT": {"type": "string"}, "TIME": {"type": "string", "format": "date-time"}, "WHOLE": {"type": "integer"},
    "NUMBER": {"type": "number"}, "FLAG": {"type": "boolean"}, "ANY": {"type": "object"},
    "STRINGS": {"type": "array", "items": {"type": "string"}},
    "LABELS": {"type": "object", "additionalProperties": {"type": "string"}}}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def shape_schema(prose: str, fields: list[Row]) -> dict[str, Any]:
    properties = {}
    for word, a in fields:
        s = dict(SCALAR[word]) if word in SCALAR else ref(a[2])
        if word == "MANY":
            s = {"type": "array", "items": s}
        properties[a[0]] = {**s, "description": a[-1]}
    return {"type": "object", "description": prose, "properties": properties,
            "required": [a[0] for _, a in fields if a[1] == "MUST"]}


MEDIA = {"BYTES": "application/octet-stream", "TAR": "application/x-tar", "LINES": "text/plain",
         "NDJSON": "application/x-ndjson", "EVENTS": "text/event-stream"}
STATUS = {"101": "a WebSocket", "200": "done", "201": "made", "202": "begun", "204": "done; there is no body",
          "501": "this release cannot do it; the sentence says what can"}


def response(answer: dict[str, Any], form: str, shape: str) -> None:
    """One more form that an answer may have."""
    if form in ("NOTHING", "SOCKET"):
        return
    content = answer.setdefault("content", {})
    if form in MEDIA:
        content[MEDIA[form]] = {"schema": {"type": "string"}}
        return
    s: dict[str, Any] = {"type": "array", "items": {"type": "string"}} if form == "WORDS" else ref(shape)
    if form == "LIST":
        s = {"type": "array", "items": s}
    elif form == "PAGE":
        s = {"type": "object", "required": ["items", "more"], "properties": {
            "items": {"type": "array", "items": s},
            "more": {"type": "boolean", "description": "there is a next page"}}}
    old = content.get("application/json")
    content["application/json"] = {"schema": {"oneOf": [old["schema"], s]} if old else s}


def responses(answers: list[list[str]]) -> dict[str, Any]:
    done: dict[str, Any] = {}
    for status, form, shape in answers:
        response(done.setdefault(status, {"description": STATUS[status]}), form, shape)
    done["default"] = {"description": "a refusal", "content": {"application/json": {"schema": ref("error")}}}
    return done


BODY_TYPE = {"FEED": "application/octet-stream", "DROP": "*/*"}


def openapi(bodies: Bodies, version: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    shapes, answers = load_answers()
    for _, a in rows(HERE / "route.def"):
        method, path, handler, kind, body, scope, prose = a
        shown = path.replace("{...}", "{rest}")
        operation: dict[str, Any] = {
            "operationId": f"{handler}_{method.lower()}_{shown.count('/')}_{len(paths)}", "summary": prose,
            "responses": responses(answers[handler])}
        names = re.findall(r"\{(\w+)\}", shown)
        if names:
            operation["parameters"] = [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}}
                                       for n in names]
        if kind in ("JSON", "TYPED", "MAYBE"):
            operation["requestBody"] = {"required": kind != "MAYBE", "content": {
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
    schemas |= {name: shape_schema(*shapes[name]) for name in shapes}
    schemas["error"] = {"type": "object", "required": ["error", "code", "request_id"], "properties": {
        "error": {"type": "string", "description": "one sentence for a person"},
        "code": {"type": "string", "description": "stable; proto/errors.def"},
        "request_id": {"type": "string"},
        "denial": {"type": "string", "description": "the check of an action that failed (src/lib/action/check.def)"},
        "proposal": {"type": "string", "description": "identifier of the proposal that was denied"},
        "shown": {"type": "string", "description": "409 on a decision: the digest that came with it"},
        "digest": {"type": "string", "description": "409 on a decision: the digest that the proposal has"}}}
    return {"openapi": "3.1.0", "info": {"title": "Demilune", "version": version, "license": {
        "name": "Apache-2.0", "identifier": "Apache-2.0"}}, "security": [{"token": []}], "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}}


def bound(word: str, a: list[str]) -> str:
    """The type of a field of a body, and its bounds."""
    if word in ("STR", "NEED"):
        return f"string, {a[1]} to {a[2]} bytes" + (", required" if word == "NEED" else "")
    if word in ("INT", "HOST_INT"):
        return f"whole number, {a[1]} to {a[2]}"
    if word in SECONDS:
        return f"seconds above 0, at most {a[1]}"
    if word == "MAP":
        return f"object of at most {a[1]} strings; keys to {a[2]} bytes, values to {a[3]}"
    if word == "LIST":
        return f"array of 1 to {a[1]} strings of at most {a[2]} bytes"
    return {"BOOL": "true or false", "ANY": "object, required", "LATER": "empty", "IGNORED": "*ignored*"}[word]


def field_table(bodies: Bodies, body: str, path: str = "") -> list[str]:
    out: list[str] = []
    for word, a in bodies[body][1]:
        if word == "OBJECT":
            out += field_table(bodies, a[1], f"{path}{a[0]}.")
            continue
        what = a[-1] + (f"; ceiling: `{a[-2]}`" if word.startswith("HOST_") else "")
        out.append(f"| `{path}{a[0]}` | {bound(word, a)} | {what} |")
    return out


FORM = {"ONE": "[{0}](#{0})", "LIST": "array of [{0}](#{0})", "PAGE": "page of [{0}](#{0})", "NOTHING": "no body",
        "BYTES": "bytes", "TAR": "a tar archive", "LINES": "plain text", "NDJSON": "a record a line", "EVENTS": "events",
        "SOCKET": "WebSocket", "WORDS": "array of strings"}


def guide_routes(examples: dict[str, str]) -> list[str]:
    bodies = load_bodies()
    _, answers = load_answers()
    out, later, told = ["## Routes", ""], [], dict[str, str]()
    for _, (method, path, handler, kind, body, scope, prose) in ((w, tuple(a)) for w, a in rows(HERE / "route.def")):
        name = f"{method} {path}"
        if answers[handler][0][0] == "501":
            later.append(f"- `{name}`")
            continue
        out += [f"### {name}", "", prose[0].upper() + prose[1:] + "." + (" No token is needed." if scope == "PUBLIC" else "")]
        out += ["", "Answers " + ", or ".join(f"{s} {FORM[f].format(n)}" for s, f, n in answers[handler]) + "."]
        if kind == "FEED":
            out[-1] += " The body is bytes, streamed."
        if body != "none" and body in told:
            out += ["", f"Fields: those of `{told[body]}`."]
        elif body != "none":
            told[body] = name
            out += ["", "| field | type | what |", "|---|---|---|", *field_table(bodies, body)]
        if name in examples:
            out += ["", examples.pop(name)]
        out.append("")
    if examples:
        sys.exit(f"guide.md has an example of no route: {', '.join(examples)}")
    return [*out, "### Not in this release", "", "These answer 501 with a sentence that says what can be done instead.", "", *later, ""]


def guide_shapes() -> list[str]:
    shapes, _ = load_answers()
    out = ["## Answers", ""]
    for name, (prose, fields) in shapes.items():
        out += [f"### {name}", "", prose, ""]
        if fields:
            out += ["| member | type | what |", "|---|---|---|"]
        for word, a in fields:
            kind = {"ONE": f"[{a[2]}](#{a[2]})", "MANY": f"array of [{a[2]}](#{a[2]})", "TEXT": "string", "TIME": "time",
                    "WHOLE": "whole number", "NUMBER": "number", "FLAG": "true or false", "STRINGS": "array of strings",
                    "LABELS": "object of strings", "ANY": "object"}[word]
            out.append(f"| `{a[0]}` | {kind}{'' if a[1] == 'MUST' else ', or absent'} | {a[-1]} |")
        if fields:
            out.append("")
    return out[:-1]


def guide() -> str:
    prose, _, rest = (HERE / "guide.md").read_text().partition("@errors\n@routes\n@examples\n")
    examples = {}
    for one in re.split(r"^== ", rest, flags=re.M)[1:]:
        name, _, text = one.partition("\n")
        examples[name] = text.strip().replace("\n```sh", "\n\n```sh")
    errors = ["| status | code | what |", "|---|---|---|"]
    errors += [f"| {a[2]} | `{a[3]}` | {a[4]} |" for _, a in rows(HERE.parent.parent / "proto" / "errors.def")]
    made = "<!-- Made by src/api/generate.py --guide from guide.md and the tables in src/api. -->\n\n"
    return made + prose + "\n".join([*errors, "", *guide_routes(examples), *guide_shapes()]) + "\n"


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
        print("1..1\n" + ("ok" if same else "not ok") + " 1 - the guide is what the tables say")
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
