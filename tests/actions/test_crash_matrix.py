# SPDX-License-Identifier: Apache-2.0
"""Each process that has a part in an action is killed at each of its steps, and the supervisor starts it again. Whatever died: no record is
lost, the state and the provider's ledger say the same, nothing happened twice, and what cannot be known is `unknown` until it is looked up.

A step is held open by the provider (slow, stalled) or by a process that stands still (SIGSTOP).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from acting import ROOMS, Acting
from daemon import wait_until
from truth import Asked, Sent, key_of, settled, state_of, truth, until_dispatching, until_requests

each_room = pytest.mark.parametrize("room", ROOMS)


@pytest.fixture(scope="module")
def host() -> Iterator[Acting]:
    with Acting() as host:
        yield host


@pytest.fixture
def task(host: Acting) -> Iterator[str]:
    """A task of its own; afterwards all is there again, its record is whole, and no key has two effects."""
    host.script()
    host.whole()
    task = host.task()
    host.grant(task)
    yield task
    host.script()
    host.whole()
    host.verify(task)
    keys = [effect["key"] for effect in host.effects()]
    assert len(keys) == len(set(keys))


@each_room
def test_F1_before_it_is_dispatching(host: Acting, task: str, room: str) -> None:
    """The broker looks at the signature when the process dies: nothing was begun, and it can be decided again."""
    row = host.pending(task)
    with host.stopped("broker"):
        sent = Sent(host, row)
        wait_until("it was asked", lambda: "decision.asked" in host.events(task), 5)
        assert state_of(host, row) == "pending"
        host.kill(room)
    sent.join()
    host.whole()
    state = settled(host, row)
    truth(host, row, state)
    if room in ("engine", "broker"):
        assert state == "pending" and "execution.dispatching" not in host.events(task)
    if state == "pending":
        host.approve(row["id"])
        assert truth(host, row, settled(host, row)) == 1


@each_room
def test_F2_after_the_commit_before_the_first_byte(host: Acting, task: str, room: str) -> None:
    """The system of record is read once more, slowly, when the process dies."""
    row, posts, gets = host.pending(task), host.requests("POST"), host.requests("GET")
    host.script("read stall 0.7")
    sent = Sent(host, row)
    until_requests(host, "GET", gets)
    until_dispatching(host, row)
    host.kill(room)
    sent.join()
    host.whole()
    state = settled(host, row)
    assert truth(host, row, state) == host.requests("POST") - posts
    if room in ("engine", "broker"):
        assert state == "failed" and "execution.failed" in host.events(task)
    if room == "api":
        assert state == "succeeded"
    time.sleep(0.7)  # what a dead engine asked is not sent later
    assert truth(host, row, state) == host.requests("POST") - posts


@each_room
def test_F2_while_it_connects(host: Acting, task: str, room: str) -> None:
    """The dialer stands still between the read and the effect when the process dies; then it connects after all."""
    row, posts, gets = host.pending(task), host.requests("POST"), host.requests("GET")
    host.script("read stall 0.4")
    sent = Sent(host, row)
    until_requests(host, "GET", gets)
    with host.stopped("dialer"):
        time.sleep(0.6)
        assert state_of(host, row) == "dispatching" and host.requests("POST") == posts
        host.kill(room)
        if room != "dialer":
            time.sleep(0.3)  # the engine that comes asks first
    sent.join()
    host.whole()
    state = settled(host, row)
    assert truth(host, row, state) == host.requests("POST") - posts
    if room != "api":
        assert state == "failed"


@each_room
def test_F3_bytes_sent_and_no_answer(host: Acting, task: str, room: str) -> None:
    row, posts = host.pending(task), host.requests("POST")
    host.script("effect slow 0.7")
    sent = Sent(host, row)
    until_requests(host, "POST", posts)
    host.kill(room)
    if room == "broker":
        wait_until("nobody knows", lambda: state_of(host, row) == "unknown", 5)
    sent.join()
    host.whole()
    wait_until("it happened", lambda: len(host.effects(key_of(row))) == 1, 5)
    assert truth(host, row, settled(host, row)) == 1 and host.requests("POST") == posts + 1
    assert ("execution.unknown" in host.events(task)) or room != "broker"


@each_room
def test_F4_answered_and_not_recorded(host: Acting, task: str, room: str) -> None:
    """The answer lies in a process that stands still, and dies so."""
    row, posts = host.pending(task), host.requests("POST")
    host.script("effect slow 0.3")
    sent = Sent(host, row)
    until_requests(host, "POST", posts)
    with host.stopped(room) as pid:
        wait_until("it happened", lambda: len(host.effects(key_of(row))) == 1, 5)
        time.sleep(0.2)
        host.kill(room, pid)
    sent.join()
    host.whole()
    assert truth(host, row, settled(host, row)) == 1 and host.requests("POST") == posts + 1
    assert ("execution.unknown" in host.events(task)) or room != "broker"


@each_room
def test_F6_killed_while_it_is_looked_up(host: Acting, task: str, room: str) -> None:
    row, posts = host.pending(task), host.requests("POST")
    host.script("effect executes_then_drops")
    answer = Sent(host, row).join()
    assert answer is not None and answer.json["state"] == "unknown"
    gets = host.requests("GET /v1/executions")
    host.script("lookup slow 0.6")
    asked = Asked(lambda: host.reconcile(host.row(row["id"])["execution"]))
    until_requests(host, "GET /v1/executions", gets)
    host.kill(room)
    asked.join()
    host.whole()
    assert state_of(host, row) in ("unknown", "succeeded")
    assert truth(host, row, settled(host, row)) == 1 and host.requests("POST") == posts + 1


def test_F7_a_second_daemon_does_not_start(host: Acting, task: str) -> None:
    """Its ledger and its database belong to one: another on the same state ends at once."""
    row = host.pending(task)
    assert host.second() not in (0, None)
    host.approve(row["id"])
    assert truth(host, row, "succeeded") == 1


def test_F8_revoked_while_it_is_out(host: Acting, task: str) -> None:
    """It cannot be called back; the record says so, and nothing follows."""
    row, posts = host.pending(task), host.requests("POST")
    host.script("effect slow 0.6")
    sent = Sent(host, row)
    until_requests(host, "POST", posts)
    host.cli("revoke", "approval", row["id"], "--reason", "wrong order", code=None)
    sent.join()
    assert truth(host, row, settled(host, row)) == 1 and host.requests("POST") == posts + 1
    revoked = [e for e in host.records(task) if "revoke" in e["event"]]
    assert revoked, host.events(task)
    host.decide(row["id"], sent.body).expect(409)
    assert truth(host, row, "succeeded") == 1


def test_F9_a_dropped_connection_is_no_reason_to_send_again(host: Acting, task: str) -> None:
    row, posts = host.pending(task), host.requests("POST")
    host.script("effect drop")
    answer = Sent(host, row).join()
    assert answer is not None and answer.json["state"] == "unknown"
    assert settled(host, row) == "failed"  # not found, and it had time to be
    assert truth(host, row, "failed") == 0 and host.requests("POST") == posts + 1


def test_H7_H9_without_a_broker_everything_is_denied(host: Acting, task: str) -> None:
    row, bad = host.pending(task), host.pending(task, cents=5)
    body = host.signed(bad["id"], "kim")  # no approval, should it be there again
    answers = []
    for _ in range(6):  # each time it stays away for longer
        host.kill("broker")
        answers.append(host.decide(bad["id"], body))
    lost = [a.json for a in answers if a.status == 503]
    assert lost and {a.status for a in answers} <= {403, 503}
    assert all(one["denial"] == "broker_unavailable" and one["code"] == "unavailable" for one in lost)
    host.whole()
    assert state_of(host, bad) == "pending" and host.effects(key_of(bad)) == []
    host.approve(row["id"])
    assert truth(host, row, "succeeded") == 1


def test_F11_a_budget_is_reserved_before_and_an_unknown_one_keeps_it() -> None:
    with Acting(amount=5000) as host:
        task = host.task()
        host.grant(task)
        first, second = host.pending(task), host.pending(task, cents=4100)
        host.script("effect executes_then_drops", *["lookup status 503"] * 50)
        answer = Sent(host, first).join()
        assert answer is not None and answer.json["state"] == "unknown"
        money = next(b for b in host.json("budget", "show", task) if b["counter"] == "money" and not b["of_tenant"])
        assert (money["reserved"], money["used"]) == (4200, 0)
        host.approve(second["id"], code=1)
        assert host.row(second["id"])["denial"] == "budget" and host.effects(key_of(second)) == []
        host.script()
        assert truth(host, first, settled(host, first)) == 1


def test_F12_no_room_for_the_record_no_effect() -> None:
    """The engine's disk is full: it cannot write the intent, so nothing leaves; with room again it can be approved."""
    with Acting(small_store=True) as host:
        task = host.task()
        host.grant(task)
        row = host.pending(task)
        body = host.signed(row["id"])
        with host.full_store():
            answer = host.decide(row["id"], body)
            assert answer.status >= 400 and host.effects() == []
        host.whole()
        state = settled(host, row)
        assert state != "succeeded" and host.effects() == []
        if state == "pending":
            host.approve(row["id"])
            assert truth(host, row, "succeeded") == 1
        host.verify(task)
