#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/man/demilune.yaml.5.scd from src/config/options.def; lint compares the two.

    options_man.py > docs/man/demilune.yaml.5.scd
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r'^OPTION\("([^"]+)",\s*(\w+),\s*[\w.]+,\s*"([^"]*)",\s*(\d+),\s*(\d+),\s*"([^"]*)"\)$', re.M)

TYPES = {
    "PATH": "an absolute path",
    "ADDRESS": "a loopback IPv4 address and port, or _none_",
    "UID": "a numeric user id",
    "COUNT": "a whole number",
    "BYTES": "a whole number with KiB, MiB or GiB",
    "DURATION": "a whole number with s, m, h or d",
    "CPU": "a whole number with m, thousandths of one processor",
    "CGROUP": "_auto_, _v1_ or _v2_",
    "PATHS": "absolute paths separated by commas, or _none_",
    "ORIGIN": "printable text without blanks and _+_",
    "NAME": "a name (a-z, 0-9, '.', '-', '\\_'), or _none_",
    "RESOLVERS": "IP addresses separated by commas, or _system_",
}

HEAD = """demilune.yaml(5)

# NAME

demilune.yaml - configuration of the Demilune daemon

# DESCRIPTION

The daemon reads one YAML file when it starts (*demilune serve --config* _FILE_); without one every option has its
default. The file is a mapping of options and sections; a section is a mapping of its options. Anchors, aliases, tags,
lists, duplicate and unknown options are refused, and all faults are told at once as _file:line:column: sentence_.
*demilune check* _FILE_ does the same without a daemon.

A change takes effect when the daemon is started again. The ceilings (*limits.\\**) are kept by the supervisor: no request,
token or other process can raise them.

# OPTIONS
"""

FOOT = """
# EXAMPLE

```
state_dir: /srv/demilune
listen:
  tcp: none
limits:
  sandboxes: 64
  ttl: 2h
defaults: {memory: 1GiB, ttl: 10m}
```

# SEE ALSO

*demilune*(1), *demilune-operations*(5), *demilune-policy*(5), *demilune*(8)
"""


def escape(text: str) -> str:
    return re.sub(r"([_*\\])", r"\\\1", text)


def bounds(kind: str, low: int, high: int) -> str:
    """The range in the unit in which the option is written."""
    if kind == "DURATION":
        return f", {low // 1000}s to {high // 86_400_000}d"
    if kind == "BYTES":
        return f", {low // 1024}KiB to {high // 2**30}GiB"
    if kind == "CPU":
        return f", {low}m to {high}m"
    if kind in ("PATHS", "RESOLVERS"):
        return f", at most {high}"
    if kind in ("COUNT", "UID"):
        return f", {low} to {high}"
    return ""


def page() -> str:
    parts = [HEAD]
    for name, kind, default, low, high, prose in ROW.findall((ROOT / "src/config/options.def").read_text()):
        parts.append(f"\n*{escape(name)}*\n\t{escape(prose)}\n\n\tIs {TYPES[kind]}{bounds(kind, int(low), int(high))}."
                     f" Default: _{escape(default)}_.\n")
    return "".join(parts) + FOOT


if __name__ == "__main__":
    sys.stdout.write(page())
