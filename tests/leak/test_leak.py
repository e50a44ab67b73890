# SPDX-License-Identifier: Apache-2.0
"""Sandboxes come and go while their callers are killed at random moments: all that was used is given back.

DEMILUNE_LEAK is the number of sandboxes (default 300; 10000 for the long run), DEMILUNE_SEED draws the same moments again.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon import Daemon, namespaces_of, read, role, wait_until

WANTED = int(os.environ.get("DEMILUNE_LEAK", "300"))
SEED = int(os.environ.get("DEMILUNE_SEED", str(random.randrange(1 << 30))))
CALLER = Path(__file__).with_name("caller.py")
CALLERS = 3


def held(daemon: Daemon) -> dict[str, Any]:
    """Counts of everything that the daemon has, comparable when no sandbox lives."""
    pids = list(daemon.pids())
    supervisor = daemon.supervisor
    return {
        "processes": dict(Counter(role(pid) for pid in pids)),
        "descriptors": daemon.descriptors(),
        "control groups": len(daemon.holdings().cgroups),
        "namespaces": len(set().union(*(namespaces_of(pid) for pid in pids))),
        "mounts": len(read(f"/proc/{supervisor}/mountinfo").splitlines()),
        "loops": daemon.holdings().loops,
    }


def memory_kb(daemon: Daemon) -> dict[str, int]:
    """Resident bytes that belong to the process alone, by role."""
    found = {}
    for name in ("supervisor", "engine", "api"):
        for line in read(f"/proc/{daemon.by_role(name)[0]}/status").splitlines():
            if line.startswith("RssAnon:"):
                found[name] = int(line.split()[1])
    return found


def storm(daemon: Daemon, wanted: int, draw: random.Random) -> tuple[int, int]:
    """Callers make sandboxes and are killed; (sandboxes made, callers killed)."""
    made = killed = 0
    while made < wanted:
        callers = [subprocess.Popen([sys.executable, CALLER, daemon.client.path], stdout=subprocess.PIPE)
                   for _ in range(CALLERS)]
        time.sleep(0.1)
        for caller in callers:
            time.sleep(draw.uniform(0, 0.25 if wanted < 1000 else 1.5))
            caller.kill()
            out, _ = caller.communicate()
            made, killed = made + len(out), killed + 1
            daemon.observe()
    return made, killed


@pytest.fixture(scope="module")
def story() -> Iterator[dict[str, Any]]:
    draw = random.Random(SEED)
    with Daemon() as daemon:
        storm(daemon, 20, draw)  # so that what is kept on purpose is there
        wait_until("the list is empty", lambda: daemon.client.sandboxes() == [], 10)
        time.sleep(0.5)
        before, memory_before = held(daemon), memory_kb(daemon)
        made, killed = storm(daemon, WANTED, draw)
        wait_until("sandboxes without a caller end by their TTL", lambda: daemon.client.sandboxes() == [], 10)
        with contextlib.suppress(AssertionError):
            wait_until("as before", lambda: held(daemon) == before, 5)
        print(f"seed {SEED}: {made} sandboxes, {killed} callers killed")
        yield {"before": before, "after": held(daemon), "memory": (memory_before, memory_kb(daemon)), "made": made,
               "killed": killed, "daemon": daemon}


def test_story(story: dict[str, Any]) -> None:
    assert story["made"] >= WANTED
    assert story["killed"] >= 6


@pytest.mark.parametrize("what", ["processes", "descriptors", "control groups", "namespaces", "mounts", "loops"])
def test_given_back(story: dict[str, Any], what: str) -> None:
    assert story["after"][what] == story["before"][what], f"seed {SEED}"


@pytest.mark.parametrize("name", ["supervisor", "engine", "api"])
def test_memory(story: dict[str, Any], name: str) -> None:
    """Less than a kilobyte for each sandbox that was, and a fixed amount."""
    before, after = story["memory"]
    assert after[name] - before[name] < 4096 + story["made"], f"seed {SEED}"


def test_first_sandbox_afterwards(story: dict[str, Any]) -> None:
    client = story["daemon"].client
    box = client.create()
    assert client.exec(box["id"], "echo well")["stdout"] == "well\n"
    proof = client.kill(box["id"]).expect(200).json["proof"]
    assert {name: count for name, count in proof.items() if name != "teardown_us" and count} == {}
