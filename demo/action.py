# SPDX-License-Identifier: Apache-2.0
"""What stands outside of the sandbox when an agent asks for an action: a provider, the host's catalogue, a person with a key.

The provider is a real HTTP server that keeps its own ledger (tests/provider.py); the person signs with a real ssh-agent. Both
are children of the demo and end with it.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
APPROVER = "anna"
CREDENTIAL = "sk_demo_credential_of_the_shop"

OPERATIONS = """\
providers:
  shop:
    origin: http://127.0.0.1:{port}
    address: 127.0.0.1
    account: acct_support
    environment: training
    credential: {{secret: shop, header: Authorization, prefix: "Bearer "}}
    timeout: 5s
    capability:
      key: {{header: Idempotency-Key}}
      key_window: 24h
      definite: [400, 404, 422]
      lookup: {{by: key, path: /v1/executions, query: {{key: "@key"}}, list: data, field: status,
               succeeded: [succeeded], failed: [failed], consistency: 30s}}

operations:
  refund:
    version: 1
    effect: irreversible
    describe: Pay money of an order back to its customer
    parameters:
      order_id: {{type: string, pattern: "[0-9]{{1,12}}", max: 12, identifier: true}}
      cents: {{type: integer, min: 1, max: 50000}}
      reason: {{type: enum, values: [damaged, late, other], default: other}}
    amount: {{argument: cents, currency: EUR}}
    verify:
      provider: shop
      path: "/v1/orders/{{order_id}}"
      facts: {{order.tenant: tenant, order.paid_cents: paid_cents, order.status: status}}
      require:
        - "order.tenant == @tenant"
        - "order.paid_cents >= cents"
        - "order.status in [paid, shipped]"
    request:
      provider: shop
      method: POST
      path: "/v1/orders/{{order_id}}/refunds"
      body: {{amount: "{{cents}}", currency: EUR, reason: "{{reason}}"}}
      success: [200, 201]
      receipt: {{id: id, amount: amount}}
      echo: {{amount: cents}}
    approval: {{roles: [support], decide_within: 30m, dispatch_within: 10m}}
    budgets: {{task_uses: 5, task_amount: 20000}}
  order_status:
    version: 1
    effect: read
    describe: State of an order of the customer
    parameters:
      order_id: {{type: string, pattern: "[0-9]{{1,12}}", max: 12, identifier: true}}
    verify:
      provider: shop
      path: "/v1/orders/{{order_id}}"
      facts: {{order.tenant: tenant}}
      require: ["order.tenant == @tenant"]
    request:
      provider: shop
      method: GET
      path: "/v1/orders/{{order_id}}"
      success: [200]
      receipt: {{status: status, paid_cents: paid_cents}}
"""


class Shop:
    """The provider, and what it says has happened."""

    def __init__(self, directory: Path):
        self.directory = directory
        directory.mkdir()
        self.process = subprocess.Popen(
            ["/usr/bin/python3", str(ROOT / "tests/provider.py"), "--dir", str(directory)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split()[1])

    def effects(self) -> list[dict[str, Any]]:
        path = self.directory / "effects"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def next_time(self, script: str) -> None:
        (self.directory / "script").write_text(script + "\n")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class Person:
    """Anna, with a key in an ssh-agent that nobody but her reaches."""

    def __init__(self, directory: Path):
        directory.mkdir(mode=0o700)
        self.key = directory / "id_ed25519"
        self.socket = directory / "agent"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", APPROVER, "-f", str(self.key)], check=True)
        self.process = subprocess.Popen(["ssh-agent", "-D", "-a", str(self.socket)], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()  # it listens now
        subprocess.run(["ssh-add", "-q", str(self.key)], check=True, env=self.environment())

    def environment(self) -> dict[str, str]:
        return dict(os.environ) | {"SSH_AUTH_SOCK": str(self.socket)}

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class Outside:
    """Provider, catalogue, secret and approver of the demo's daemon."""

    def __init__(self, build: Path):
        # Not below the state directory: what the host trusts is nothing that its processes write.
        self.directory = directory = Path(tempfile.mkdtemp(prefix="demilune-demo-"))
        self.program = build / "src/cli/demilune"
        self.shop = Shop(directory / "shop")
        self.person = Person(directory / "anna")
        for name, mode in (("operations.d", 0o755), ("secrets", 0o700), ("trust", 0o755)):
            (directory / name).mkdir(mode=mode)
        (directory / "operations.d" / "shop.yaml").write_text(OPERATIONS.format(port=self.shop.port))
        secret = directory / "secrets" / "shop"
        secret.touch(mode=0o600)
        secret.write_text(CREDENTIAL + "\n")
        subprocess.run(
            [str(self.program), "approver", "enrol", "--trust", str(directory / "trust"), "--key", f"{self.person.key}.pub",
             "--name", APPROVER, "--may", "refund", "--role", "support,release", "--up-to", "cents=5000"],
            check=True, stdout=subprocess.DEVNULL,
        )

    def settings(self) -> str:
        """The part of demilune.yaml that is about actions."""
        return (
            f"actions:\n  operations: {self.directory}/operations.d\n  secrets: {self.directory}/secrets\n"
            f"  trust: {self.directory}/trust\n"
        )

    def stop(self) -> None:
        self.person.stop()
        self.shop.stop()
        shutil.rmtree(self.directory)
