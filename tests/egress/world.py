# SPDX-License-Identifier: Apache-2.0
"""A daemon with a policy in a world of the test's own (outside.py), a sandbox in it, and what a program there can get done.

    with World() as world:
        got = world.talk("plain.test", 80, b"GET /v1/x HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n")
        with world.refused("no-rule", name="evil.test"):       # a verdict with this reason, and nothing left the host
            world.proxy(b"GET http://evil.test/ HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n")
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from daemon import Daemon, namespaces_of, wait_until
from outside import RESOLVER, Answers, Outside

HERE = Path(__file__).resolve().parent
POLICY = """# SPDX-License-Identifier: Apache-2.0
# What research says its cases are judged by: one site with TLS, one without.
egress:
  - fetch: {url: "https://allowed.test/v1/**", methods: [GET, POST], query: [q, page], request_max: 1MiB, response_max: 8MiB}
  - fetch: {url: "http://plain.test/v1/**", methods: [GET, POST, PUT, DELETE, OPTIONS], query: [q, page], request_max: 1MiB, response_max: 8MiB}
  - fetch: {url: "http://plain.test/**"}
"""
NAMES: Answers = {"allowed.test": ["93.184.216.34"], "plain.test": ["93.184.216.35"], "evil.test": ["93.184.216.36"]}


@dataclass
class Got:
    """What a program saw. data: all bytes; error: why not; see probe.py."""

    data: bytes
    error: str
    where: str
    peer: str
    ended: bool
    reset: bool
    length: int  # of all data; of more than 64 KiB the first and last half of that are shown

    @property
    def status(self) -> int:
        """Of the first answer; 0 when there was none."""
        words = self.data.split(b" ", 2)
        return int(words[1]) if self.data.startswith(b"HTTP/1.1 ") and len(words) > 1 and words[1].isdigit() else 0

    @property
    def said(self) -> dict[str, Any]:
        """The JSON of a refusal."""
        body: dict[str, Any] = json.loads(self.data.partition(b"\r\n\r\n")[2])
        return body


class World:
    def __init__(self, policies: Mapping[str, str] | None = None, names: Answers | None = None, settings: Mapping[str, str | int] | None = None,
                 policy: str = "test", template: str = "python") -> None:
        self.policies = dict(policies or {"test": POLICY})
        self.names = NAMES if names is None else names
        self.settings, self.policy, self.template = dict(settings or {}), policy, template
        self.stack = contextlib.ExitStack()
        self.instead: dict[str, Path] = {}  # see Daemon

    def __enter__(self) -> World:
        try:
            self.make()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stack.__exit__(kind, error, trace)

    def make(self) -> None:
        self.outside = self.stack.enter_context(Outside())
        self.resolver = self.outside.resolver(self.names)
        self.allowed = self.outside.origin("93.184.216.34", 443, tls=["allowed.test"])
        self.plain = self.outside.origin("93.184.216.35", 80)
        self.evil = [self.outside.origin("93.184.216.36", 80), self.outside.origin("93.184.216.36", 443, tls=["evil.test", "allowed.test"])]
        folder = self.outside.folder / "policy.d"
        folder.mkdir(mode=0o755)
        for name, text in self.policies.items():
            (folder / f"{name}.yaml").write_text(text)
        self.outside.folder.chmod(0o755)
        self.prepare()
        self.daemon = Daemon({"egress.policies": str(folder), "egress.roots": str(self.outside.authority.pem), "dialer.resolvers": RESOLVER,
                              **self.settings})
        self.daemon.own_namespaces |= {name for pid in (self.outside.host, self.outside.outside) for name in namespaces_of(pid)}
        self.daemon.wrap, self.daemon.instead = self.outside.wrap, self.instead
        self.stack.enter_context(self.daemon)
        self.client = self.daemon.client
        self.task, self.box = self.sandbox(self.policy)

    def prepare(self) -> None:
        """For a test that needs more on the host before the daemon starts."""

    def sandbox(self, policy: str | None) -> tuple[str, str]:
        """A fresh task and its sandbox, with the probe in it."""
        row = self.client.create(None, template=self.template, **({"policy": policy} if policy else {}))
        self.client.write(row["id"], "/workspace/probe.py", (HERE / "probe.py").read_bytes()).expect(200, 201, 204)
        return row["task"], row["id"]

    # ---- what programs do ----

    def probe(self, box: str = "", **ask: Any) -> Got:
        if "file" in ask:  # too long for an argument
            self.client.write(box or self.box, "/workspace/send", ask["file"]).expect(200, 201, 204)
            ask["file"] = "/workspace/send"
        if "send" in ask:
            ask["send"] = [base64.b64encode(one).decode() for one in ask["send"]]
        done = self.client.exec(box or self.box, ["python3", "/workspace/probe.py", json.dumps(ask)])
        assert done["exit_code"] == 0, f"{ask}: {done}"
        said = json.loads(done["stdout"])
        return Got(base64.b64decode(said.pop("data")), **said)

    def talk(self, host: str, port: int, *send: bytes, **more: Any) -> Got:
        return self.probe(do="talk", host=host, port=port, send=list(send), **more)

    def proxy(self, *send: bytes, **more: Any) -> Got:
        return self.probe(do="proxy", send=list(send), **more)

    def run(self, command: str, box: str = "", **more: Any) -> dict[str, Any]:
        done: dict[str, Any] = self.client.exec(box or self.box, command, **more)
        return done

    # ---- what was recorded ----

    def records(self, event: str = "egress.verdict", task: str = "") -> list[dict[str, Any]]:
        lines = self.client.request("GET", f"/v1/audit/{task or self.task}?format=ndjson").expect(200).body.splitlines()
        rows: list[dict[str, Any]] = [json.loads(line)["record"] for line in lines]
        return [row for row in rows if row["event"] == event]

    def verdicts(self, task: str = "") -> list[dict[str, Any]]:
        """Sums per kind, those that are only counted too; of at most 200 kinds."""
        rows: list[dict[str, Any]] = self.client.request("GET", f"/v1/tasks/{task or self.task}/net").expect(200).json["items"]
        return rows

    @contextlib.contextmanager
    def refused(self, reason: str | tuple[str, ...], verdict: str | None = "refused", name: str | None = None, silent: bool = True) -> Iterator[None]:
        """What happens in this block is refused for this reason (or one of these), that is on record, and (silent) nothing left for it."""
        reasons = (reason,) if isinstance(reason, str) else reason

        def count() -> int:
            return sum(row["count"] for row in self.verdicts()
                       if verdict in (None, row["verdict"]) and row["reason"] in reasons and (name is None or row["name"] == name))

        before = count()
        with self.outside.silent() if silent else contextlib.nullcontext():
            yield
        try:
            wait_until(f"a verdict: {verdict}, {reasons}, {name}", lambda: count() > before, 3)
        except AssertionError as error:
            raise AssertionError(f"{error}\nthere are: {self.verdicts()}") from None

