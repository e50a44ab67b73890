# SPDX-License-Identifier: Apache-2.0
"""Yesterday's database comes back, or the whole machine does: nothing is carried out by it, it is told; a person gives authority back."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from acting import Acting
from daemon import wait_until
from truth import key_of, state_of


@pytest.fixture
def host() -> Iterator[Acting]:
    with Acting() as host:
        yield host


def keep(one: Path, other: Path) -> None:
    """All of it, with owners and rights."""
    subprocess.run(["cp", "-a", str(one), str(other)], check=True)


def put_back(copy: Path, place: Path) -> None:
    shutil.rmtree(place)
    keep(copy, place)


def epoch(row: dict[str, Any]) -> int:
    found: int = json.loads(base64.b64decode(row["record"]))["epoch"]
    return found


def containments(host: Acting) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = host.json("containment", "list")
    return [row for row in rows if row["scope"] == "host" and "released_at" not in row]


def test_H1_yesterdays_database_carries_nothing_out(host: Acting) -> None:
    task = host.task()
    host.grant(task)
    waits, spent = host.pending(task, cents=11), host.pending(task, cents=12)
    bodies = {row["id"]: host.signed(row["id"]) for row in (waits, spent)}
    store, copy = host.daemon.state / "engine", host.home / "yesterday"
    assert host.daemon.stop() == 0
    keep(store, copy)
    host.daemon.start()
    assert containments(host) == []
    assert host.decide(spent["id"], bodies[spent["id"]]).expect(200).json["state"] == "succeeded"
    assert len(host.effects()) == 1
    assert host.daemon.stop() == 0
    put_back(copy, store)
    host.daemon.start()
    told = containments(host)
    assert len(told) == 1 and "restored" in json.dumps(told[0]), told
    assert "restored" in host.daemon.log()
    posts = host.requests("POST")
    for row in (waits, spent):  # what was signed is worth nothing, what was spent least of all
        answer = host.decide(row["id"], bodies[row["id"]])
        assert answer.status in (403, 409), answer.body
        assert state_of(host, row) in ("expired", "revoked"), host.row(row["id"])
        answer = host.decide(row["id"], bodies[row["id"]])
        assert answer.status in (403, 409)
    refused = host.propose(task, cents=13)
    assert refused.status == 403 and refused.json["denial"] == "restored", refused.body
    assert host.requests("POST") == posts and len(host.effects()) == 1
    host.verify(task)
    # A person looks, signs, and it goes on, in another epoch.
    host.cli("release", "host", "--note", "the disk was replaced", "--key", f"{host.home / 'bert'}.pub", "--trust", str(host.trust), code=1)
    assert len(containments(host)) == 1
    host.cli("release", "host", "--note", "the disk was replaced", "--key", f"{host.home / 'anna'}.pub", "--trust", str(host.trust))
    assert containments(host) == []
    fresh = host.task()
    host.grant(fresh)
    row = host.pending(fresh, cents=12)
    assert epoch(row) == epoch(spent) + 1 and key_of(row) != key_of(spent)
    for old in (waits, spent):
        assert host.decide(old["id"], bodies[old["id"]]).status in (403, 409)
    assert len(host.effects()) == 1
    host.approve(row["id"])
    assert len(host.effects()) == 2 and len(host.effects(key_of(row))) == 1
    host.verify(task, fresh)


def test_H1_an_approved_one_of_yesterday_is_not_dispatched(host: Acting) -> None:
    """The copy was made while it was dispatching: it is unknown then, and looked up; never sent again."""
    task = host.task()
    host.grant(task)
    row = host.pending(task)
    host.script("effect executes_then_drops", *["lookup status 503"] * 30)
    host.approve(row["id"], code=1)
    assert state_of(host, row) == "unknown"
    store, copy = host.daemon.state / "engine", host.home / "yesterday"
    host.daemon.stop()
    keep(store, copy)
    host.daemon.start()
    later = host.pending(task, cents=3)
    host.approve(later["id"])
    host.daemon.stop()
    put_back(copy, store)
    posts = host.requests("POST")
    host.daemon.start()
    assert len(containments(host)) == 1 and state_of(host, row) == "unknown"
    refused = host.cli("release", "host", "--note", "x", "--key", f"{host.home / 'anna'}.pub", "--trust", str(host.trust), code=1)
    assert b"unknown" in refused.stderr or b"not settled" in refused.stderr or b"settle" in refused.stderr, refused.stderr
    host.script()
    host.reconcile(host.row(row["id"])["execution"]).expect(200)
    wait_until("it was found", lambda: state_of(host, row) == "succeeded", 5)
    host.cli("release", "host", "--note", "x", "--key", f"{host.home / 'anna'}.pub", "--trust", str(host.trust))
    assert host.requests("POST") == posts and len(host.effects(key_of(row))) == 1 and len(host.effects(key_of(later))) == 1


def test_H2_the_whole_machine_goes_back(host: Acting) -> None:
    """Store, ledger and key of yesterday agree with each other; the mirror outside does not."""
    task = host.task()
    host.grant(task)
    row = host.pending(task)
    body = host.signed(row["id"])
    copy = host.home / "yesterday"
    host.daemon.stop()
    for name in ("engine", "broker"):
        keep(host.daemon.state / name, copy.with_name(f"yesterday-{name}"))
    host.daemon.start()
    host.decide(row["id"], body).expect(200)
    host.daemon.stop()
    for name in ("engine", "broker"):
        put_back(copy.with_name(f"yesterday-{name}"), host.daemon.state / name)
    host.daemon.start()
    told = containments(host)
    assert len(told) == 1, host.daemon.log()
    answer = host.decide(row["id"], body)
    assert answer.status in (403, 409) and len(host.effects()) == 1
