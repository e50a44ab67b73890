# SPDX-License-Identifier: Apache-2.0
"""Ordinary ends log nothing, and a test run that was killed leaves no daemon."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from daemon import Daemon, read, removed, wait_until

HELD = """
import json, time
from daemon import Daemon
with Daemon() as daemon:
    daemon.client.exec(daemon.client.create()["id"], "sleep 1000", detach=True)
    print(json.dumps({"home": str(daemon.home), "groups": [str(g) for g in daemon.groups]}), flush=True)
    time.sleep(1000)
"""


def said_since(daemon: Daemon, mark: int) -> list[str]:
    lines: list[str] = daemon.log()[mark:].splitlines()
    return lines


def test_only_unexpected_ends_are_logged() -> None:
    with Daemon() as daemon:
        client = daemon.client
        mark = len(daemon.log())
        for fields in ({}, {}, {"ttl_seconds": 1}, {"idle_limit_seconds": 1}):
            box = client.create(**fields)
            client.exec(box["id"], "sleep 100 & echo begun")
            if not fields:
                client.kill(box["id"]).expect(200)
        wait_until("all ended", lambda: client.sandboxes() == [], 10)
        assert said_since(daemon, mark) == []
        box = client.create()
        os.kill(box["measured"]["host_pid"], signal.SIGKILL)
        wait_until("it ended", lambda: client.sandboxes() == [], 10)
        assert any(f"{box['id']} ended: agent_lost" in line for line in said_since(daemon, mark)), daemon.log()


def test_a_killed_run_leaves_no_daemon() -> None:
    run = subprocess.Popen([sys.executable, "-c", HELD], stdout=subprocess.PIPE, text=True,
                           env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)})
    assert run.stdout is not None
    held = json.loads(run.stdout.readline())
    groups = [Path(group) for group in held["groups"]]

    def processes() -> list[str]:
        return [pid for group in groups for at, _, _ in os.walk(group) for pid in read(f"{at}/cgroup.procs").split()]

    assert len(processes()) > 3
    run.kill()
    run.wait(5)
    wait_until("no process of the daemon is left", lambda: processes() == [], 10)
    for group in groups:
        for path in sorted([group, *(p for p in group.rglob("*") if p.is_dir())], reverse=True):
            wait_until("the group is empty", partial(removed, path), 2)
    shutil.rmtree(held["home"])
