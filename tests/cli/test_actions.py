# SPDX-License-Identifier: Apache-2.0
"""Verbs of actions: what they ask, what they print of it, and that text of strangers stays text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fake import TASK, Fake

GRANT, PROPOSAL, EXECUTION = "gr_0123456789abcdef", "pr_0123456789abcdef", "xc_0123456789abcdef"
EVIL = "\x1b[2J\x1b]0;owned\x07\u202etxt\n"

OPERATION = {
    "name": "refund", "version": 3, "effect": "irreversible", "digest": "ab" * 32, "catalogue": "cd" * 32, "document": {
        "describe": "give money back", "name": "refund", "version": 3, "effect": "irreversible",
        "approval": {"quorum": 1, "roles": ["finance"], "decide_within_ms": 900000, "dispatch_within_ms": 60000,
                     "tiers": [{"above": 5000, "quorum": 2, "roles": ["finance", "lead"]}]},
        "parameters": [{"name": "cents", "type": "integer", "min": 1, "max": 100000},
                       {"name": "reason", "type": "string", "max": 200, "optional": True, "default": "none"}],
        "request": {"provider": {"name": "pay", "account": "acct_1", "environment": "production"}}}}
GRANTED = {"id": GRANT, "task": TASK, "tenant": "acme", "operation": "refund", "version": 3,
           "where": ["order.tenant == @tenant", "cents <= 5000"], "uses": 2, "used": 1, "issuer": "uid:0",
           "created_at": "2026-11-29T16:13:04.000Z", "expires_at": "2999-01-01T00:00:00.000Z"}
PROPOSED = {"id": PROPOSAL, "task": TASK, "tenant": "acme", "operation": "refund", "state": "pending", "text": "",
            "duplicate": False, "digest": "ab" * 32, "quorum": 2, "created_at": "2026-11-29T16:13:04.000Z",
            "decide_by": "2026-11-29T16:28:04.000Z", "record": "e30=", "note": EVIL, "decisions": [{}]}
EXECUTED = {"id": EXECUTION, "proposal": PROPOSAL, "task": TASK, "tenant": "acme", "operation": "refund", "state": "unknown",
            "incident": False, "status": 0, "sends": 1, "key": "dml-00", "provider_account": "acct_1", "text": "no answer came",
            "started_at": "2026-11-29T16:13:04.000Z", "first_byte_us": 4000, "receipt": {"refund_id": EVIL}}
CONTAINED = {"scope": f"task:{TASK}", "reason": "leak", "by": "uid:0", "since": "2026-11-29T16:13:04.000Z", "sandboxes_ended": 2,
             "grants_revoked": 1, "proposals_stopped": 3, "executions_open": 1}


def page(*items: Any) -> dict[str, Any]:
    return {"items": list(items), "more": False}


def rows(text: bytes) -> list[list[str]]:
    return [re.split(r"  +", line.strip()) for line in text.decode().splitlines()]


def test_operation_list_and_show(fake: Fake) -> None:
    fake.on("GET", "/v1/operations", 200, page(OPERATION))
    head, row = rows(fake.run("operation", "list").stdout)
    assert head == ["OPERATION", "VERSION", "EFFECT", "PEOPLE", "ACCOUNT", "DIGEST", "WHAT"]
    assert row == ["refund", "3", "irreversible", "1", "acct_1", "abababababab", "give money back"]
    fake.on("GET", "/v1/operations/refund", 200, OPERATION)
    text = fake.run("operation", "show", "refund").stdout.decode()
    for what in ("irreversible", "acct_1", "production", "15m00s", "ab" * 32, '5000: 2 people, roles ["finance","lead"]'):
        assert what in text, (what, text)
    assert re.search(r"cents +integer +min 1 max 100000", text)
    assert re.search(r'reason +string +max 200 optional default "none"', text)
    assert json.loads(fake.run("operation", "show", "refund", "--json").stdout) == OPERATION


def test_operation_names_are_one_segment(fake: Fake) -> None:
    fake.on("GET", "/v1/operations/../me?x", 404, {"error": "no such operation", "code": "not_found", "request_id": "r"})
    done = fake.run("operation", "show", "../me?x", code=1)
    assert done.stderr == b"demilune: no such operation; demilune operation list shows them\n"


def test_grant_issue(fake: Fake) -> None:
    fake.on("GET", "/v1/tasks/48221", 200, {"id": TASK})
    fake.on("POST", "/v1/grants", 201, GRANTED)
    args = ["grant", "issue", "--task", "48221", "--operation", "refund", "--where", "order.tenant=@tenant", "--where",
            "cents <= 5000", "--uses", "1", "--ttl", "10m"]
    assert fake.run(*args).stdout.decode() == GRANT + "\n"
    seen = fake.asked("POST", "/v1/grants")
    assert seen.json() == {"task": TASK, "operation": "refund", "where": ["order.tenant=@tenant", "cents <= 5000"], "uses": 1,
                           "ttl_seconds": 600}
    assert seen.headers["Content-Type"] == "application/json"
    assert json.loads(fake.run(*args, "--json").stdout) == GRANTED


@pytest.mark.parametrize("missing", ["--task", "--operation", "--uses", "--ttl"])
def test_a_grant_needs_its_bounds(fake: Fake, missing: str) -> None:
    given = {"--task": TASK, "--operation": "refund", "--uses": "1", "--ttl": "10m"}
    args = [word for name, value in given.items() if name != missing for word in (name, value)]
    done = fake.run("grant", "issue", *args, code=1)
    assert f"a grant needs {missing}".encode() in done.stderr and fake.seen == []


def test_grant_list(fake: Fake) -> None:
    fake.on("GET", "/v1/grants", 200, page(
        GRANTED, GRANTED | {"used": 2}, GRANTED | {"expires_at": "2020-01-01T00:00:00.000Z"},
        GRANTED | {"revoked_at": "2026-11-29T16:13:05.000Z"}, GRANTED | {"where": [EVIL], "issuer": EVIL}, GRANTED | {"changed": True}))
    done = fake.run("grant", "list", TASK).stdout
    assert [row[1] for row in rows(done)] == ["STATE", "valid", "used up", "expired", "revoked", "valid", "changed"]
    assert rows(done)[1][2:] == ["refund", "3", "1/2", "2999-01-01 00:00:00", "uid:0", "order.tenant == @tenant and cents <= 5000"]
    assert b"\x1b" not in done and b"\\x1b[2J" in done and "\u202e".encode() not in done


def test_budget_show(fake: Fake) -> None:
    fake.on("GET", f"/v1/tasks/{TASK}/budgets", 200, page(
        {"of_tenant": False, "operation": "", "counter": "proposals", "unit": "", "reserved": 0, "used": 3, "limit": 0},
        {"of_tenant": True, "operation": "refund", "counter": "money", "unit": "EUR", "reserved": 4200, "used": 800, "limit": 5000}))
    _, task, tenant = rows(fake.run("budget", "show", TASK).stdout)
    assert task == ["task", "proposals", "3", "0", "none"]
    assert tenant == ["tenant today", "refund", "money", "EUR", "800", "4200", "5000", "used up"]


def test_proposal_list(fake: Fake) -> None:
    fake.on("GET", "/v1/proposals", 200, page(PROPOSED, PROPOSED | {"state": "denied", "denial": "no_grant"}))
    done = fake.run("proposal", "list")
    _, row, denied = rows(done.stdout)
    assert row == [PROPOSAL, "pending", "refund", TASK, "acme", "2026-11-29 16:13:04", "2026-11-29 16:28:04", "1/2"]
    assert denied[1] == "denied" and denied[-1] == "no_grant"
    assert b"\x1b" not in done.stdout and b"owned" not in done.stdout
    assert fake.seen[-1].query == {"limit": "50"}
    fake.run("proposal", "list", "--open")
    assert fake.seen[-1].query == {"open": "1", "limit": "50"}
    fake.run("proposal", "list", TASK, "--open")
    assert fake.seen[-1].query == {"task": TASK, "open": "1", "limit": "50"}
    fake.run("proposal", "list", TASK)
    assert fake.seen[-1].query == {"task": TASK, "limit": "50"}
    assert all(s.method == "GET" for s in fake.seen)


def test_proposals_go_on_from_page_to_page(fake: Fake) -> None:
    pages = {"": {"items": [PROPOSED | {"id": "pr_1"}], "more": True}, "pr_1": page(PROPOSED | {"id": "pr_2"})}
    fake.on("GET", "/v1/proposals", lambda h, s: h.answer(200, pages[s.query.get("after", "")]))
    assert [p["id"] for p in json.loads(fake.run("proposal", "list", "--open", "--json").stdout)] == ["pr_1", "pr_2"]
    assert {s.query["open"] for s in fake.seen} == {"1"}


def test_executions(fake: Fake) -> None:
    fake.on("GET", "/v1/executions", 200, page(EXECUTED))
    assert rows(fake.run("execution", "list", TASK, "--open").stdout)[1] == [
        EXECUTION, "unknown", "refund", TASK, PROPOSAL, "2026-11-29 16:13:04", "0", "acct_1"]
    assert fake.seen[-1].query == {"task": TASK, "open": "1", "limit": "50"}
    fake.on("GET", f"/v1/executions/{EXECUTION}", 200, EXECUTED | {"incident": True, "denial": "dial_refused"})
    out = fake.run("execution", "show", EXECUTION).stdout.decode()
    for what in ("unknown", "no answer came", "dml-00", "contradicts", "dial_refused", "refund_id=\\x1b[2J"):
        assert what in out, (what, out)
    assert "\x1b" not in out and "\u202e" not in out
    for bad in (PROPOSAL, "xc_", "../me", EXECUTION + "0"):
        fake.run("execution", "show", bad, code=1)
    assert len(fake.seen) == 2


def test_reconcile(fake: Fake) -> None:
    path = f"/v1/executions/{EXECUTION}/reconcile"
    fake.on("POST", path, 200, EXECUTED | {"state": "succeeded"})
    assert b"succeeded" in fake.run("reconcile", EXECUTION).stdout
    assert fake.asked("POST", path).json() == {}
    fake.on("POST", path, 200, EXECUTED)
    done = fake.run("reconcile", EXECUTION, code=1)
    assert b"still not known" in done.stderr and b"unknown" in done.stdout
    fake.run("reconcile", PROPOSAL, code=1)
    assert len(fake.seen) == 2


@pytest.mark.parametrize("kind,name,says", [("grant", GRANT, GRANT), ("approval", PROPOSAL, PROPOSAL), ("task", "48221", TASK)])
def test_revoke(fake: Fake, kind: str, name: str, says: str) -> None:
    fake.on("GET", "/v1/tasks/48221", 200, {"id": TASK})
    fake.on("POST", "/v1/revocations", 204)
    assert fake.run("revoke", kind, name, "--reason", "leak").stdout == b""
    assert fake.asked("POST", "/v1/revocations").json() == {"kind": kind, "name": says, "reason": "leak"}
    fake.run("revoke", kind, name)
    assert fake.asked("POST", "/v1/revocations").json() == {"kind": kind, "name": says}


def test_revoke_wants_exact_ids(fake: Fake) -> None:
    for args in (["grant", PROPOSAL], ["grant", "gr_"], ["approval", GRANT], ["approval", "48221"]):
        fake.run("revoke", *args, code=1)
    assert fake.run("revoke", code=2).stderr == b"demilune: revoke what? grant, approval, task\n"
    assert fake.seen == []


@pytest.mark.parametrize("scope,says", [("host", "host"), ("all", "host"), ("tenant:acme", "tenant:acme"), (TASK, f"task:{TASK}"),
                                        ("48221", f"task:{TASK}"), ("task:48221", f"task:{TASK}")])
def test_contain(fake: Fake, scope: str, says: str) -> None:
    fake.on("GET", "/v1/tasks/48221", 200, {"id": TASK})
    fake.on("POST", "/v1/containments", 201, CONTAINED | {"executions": [EXECUTED]})
    out = fake.run("contain", scope, "--reason", "leak").stdout
    assert fake.asked("POST", "/v1/containments").json() == {"scope": says, "reason": "leak"}
    assert b"2 ended" in out and b"1 revoked" in out and b"1 to reconcile" in out and EXECUTION.encode() in out
    assert b"--reason is needed" in fake.run("contain", scope, code=1).stderr


def test_other_tasks_of_the_ticket_are_told(fake: Fake) -> None:
    fake.on("GET", "/v1/tasks/48221", 200, {"id": TASK})
    fake.on("GET", "/v1/tasks", 200, {"items": [{"id": TASK, "tenant": "acme"}, {"id": "tk_other", "tenant": "globex"}], "more": False})
    fake.on("POST", "/v1/containments", 201, CONTAINED | {"executions": []})
    for scope in ("48221", "task:48221"):
        assert b"2 tasks have this ticket" in fake.run("contain", scope, "--reason", "leak").stderr
    assert fake.run("contain", TASK, "--reason", "leak").stderr == b""


def test_a_scope_that_is_no_task(fake: Fake) -> None:
    fake.on("GET", "/v1/tasks/acme", 404, {"error": "no such task or ticket", "code": "not_found", "request_id": "r"})
    done = fake.run("contain", "acme", "--reason", "leak", code=1)
    assert b"acme; a scope is host, tenant:NAME or a task" in done.stderr


def test_containment_list(fake: Fake) -> None:
    fake.on("GET", "/v1/containments", 200, page(CONTAINED, CONTAINED | {"released_at": "2026-11-29T17:00:00.000Z", "reason": EVIL}))
    done = fake.run("containment", "list").stdout
    assert [row[1] for row in rows(done)] == ["STATE", "contained", "released"]
    assert b"\x1b" not in done and b"\\x1b[2J" in done


def test_a_denial_is_named(fake: Fake) -> None:
    fake.on("POST", "/v1/grants", 403, {"error": "a budget is used up", "code": "denied", "request_id": "r",
                                                      "denial": "budget" + EVIL})
    done = fake.run("grant", "issue", "--task", TASK, "--operation", "refund", "--uses", "1", "--ttl", "1h", code=1)
    assert done.stderr.startswith(b"demilune: a budget is used up (budget\\x1b[2J") and b"\x1b" not in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("args", [["operation", "list"], ["grant", "list", TASK], ["budget", "show", TASK], ["proposal", "list"],
                                  ["execution", "list"], ["containment", "list"]])
@pytest.mark.parametrize("what", [[], {"items": 5}, {}, {"items": [{}], "more": True}, "x"])
def test_lists_that_are_none(fake: Fake, args: list[str], what: Any) -> None:
    for path in ("/v1/operations", "/v1/grants", f"/v1/tasks/{TASK}/budgets", "/v1/proposals", "/v1/executions",
                 "/v1/containments"):
        fake.on("GET", path, 200, what)
    assert fake.run(*args, code=1).stderr.startswith(b"demilune: the daemon's")


@pytest.mark.parametrize("args", [["operation", "list"], ["grant", "list", TASK], ["budget", "show", TASK], ["proposal", "list"],
                                  ["execution", "list"], ["containment", "list"]])
def test_rows_with_members_of_other_types(fake: Fake, args: list[str]) -> None:
    odd = {"id": [], "name": 7, "state": {}, "where": "x", "decisions": 3, "uses": "many", "limit": -1, "used": 1 << 62,
           "document": [1], "created_at": 5, "expires_at": True, "scope": None}
    for path in ("/v1/operations", "/v1/grants", f"/v1/tasks/{TASK}/budgets", "/v1/proposals", "/v1/executions",
                 "/v1/containments"):
        fake.on("GET", path, 200, page(odd, {}))
    assert len(fake.run(*args).stdout.splitlines()) == 3
