# SPDX-License-Identifier: Apache-2.0
"""Policies and verdicts over HTTP: what reaches the engine, what comes back, and who sees none of it."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Api

DIGEST = "sha256:cc" + "00" * 31


@pytest.fixture
def other(api: Api) -> str:
    """A token of another tenant."""
    token: str = api.ask("POST", "/v1/me/tokens", {"label": "other"}).json["token"]
    return token


def test_policies_are_listed_with_their_documents(api: Api) -> None:
    page = api.ask("GET", "/v1/policies").json
    one, bare = page["items"]
    assert page["more"] is False and bare["name"] == "too-long-for-a-list" and "policy" not in bare
    assert one["name"] == "support" and one["digest"] == DIGEST and one["current"] is True and one["sandboxes"] == 2
    assert one["policy"] == {"budgets": {"names": 100}, "name": "support", "rules": [{"host": "docs.example", "kind": "fetch"}], "v": 1}
    assert api.ask("GET", "/v1/policies/support").json == one


def test_the_policy_of_a_task_is_the_revision_that_it_has(api: Api) -> None:
    pinned = api.ask("GET", "/v1/tasks/48221/policy")
    assert pinned.status == 200 and pinned.json["current"] is False and pinned.json["name"] == "support"
    none = api.ask("GET", "/v1/tasks/bare/policy")
    assert none.status == 404 and none.json["error"] == "the task has no policy"
    assert api.ask("GET", f"/v1/tasks/{'9' * 257}/policy").status == 404


@pytest.mark.parametrize("name", ["none", "Support", "support.yaml", "..", "%2e%2e", "a" * 64, "1a", "a%00b", "a%2Fb", "a-b"])
def test_what_is_no_name_of_a_policy_is_none(api: Api, name: str) -> None:
    answer = api.ask("GET", f"/v1/policies/{name}")
    assert answer.status == 404 or (name == "a%00b" and answer.status == 400), answer.body


def test_verdicts_of_a_task_and_its_budgets(api: Api) -> None:
    net = api.ask("GET", "/v1/tasks/48221/net").json
    refused, allowed = net["items"]
    assert net["more"] is False
    assert refused == {"verdict": "refused", "reason": "no-rule", "scheme": "https", "name": "docs.example", "port": 443, "address": "",
                       "policy_digest": DIGEST, "count": 3, "bytes_out": 512, "bytes_in": 2**40,
                       "first_at": "2023-11-14T22:13:20.000Z", "last_at": "2023-11-14T22:13:21.000Z"}
    assert allowed["verdict"] == "allowed" and allowed["reason"] == "none" and allowed["address"] == "192.0.2.7"
    assert allowed["rule"] == 1, "rules are counted from 1"
    assert [b["budget"] for b in net["budgets"]] == ["names", "connections", "handshakes", "requests", "brokered", "bytes_out", "bytes_in"]
    assert net["budgets"][0] == {"budget": "names", "used": 1, "lent": 4, "limit": 100}
    assert net["budgets"][6]["used"] == 2**64 - 1
    first = api.ask("GET", "/v1/tasks/48221/net?limit=1").json
    assert len(first["items"]) == 1 and first["more"] is True and len(first["budgets"]) == 7


def test_a_task_without_a_policy_has_no_verdict_and_no_budget(api: Api) -> None:
    assert api.ask("GET", "/v1/tasks/bare/net").json == {"items": [], "budgets": [], "more": False}
    assert api.ask("GET", "/v1/tasks/nobody/net").status == 404


def test_rows_behind_the_budgets_break_nothing(api: Api) -> None:
    net = api.ask("GET", "/v1/tasks/twisted/net").json
    assert len(net["items"]) == 1 and len(net["budgets"]) == 7


def test_recorded_requests_come_in_pages(api: Api) -> None:
    page = api.ask("GET", "/v1/egress?limit=2").json
    assert [r["row"] for r in page["items"]] == [1, 2] and page["more"] is True
    row = page["items"][1]
    assert row["verdict"] == "aborted" and row["reason"] == "resp-limit" and row["scheme"] == "http" and row["tenant"] == "acme"
    assert row["query"] == ["number", "lang"] and row["path"] == "/a%20b" and row["method"] == "GET" and row["count"] == 2
    rest = api.ask("GET", "/v1/egress?limit=2&after=2").json
    assert [r["row"] for r in rest["items"]] == [3] and rest["more"] is False
    assert [r["row"] for r in api.ask("GET", "/v1/egress?since=3").json["items"]] == [3]


@pytest.mark.parametrize("query", ["since=x", "since=-1", "since=1.5", "after=row", "limit=201", "limit=a", "since=99999999999999999999"])
def test_bad_numbers_are_refused(api: Api, query: str) -> None:
    assert api.ask("GET", f"/v1/egress?{query}").status == 400


def test_other_tenants_see_nothing_of_it(api: Api, other: str) -> None:
    assert api.ask("GET", "/v1/policies", token=other).json == {"items": [], "more": False}
    for path in ("/v1/policies/support", "/v1/tasks/48221/policy", "/v1/tasks/48221/net"):
        assert api.ask("GET", path, token=other).status == 404, path
    assert api.ask("GET", "/v1/egress", token=other).json["items"] == []


def test_nobody_sees_it_without_a_token(api: Api) -> None:
    for path in ("/v1/policies", "/v1/policies/support", "/v1/tasks/48221/policy", "/v1/tasks/48221/net", "/v1/egress"):
        assert api.ask("GET", path, tcp=True).status == 401, path


def test_nothing_but_reading_is_offered(api: Api) -> None:
    for path in ("/v1/policies", "/v1/policies/support", "/v1/tasks/48221/policy", "/v1/tasks/48221/net", "/v1/egress"):
        for method in ("POST", "PUT", "DELETE"):
            answer = api.ask(method, path)
            assert answer.status == 405 and answer.headers["Allow"] == "GET", path


def test_a_sandbox_and_a_task_are_made_with_a_policy(api: Api) -> None:
    made = api.ask("POST", "/v1/sandboxes", {"policy": "support"}).json
    assert made["policy"] == "support" and made["policy_digest"] == DIGEST
    assert api.ask("GET", f"/v1/sandboxes/{made['id']}").json["policy"] == "support"
    assert api.ask("DELETE", f"/v1/sandboxes/{made['id']}").status == 204
    assert api.ask("POST", "/v1/tasks", {"policy": "support"}).json["policy"] == "support"


def test_clients_that_send_no_policy_get_what_they_got(api: Api) -> None:
    for body in ({}, {"policy": None}):
        made = api.ask("POST", "/v1/sandboxes", body).json
        assert made["policy"] == "none" and "policy_digest" not in made
        assert api.ask("DELETE", f"/v1/sandboxes/{made['id']}").status == 204
        assert api.ask("POST", "/v1/tasks", body).json["policy"] == "none"


@pytest.mark.parametrize("policy", ["", "a" * 64, 1, True, ["support"], {"name": "support"}, {"egress": []}])
def test_a_policy_is_named_and_never_brought_along(api: Api, policy: Any) -> None:
    for path in ("/v1/sandboxes", "/v1/tasks"):
        assert api.ask("POST", path, {"policy": policy}).status == 400, path


def test_a_policy_that_there_is_not_is_refused(api: Api) -> None:
    answer = api.ask("POST", "/v1/sandboxes", {"policy": "nowhere"})
    assert answer.status == 404 and answer.json["error"] == "no such policy"
