# SPDX-License-Identifier: Apache-2.0
"""Each process of the daemon is killed with SIGKILL at random moments under load; then the invariants must hold.

DEMILUNE_CRASH is the number of kills of each process (default 4), DEMILUNE_SEED draws the same moments again.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from daemon import Answer, Daemon, wait_until

ROUNDS = int(os.environ.get("DEMILUNE_CRASH", "4"))
SEED = int(os.environ.get("DEMILUNE_SEED", str(random.randrange(1 << 30))))
ENDED = ("deleted", "failed")


@dataclass
class Asked:
    """A creation: its key, the id that was answered, or None when no answer came."""

    key: str
    id: str | None = None
    ended: bool = False


@dataclass
class Load:
    """Clients that create, run, write and kill until they are told to stop."""

    daemon: Daemon
    stop: threading.Event = field(default_factory=threading.Event)
    asked: list[Asked] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for number in range(3):
            self.threads.append(threading.Thread(target=self.client, args=(number,), daemon=True))
            self.threads[-1].start()

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()

    def client(self, number: int) -> None:
        client = self.daemon.client
        turn = 0
        while not self.stop.is_set():
            turn += 1
            asked = Asked(f"{number}-{turn}-{os.urandom(4).hex()}")
            self.asked.append(asked)
            try:
                made = create(self.daemon, asked.key)
                if made.status != 201:
                    time.sleep(0.02)
                    continue
                asked.id = made.json["id"]
                client.exec(asked.id, "echo load; sleep 0.02", timeout_seconds=5)
                client.write(asked.id, "/work/f", os.urandom(2000))
                if turn % 2:
                    asked.ended = client.kill(asked.id).status == 200
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.02)  # the process that was killed was in the middle of it


def create(daemon: Daemon, key: str) -> Answer:
    return daemon.client.request("POST", "/v1/sandboxes", {"template": "python", "metadata": {"op": key}},
                                 {"Idempotency-Key": key}, timeout_s=20)


def kill_one(daemon: Daemon, name: str, draw: random.Random) -> None:
    """One process of this role; there is always a sandbox under this load."""
    while True:
        pids = [daemon.supervisor] if name == "supervisor" else wait_until(f"there is a {name}", lambda: daemon.by_role(name), 2)
        with contextlib.suppress(ProcessLookupError):  # the load may just have ended that one's sandbox
            os.kill(draw.choice(pids), signal.SIGKILL)
            break
    if name == "supervisor":
        assert daemon.process is not None
        daemon.process.wait(5)


# ---- invariants ----


def listed_or_gone(daemon: Daemon, load: Load) -> None:
    """Every sandbox that was answered lives and works, or has ended and says why; and what was ended stays so."""
    living = {row["id"] for row in daemon.client.sandboxes()}
    for asked in load.asked:
        if asked.id is None:
            continue
        if asked.ended:
            assert asked.id not in living
        if asked.id in living:
            done = daemon.client.exec(asked.id, "echo lives", timeout_seconds=5)
            assert done.get("stdout") == "lives\n", done
        else:
            row = daemon.client.get(asked.id, ended=True).expect(200).json
            assert row["status"] in ENDED and row["reason"] != "none", row


def nothing_unlisted(daemon: Daemon) -> None:
    """As many PID 1 on the host as sandboxes in the list."""
    wait_until("agents are those of the list",
               lambda: {pid for pid in daemon.by_role("agent")} ==
               {row["measured"]["host_pid"] for row in daemon.client.sandboxes()}, 5)


def audit_holds(daemon: Daemon) -> None:
    """Each task's chain from its first record to its last, by the bytes."""
    tasks = daemon.client.request("GET", "/v1/tasks?limit=200").expect(200).json["items"]
    assert tasks
    for task in tasks:
        previous = bytes(32)
        lines = daemon.client.request("GET", f"/v1/audit/{task['id']}?format=ndjson").expect(200).body.splitlines()
        assert lines
        for number, line in enumerate(lines, 1):
            head, _, record = line.partition(b',"record":')
            said = hashlib.sha256(b"demilune-audit-v1\0" + previous + record[:-1]).digest()
            begins = b'{"number":%d,"previous":"sha256:%s","digest":"sha256:%s","leaf":' % (
                number, previous.hex().encode(), said.hex().encode())
            assert head.startswith(begins) and head[len(begins):].isdigit(), (task["id"], number)
            previous = said


def no_job_hangs(daemon: Daemon, load: Load) -> None:
    """No command is said to run: the load is over."""
    def running() -> list[Any]:
        found = []
        for asked in load.asked:
            if asked.id is not None:
                jobs = daemon.client.request("GET", f"/v1/sandboxes/{asked.id}/jobs?limit=200").expect(200).json["items"]
                found += [job for job in jobs if job["reason"] == "running"]
        return found
    wait_until("no command runs", lambda: running() == [], 8)


def created_once(daemon: Daemon, load: Load) -> None:
    """The same key again is the same sandbox; a creation without an answer made one at most."""
    for asked in load.asked:
        again = create(daemon, asked.key)
        if again.status == 201 and asked.id is not None:
            assert again.json["id"] == asked.id
        elif asked.id is not None:
            assert again.status in (409, 500), again
        rows = daemon.client.request("GET", f"/v1/sandboxes?limit=10&label=op={asked.key}").expect(200).json["items"]
        assert len(rows) <= 1


INVARIANTS: list[Callable[[Daemon, Load], None]] = [
    lambda daemon, load: nothing_unlisted(daemon), listed_or_gone, lambda daemon, load: audit_holds(daemon), no_job_hangs,
    created_once]


@pytest.mark.parametrize("name", ["engine", "api", "relay", "agent", "supervisor"])
def test_killed(name: str) -> None:
    draw = random.Random(f"{SEED} {name}")
    with Daemon() as daemon:
        for _ in range(ROUNDS):
            load = Load(daemon)
            load.start()
            time.sleep(0.15 + draw.uniform(0, 0.3))
            daemon.observe()
            kill_one(daemon, name, draw)
            killed = time.monotonic()
            if name == "supervisor":
                wait_until("nothing outlives the supervisor", lambda: not list(daemon.pids()), 5)
                daemon.start()
            else:
                time.sleep(0.1)
                wait_until("the daemon is ready again", daemon.client.ready, 5)
            assert time.monotonic() - killed < 10
            time.sleep(draw.uniform(0, 0.2))
            load.end()
            wait_until("the daemon is ready", daemon.client.ready, 5)
            for holds in INVARIANTS:
                try:
                    holds(daemon, load)
                except AssertionError as wrong:
                    raise AssertionError(f"seed {SEED}: {wrong}\n{daemon.log()[-3000:]}") from wrong
            for row in daemon.client.sandboxes():
                daemon.client.kill(row["id"]).expect(200)
