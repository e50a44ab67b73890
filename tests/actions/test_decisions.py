# SPDX-License-Identifier: Apache-2.0
"""Decisions over HTTP as people sign them: one of many counts, once, for the bytes that were shown."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from acting import Acting
from daemon import Answer
from truth import key_of, settled, state_of, truth

REPEATS = 12


@pytest.fixture(scope="module")
def host() -> Iterator[Acting]:
    with Acting() as host:
        yield host


@pytest.fixture
def task(host: Acting) -> Iterator[str]:
    host.script()
    task = host.task()
    host.grant(task)
    yield task
    host.verify(task)


def at_once(*acts: Callable[[], Answer]) -> list[Answer]:
    with ThreadPoolExecutor(len(acts)) as pool:
        return [one.result() for one in [pool.submit(act) for act in acts]]


def after(draw: random.Random, act: Callable[[], Answer]) -> Callable[[], Answer]:
    """A little later: whoever asks the broker first would never win against what the engine does alone."""
    wait_s = draw.uniform(0, 0.02)

    def later() -> Answer:
        time.sleep(wait_s)
        return act()

    return later


def test_D3_two_hundred_posts_of_one_approval(host: Acting, task: str) -> None:
    """One effect, one dispatch in the record; each of the others hears that it is too late, or to come again."""
    row, before = host.pending(task), host.requests("POST")
    body = host.signed(row["id"])
    answers = at_once(*[lambda: host.decide(row["id"], body)] * 200)
    codes = sorted({a.status for a in answers})
    assert set(codes) <= {200, 409, 429, 503}, codes
    done = [a for a in answers if a.status == 200]
    assert len(done) == 1 and done[0].json["state"] == "succeeded", codes
    assert len(host.effects(key_of(row))) == 1 and host.requests("POST") == before + 1
    assert host.events(task).count("execution.dispatching") == 1 and host.events(task).count("decision.accepted") == 1


def test_D3_two_people_at_once(host: Acting, task: str) -> None:
    """One of them decides; the other hears who it was."""
    for turn in range(REPEATS):
        row = host.pending(task, cents=100 + turn)
        bodies = {who: host.signed(row["id"], who) for who in ("anna", "bert")}
        answers = at_once(*[partial(host.decide, row["id"], body) for body in bodies.values()])
        late = [a for a in answers if a.status != 200]
        assert len(late) == 1 and late[0].status == 409, [(a.status, a.body) for a in answers]
        winner = "anna" if answers[0].status == 200 else "bert"
        assert f"already decided by {winner}" in late[0].json["error"]
        assert truth(host, row, settled(host, row)) == 1


def test_D4_approve_reject_and_revoke_at_once(host: Acting, task: str) -> None:
    """The first commit wins; whichever it was, the provider's ledger agrees."""
    draw, seen = random.Random(4), set()
    for turn in range(REPEATS):
        row = host.pending(task, cents=200 + turn)
        yes, no = host.signed(row["id"]), host.signed(row["id"], "bert", "reject")
        taken_back = {"kind": "approval", "name": row["id"], "reason": "r"}
        at_once(after(draw, partial(host.decide, row["id"], yes)), after(draw, partial(host.decide, row["id"], no)),
                after(draw, partial(host.ask, "POST", "/v1/revocations", taken_back)))
        state = settled(host, row)
        seen.add(state)
        assert state in ("succeeded", "rejected", "revoked", "denied", "failed")
        truth(host, row, state)
    assert len(seen) > 1, seen


def test_D4_a_rejection_is_final(host: Acting, task: str) -> None:
    row = host.pending(task)
    yes = host.signed(row["id"])
    assert host.decide(row["id"], host.signed(row["id"], "bert", "reject")).expect(200).json["state"] == "rejected"
    assert "already decided by bert" in host.decide(row["id"], yes).expect(409).json["error"]
    assert truth(host, row, state_of(host, row)) == 0


def test_D2_a_decision_is_for_the_digest_that_was_shown(host: Acting, task: str) -> None:
    row = host.pending(task)
    body = host.signed(row["id"])
    refused = host.decide(row["id"], body | {"shown": "ab" * 32}).expect(409).json
    assert refused["digest"] == row["digest"]
    assert state_of(host, row) == "pending" and truth(host, row, "pending") == 0


def test_D1_an_approval_of_another_proposal_is_worth_nothing(host: Acting, task: str) -> None:
    """The words are those of the one, whatever digest stands beside them."""
    one, other = host.pending(task, cents=300), host.pending(task, cents=301)
    body = host.signed(one["id"])
    host.decide(other["id"], body).expect(409)
    assert host.decide(other["id"], body | {"shown": other["digest"]}).expect(403).json["denial"] == "digest"
    assert state_of(host, other) == "pending" and truth(host, other, "pending") == 0
    assert host.decide(one["id"], body).expect(200).json["state"] == "succeeded"


@pytest.mark.parametrize("part,denial", [("decision", ("digest", "signature", "record_malformed")),
                                         ("signature", ("signature", "signature_malformed", "approver_unknown"))])
def test_D1_one_changed_byte_is_worth_nothing(host: Acting, task: str, part: str, denial: tuple[str, ...]) -> None:
    row = host.pending(task)
    body = host.signed(row["id"])
    raw = bytearray(base64.b64decode(body[part]))
    for at in (len(raw) // 3, len(raw) // 2, len(raw) - 3):
        raw[at] ^= 1
        bad: dict[str, Any] = body | {part: base64.b64encode(bytes(raw)).decode()}
        raw[at] ^= 1
        answer = host.decide(row["id"], bad)
        assert answer.status in (400, 403), answer.body
        assert answer.status == 400 or answer.json["denial"] in denial, answer.body
    assert state_of(host, row) == "pending" and truth(host, row, "pending") == 0
    assert host.decide(row["id"], body).expect(200).json["state"] == "succeeded"


def test_D6_nobody_approves_what_they_asked_for(host: Acting, task: str) -> None:
    """Root asked for it by the Unix socket, and kim is root there; her valid signature changes nothing."""
    row = host.pending(task)
    denied = host.decide(row["id"], host.signed(row["id"], "kim")).expect(403).json
    assert denied["denial"] == "approver_own" and state_of(host, row) == "pending" and truth(host, row, "pending") == 0
    host.approve(row["id"])
    assert truth(host, row, "succeeded") == 1


def test_G19_replay_after_success(host: Acting, task: str) -> None:
    """The approval again is refused, the proposal again is the earlier one, the provider hears nothing."""
    row = host.pending(task)
    body = host.signed(row["id"])
    host.decide(row["id"], body).expect(200)
    posts = host.requests("POST")
    for _ in range(3):
        assert "already decided by anna" in host.decide(row["id"], body).expect(409).json["error"]
    again = host.propose(task).expect(200).json
    assert again["duplicate"] is True and again["id"] == row["id"] and again["state"] == "succeeded"
    assert truth(host, row, "succeeded") == 1 and host.requests("POST") == posts


@pytest.mark.parametrize("kind", ["approval", "grant", "task"])
def test_H8_the_same_approval_after_a_revocation(host: Acting, task: str, kind: str) -> None:
    row, posts = host.pending(task), host.requests("POST")
    body = host.signed(row["id"])
    grant = host.json("grant", "list", task)[0]["id"]
    name = {"approval": row["id"], "grant": grant, "task": task}[kind]
    host.ask("POST", "/v1/revocations", {"kind": kind, "name": name, "reason": "leak"}).expect(200, 201, 204)
    answer = host.decide(row["id"], body)
    assert answer.status in (200, 403, 409), answer.body
    assert state_of(host, row) in ("revoked", "denied") and truth(host, row, state_of(host, row)) == 0
    host.decide(row["id"], body)
    assert host.requests("POST") == posts and host.effects(key_of(row)) == []


def test_a_denied_proposal_leaves_the_grant_for_a_good_one(host: Acting) -> None:
    task = host.task()
    host.grant(task, uses=1)
    for order in ("777", "1", "777"):
        assert host.propose(task, order_id=order).json["denial"] == "verify_failed"
    row = host.pending(task)
    assert host.propose(task, cents=7).expect(403).json["denial"] == "no_grant"
    host.decide(row["id"], host.signed(row["id"], "bert", "reject")).expect(200)
    row = host.pending(task, cents=8)
    host.approve(row["id"])
    assert truth(host, row, "succeeded") == 1
    assert host.propose(task, cents=9).expect(403).json["denial"] == "no_grant"
