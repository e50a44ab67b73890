#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each fuzz harness for a short while on its seeds; `./run fuzz` is this program.

Prints one TAP line per harness and the counts. New inputs stay in the build folder, a crash prints its input.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description="run every fuzz harness")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=20)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    passed = failed = 0
    for folder in sorted(p.parent for p in (ROOT / "fuzz").glob("*/harness.c")):
        name = folder.name
        program = build / "fuzz" / name / f"fuzz_{name}"
        corpus = build / "fuzz" / name / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [str(program), f"-max_total_time={arguments.seconds}", "-timeout=10", "-rss_limit_mb=2048", "-verbosity=1",
             f"-artifact_prefix={corpus.parent}/crash-", "-print_final_stats=1", str(corpus), str(folder / "seeds")],
            cwd=build, capture_output=True, text=True, check=False, errors="replace")
        runs = next((line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line), "0")
        good = done.returncode == 0 and int(runs) > 0
        print(f"{'ok' if good else 'not ok'} - fuzz {name}, {runs} inputs", flush=True)
        if not good:
            print("\n".join("# " + line for line in done.stderr.splitlines()[-40:]))
        passed += good
        failed += not good
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
