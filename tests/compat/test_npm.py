# SPDX-License-Identifier: Apache-2.0
"""The unmodified SDK of npm (@pandastack/sdk 0.9.0) against a running daemon: cases of sdk.mjs, one by one."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from place import Caller

PROGRAM = Path(__file__).with_name("sdk.mjs")
CASES = re.findall(r'^case_\("([^"]+)"', PROGRAM.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def verdicts(caller: Caller, npm_folder: Path) -> dict[str, str]:
    """Case → "" or what went wrong."""
    done = subprocess.run(
        ["node", str(PROGRAM), str(npm_folder), caller.url, caller.token],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {line["name"]: line["error"] for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", CASES)
def test_npm(verdicts: dict[str, str], name: str) -> None:
    assert verdicts[name] == ""
