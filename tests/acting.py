# SPDX-License-Identifier: Apache-2.0
"""A daemon that carries actions out, with everything around it: a provider with a ledger of its own (provider.py), secrets, approvers and
their ssh-agent. What counts in a test is what the provider's ledger says.

    with Acting() as host:
        task = host.task()
        host.grant(task)
        row = host.pending(task)
        host.approve(row["id"])                      # the real program, the real agent
        body = host.signed(row["id"])                # signed by it, but sent to nobody yet
        assert len(host.effects()) == 1
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import daemon
from daemon import Answer, Daemon, wait_until

HERE = Path(__file__).resolve().parent
ROOMS = ("engine", "broker", "dialer", "api")
CLOSED = ("denied", "rejected", "expired", "revoked", "superseded", "succeeded", "failed", "manual")
REFUND = """\
  {name}:
    version: 1
    effect: {effect}
    describe: {describe}
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
      decide_within: {decide_within}
    budgets: {{task_uses: {uses}, task_amount: {amount}}}
"""
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
        consistency: 1s
operations:
{refunds}  order_status:
    version: 1
    effect: read
    describe: What the shop knows about an order of the tenant
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
    approval: {{}}
"""
REFUNDS = (
    {"name": "quick", "effect": "external", "describe": "The same, to be decided within a second", "decide_within": "1s"},
    {"name": "refund", "effect": "irreversible", "describe": "Pay money of an order back", "decide_within": "30m"},
)
# Each may approve refunds; kim is the caller of the Unix socket, who may not approve what root asked for.
PEOPLE: dict[str, tuple[str, ...]] = {"anna": ("--role", "release"), "bert": (), "kim": ("--principal", "uid:0")}


class Catcher(BaseHTTPRequestHandler):
    """Between the program that signs and the daemon: reads go on, a decision stays here."""

    protocol_version = "HTTP/1.1"
    client: daemon.Client
    caught: list[bytes]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def address_string(self) -> str:
        return "local"

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        got = self.client.request("GET", self.path)
        self.answer(got.status, got.body)

    def do_POST(self) -> None:
        self.caught.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(503, b'{"error":"caught","code":"unavailable","request_id":"r"}')


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class SmallStore(Daemon):
    """The engine's database has a disk of its own, of a few megabytes."""

    def start(self) -> None:
        store = self.state / "engine"
        store.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(store)], check=True)
        super().start()

    def stop(self, within_s: float = 15.0) -> int:
        code = super().stop(within_s)
        subprocess.run(["umount", str(self.state / "engine")], check=True)
        return code


class Acting:
    def __init__(self, settings: Mapping[str, str | int] | None = None, build: Path | None = None, uses: int = 10000,
                 amount: int = 100_000_000, small_store: bool = False,
                 port: int = 0) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="demilune-acting-"))
        self.home.chmod(0o755)
        self.secret = "sk_canary_" + secrets.token_hex(16)
        self.shop_dir, self.trust = self.home / "shop", self.home / "trust"
        self.agent_sock = self.home / "agent.sock"
        self.settings: dict[str, str | int] = {"task.proposals": 100_000, "task.attempts": 100_000, "task.broker_calls": 1_000_000,
                         "task.broker_bytes": "64GiB", "tenant.proposals_per_day": 1_000_000,
                         "tenant.attempts_per_day": 1_000_000, "tenant.broker_calls_per_day": 1_000_000,
                         "actions.pending": 10_000,
                         "actions.operations": str(self.home / "operations.d"),
                         "actions.secrets": str(self.home / "secrets"), "actions.trust": str(self.trust),
                         "audit.mirrors": str(self.home / "mirror"),
                         **(settings or {})}
        self.build, self.small_store = build, small_store
        self.port = port  # of a provider that the caller has; else provider.py is started
        self.bounds = {"uses": uses, "amount": amount}
        self.ended = contextlib.ExitStack()
        self.signing = threading.Lock()
        self.box = self.used = ""  # a sandbox and a task, for who shares this host

    # ---- life ----

    def __enter__(self) -> Acting:
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: subprocess.run(["rm", "-rf", str(self.home)], check=True))
            for name, mode in (("operations.d", 0o755), ("secrets", 0o700), ("trust", 0o755), ("shop", 0o700)):
                (self.home / name).mkdir(mode=mode)
            path = self.home / "secrets/shop"
            path.touch(0o600)
            path.write_text(self.secret)
            if self.port == 0:
                shop = self.child(stack, [sys.executable, str(HERE / "provider.py"), "--dir", str(self.shop_dir)])
                assert shop.stdout is not None
                self.port = int(shop.stdout.readline().split()[1])
            refunds = "".join(REFUND.format(**one, **self.bounds) for one in REFUNDS)
            (self.home / "operations.d/shop.yaml").write_text(CATALOGUE.format(port=self.port, refunds=refunds))
            self.child(stack, ["ssh-agent", "-D", "-a", str(self.agent_sock)])
            self.daemon = (SmallStore if self.small_store else Daemon)(self.settings, build=self.build)
            (self.home / "mirror").mkdir(0o700)
            os.chown(self.home / "mirror", self.daemon.uids["broker"], self.daemon.uids["broker"])
            self.binary = self.daemon.build / "src/cli/demilune"
            self.env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "SSH_AUTH_SOCK": str(self.agent_sock),
                        "DEMILUNE_SOCKET": str(self.daemon.run / "api.sock")}
            self.store = self.daemon.state / "engine"
            self.enrol()
            stack.enter_context(self.daemon)
            self.ended = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self.ended.__exit__(*error)

    @staticmethod
    def child(stack: contextlib.ExitStack, command: list[str]) -> subprocess.Popen[bytes]:
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        stack.callback(process.kill)
        return process

    def enrol(self) -> None:
        wait_until("the agent listens", self.agent_sock.exists)
        for name, rights in PEOPLE.items():
            key = self.home / name
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
            subprocess.run(["ssh-add", "-q", key], env=os.environ | self.env, check=True, stderr=subprocess.DEVNULL)
            self.cli("approver", "enrol", "--name", name, "--key", f"{key}.pub", "--may", "refund,quick", *rights, "--trust",
                     str(self.trust))

    # ---- people and host code ----

    def cli(self, *args: str, code: int | None = 0, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run([str(self.binary), *args], env={**self.env, **(env or {})}, input=b"", capture_output=True,
                              timeout=90, check=False)
        assert code is None or done.returncode == code, (args, done.returncode, done.stdout[-3000:], done.stderr[-2000:])
        return done

    def json(self, *args: str) -> Any:
        return json.loads(self.cli(*args, "--json").stdout)

    def ask(self, method: str, path: str, body: Any = None, timeout_s: float = 60) -> Answer:
        return self.daemon.client.request(method, path, body, timeout_s=timeout_s)

    def task(self, tenant: str = "acme") -> str:
        return self.cli("task", "create", "--tenant", tenant, "--template", "python").stdout.decode().strip()

    def grant(self, task: str, uses: int = 1000, operation: str = "refund") -> str:
        return self.cli("grant", "issue", "--task", task, "--operation", operation, "--uses", str(uses), "--ttl",
                        "1h").stdout.decode().strip()

    def propose(self, task: str, operation: str = "refund", **arguments: Any) -> Answer:
        asked = {"order_id": "48221", "cents": 4200} | arguments
        return self.ask("POST", "/v1/proposals", {"task": task, "operation": operation, "arguments": asked})

    def pending(self, task: str, operation: str = "refund", **arguments: Any) -> dict[str, Any]:
        row: dict[str, Any] = self.propose(task, operation, **arguments).expect(201).json
        assert row["state"] == "pending", row
        return row

    def row(self, proposal: str) -> dict[str, Any]:
        row: dict[str, Any] = self.ask("GET", f"/v1/proposals/{proposal}").expect(200).json
        return row

    def approve(self, proposal: str, who: str = "anna", code: int | None = 0) -> subprocess.CompletedProcess[bytes]:
        return self.cli("approve", proposal, "--yes", "--key", f"{self.home / who}.pub", "--trust", str(self.trust), code=code)

    def signed(self, proposal: str, who: str = "anna", verb: str = "approve") -> dict[str, Any]:
        """The body of this decision as the program signs and would send it; nobody gets it."""
        with self.signing, tempfile.TemporaryDirectory() as place:
            caught: list[bytes] = []
            handler = type("One", (Catcher,), {"client": self.daemon.client, "caught": caught})
            with UnixServer(f"{place}/s", handler) as server:
                threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
                more = ("--yes",) if verb == "approve" else ("--reason", "no")
                done = self.cli(verb, proposal, *more, "--key", f"{self.home / who}.pub", "--trust", str(self.trust), code=None,
                                env={"DEMILUNE_SOCKET": f"{place}/s"})
                server.shutdown()
        assert len(caught) == 1, done.stderr
        body: dict[str, Any] = json.loads(caught[0])
        return body

    def decide(self, proposal: str, body: Mapping[str, Any]) -> Answer:
        return self.ask("POST", f"/v1/proposals/{proposal}/decision", body)

    def executions(self, task: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.ask("GET", f"/v1/executions?task={task}&limit=200").expect(200).json["items"]
        return rows

    def reconcile(self, execution: str) -> Answer:
        return self.ask("POST", f"/v1/executions/{execution}/reconcile", {})

    # ---- the provider ----

    def effects(self, key: str | None = None) -> list[dict[str, Any]]:
        path = self.shop_dir / "effects"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [one for one in rows if key is None or one["key"] == key]

    def requests(self, method: str) -> int:
        path = self.shop_dir / "requests"
        return sum(line.startswith(method) for line in path.read_text().splitlines()) if path.exists() else 0

    def script(self, *lines: str) -> None:
        (self.shop_dir / "script").write_text("".join(line + "\n" for line in lines))

    # ---- its processes ----

    def pid(self, room: str) -> int:
        found: list[int] = wait_until(f"there is a {room}", lambda: self.daemon.by_role(room), 15)
        return found[0]

    def kill(self, room: str, pid: int = 0) -> None:
        pid = pid or self.pid(room)
        os.kill(pid, signal.SIGKILL)
        wait_until(f"the {room} is gone", lambda: pid not in self.daemon.by_role(room), 5)

    @contextlib.contextmanager
    def stopped(self, room: str) -> Iterator[int]:
        """It stands still meanwhile; it may be killed in this state."""
        pid = self.pid(room)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def whole(self) -> None:
        """All rooms are there again, and each answers: a proposal comes as far as the system of record."""
        wait_until("the daemon is ready", self.daemon.client.ready, 20)
        for room in ROOMS:
            self.pid(room)

        def verified() -> bool:
            return bool(self.propose(self.probe, order_id="1").json.get("denial") == "verify_failed")

        if not hasattr(self, "probe"):
            self.probe = self.task()
            self.grant(self.probe)
        wait_until("broker and dialer answer", verified, 20)

    def second(self) -> int:
        """Another daemon on the same configuration: its exit code."""
        return subprocess.run([str(self.daemon.build / "src/supervisor/demilune-supervisor"), "--config",
                               str(self.daemon.home / "demilune.yaml")], stdin=subprocess.DEVNULL, capture_output=True, timeout=20,
                              check=False).returncode

    @contextlib.contextmanager
    def full_store(self) -> Iterator[None]:
        """The disk of the engine's database has not a byte left; needs small_store."""
        filler = self.store / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            for size in (1 << 16, 1 << 9, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
        try:
            yield
        finally:
            filler.unlink()

    # ---- the record ----

    def records(self, task: str) -> list[dict[str, Any]]:
        lines = self.ask("GET", f"/v1/audit/{task}?format=ndjson").expect(200).body.splitlines()
        return [json.loads(line)["record"] for line in lines]

    def events(self, task: str) -> list[str]:
        return [record["event"] for record in self.records(task)]

    def verify(self, *tasks: str) -> None:
        """The chain of each, by the program's own check: numbers without a gap, digests, the tree where it has one."""
        for task in tasks:
            self.cli("audit", "verify", task)
