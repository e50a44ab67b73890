#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns schema/*.sql and queries/*.sql into C tables.

    sql_gen.py --out DIR FILE...

A query file holds statements, each under a line "-- NAME: purpose". Used by the build.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

HEAD = re.compile(r"^-- ([A-Z][A-Z0-9_]*): (.+)$")
BANNER = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by src/engine/sql_gen.py. */\n"


def quoted(text: str) -> str:
    lines = text.strip().splitlines()
    return "\n".join('\t"' + x.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for x in lines)


def queries(path: Path) -> list[tuple[str, str]]:
    found: list[tuple[str, list[str]]] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        head = HEAD.match(line)
        if head:
            found.append((head.group(1), []))
        elif line.startswith("--") and not found:
            continue
        elif line.strip():
            if not found:
                raise SystemExit(f"{path}:{number}: a statement without a name")
            found[-1][1].append(line)
    for name, body in found:
        if "\n".join(body).count(";") != 1 or not body[-1].endswith(";"):
            raise SystemExit(f"{path}: {name} is not one statement")
    return [(name, "\n".join(body)) for name, body in found]


def main() -> int:
    parser = argparse.ArgumentParser(description="SQL files as C tables")
    parser.add_argument("--out", required=True)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    paths = [Path(f) for f in arguments.files]
    schema = sorted(p for p in paths if p.parent.name == "schema")
    rows = [row for p in sorted(paths) if p.parent.name == "queries" for row in queries(p)]
    names = [name for name, _ in rows]
    if len(set(names)) != len(names):
        raise SystemExit("sql_gen: a query name is used twice")
    out = Path(arguments.out)
    header = BANNER + "#pragma once\n\nenum query_name {\n" + "".join(f"\tQ_{n},\n" for n in names)
    header += "\tQ_MAX\n};\n\nextern const char *const query_texts[Q_MAX];\n"
    header += f"\nenum {{ SCHEMA_VERSION = {len(schema)} }};\n"
    header += "/* schema_steps[n] leads from version n to n + 1. */\n"
    header += "extern const char *const schema_steps[SCHEMA_VERSION];\n"
    source = BANNER + '#include "sql_gen.h"\n\nconst char *const query_texts[Q_MAX] = {\n'
    source += "".join(f"\t[Q_{n}] =\n{quoted(t)},\n" for n, t in rows) + "};\n\n"
    source += "const char *const schema_steps[SCHEMA_VERSION] = {\n"
    source += "".join(f"{quoted(p.read_text())},\n" for p in schema) + "};\n"
    (out / "sql_gen.h").write_text(header)
    (out / "sql_gen.c").write_text(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
