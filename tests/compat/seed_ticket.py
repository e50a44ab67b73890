# SPDX-License-Identifier: Apache-2.0
"""A support product as its author would write it for the SDK: one ticket, one sandbox, one credential, proposals as data.

Host code of the kind that the project exists for; nothing here knows Demilune. Around it stand-ins for the product's own
parts: the minted credential, the orders, the person who approves, the billing system.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from pandastack import Sandbox

# Runs inside of the sandbox: reads the credential and the query that the model wrote, answers JSON.
RUNNER = """import json, sys, psycopg

dsn = open("/run/ticket/dsn").read().strip()
sql = open("/work/proposed.sql").read()

with psycopg.connect(dsn, connect_timeout=5) as conn:
    cursor = conn.execute(sql)
    names = [column.name for column in cursor.description]
    rows = cursor.fetchmany(200)

json.dump({"columns": names, "rows": rows}, sys.stdout, default=str)
"""


@dataclass(frozen=True)
class Ticket:
    id: str
    tenant_id: str


@dataclass(frozen=True)
class Order:
    id: str
    tenant_id: str


@dataclass
class Product:
    """What stands on the host and is never in a sandbox."""

    orders: dict[str, Order]
    approves: bool = True
    minted: list[str] = field(default_factory=list)
    drafts: list[tuple[str, str]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    refunds: dict[str, int] = field(default_factory=dict)

    def mint_readonly_dsn(self, tenant_id: str, ttl_seconds: int) -> str:
        self.minted.append(f"{tenant_id} for {ttl_seconds} s")
        return f"host=orders.db port=5432 dbname=shop user=tkt_{len(self.minted)} password=once-only"

    def run_lookup(self, ticket: Ticket, proposed_sql: str) -> dict[str, Any]:
        dsn = self.mint_readonly_dsn(tenant_id=ticket.tenant_id, ttl_seconds=300)
        with Sandbox.create(
            template="code-interpreter",
            ttl_seconds=600,
            metadata={"ticket": ticket.id, "tenant": ticket.tenant_id, "trust": "none"},
        ) as sandbox:
            sandbox.filesystem.write("/run/ticket/dsn", dsn)
            sandbox.filesystem.write("/work/proposed.sql", proposed_sql)
            sandbox.filesystem.write("/work/run.py", RUNNER)
            run = sandbox.exec("python3 /work/run.py", timeout_seconds=30)
            if run.exit_code != 0:
                return {"ok": False, "error": run.stderr[-2000:]}
            return {"ok": True, "data": json.loads(run.stdout)}

    def await_human_approval(self, **what: Any) -> bool:
        self.asked.append(what)
        return self.approves

    def resolve(self, ticket: Ticket, proposal: dict[str, Any], lookup: dict[str, Any]) -> dict[str, Any]:
        if proposal["action"] == "reply":
            self.drafts.append((ticket.id, proposal["body"]))
            return {"status": "draft"}
        if proposal["action"] == "refund":
            order = self.orders[proposal["order_id"]]
            if order.tenant_id != ticket.tenant_id:
                raise PermissionError("a refund for another tenant's order")
            if not self.await_human_approval(ticket=ticket.id, order=order.id, cents=proposal["cents"], evidence=lookup):
                return {"status": "declined"}
            self.refunds.setdefault(f"ticket-{ticket.id}", proposal["cents"])
            return {"status": "refunded"}
        return {"status": "escalated"}
