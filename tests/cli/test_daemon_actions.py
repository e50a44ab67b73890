# SPDX-License-Identifier: Apache-2.0
"""
Actions from the first grant to the receipt: a real daemon, a real provider with a ledger of its own, a real ssh-agent. What
counts is what the provider's ledger says. Needs root and a template.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from daemon import Answer, Daemon
from fake import BINARY

ROOT = Path(__file__).resolve().parents[2]
FORM = "application/x-www-form-urlencoded"
CATALOGUE = """# SPDX-License-Identifier: Apache-2.0
providers:
  shop:
    origin: http://shop.example:{port}
    address: 127.0.0.1
    account: acct_support
    environment: test
    credential: {{secret: shop, header: Authorization, prefix: "Bearer "}}
    timeout: 5s
    capability:
      key: {{header: Idempotency-Key, format: raw}}
      key_window: 24h
      definite: [400, 404, 422]
      not_processed: [429]
      lookup:
        by: key
        path: /v1/executions
        query: {{key: "@key"}}
        list: data
        field: status
        succeeded: [succeeded]
        failed: [failed]
        consistency: 30s
operations:
  refund:
    version: 1
    effect: irreversible
    describe: Pay money of an order back
    parameters:
      order_id: {{type: string, pattern: "[0-9]{{1,12}}", max: 12, identifier: true}}
      cents: {{type: integer, min: 1, max: 50000}}
      reason: {{type: enum, values: [damaged, other], default: other}}
    amount: {{argument: cents, currency: EUR}}
    verify:
      provider: shop
      path: "/v1/orders/{{order_id}}"
      facts: {{order.tenant: tenant, order.paid_cents: paid_cents, order.status: status}}
      require: ["order.tenant == @tenant", "order.paid_cents >= cents"]
    request:
      provider: shop
      method: POST
      path: "/v1/orders/{{order_id}}/refunds"
      body: {{amount: "{{cents}}", currency: EUR, reason: "{{reason}}"}}
      success: [200, 201]
      receipt: {{id: id, amount: amount}}
      echo: {{amount: cents}}
    approval:
      quorum: 1
      decide_within: 30m
    budgets: {{task_uses: 20, task_amount: 1000000}}
"""


@dataclass
class Host:
    """Everything of it, and its people."""

    daemon: Daemon
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def cli(self, *args: str, code: int | None = 0) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run([str(BINARY), *args], env=self.env, input=b"", capture_output=True, timeout=90, check=False)
        assert code is None or done.returncode == code, (args, done.returncode, done.stdout[-3000:], done.stderr[-2000:])
        return done

    def json(self, *args: str) -> Any:
        return json.loads(self.cli(*args, "--json").stdout)

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str) -> Answer:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            fields["Authorization"] = f"Bearer {token}"
        return self.daemon.client.request(method, path, body, headers=fields)

    def task(self) -> str:
        return self.cli("task", "create", "--tenant", "acme", "--template", "python").stdout.decode().strip()

    def grant(self, task: str, uses: int = 5) -> str:
        return self.cli("grant", "issue", "--task", task, "--operation", "refund", "--where", "order.tenant == @tenant", "--uses",
                        str(uses), "--ttl", "10m").stdout.decode().strip()

    def propose(self, task: str, **arguments: Any) -> Answer:
        asked = {"order_id": "48221", "cents": 4200} | arguments
        return self.ask("POST", "/v1/proposals",
                        {"task": task, "operation": "refund", "arguments": asked, "provenance": {"cents": "db"}, "note": "he is angry"})

    def pending(self, task: str, **arguments: Any) -> dict[str, Any]:
        row: dict[str, Any] = self.propose(task, **arguments).expect(201).json
        limit = time.monotonic() + 10
        while row["state"] == "proposed" and time.monotonic() < limit:
            time.sleep(0.02)
            row = self.ask("GET", f"/v1/proposals/{row['id']}").expect(200).json
        assert row["state"] == "pending", row
        return row

    def approve(self, proposal: str, code: int | None = 0) -> subprocess.CompletedProcess[bytes]:
        return self.cli("approve", proposal, "--yes", "--trust", str(self.home / "trust"), code=code)

    def effects(self) -> list[dict[str, Any]]:
        path = self.home / "shop/effects"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def next_effect(self, script: str) -> None:
        (self.home / "shop/script").write_text(f"effect {script}\n")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    home = tmp_path_factory.mktemp("host")
    home.chmod(0o755)
    for name, mode in (("operations.d", 0o755), ("secrets", 0o700), ("trust", 0o755), ("shop", 0o700)):
        (home / name).mkdir(mode=mode)
    (home / "secrets/shop").write_text("sk_test_canary")
    (home / "secrets/shop").chmod(0o600)
    sock, key = str(home / "agent.sock"), home / "anna"
    shop = [sys.executable, str(ROOT / "tests/provider.py"), "--dir", str(home / "shop")]
    with (subprocess.Popen(shop, stdout=subprocess.PIPE) as provider,
          subprocess.Popen(["ssh-agent", "-D", "-a", sock], stdout=subprocess.DEVNULL) as agent):
        assert provider.stdout is not None
        port = int(provider.stdout.readline().split()[1])
        (home / "operations.d/shop.yaml").write_text(CATALOGUE.format(port=port))
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        subprocess.run(["ssh-add", "-q", key], env=os.environ | {"SSH_AUTH_SOCK": sock}, check=True, stderr=subprocess.DEVNULL)
        subprocess.run([BINARY, "approver", "enrol", "--name", "anna", "--key", f"{key}.pub", "--may", "refund", "--role", "release",
                        "--trust", str(home / "trust")], check=True, stdout=subprocess.DEVNULL)
        settings = {f"actions.{name}": str(home / (name if name != "operations" else "operations.d"))
                    for name in ("operations", "secrets", "trust")}
        try:
            with Daemon(settings) as daemon:
                yield Host(daemon, home, {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "SSH_AUTH_SOCK": sock,
                                          "DEMILUNE_SOCKET": str(daemon.run / "api.sock")})
        finally:
            provider.terminate()
            agent.terminate()


def test_from_the_grant_to_the_receipt(host: Host) -> None:
    assert b"Pay money of an order back" in host.cli("operation", "list").stdout
    assert b"max 50000" in host.cli("operation", "show", "refund").stdout
    task, before = host.task(), len(host.effects())
    grant = host.grant(task)
    assert host.json("grant", "list", task)[0]["where"] == ["order.tenant == @tenant"]
    row = host.pending(task)
    assert row["id"] in [p["id"] for p in host.json("proposal", "list", task, "--open")]
    record = json.loads(base64.b64decode(row["record"]))
    assert record["arguments"] == {"cents": 4200, "order_id": "48221", "reason": "other"} and record["capability"] == grant
    assert record["provenance"]["cents"] == "db" and record["tenant"] == "acme"
    assert b"he is angry" not in base64.b64decode(row["record"])
    assert len(host.effects()) == before
    assert b"succeeded" in host.approve(row["id"]).stdout
    effect = host.effects()[-1]
    assert len(host.effects()) == before + 1 and effect["body"]["amount"] == 4200 and effect["key"] == record["idempotency_key"]
    execution = host.json("execution", "list", task)[0]
    assert execution["state"] == "succeeded" and execution["receipt"] == {"amount": 4200, "id": effect["id"]}
    assert effect["id"].encode() in host.cli("execution", "show", execution["id"]).stdout
    assert host.json("proposal", "list", task, "--open") == []
    used = {(b["counter"], b["operation"]): b["used"] for b in host.json("budget", "show", task) if not b["of_tenant"]}
    assert used["proposals", ""] == 1 and used["money", "refund"] == 4200
    again = host.approve(row["id"], code=1)
    assert b"does not wait for a decision" in again.stderr and len(host.effects()) == before + 1


def test_G19_the_same_proposal_again_has_the_earlier_answer(host: Host) -> None:
    task = host.task()
    host.grant(task)
    row = host.pending(task)
    again = host.propose(task).expect(200).json
    assert again["id"] == row["id"] and again["duplicate"] is True


def test_D3_eight_approvals_at_once_are_one_effect(host: Host) -> None:
    task, before = host.task(), len(host.effects())
    host.grant(task)
    row = host.pending(task)
    command = [str(BINARY), "approve", row["id"], "--yes", "--trust", str(host.home / "trust")]
    racing = [subprocess.Popen(command, env=host.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
              for _ in range(8)]
    ends = [(one.communicate(timeout=60), one.returncode) for one in racing]
    assert sum(code == 0 for _, code in ends) >= 1
    for (_, said), code in ends:
        assert code == 0 or b"deci" in said, (code, said)  # "already decided by", "waits for no decision"
    assert len(host.effects()) == before + 1
    assert host.ask("GET", f"/v1/proposals/{row['id']}").json["state"] == "succeeded"
    assert len(host.json("execution", "list", task)) == 1


def undecided(host: Host, row: dict[str, Any], before: int) -> bool:
    now = host.ask("GET", f"/v1/proposals/{row['id']}").expect(200).json
    return bool(now["state"] == "pending" and now["decisions"] == [] and len(host.effects()) == before)


def body_of(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    decision = base64.b64encode(b"{}").decode()
    return {"shown": row["digest"], "decision": decision, "signature": decision} | more


def test_D2_another_digest_is_a_conflict(host: Host) -> None:
    task, before = host.task(), len(host.effects())
    host.grant(task)
    row = host.pending(task)
    refused = host.ask("POST", f"/v1/proposals/{row['id']}/decision", body_of(row, shown="ab" * 32)).expect(409).json
    assert refused["denial"] == "digest" and refused["shown"] == "ab" * 32 and refused["digest"] == row["digest"]
    assert undecided(host, row, before)


def test_D8_and_D9_neither_reading_nor_a_form_decides(host: Host) -> None:
    task, before = host.task(), len(host.effects())
    host.grant(task)
    row = host.pending(task)
    path = f"/v1/proposals/{row['id']}"
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE"):
        for one in (path, path + "/decision"):
            host.ask(method, f"{one}?approve=1&shown={row['digest']}").expect(200, 405)
    for kind in (FORM, "text/plain", "multipart/form-data; boundary=x"):
        host.ask("POST", path + "/decision", json.dumps(body_of(row)).encode(), Content_Type=kind).expect(415)
    assert undecided(host, row, before)


def test_another_tenant_finds_nothing(host: Host) -> None:
    task, before = host.task(), len(host.effects())
    grant = host.grant(task)
    done = host.pending(task)
    host.approve(done["id"])
    execution = host.json("execution", "list", task)[0]["id"]
    row = host.pending(task, cents=17)
    other = host.ask("POST", "/v1/me/tokens", {"tenant": "globex"}).expect(201).json["token"]
    for method, path, body in (
            ("GET", f"/v1/proposals/{row['id']}", None), ("POST", f"/v1/proposals/{row['id']}/decision", body_of(row)),
            ("GET", f"/v1/proposals?task={task}", None), ("GET", f"/v1/grants?task={task}", None),
            ("GET", f"/v1/tasks/{task}/budgets", None), ("DELETE", f"/v1/grants/{grant}", None),
            ("POST", "/v1/grants", {"task": task, "operation": "refund", "uses": 1, "ttl_seconds": 60}),
            ("POST", "/v1/proposals", {"task": task, "operation": "refund", "arguments": {"order_id": "777", "cents": 1}}),
            ("GET", f"/v1/executions?task={task}", None), ("GET", f"/v1/executions/{execution}", None),
            ("POST", f"/v1/executions/{execution}/reconcile", {}), ("POST", "/v1/revocations", {"kind": "grant", "name": grant}),
            ("POST", "/v1/revocations", {"kind": "approval", "name": row["id"]}),
            ("POST", "/v1/revocations", {"kind": "task", "name": task}),
            ("POST", "/v1/containments", {"scope": f"task:{task}", "reason": "x"})):
        answer = host.ask(method, path, body, token=other)
        assert answer.status == 404, (method, path, answer.status, answer.body)
    for path in ("/v1/proposals", "/v1/executions", "/v1/containments"):
        assert host.ask("GET", path, token=other).expect(200).json["items"] == []
    assert undecided(host, row, before + 1) and host.json("grant", "list", task)[0].get("revoked_at") is None


@pytest.mark.parametrize("arguments,denial", [
    ({"order_id": "777"}, "verify_failed"), ({"cents": 42000}, "verify_failed"), ({"approved": True}, "arguments"),
    ({"cents": 0}, "arguments"), ({"cents": "4200"}, "arguments"), ({"order_id": "48221/../777"}, "arguments"),
    ({"reason": None}, "arguments")], ids=repr)
def test_forged_variants_are_denied(host: Host, arguments: dict[str, Any], denial: str) -> None:
    task, before = host.task(), len(host.effects())
    host.grant(task)
    answer = host.propose(task, **arguments)
    assert answer.status == 403 and answer.json["denial"] == denial, answer.body
    assert len(host.effects()) == before


def test_revoked_grants_give_nothing(host: Host) -> None:
    task = host.task()
    assert host.propose(task).expect(403).json["denial"] == "no_grant"
    grant = host.grant(task)
    row = host.pending(task)
    host.cli("revoke", "grant", grant, "--reason", "leak")
    assert host.propose(task, cents=5).expect(403).json["denial"] in ("no_grant", "revoked")
    before = len(host.effects())
    assert host.approve(row["id"], code=1).returncode == 1 and len(host.effects()) == before


def test_a_revoked_approval_is_not_carried_out(host: Host) -> None:
    task, before = host.task(), len(host.effects())
    host.grant(task)
    row = host.pending(task)
    host.cli("revoke", "approval", row["id"])
    assert host.ask("GET", f"/v1/proposals/{row['id']}").json["state"] == "revoked"
    assert b"it is revoked" in host.approve(row["id"], code=1).stderr and len(host.effects()) == before


def test_unknown_is_looked_up(host: Host) -> None:
    task, before = host.task(), len(host.effects())
    host.grant(task)
    row = host.pending(task)
    host.next_effect("executes_then_drops")
    done = host.approve(row["id"], code=1)
    assert b"unknown" in done.stdout + done.stderr and len(host.effects()) == before + 1
    execution = host.json("execution", "list", task, "--open")[0]
    assert execution["state"] == "unknown"
    assert b"succeeded" in host.cli("reconcile", execution["id"]).stdout
    assert host.json("execution", "list", task, "--open") == [] and len(host.effects()) == before + 1


def test_unknown_is_settled_by_a_person(host: Host) -> None:
    task, before = host.task(), len(host.effects())
    host.grant(task)
    row = host.pending(task)
    (host.home / "shop/script").write_text("effect executes_then_drops\n" + "lookup status 503\n" * 20)
    host.approve(row["id"], code=1)
    execution = host.json("execution", "list", task, "--open")[0]["id"]
    assert b"still not known" in host.cli("reconcile", execution, code=1).stderr
    settled = host.json("reconcile", execution, "--as", "succeeded", "--note", "seen in their ledger", "--trust", str(host.home / "trust"))
    assert settled["state"] == "manual" and settled["settled"] == "succeeded"
    (host.home / "shop/script").write_text("")
    assert len(host.effects()) == before + 1


def test_containment_and_release(host: Host) -> None:
    task, before = host.task(), len(host.effects())
    host.grant(task)
    row = host.pending(task)
    out = host.cli("contain", task, "--reason", "it wrote to a stranger").stdout
    assert f"task:{task}".encode() in out
    assert host.propose(task, cents=3).expect(403).json["denial"] == "contained"
    host.approve(row["id"], code=1)
    assert len(host.effects()) == before
    mine = [c for c in host.json("containment", "list") if c["scope"] == f"task:{task}"]
    assert mine and "released_at" not in mine[0] and mine[0]["grants_revoked"] == 1
    host.cli("release", task, "--note", "looked at it", "--trust", str(host.home / "trust"))
    assert next(c for c in host.json("containment", "list") if c["scope"] == f"task:{task}")["released_at"]
    assert host.propose(task, cents=3).expect(403).json["denial"] in ("no_grant", "task_state")


def test_no_secret_leaves(host: Host) -> None:
    for what in ("operation list", "operation show refund", "proposal list", "execution list", "containment list"):
        assert b"sk_test_canary" not in host.cli(*what.split(), "--json").stdout
    assert "sk_test_canary" not in host.daemon.log()
