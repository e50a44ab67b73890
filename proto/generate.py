#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the tables of this folder into C.

    generate.py --out DIR    check the tables and write proto_gen.h, proto_gen.c and, for tests, proto_samples.* to DIR

Used by the build and by the checks in tools/. A fault in a table ends with its file and line.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIXED_EDGES = {"ENGINE_SUPERVISOR", "SUPERVISOR_RELAY", "SUPERVISOR_API", "SUPERVISOR_BROKER", "SUPERVISOR_DIALER", "BROKER_DIALER",
    "CONFIG_SUPERVISOR", "SUPERVISOR_GATEWAY", "GATEWAY_DIALER"}
SCALARS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i32": 4, "i64": 8}
MESSAGE_MAX = 212_992 - 64  # default SO_SNDBUF of Linux less its bookkeeping
FRAME_MAX = 65_536 - 12

ROW = re.compile(r'^\s*(\w+)\((.*)\)\s*$')


class Fault(Exception):
    """A fault in a table, with its place."""


@dataclass
class Field:
    type: str
    name: str
    bound: int = 0
    count: int = 0


@dataclass
class Struct:
    name: str
    prose: str
    place: str
    fields: list[Field] = field(default_factory=list)


@dataclass
class Message(Struct):
    edge: str = ""
    sender: str = ""
    fds: int = 0


@dataclass
class Edge:
    name: str
    a: str
    b: str
    prose: str


@dataclass
class Enum:
    name: str
    prose: str
    values: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Tables:
    edges: dict[str, Edge] = field(default_factory=dict)
    enums: dict[str, Enum] = field(default_factory=dict)
    structs: dict[str, Struct] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    frames: list[Message] = field(default_factory=list)
    errors: list[tuple[str, int, int, str, str]] = field(default_factory=list)
    fds: list[tuple[str, str, int, str]] = field(default_factory=list)


def rows(path: Path) -> list[tuple[str, str, list[str]]]:
    """(place, word, arguments) of each row of a table."""
    text = re.sub(r'/\*.*?\*/', lambda m: "\n" * m.group(0).count("\n"), path.read_text(), flags=re.S)
    found: list[tuple[str, str, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{path.name}:{number}"
        if not line.strip():
            continue
        if line.strip() == "END":
            found.append((place, "END", []))
            continue
        match = ROW.match(line)
        if not match:
            raise Fault(f"{place}: not a row: {line.strip()}")
        args = [a.strip().strip('"') for a in re.findall(r'"[^"]*"|[^,]+', match.group(2))]
        found.append((place, match.group(1), [a for a in args if a != ""]))
    return found


def load() -> Tables:
    t = Tables()
    for _, _, a in rows(HERE / "edges.def"):
        t.edges[a[0]] = Edge(a[0], a[1], a[2], a[3])
    enum: Enum | None = None
    for _, word, a in rows(HERE / "enums.def"):
        if word == "ENUM":
            enum = Enum(a[0], a[1])
            t.enums[a[0]] = enum
        elif word == "VALUE" and enum:
            enum.values.append((a[0], a[1]))
    for _, _, a in rows(HERE / "errors.def"):
        t.errors.append((a[0], int(a[1]), int(a[2]), a[3], a[4]))
    for _, _, a in rows(HERE / "fds.def"):
        t.fds.append((a[0], a[1], int(a[2]), a[3]))
    load_messages(t, HERE / "messages.def")
    load_messages(t, HERE / "channel.def")
    return t


def load_messages(t: Tables, path: Path) -> None:
    current: Struct | None = None
    for place, word, a in rows(path):
        if word == "STRUCT":
            current = Struct(a[0], a[1], place)
            t.structs[a[0]] = current
        elif word == "MESSAGE":
            if a[1] not in t.edges:
                raise Fault(f"{place}: no edge {a[1]} in edges.def")
            if a[2] not in (t.edges[a[1]].a, t.edges[a[1]].b):
                raise Fault(f"{place}: {a[2]} is not an end of {a[1]}")
            message = Message(a[0], a[4], place, edge=a[1], sender=a[2], fds=int(a[3]))
            t.messages.append(message)
            current = message
        elif word == "FRAME":
            message = Message(a[0], a[2], place, sender=a[1])
            t.frames.append(message)
            current = message
        elif word == "FIELD" and current is not None:
            f = Field(a[0], a[1], *(int(x) for x in a[2:]))
            check_field(t, place, current, f)
            current.fields.append(f)
        elif word == "END":
            if isinstance(current, Message):
                check_size(t, current)
            current = None
        else:
            raise Fault(f"{place}: {word} is out of place")


def check_field(t: Tables, place: str, owner: Struct, f: Field) -> None:
    known = f.type in SCALARS or f.type in ("bool", "id", "digest", "text", "texts", "u16s", "str", "blob")
    if not known and f.type not in t.enums and f.type not in t.structs:
        raise Fault(f"{place}: unknown type {f.type}")
    if f.type in ("text", "u16s", "str", "blob") and f.bound <= 0:
        raise Fault(f"{place}: {f.type} needs a bound")
    if f.type == "texts" and (f.bound <= 0 or f.count <= 0):
        raise Fault(f"{place}: texts needs a length and a count")
    variable = f.type in ("str", "blob")
    if variable and not isinstance(owner, Message):
        raise Fault(f"{place}: a STRUCT has fixed size")
    if variable and isinstance(owner, Message) and owner.edge in FIXED_EDGES:
        raise Fault(f"{place}: messages of {owner.edge} have fixed size")


def field_max(t: Tables, f: Field) -> int:
    if f.type in SCALARS:
        return SCALARS[f.type]
    if f.type in t.enums or f.type == "bool":
        return 1
    if f.type in t.structs:
        return sum(field_max(t, x) for x in t.structs[f.type].fields)
    return {"id": 10, "digest": 32, "text": f.bound, "texts": f.bound * f.count, "u16s": 2 * f.bound,
            "str": 4 + f.bound, "blob": 4 + f.bound}[f.type]


def body_max(t: Tables, m: Struct) -> int:
    return sum(field_max(t, f) for f in m.fields)


def check_size(t: Tables, m: Message) -> None:
    limit = FRAME_MAX if m.edge == "" else MESSAGE_MAX
    if body_max(t, m) > limit:
        raise Fault(f"{m.place}: {m.name} may have {body_max(t, m)} bytes, more than {limit}")


def c_type(t: Tables, f: Field) -> str:
    if f.type in SCALARS:
        base = "int" if f.type[0] == "i" else "uint"
        return f"{base}{f.type[1:]}_t {f.name};"
    if f.type == "bool":
        return f"bool {f.name};"
    if f.type in t.enums:
        return f"enum {f.type} {f.name};"
    if f.type in t.structs or f.type == "id":
        return f"struct {f.type} {f.name};"
    if f.type == "digest":
        return f"uint8_t {f.name}[32];"
    if f.type == "text":
        return f"char {f.name}[{f.bound}];"
    if f.type == "texts":
        return f"char {f.name}[{f.count}][{f.bound}];"
    if f.type == "u16s":
        return f"uint16_t {f.name}[{f.bound}];"
    return f"struct view {f.name}; /* at most {f.bound} bytes; borrowed */"


def put(t: Tables, f: Field) -> str:
    v = f"m->{f.name}"
    if f.type in SCALARS:
        size = SCALARS[f.type]
        return f"wire_put_u{size * 8}(b, (uint{size * 8}_t){v});"
    if f.type == "bool":
        return f"wire_put_u8(b, {v} ? 1 : 0);"
    if f.type in t.enums:
        return f"wire_put_u8(b, (uint8_t){v});"
    if f.type in t.structs:
        return f"put_{f.type}(b, &{v});"
    if f.type == "id":
        return f"buf_add(b, {v}.b, ID_BYTES);"
    if f.type == "digest":
        return f"buf_add(b, {v}, 32);"
    if f.type == "text":
        return f"wire_put_text(b, {v}, {f.bound});"
    if f.type == "texts":
        return f"for (size_t i = 0; i < {f.count}; i++)\n\t\twire_put_text(b, {v}[i], {f.bound});"
    if f.type == "u16s":
        return f"for (size_t i = 0; i < {f.bound}; i++)\n\t\twire_put_u16(b, {v}[i]);"
    return f"wire_put_{f.type}(b, {v}, {f.bound});"


def get(t: Tables, f: Field) -> str:
    v = f"ret->{f.name}"
    if f.type in SCALARS:
        size = SCALARS[f.type]
        cast = f"(int{size * 8}_t)" if f.type[0] == "i" else ""
        return f"{v} = {cast}wire_get_u{size * 8}(w);"
    if f.type == "bool":
        return f"{v} = wire_get_u8_below(w, 2) != 0;"
    if f.type in t.enums:
        return f"{v} = (enum {f.type})wire_get_u8_below(w, {f.type.upper()}_MAX);"
    if f.type in t.structs:
        return f"get_{f.type}(w, &{v});"
    if f.type == "id":
        return f"wire_get_bytes(w, {v}.b, ID_BYTES);"
    if f.type == "digest":
        return f"wire_get_bytes(w, {v}, 32);"
    if f.type == "text":
        return f"wire_get_text(w, {v}, {f.bound});"
    if f.type == "texts":
        return f"for (size_t i = 0; i < {f.count}; i++)\n\t\twire_get_text(w, {v}[i], {f.bound});"
    if f.type == "u16s":
        return f"for (size_t i = 0; i < {f.bound}; i++)\n\t\t{v}[i] = wire_get_u16(w);"
    return f"{v} = wire_get_{f.type}(w, {f.bound});"


BANNER = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by proto/generate.py from the tables in proto/. */\n"


def header(t: Tables) -> str:
    o = [BANNER + "#pragma once\n", '#include "lib/base/buf.h"', '#include "lib/base/err.h"',
         '#include "lib/base/id.h"', '#include "lib/base/view.h"\n']
    rooms = sorted({e.a for e in t.edges.values()} | {e.b for e in t.edges.values()})
    o.append("enum room {\n" + "".join(f"\tROOM_{r.upper()},\n" for r in rooms) + "\tROOM_MAX\n};\n")
    o.append("enum edge {\n" + "".join(f"\tEDGE_{e},\n" for e in t.edges) + "\tEDGE_MAX\n};\n")
    for e in t.enums.values():
        o.append(f"/* {e.prose} */\nenum {e.name} {{")
        o.extend(f"\t{e.name.upper()}_{v}," for v, _ in e.values)
        o.append(f"\t{e.name.upper()}_MAX\n}};\nconst char *{e.name}_text(enum {e.name} v);")
        o.append(f"/* The value with this text, or -EINVAL. */\nint {e.name}_parse(struct view text, "
                 f"enum {e.name} *ret) MUST_CHECK;\n")
    o.append("/* Refusals; see errors.def. */\nenum error {")
    o.extend(f"\tERROR_{name} = {number}," for name, number, _, _, _ in t.errors)
    o.append("\tERROR_MAX = " + str(max(n for _, n, _, _, _ in t.errors) + 1) + "\n};\n")
    o.append("struct error_info {\n\tint status;        /* HTTP */\n\tconst char *code;  /* on the wire */\n"
             "\tconst char *prose;\n};\n/* NULL for a number that is not in the table. */\n"
             "const struct error_info *error_info(unsigned error);\n")
    o.append("/* Descriptor numbers at process start; see fds.def. */")
    o.extend(f"#define FD_{p.upper()}_{n} {num} /* {prose} */" for p, n, num, prose in t.fds)
    o.append("")
    for s in t.structs.values():
        o.append(f"/* {s.prose} */\nstruct {s.name} {{")
        o.extend("\t" + c_type(t, f) for f in s.fields)
        o.append("};\n")
    o.append("enum msg_type {")
    o.extend(f"\tMSG_{m.name}," for m in t.messages)
    o.append("\tMSG_MAX\n};\n")
    o.append("struct msg_info {\n\tconst char *name;\n\tenum edge edge;\n\tenum room from, to;\n"
             "\tuint32_t body_max; /* bytes; exactly this many when fixed */\n\tuint8_t fds;      /* exactly */\n"
             "\tbool fixed;\n};\nextern const struct msg_info msg_info[MSG_MAX];\n")
    for m in t.messages:
        o.extend(message_header(t, m, "msg", f"{m.edge}, sent by {m.sender}"))
    o.append("enum { FRAME_HEADER_BYTES = 12, FRAME_BODY_MAX = 65524 };\n")
    o.append("enum frame_type {")
    o.extend(f"\tFRAME_{m.name}," for m in t.frames)
    o.append("\tFRAME_MAX\n};\n")
    o.append("struct frame_info {\n\tconst char *name;\n\tbool from_host, from_guest;\n\tuint32_t body_max;\n};\n"
             "extern const struct frame_info frame_info[FRAME_MAX];\n")
    for m in t.frames:
        o.extend(message_header(t, m, "frame", f"channel, sent by {m.sender}"))
    return "\n".join(o)


def message_header(t: Tables, m: Message, kind: str, where: str) -> list[str]:
    name = f"{kind}_{m.name.lower()}"
    o = [f"/* {where}: {m.prose} */\nstruct {name} {{"]
    o.extend("\t" + c_type(t, f) for f in m.fields)
    if not m.fields:
        o.append("\tchar none; /* no fields */")
    o.append("};")
    o.append(f"void {name}_put(struct buf *b, const struct {name} *m);")
    o.append(f"int {name}_get(struct view body, struct {name} *ret, struct err *err) MUST_CHECK;\n")
    return o


def source(t: Tables) -> str:
    o = [BANNER, '#include "proto_gen.h"\n', '#include "lib/ipc/wire.h"\n', "#include <errno.h>\n"]
    for e in t.enums.values():
        values = "".join(f'\t"{text}",\n' for _, text in e.values)
        o.append(f"static const char *const {e.name}_texts[] = {{\n{values}}};\n")
        o.append(f"const char *\n{e.name}_text(enum {e.name} v)\n{{\n"
                 f"\tmust((unsigned)v < {e.name.upper()}_MAX);\n\treturn {e.name}_texts[v];\n}}\n")
        o.append(f"int\n{e.name}_parse(struct view text, enum {e.name} *ret)\n{{\n"
                 f"\tfor (unsigned i = 0; i < {e.name.upper()}_MAX; i++)\n"
                 f"\t\tif (view_is(text, {e.name}_texts[i])) {{\n\t\t\t*ret = (enum {e.name})i;\n"
                 f"\t\t\treturn 0;\n\t\t}}\n\treturn -EINVAL;\n}}\n")
    o.append("static const struct error_info errors[ERROR_MAX] = {")
    o.extend(f'\t[ERROR_{n}] = {{{status}, "{code}", "{prose}"}},' for n, _, status, code, prose in t.errors)
    o.append("};\n\nconst struct error_info *\nerror_info(unsigned error)\n{\n"
             "\tif (error >= ERROR_MAX || errors[error].code == NULL)\n\t\treturn NULL;\n"
             "\treturn &errors[error];\n}\n")
    for s in t.structs.values():
        o.append(f"static void\nput_{s.name}(struct buf *b, const struct {s.name} *m)\n{{")
        o.extend("\t" + put(t, f) for f in s.fields)
        o.append("}\n")
        o.append(f"static void\nget_{s.name}(struct wire *w, struct {s.name} *ret)\n{{")
        o.extend("\t" + get(t, f) for f in s.fields)
        o.append("}\n")
    o.append("const struct msg_info msg_info[MSG_MAX] = {")
    for m in t.messages:
        edge = t.edges[m.edge]
        to = edge.b if m.sender == edge.a else edge.a
        fixed = "true" if all(f.type not in ("str", "blob") for f in m.fields) else "false"
        o.append(f'\t[MSG_{m.name}] = {{"{m.name}", EDGE_{m.edge}, ROOM_{m.sender.upper()}, '
                 f"ROOM_{to.upper()}, {body_max(t, m)}, {m.fds}, {fixed}}},")
    o.append("};\n")
    for m in t.messages:
        o.extend(message_source(t, m, "msg"))
    o.append("const struct frame_info frame_info[FRAME_MAX] = {")
    for m in t.frames:
        host = "true" if m.sender in ("host", "both") else "false"
        guest = "true" if m.sender in ("guest", "both") else "false"
        o.append(f'\t[FRAME_{m.name}] = {{"{m.name}", {host}, {guest}, {body_max(t, m)}}},')
    o.append("};\n")
    for m in t.frames:
        o.extend(message_source(t, m, "frame"))
    return "\n".join(o)


def message_source(t: Tables, m: Message, kind: str) -> list[str]:
    name = f"{kind}_{m.name.lower()}"
    o = [f"void\n{name}_put(struct buf *b, const struct {name} *m)\n{{"]
    o.extend("\t" + put(t, f) for f in m.fields) if m.fields else o.append("\t(void)b, (void)m;")
    o.append("}\n")
    o.append(f"int\n{name}_get(struct view body, struct {name} *ret_m, struct err *err)\n{{\n"
             f"\tstruct wire here = {{.at = body}}, *w = &here;\n\tstruct {name} m = {{0}}, *ret = &m;\n\tint r;\n")
    o.extend("\t" + get(t, f) for f in m.fields)
    o.append(f'\tr = wire_end(w, "{m.name}", err);\n\tif (r < 0)\n\t\treturn r;\n\t*ret_m = *ret;\n\treturn 0;\n}}\n')
    return o


def samples(t: Tables) -> str:
    """For tests and fuzzing: each message and frame by number, without its type."""
    o = [BANNER, '#include "proto_samples.h"\n', "#include <errno.h>\n"]
    for kind, messages in (("msg", t.messages), ("frame", t.frames)):
        for m in messages:
            name = f"{kind}_{m.name.lower()}"
            o.append(f"static void\nzero_{name}(struct buf *b)\n{{\n\tstruct {name} m = {{0}};\n\n"
                     f"\t{name}_put(b, &m);\n}}\n")
            o.append(f"static int\nagain_{name}(struct view body, struct buf *ret, struct err *err)\n{{\n"
                     f"\tstruct {name} m;\n\tint r = {name}_get(body, &m, err);\n\n"
                     f"\tif (r == 0)\n\t\t{name}_put(ret, &m);\n\treturn r;\n}}\n")
        upper = kind.upper()
        o.append(f"const struct sample {kind}_samples[{upper}_MAX] = {{")
        o.extend(f"\t[{upper}_{m.name}] = {{zero_{kind}_{m.name.lower()}, again_{kind}_{m.name.lower()}}},"
                 for m in messages)
        o.append("};\n")
    return "\n".join(o)


SAMPLES_HEADER = BANNER + """#pragma once

#include "proto_gen.h"

struct sample {
	void (*zero)(struct buf *b);  /* the body of a message whose fields are all 0 and empty */
	int (*again)(struct view body, struct buf *ret, struct err *err); /* decode, then encode */
};
extern const struct sample msg_samples[MSG_MAX];
extern const struct sample frame_samples[FRAME_MAX];
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="turn the tables of proto/ into C")
    parser.add_argument("--out", required=True, help="folder for proto_gen.h and proto_gen.c")
    arguments = parser.parse_args()
    try:
        tables = load()
    except Fault as fault:
        print(f"proto: {fault}", file=sys.stderr)
        return 1
    out = Path(arguments.out)
    (out / "proto_gen.h").write_text(header(tables))
    (out / "proto_gen.c").write_text(source(tables))
    (out / "proto_samples.h").write_text(SAMPLES_HEADER)
    (out / "proto_samples.c").write_text(samples(tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
