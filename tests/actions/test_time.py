# SPDX-License-Identifier: Apache-2.0
"""Clocks of a machine that was booted, stood still, or stands in another zone."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
from collections.abc import Iterator

import pytest
from acting import ROOMS, Acting
from daemon import read
from truth import Sent, key_of, state_of, truth


@pytest.fixture(scope="module")
def host() -> Iterator[Acting]:
    with Acting() as host:
        yield host


def test_C7_after_a_boot_the_wall_clock_counts(host: Acting) -> None:
    """Started again where the clocks since boot begin anew: what waits keeps its time, to the millisecond, and what is over stays over."""
    task = host.task()
    host.grant(task)
    host.grant(task, operation="quick")
    row, over = host.pending(task), host.pending(task, "quick")
    body, late = host.signed(row["id"]), host.signed(over["id"])
    host.daemon.stop()
    before = float(read("/proc/uptime").split()[0])
    host.daemon.wrap = f"unshare --time --boottime -{int(before) - 5} --monotonic -{int(time.monotonic()) - 5} --"
    host.daemon.start()
    assert float(read(f"/proc/{host.pid('broker')}/uptime") or "0") < before
    time.sleep(1)
    assert host.row(row["id"])["decide_by"] == row["decide_by"]
    host.decide(over["id"], late)
    assert state_of(host, over) == "expired" and host.effects(key_of(over)) == []
    assert host.decide(row["id"], body).expect(200).json["state"] == "succeeded"
    assert truth(host, row, "succeeded") == 1
    host.verify(task)


def test_C8_a_machine_that_stood_still_comes_too_late(host: Acting) -> None:
    """All processes stand still, as in a suspended machine, until its time is over; a decision that was made in time comes now."""
    task = host.task()
    host.grant(task, operation="quick")
    row = host.pending(task, "quick")
    body = host.signed(row["id"])
    pids = [host.pid(room) for room in ROOMS]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    sent = Sent(host, row, body)
    time.sleep(1.2)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    answer = sent.join()
    assert answer is not None and answer.status in (403, 409)
    assert state_of(host, row) == "expired" and host.effects(key_of(row)) == []


def test_C9_times_are_milliseconds_of_utc_in_every_zone(host: Acting) -> None:
    task = host.task()
    host.grant(task)
    row = host.pending(task)
    record = json.loads(base64.b64decode(row["record"]))
    assert record["decide_by_ms"] - record["issued_ms"] == 30 * 60 * 1000
    assert abs(record["issued_ms"] - time.time() * 1000) < 5000
    zones = ("UTC", "America/New_York", "right/UTC", "ABC-14:30")
    shown = {host.cli("proposal", "show", row["id"], env={"TZ": zone}).stdout for zone in zones}
    assert len(shown) == 1
    assert time.strftime("%Y-%m-%dT%H:", time.gmtime(record["issued_ms"] / 1000)).encode() in shown.pop()
    key = str(host.home / "anna.pub")
    for text in ("2026-12-31T23:59:60Z", "2027-03-28T02:30:00", "2027-03-28T02:30:00+01:00", "2027-02-29T00:00:00Z"):
        done = host.cli("approver", "enrol", "--name", "zoe", "--key", key, "--may", "refund", "--valid-until", text, "--trust",
                        str(host.trust), code=None)
        assert done.returncode != 0, text
