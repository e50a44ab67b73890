#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of actions (actions.pml): the design holds in every interleaving, and each removed step is found.

    check.py [--keep DIR]

Needs spin and gcc. The last line is "N passed, N failed".
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = Path(__file__).resolve().with_name("actions.pml")
MEMORY_MIB = 2048


def removals() -> list[str]:
    """The macros that the model's head names, each of which must also be used below it."""
    text = MODEL.read_text()
    head, _, body = text.partition("*/\n\n#define")
    names = re.findall(r"^ \*\t([A-Z_]+) ", head, re.MULTILINE)
    for name in names:
        if name not in body:
            sys.exit(f"{MODEL.name}: {name} removes nothing")
    return names


def explore(folder: Path, removed: str | None) -> tuple[int, int]:
    """Errors and states of a full search."""
    define = [f"-D{removed}"] if removed else []
    subprocess.run(["spin", *define, "-a", str(MODEL)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["gcc", "-O2", "-w", f"-DMEMLIM={MEMORY_MIB}", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=folder, check=True)
    out = subprocess.run(["./pan", "-m200000", "-E"], cwd=folder, check=True, capture_output=True, text=True).stdout
    if "max search depth too small" in out or "Search not completed" in out and removed is None:
        sys.exit(f"the search was cut:\n{out}")
    errors = re.search(r"errors: (\d+)", out)
    states = re.search(r"(\d+) states, stored", out)
    if errors is None or states is None:
        sys.exit(f"spin said something else:\n{out}")
    return int(errors[1]), int(states[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="leave the verifier and trails here")
    folder = parser.parse_args().keep
    failed = 0
    checks: list[str | None] = [None, *removals()]
    with tempfile.TemporaryDirectory() as temporary:
        base = folder or Path(temporary)
        for removed in checks:
            place = base / (removed or "design")
            place.mkdir(parents=True, exist_ok=True)
            errors, states = explore(place, removed)
            good = (errors == 0) == (removed is None)
            failed += not good
            what = f"with {removed}" if removed else "the design"
            found = "no error" if errors == 0 else "an error"
            print(f"{'ok' if good else 'not ok'} {what}: {found} in {states} states", flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
