# SPDX-License-Identifier: Apache-2.0
"""What inspect_ai asks of a sandbox (its self_check), by the adapter of inspect_adapter.py."""

import json
import subprocess
from pathlib import Path

import place
from place import Caller

# The root image is read-only and has no set-uid program: there are the users agent and root, and no way to make more.
REFUSED = {"test_exec_as_user"}
CHECKS = 44


def test_self_check(caller: Caller) -> None:
    python = place.inspect_python()
    done = subprocess.run(
        [str(python), str(Path(__file__).with_name("inspect_adapter.py")), caller.url, caller.token],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    errors = {line["name"]: line["error"] for line in map(json.loads, done.stdout.splitlines())}
    assert len(errors) == CHECKS
    assert {name: error for name, error in errors.items() if error and name not in REFUSED} == {}
    assert all(errors[name] for name in REFUSED)
