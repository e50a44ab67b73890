#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays hostile ticket 48221 and clean ticket 48222 against the built daemon, and tells what happened.

    play.py --build DIR --state DIR

Root starts it (`./run demo`). Ends with 0 only if every single expectation was met; those that were not are listed last.
It holds no authority that an API token does not have, but for starting the daemon and looking at the host.
"""

import argparse
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import action
import agent
import egress
import host
import make_ticket
import network
from story import Story, printable, shorten, shorten_end

from api import Api, ApiError

START_SECONDS = 15
STOP_SECONDS = 15
SETTLE_SECONDS = 3
RECONCILE_SECONDS = 20
AUDIT_WIDTH = 130
# What PID 1 of a sandbox may keep, in a user namespace that owns nothing: CAP_KILL, SETGID, SETUID, SETPCAP.
INIT_CAPABILITIES = 0x1E0
TENANTS = {"48221": "acme", "48222": "globex"}


class Refusal(Exception):
    """The story cannot be told; the sentence says what to do."""


@dataclass(frozen=True)
class Ran:
    """One command of the agent as the API answered it."""

    job: str
    outcome: agent.Outcome


@dataclass(frozen=True)
class Sandbox:
    ticket: str
    tenant: str
    task: str
    id: str
    place: host.Place
    api: Api


class Daemon:
    """The daemon that the demo starts and ends."""

    def __init__(self, build: Path, state: Path, run_dir: Path, canary: str, settings: str):
        self.socket = run_dir / "api.sock"
        self.log = state / "demo" / "daemon.log"
        self.api = Api(self.socket)
        if self.answers():
            raise Refusal(f"a daemon answers on {self.socket} (./run serve?): end it first, then play the demo")
        config = state / "demo" / "demilune.yaml"
        config.write_text(f"state_dir: {state}\nrun_dir: {run_dir}\nlisten:\n  tcp: none\n{settings}")
        program = build / "src/supervisor/demilune-supervisor"
        with self.log.open("wb") as log:
            # What the daemon itself was told must not be seen by what it starts.
            self.process = subprocess.Popen(
                [str(program), "--config", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(os.environ) | {"DEMO_HOST_SECRET": canary},
            )

    def answers(self) -> bool:
        try:
            return self.api.call("GET", "/readyz").status == 200
        except OSError:
            return False

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "".join(f"\n  {line}" for line in lines[-8:])

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self.process.poll() is not None:
                raise Refusal(f"the daemon ended at its start with {self.process.returncode}:{self.tail()}")
            if time.monotonic() > deadline:
                raise Refusal(f"the daemon is not ready after {START_SECONDS} s:{self.tail()}")
            time.sleep(0.02)

    def stop(self) -> list[str]:
        """SIGTERM; what was wrong with its end."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return [f"the daemon did not end within {STOP_SECONDS} s of SIGTERM"]
        return [] if code == 0 else [f"the daemon ended with {code}, not 0:{self.tail()}"]


def describe(command: str) -> str:
    """What a command does, in one line: the first comment of a program, else the command."""
    lines = command.splitlines()
    if len(lines) > 2 and lines[0].endswith("'DEMO-END-OF-PROGRAM'"):
        return "python3: " + lines[2].lstrip("# ")
    return command.replace(agent.CURL_ENDS, "")


REFUSED = re.compile(r"No space|Read-only|ermission|ermitted|refused|nreachable|resolve|: (0|none)$|errno|^kept|t connect|Empty|reset")
# A gateway's refusal: where, why, code.
GATEWAY = re.compile(r'\{"error":"The gateway of this sandbox refused it \((.*?)\): (.*?)","code":"(.*?)"')


def evidence(step: agent.Step, outcome: agent.Outcome) -> str:
    """The line of the output that shows the refusal best."""
    lines = (outcome.stdout + "\n" + outcome.stderr).splitlines()
    shown = [line for line in lines if any(re.search(pattern, line) for pattern in step.expect.shows)]
    best = next(filter(REFUSED.search, shown), shown[0] if shown else "")
    said = GATEWAY.match(best)
    return f"{said[3]}: {said[2]}" if said else best


class Demo:
    def __init__(self, build: Path, state: Path, run_dir: Path):
        self.story = Story()
        self.build, self.state = build, state
        self.canary = "host-secret-" + secrets.token_hex(16)
        self.canary_file = state / "demo" / "host-canary"
        self.canary_file.parent.mkdir(parents=True, exist_ok=True)
        self.files = make_ticket.tickets()
        self.canary_file.write_text(self.canary + "\n")
        host.adopt()
        self.before = host.Snapshot()
        self.outside = action.Outside(build)
        with self.story.doing("the daemon starts"):
            self.daemon = Daemon(build, state, run_dir, self.canary, self.outside.settings())
            try:
                self.daemon.wait_ready()
            except BaseException:
                self.daemon.process.kill()
                self.daemon.process.wait()
                self.outside.stop()
                raise
        self.quiet = host.Snapshot()
        self.quiet_sockets = host.listening(host.descendants(os.getpid()))
        self.ran: dict[str, list[Ran]] = {}  # by task
        self.places: list[host.Place] = []

    # ---- the two tickets ----

    def open_ticket(self, ticket: str, **more: str) -> Sandbox:
        tenant = TENANTS[ticket]
        root = self.daemon.api
        token = root.call("POST", "/v1/me/tokens", {"tenant": tenant, "label": "demo", "expires_in_seconds": 3600}).want(201)
        api = Api(self.daemon.socket, token["token"])
        task = api.call("POST", "/v1/tasks", {"template": "python", "labels": {"ticket": ticket}} | more).want(201)
        files = self.files[ticket]
        for name, data in files.items():
            api.call("PUT", f"/v1/tasks/{task['id']}/inputs", data, path=f"/work/{ticket}/{name}").want(201)
        box = api.call("POST", "/v1/sandboxes", {"task": task["id"], "ttl_seconds": 600}).want(201)
        place = host.place_of(box["measured"]["host_pid"])
        self.places.append(place)
        limits = box["limits"]
        self.story.say(f"  tenant   {tenant}, token {token['prefix']}..., good for an hour and for this tenant only")
        total = sum(map(len, files.values()))
        ready_ms = box["timings"]["ready_us"] / 1000
        policy = f", policy {task['policy']}" if more else ""
        self.story.say(f"  task     {task['id']}, ticket {ticket}, {len(files)} files, {total:,} bytes{policy}")
        self.story.say(f"  sandbox  {box['id']}, {box['boundary']['kind']}, ready after {ready_ms:.1f} ms")
        self.story.say(
            f"  limits   {limits['memory_mb']} MiB memory, {limits['disk_mb']} MiB disk, {limits['disk_inodes']} files,"
            f" {limits['pids']} processes, {box['ttl_seconds']} s to live"
        )
        self.story.verdict("boundary", self.measured_wrong(box, place), "as measured by the kernel, not as asked for")
        return Sandbox(ticket, tenant, task["id"], box["id"], place, api)

    def measured_wrong(self, box: dict[str, Any], place: host.Place) -> list[str]:
        want = {
            "no_new_privs": True,
            "seccomp_mode": 2,
            "root_read_only": True,
            "mounts_unexpected": 0,
            "routes": 0,
        }
        measured = box["measured"]
        wrong = [f"{k} is {measured.get(k)!r}, not {v!r}" for k, v in want.items() if measured.get(k) != v]
        for kind in ("cap_effective", "cap_bounding"):
            if int(measured[kind], 16) & ~INIT_CAPABILITIES:
                wrong.append(f"{kind} of PID 1 is {measured[kind]}")
        if len(place.namespaces) != len(host.NAMESPACES):
            wrong.append(f"{len(place.namespaces)} namespaces of its own, not {len(host.NAMESPACES)}")
        if not place.cgroups:
            wrong.append("no control group of its own")
        if not box["boundary"]["statement"]:
            wrong.append("no boundary statement")
        return wrong

    def run_step(self, box: Sandbox, step: agent.Step) -> agent.Outcome:
        command = self.outside.network.placed(step.command)
        body = {"cmd": command, "timeout_seconds": step.timeout_seconds}
        began = time.monotonic()
        answer = box.api.call("POST", f"/v1/sandboxes/{box.id}/exec", body)
        said = answer.want(200, 409, 504)
        outcome = agent.Outcome(
            stdout=said.get("stdout", ""),
            stderr=said.get("stderr", ""),
            exit_code=said.get("exit_code", -1),
            reason=said.get("reason", said.get("code", "")),
            seconds=time.monotonic() - began,
        )
        self.ran.setdefault(box.task, []).append(Ran(said.get("job", ""), outcome))
        wrong = agent.judge(step.expect, outcome)
        if any(secret in outcome.stdout + outcome.stderr for secret in (self.canary, action.CREDENTIAL, network.CREDENTIAL)):
            wrong.append("a secret of the host is in the output")
        facts = f"{outcome.reason}, exit code {outcome.exit_code}, {outcome.seconds * 1000:.0f} ms"
        self.story.verdict(step.name, wrong, facts, "held" if step.stopped_by else "ok")
        if step.asked:
            self.story.line("asked", step.asked)
        allowed = step.chapter == "leave" and not step.asked
        if wrong or step.asked or allowed:
            self.story.line("did", describe(command))
        if step.stopped_by:
            self.story.line("stopped", step.stopped_by)
        if step.stopped_by or allowed:
            self.story.line("saw", evidence(step, outcome))
        if wrong:
            self.story.line("stdout", outcome.stdout[-2000:])
            self.story.line("stderr", outcome.stderr[-2000:])
        return outcome

    def play(self, box: Sandbox, steps: list[agent.Step]) -> None:
        chapter = ""
        for step in steps:
            if step.chapter not in (chapter, "after", "next", "again"):
                chapter = step.chapter
                self.story.chapter(agent.CHAPTERS[chapter])
            self.run_step(box, step)

    # ---- what is outside ----

    def host_unharmed(self) -> None:
        wrong = self.quiet.differences(host.Snapshot())
        sockets = host.listening(host.descendants(os.getpid()))
        wrong += [f"listens now: {name}" for name in sorted(sockets - self.quiet_sockets)]
        if self.canary_file.read_text() != self.canary + "\n":
            wrong.append(f"{self.canary_file} was changed")
        if self.daemon.process.poll() is not None or not self.daemon.answers():
            wrong.append(f"the daemon does not answer:{self.daemon.tail()}")
        facts = f"{len(host.WATCHED)} places of the host, mounts, loop devices and sockets are as before"
        self.story.verdict("host", wrong, facts)

    def tenants_apart(self, one: Sandbox, other: Sandbox) -> None:
        wrong = []
        for target in (f"/v1/sandboxes/{other.id}", f"/v1/tasks/{other.task}", f"/v1/audit/{other.ticket}"):
            status = one.api.call("GET", target).status
            if status != 404:
                wrong.append(f"GET {target} answers {status} to the other tenant, not 404")
        self.story.verdict("tenants", wrong, f"the token of {one.tenant} does not even find what is {other.tenant}'s")

    def kill(self, box: Sandbox) -> None:
        row = box.api.call("DELETE", f"/v1/sandboxes/{box.id}", proof="1").want(200)
        proof = {k: v for k, v in row["proof"].items() if k != "teardown_us"}
        wrong = [f"{count} {what} left, says its record" for what, count in proof.items() if count != 0]
        wrong += host.remains(box.place)
        if box.api.call("GET", f"/v1/sandboxes/{box.id}").status != 404:
            wrong.append("it is still there for its tenant")
        teardown_ms = row["proof"]["teardown_us"] / 1000
        namespaces, groups, used = len(box.place.namespaces), len(box.place.cgroups), row["used"]
        self.story.verdict(f"{box.ticket} is gone", wrong, f"{row['status']} after {teardown_ms:.1f} ms")
        self.story.line("proof", ", ".join(f"{count} {what}" for what, count in proof.items()))
        self.story.line("checked", f"its {namespaces} namespaces and {groups} control groups are not there any more")
        self.story.line(
            "used",
            f"{used['memory_peak_bytes'] >> 20} MiB at most, {used['cpu_us'] / 1e6:.1f} s of a processor,"
            f" {used['oom_kills']} out-of-memory kills, {used['pids_refused']} forks refused",
        )

    def second_round(self, box: Sandbox) -> None:
        """The sandbox is gone, the task is not."""
        row = box.api.call("POST", f"/v1/tasks/{box.task}/resume").want(201)
        again = replace(box, id=row["id"], place=host.place_of(row["measured"]["host_pid"]))
        self.places.append(again.place)
        self.story.verdict("boundary", self.measured_wrong(row, again.place), f"{again.id} for the same task")
        self.play(again, agent.STEPS_AGAIN)
        self.kill(again)

    # ---- the record ----

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        program = self.build / "src/cli/demilune"
        return subprocess.run(
            [str(program), *words, "--socket", str(self.daemon.socket)],
            env=self.outside.person.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def records(self, box: Sandbox) -> list[dict[str, Any]]:
        text = box.api.call("GET", f"/v1/audit/{box.task}", format="ndjson").body.decode()
        return [json.loads(line)["record"] for line in text.splitlines()]

    def audit(self, box: Sandbox) -> None:
        shown = self.cli("audit", box.ticket)
        for line in shown.stdout.splitlines():
            self.story.say("  " + shorten_end(printable(line), AUDIT_WIDTH))
        wrong = [] if shown.returncode == 0 else [f"demilune audit ended with {shown.returncode}: {shown.stderr}"]
        records = self.records(box)
        started = {r["job"] for r in records if r["event"] == "job.start" and r["data"]["kind"] == "exec"}
        ended = [(r["job"], r["data"]) for r in records if r["event"] == "job.end" and r["job"] in started]
        asked = self.ran[box.task]
        if [job for job, _ in ended] != [ran.job for ran in asked]:
            wrong.append(f"{len(asked)} commands ran, the record has {len(ended)} of them, or in another order")
        for (job, data), ran in zip(ended, asked, strict=False):
            said = ran.outcome
            if data["reason"] != said.reason or (said.reason == "exited" and data["code"] != said.exit_code):
                wrong.append(f"{job}: {data['reason']} {data['code']} in the record, not {said.reason} {said.exit_code}")
        facts = f"{len(records)} records, all {len(asked)} commands in order, each with its exit code"
        self.story.verdict("record", wrong, facts)
        self.chain(box)

    def chain(self, box: Sandbox) -> None:
        checked = self.cli("audit", "verify", box.ticket)
        self.story.verdict(
            "chain",
            [] if checked.returncode == 0 else [f"demilune audit verify ended with {checked.returncode}: {checked.stderr}"],
            shorten(checked.stdout, 80),
        )

    # ---- the end ----

    def stop(self) -> None:
        self.story.chapter("The daemon ends")
        wrong = self.daemon.stop()
        self.story.verdict("daemon", wrong, "ended with 0 by SIGTERM")
        self.outside.stop()
        parents = {p for place in self.places for g in place.cgroups for p in g.parents if p.name.startswith("demilune-")}
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            left = [f"process {pid} {name}" for pid, name in host.descendants(os.getpid()).items()]
            left += [line for place in self.places for line in host.remains(place)]
            left += [f"control group {p}" for p in sorted(parents) if p.exists()]
            left += self.before.differences(host.Snapshot())
            if self.daemon.socket.exists():
                left.append(f"{self.daemon.socket} is still there")
            if not left or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self.story.verdict("nothing left", left, "no process, mount, control group, namespace, loop device or socket")

    def tell(self) -> None:
        story = self.story
        story.chapter("Ticket 48221 arrives; the agent that works on it obeys whatever stands in it")
        first = self.open_ticket("48221")
        self.play(first, agent.STEPS_48221)
        actions = Actions(self, first)
        actions.propose()
        story.chapter("Outside of the sandbox")
        self.host_unharmed()
        story.chapter(agent.CHAPTERS["next"])
        second = self.open_ticket("48222")
        self.tenants_apart(first, second)
        self.tenants_apart(second, first)
        self.play(second, agent.STEPS_48222)
        story.chapter("Both sandboxes end")
        self.kill(first)
        self.kill(second)
        actions.decide()
        actions.lose_an_answer()
        actions.contain()
        story.chapter(agent.CHAPTERS["again"])
        self.second_round(first)
        story.chapter("The record: demilune audit 48221")
        self.audit(first)
        story.chapter("Ticket 48221 once more: a new task, whose policy names a documentation site, its mirror and a carrier")
        third = self.open_ticket("48221", policy="support")
        egress.Egress(self, third).tell()
        self.host_unharmed()
        self.kill(third)
        self.chain(third)


class Actions:
    """What the agent of a ticket wants to happen outside, and what a person lets happen."""

    def __init__(self, demo: Demo, box: Sandbox):
        self.demo, self.box, self.story = demo, box, demo.story
        self.shop = demo.outside.shop
        self.proposals: dict[str, str] = {}

    def cli(self, *words: str) -> tuple[list[str], str]:
        """What is wrong when it does not end with 0, and what it printed."""
        ran = self.demo.cli(*words)
        wrong = [] if ran.returncode == 0 else [f"demilune {' '.join(words)} ended with {ran.returncode}: {ran.stderr}"]
        return wrong, ran.stdout

    def signed(self, *words: str) -> tuple[list[str], str]:
        return self.cli(*words, "--name", action.APPROVER, "--trust", str(self.demo.outside.directory / "trust"))

    def proposal(self, name: str) -> dict[str, Any]:
        row: dict[str, Any] = self.demo.daemon.api.call("GET", f"/v1/proposals/{self.proposals[name]}").want(200)
        return row

    def execution(self, name: str) -> dict[str, Any]:
        found = self.proposal(name)["execution"]
        row: dict[str, Any] = self.demo.daemon.api.call("GET", f"/v1/executions/{found}").want(200)
        return row

    def effects_wrong(self, amounts: list[int]) -> list[str]:
        """The provider's own ledger is the judge."""
        seen = [effect["body"]["amount"] for effect in self.shop.effects()]
        return [] if seen == amounts else [f"the shop has refunds of {seen} cents, not {amounts}"]

    def propose(self) -> None:
        self.story.chapter(agent.CHAPTERS["act"])
        for operation, uses in (("order_status", "3"), ("refund", "5")):
            wrong, out = self.cli("grant", "issue", "--task", self.box.task, "--operation", operation,
                                  "--uses", uses, "--ttl", "10m", *(["--where", "order.tenant = @tenant"] if operation == "refund" else []))
            self.story.verdict(f"grant of {operation}", wrong, f"{out.strip()}: this task, {uses} times, 10 minutes", "ok")
        for step in agent.STEPS_ACT:
            outcome = self.demo.run_step(self.box, step)
            if step.name in agent.PROPOSED:
                self.proposals[step.name] = outcome.stdout.strip()
        self.story.verdict("nothing happened", self.effects_wrong([]), "the shop's own ledger is empty: a proposal is data, not a call")

    def decide(self) -> None:
        self.story.chapter("A person decides; the sandbox is gone already")
        asked = self.proposals["refund"]
        wrong, shown = self.cli("proposal", "show", asked)
        for line in shown.splitlines():
            self.story.say("  | " + shorten_end(printable(line), AUDIT_WIDTH))
        for must in ("amount: 42.00 EUR (4200)", 'fact order.tenant: "acme" (verified)'):
            wrong += [] if must in shown else [f"does not show {must}"]
        self.story.verdict("shown", wrong, "rendered from the exact bytes; what the model says stands apart")
        wrong, out = self.signed("approve", asked, "--yes")
        self.story.verdict("approved", wrong + self.effects_wrong([4200]), shorten(out.splitlines()[-1] if out else "", 80), "ok")
        effect = (self.shop.effects() or [{}])[0]
        key = self.execution("refund")["key"]
        wrong = [] if effect.get("key") == key else [f"the shop saw the key {effect.get('key')}, not {key}"]
        self.story.verdict("once", wrong, f"one POST, with the key that was signed: {key}")
        self.forge()

    def forge(self) -> None:
        """A signed approval is good for the bytes that it names, once."""
        used, other = self.proposal("refund"), self.proposal("another refund")
        decision = used["decisions"][0]
        body = {"decision": decision["decision"], "signature": decision["signature"]}
        for name, target, shown, what in (
            ("approved again", used, used["digest"], "the same signature a second time"),
            ("changed body", other, other["digest"], "a signature for 4200 cents under a proposal of 4300"),
        ):
            answer = self.demo.daemon.api.call("POST", f"/v1/proposals/{target['id']}/decision", body | {"shown": shown})
            said = answer.json()
            wrong = [] if answer.status in (403, 409) else [f"answers {answer.status}: {said}"]
            self.story.verdict(name, wrong + self.effects_wrong([4200]), what)
            self.story.line("stopped", f"{said.get('denial', said.get('code'))}: {said.get('error', '')}")
        wrong, _ = self.signed("reject", other["id"], "--reason", "not what the customer asked for")
        state = self.proposal("another refund")["state"]
        wrong += [] if state == "rejected" else [f"it is {state}"]
        self.story.verdict("rejected", wrong, "a rejection is signed as well", "ok")

    def lose_an_answer(self) -> None:
        self.story.chapter("The provider does it, and hangs up before it answers")
        self.shop.next_time("effect executes_then_drops\nlookup empty\nlookup empty")
        wrong, _ = self.signed("approve", self.proposals["lost refund"], "--yes")
        row = self.execution("lost refund")
        wrong = [] if row["state"] == "unknown" else [f"it is {row['state']}, not unknown"]
        self.story.verdict("unknown", wrong + self.effects_wrong([4200, 100]), "nobody claims that it failed, nobody sends it again")
        deadline = time.monotonic() + RECONCILE_SECONDS
        while row["state"] == "unknown" and time.monotonic() < deadline:
            self.cli("reconcile", row["id"])
            row = self.execution("lost refund")
        wrong = [] if row["state"] == "succeeded" else [f"it is {row['state']}, not succeeded: {row.get('text')}"]
        self.story.verdict("reconciled", wrong + self.effects_wrong([4200, 100]), "found at the shop under its key; never a second POST")

    def contain(self) -> None:
        self.story.chapter("Somebody pulls the brake, and a person gives authority back")
        wrong, _ = self.cli("contain", self.box.task, "--reason", "the demo")
        answer = self.demo.daemon.api.call("POST", f"/v1/tasks/{self.box.task}/resume")
        wrong += [] if answer.status in (403, 409) else [f"a contained task gets a new sandbox ({answer.status})"]
        self.story.verdict("contained", wrong, "no dispatch, no grant, no sandbox for this task")
        wrong, _ = self.signed("release", self.box.task, "--note", "the demo is over")
        self.story.verdict("released", wrong, "signed by somebody with the role release; its grants stay revoked", "ok")


def main() -> int:
    parser = argparse.ArgumentParser(description="play the demo")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--run-dir", type=Path, default=Path("/run/demilune"), help="directory of the daemon's socket")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("the demo starts a daemon and needs root: sudo ./run demo", file=sys.stderr)
        return 1
    began = time.monotonic()
    try:
        demo = Demo(arguments.build.resolve(), arguments.state.resolve(), arguments.run_dir)
        try:
            demo.tell()
        except (ApiError, OSError, KeyError) as e:
            demo.story.verdict("story", [f"it could not be told to its end: {type(e).__name__}: {e}"])
        finally:
            demo.stop()
    except Refusal as e:
        print(f"demo: {e}", file=sys.stderr)
        return 1
    return demo.story.end(time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
