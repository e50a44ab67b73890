# SPDX-License-Identifier: Apache-2.0
"""The program that the project was made for runs as it is, and its sandbox is gone afterwards."""

import json
from collections.abc import Iterator

import pandastack
import pytest
from place import Caller, record
from seed_ticket import Order, Product, Ticket

INJECTED = "UPDATE accounts SET plan='enterprise', credit_cents=500000 WHERE email='m@evil.tld'"


@pytest.fixture
def product(caller: Caller) -> Iterator[Product]:
    pandastack.set_default_client(pandastack.Client(api_url=caller.url, api_key=caller.token))
    yield Product({"48221": Order("48221", "t-1"), "39120": Order("39120", "t-2")})
    pandastack.set_default_client(None)


def test_lookup_without_a_database(caller: Caller, product: Product) -> None:
    ticket = Ticket("48221-seed", "t-1")
    before = {box.id for box in pandastack.Sandbox.list()}
    answer = product.run_lookup(ticket, INJECTED)
    assert answer["ok"] is False
    assert "psycopg.OperationalError: connection is bad" in answer["error"]
    assert {box.id for box in pandastack.Sandbox.list()} == before
    assert product.minted == ["t-1 for 300 s"]
    events = record(caller, ticket.id)
    ends = [r["data"] for r in events if r["event"] == "job.end"]
    assert len(ends) == 4, "three files and a command"
    assert (ends[-1]["reason"], ends[-1]["code"]) == ("exited", 1)
    assert "once-only" not in json.dumps(events), "the credential stands in the record"


def test_nothing_of_a_ticket_is_in_the_next(product: Product) -> None:
    product.run_lookup(Ticket("4001", "t-1"), INJECTED)
    with pandastack.Sandbox.create(template="code-interpreter", ttl_seconds=60) as box:
        assert not box.filesystem.exists("/run/ticket/dsn")
        assert box.exec("ls /work").stdout == ""


def test_proposals_are_data(product: Product) -> None:
    ticket, refund = Ticket("48221", "t-1"), {"action": "refund", "order_id": "48221", "cents": 4200}
    assert product.resolve(ticket, {"action": "reply", "body": "It is on its way."}, {}) == {"status": "draft"}
    assert product.resolve(ticket, refund, {}) == {"status": "refunded"}
    assert product.refunds == {"ticket-48221": 4200}
    with pytest.raises(PermissionError):
        product.resolve(ticket, refund | {"order_id": "39120"}, {})
    product.approves = False
    assert product.resolve(ticket, refund, {}) == {"status": "declined"}
    assert product.resolve(ticket, {"action": "drop tables"}, {}) == {"status": "escalated"}
