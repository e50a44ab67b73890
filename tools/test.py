#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the suites of the project and counts their tests; `./run test` is this program.

A suite is a row of SUITES. What it runs prints TAP lines (`ok`, `not ok`) or is a pytest folder. A suite that ends
without a single test, or with an exit code other than 0 and no failed test, counts as one failure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    log: str = ""


@dataclass
class Context:
    build: Path
    state: Path
    environment: dict[str, str]


def run(command: list[str], context: Context, timeout_s: int) -> tuple[int, str]:
    """Exit code and everything it printed; -1 when it did not end in time."""
    try:
        done = subprocess.run(command, cwd=ROOT, env=context.environment, timeout=timeout_s, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace")
        return -1, text + f"\nnot ended after {timeout_s} s\n"
    return done.returncode, done.stdout.decode(errors="replace")


def count_tap(code: int, text: str) -> Result:
    result = Result(log=text)
    for line in text.splitlines():
        if re.match(r"not ok \d+ # SKIP\b", line):
            continue  # as cmocka says that a test does not apply to this build
        if re.match(r"not ok\b", line):
            result.failed += 1
        elif re.match(r"ok\b", line):
            result.passed += 1
    if result.failed == 0 and (code != 0 or result.passed == 0):
        result.failed = 1
        result.log += f"\nexit code {code}, {result.passed} tests\n"
    return result


def tap(command: list[str], timeout_s: int = 600) -> Callable[[Context], Result]:
    def suite(context: Context) -> Result:
        filled = [part.format(build=context.build, state=context.state) for part in command]
        return count_tap(*run(filled, context, timeout_s))

    return suite


def pytest(folder: str, timeout_s: int = 1200) -> Callable[[Context], Result]:
    def suite(context: Context) -> Result:
        with tempfile.TemporaryDirectory() as scratch:
            report = Path(scratch) / "report.xml"
            code, text = run(["/usr/bin/python3", "-m", "pytest", "-q", "-x" if "-x" in sys.argv else "-q",
                              "-p", "no:cacheprovider", f"--junitxml={report}", folder], context, timeout_s)
            if not report.exists():
                return Result(0, 1, text)
            totals = ElementTree.parse(report).getroot().find("testsuite")
            assert totals is not None
            bad = int(totals.get("failures", "0")) + int(totals.get("errors", "0"))
            skipped = int(totals.get("skipped", "0"))
            good = int(totals.get("tests", "0")) - bad - skipped
            if bad == 0 and (code != 0 or good == 0):
                bad = 1
            return Result(good, bad, text)

    return suite


def ends_well(command: list[str], timeout_s: int = 300) -> Callable[[Context], Result]:
    """One test: it exits with 0."""

    def suite(context: Context) -> Result:
        code, text = run([part.format(build=context.build, state=context.state) for part in command], context, timeout_s)
        return Result(1, 0, text) if code == 0 else Result(0, 1, f"{text}\nexit code {code}\n")

    return suite


# The leak check of a process that gave up its rights hangs; what is lost at the end of a process is no fault anyway.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def programs(*suite_names: str, build: str = "", without: str = "-") -> Callable[[Context], Result]:
    """Each test program that meson knows in these suites, of another build when one is named."""

    def suite(context: Context) -> Result:
        folder = ROOT / build if build else context.build
        listed = subprocess.run(["meson", "introspect", "--tests", str(folder)], check=True,
                                capture_output=True, text=True).stdout
        total = Result()
        for test in json.loads(listed):
            if not any(s.split(":")[-1] in suite_names for s in test["suite"]) or test["name"].startswith(without):
                continue
            one = Context(context.build, context.state,
                          context.environment | SANITIZERS | test["env"] | {"CMOCKA_MESSAGE_OUTPUT": "TAP"})
            code, text = run(test["cmd"], one, 300)
            # A program without TAP lines is one test.
            speaks = re.search(r"^(not )?ok\b", text, re.M)
            result = count_tap(code, text) if speaks or code else Result(1, 0, text)
            total.passed += result.passed
            total.failed += result.failed
            if result.failed:
                total.log += f"--- {test['name']}\n{text}\n"
        return total

    return suite


SUITES: dict[str, Callable[[Context], Result]] = {
    "unit": programs("unit"),
    "root": programs("root"),
    "engine": programs("engine"),
    "broker": programs("broker"),
    # The same under AddressSanitizer and UndefinedBehaviorSanitizer, without jails, which they cannot live with.
    "sanitized": programs("unit", "root", "engine", "broker", build="build-asan", without="supervisor"),
    "api": pytest("tests/api"),
    "gateway": pytest("tests/gateway", 900),
    # From inside of real sandboxes; the first run bakes the template `clients` into the state, which takes minutes.
    "egress": pytest("tests/egress", 2400),
    "template": tap(["/usr/bin/python3", "tests/template/test_template.py", "{build}/src/template/demilune-template",
                     "{state}"]),
    "escape": pytest("tests/escape"),
    "scenario": tap(["/usr/bin/python3", "tests/scenario/run.py"]),
    "actions": pytest("tests/actions", 900),
    "leak": pytest("tests/leak", 7200),
    "crash": pytest("tests/crash"),
    "cli": pytest("tests/cli"),
    "compat": pytest("tests/compat", 600),
    "story": ends_well(["/usr/bin/python3", "demo/play.py", "--build", "{build}", "--state", "{state}",
                        "--run-dir", "{build}/story-run"]),
    "model": tap(["/usr/bin/python3", "tests/model/check.py"]),
    "demo": tap(["/usr/bin/python3", "tests/demo/test_demo.py", "{state}"]),
}

# These mostly wait for deadlines: they run beside the others. Those that look at the whole machine run alone, at the end.
BESIDE = ("gateway", "egress")
ALONE = ("leak", "crash", "story", "demo")


class Run:
    """Suites, each with its line when it is through."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.lock = threading.Lock()
        self.passed = self.failed = 0

    def some(self, names: list[str], lane: int = 0) -> None:
        """One after the other. Daemons of one lane never have the users of another's (tests/daemon.py)."""
        context = Context(self.context.build, self.context.state, self.context.environment | {"DEMILUNE_LANE": str(lane)})
        for name in names:
            began = time.monotonic()
            result = SUITES[name](context)
            with self.lock:
                self.passed += result.passed
                self.failed += result.failed
                print(f"{name:12} {result.passed:5} passed {result.failed:3} failed {time.monotonic() - began:7.1f} s", flush=True)
                if result.failed:
                    print("\n".join("    " + line for line in result.log.splitlines()[-200:]), flush=True)

    def all(self, chosen: list[str]) -> None:
        beside = threading.Thread(target=self.some, args=([name for name in chosen if name in BESIDE], 1))
        beside.start()
        self.some([name for name in chosen if name not in BESIDE and name not in ALONE])
        beside.join()
        self.some([name for name in chosen if name in ALONE])


def main() -> int:
    parser = argparse.ArgumentParser(description="run the suites and count")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("suite", nargs="*", help="of: " + ", ".join(SUITES))
    arguments = parser.parse_args()
    chosen = arguments.suite or list(SUITES)
    unknown = [name for name in chosen if name not in SUITES]
    if unknown:
        parser.error(f"no suite {unknown[0]}; there are: {', '.join(SUITES)}")
    environment = dict(os.environ) | {"DEMILUNE_BUILD": str(arguments.build.resolve()),
                                      "DEMILUNE_STATE": str(arguments.state.resolve())}
    context = Context(arguments.build.resolve(), arguments.state.resolve(), environment)
    run_all = Run(context)
    run_all.all(chosen)
    print(f"{run_all.passed} passed, {run_all.failed} failed")
    return 1 if run_all.failed else 0


if __name__ == "__main__":
    sys.exit(main())
