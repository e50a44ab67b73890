#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays scenarios (*.scn, language in README.md) against a daemon of their own and prints TAP.

    run.py [NAME...]        names or beginnings of names; all without
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from daemon import BUILD, Answer, Daemon, read, role, wait_until  # noqa: E402

SCENARIO_S = 90


class Wrong(Exception):
    """An expectation that was not met, or a line that is not of the language."""


@dataclass
class Line:
    number: int
    text: str
    block: list[Line] = field(default_factory=list)


@dataclass
class Seen:
    """The answer of a command: what `expect` looks at."""

    value: Any
    seconds: float


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "~": lambda a, b: re.search(str(b), str(a), re.S) is not None,
    "!~": lambda a, b: re.search(str(b), str(a), re.S) is None,
    "in": lambda a, b: a in b,
    "has": lambda a, b: b in a,
}


def literal(text: str) -> Any:
    """JSON where it is, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def fields_of(words: list[str]) -> dict[str, Any]:
    """a=1 b.c=x as {"a": 1, "b": {"c": "x"}}."""
    found: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise Wrong(f"not name=value: {word}")
        *folders, last = name.split(".")
        into = found
        for folder in folders:
            into = into.setdefault(folder, {})
        into[last] = literal(value)
    return found


def content_of(text: str) -> bytes:
    """zeros:N and random:N are so many bytes; everything else is itself."""
    kind, _, count = text.partition(":")
    if kind in ("zeros", "random") and count.isdigit():
        return bytes(int(count)) if kind == "zeros" else os.urandom(int(count))
    return text.encode()


def seen_of(answer: Answer) -> dict[str, Any]:
    """`http` status, body, its digest, and the members of the answer when it is a JSON object."""
    seen: dict[str, Any] = {"http": answer.status, "bytes": len(answer.body),
                            "sha256": hashlib.sha256(answer.body).hexdigest(),
                            "body": answer.body[:65536].decode(errors="replace")}
    if answer.headers.get("content-type", "").startswith("application/json") and answer.body:
        value = answer.json
        seen |= value if isinstance(value, dict) else {"items": value}
        if isinstance(seen.get("items"), list):
            seen["count"] = len(seen["items"])
    return seen


class Scenario:
    def __init__(self, daemon: Daemon) -> None:
        self.daemon, self.client = daemon, daemon.client
        self.names: dict[str, str] = {}      # sandbox ids and kept values, for {name}
        self.agents: dict[str, int] = {}     # host pid of PID 1 by sandbox name
        self.seen: dict[str, Seen] = {}
        self.threads: dict[str, tuple[threading.Thread, list[BaseException]]] = {}

    # ---- lines ----

    def play(self, lines: list[Line]) -> None:
        for line in lines:
            try:
                self.line(line)
            except Wrong as wrong:
                raise Wrong(f"line {line.number}: {line.text.strip()}: {wrong}") if not str(wrong).startswith("line ") \
                    else wrong from None
            except (AssertionError, OSError, KeyError, ValueError) as wrong:
                raise Wrong(f"line {line.number}: {line.text.strip()}: {type(wrong).__name__} {wrong}") from wrong

    def line(self, line: Line) -> None:
        label, text = "", line.text.strip()
        if match := re.match(r"([a-z][a-z0-9_]*): +(.*)", text):
            label, text = match.groups()
        command, _, rest = text.partition(" ")
        if command in BLOCKS:
            BLOCKS[command](self, rest, line.block)
        elif command in COMMANDS:
            began = time.monotonic()
            value = COMMANDS[command](self, self.filled(rest))
            if value is not None:
                self.seen[label] = self.seen[""] = Seen(value, time.monotonic() - began)
        else:
            raise Wrong("no such command")

    def filled(self, text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda m: self.names.get(m.group(1), m.group(0)), text)

    def box(self, name: str) -> str:
        if name not in self.names:
            raise Wrong(f"no sandbox {name}")
        return self.names[name]

    def look_up(self, what: str) -> Any:
        """[label.]a.b.c in an answer; `seconds` is how long it took."""
        label, _, rest = what.partition(".")
        if label in self.seen and rest:
            what = rest
        else:
            label = ""
        seen = self.seen[label]
        if what == "seconds":
            return seen.seconds
        value = seen.value
        for part in what.split("."):
            if isinstance(value, list):
                value = value[int(part)]
            elif isinstance(value, dict) and part in value:
                value = value[part]
            else:
                return None
        return value

    # ---- the client ----

    def create(self, rest: str) -> dict[str, Any]:
        """create NAME [field=value]...: a sandbox; header.X=v is sent as a header."""
        name, *words = shlex.split(rest)
        fields = fields_of(words)
        headers = fields.pop("header", {})
        fields.setdefault("template", "python")
        answer = self.client.request("POST", "/v1/sandboxes", fields, headers)
        seen = seen_of(answer)
        if answer.status in (200, 201):
            self.names[name] = seen["id"]
            self.agents[name] = seen["measured"]["host_pid"]
        return seen

    def exec(self, rest: str) -> dict[str, Any]:
        """exec NAME [field=value]... -- SHELL TEXT"""
        head, dashes, command = rest.partition(" -- ")
        if not dashes:
            raise Wrong("exec needs --")
        name, *words = shlex.split(head)
        seen: dict[str, Any] = self.client.exec(self.box(name), command, **fields_of(words))
        return seen

    def write(self, rest: str) -> dict[str, Any]:
        """write NAME PATH TEXT|zeros:N|random:N [MODE]; remembers the digest as {written}."""
        name, path, text, *mode = shlex.split(rest)
        data = content_of(text)
        self.names["written"] = hashlib.sha256(data).hexdigest()
        return seen_of(self.client.write(self.box(name), path, data, *mode))

    def read(self, rest: str) -> dict[str, Any]:
        """read NAME PATH"""
        name, path = shlex.split(rest)
        return seen_of(self.client.read(self.box(name), path))

    def get(self, rest: str) -> dict[str, Any]:
        """get NAME [ended]"""
        name, *ended = rest.split()
        return seen_of(self.client.get(self.box(name), bool(ended)))

    def listing(self, rest: str) -> dict[str, Any]:
        """list: items and count"""
        return seen_of(self.client.request("GET", f"/v1/sandboxes?limit=200{rest}"))

    def kill(self, rest: str) -> dict[str, Any]:
        """kill NAME"""
        return seen_of(self.client.kill(self.box(rest.strip())))

    def request(self, rest: str) -> dict[str, Any]:
        """request METHOD PATH [BODY]"""
        method, path, *body = rest.split(" ", 2)
        headers = {"Content-Type": "application/json"} if body else None
        return seen_of(self.client.request(method, path, body[0].encode() if body else None, headers))

    # ---- expectations ----

    def expect(self, rest: str) -> None:
        """expect WHAT OPERATOR VALUE"""
        what, sign, value = rest.split(" ", 2)
        if sign not in OPERATORS:
            raise Wrong(f"no operator {sign}")
        got = self.look_up(what)
        try:
            good = OPERATORS[sign](got, literal(value.strip()))
        except TypeError:
            good = False
        if not good:
            raise Wrong(f"it is {json.dumps(got)[:400]} of {str(self.seen[''].value)[:400]}")

    def keep(self, rest: str) -> None:
        """keep NAME WHAT: {NAME} is this value from here on"""
        name, what = rest.split()
        self.names[name] = str(self.look_up(what))

    def wait(self, rest: str) -> None:
        """wait SECONDS"""
        time.sleep(float(rest))

    # ---- the guest ----

    def guest(self, rest: str) -> None:
        """guest NAME [user=U] ROW...: each row of tests/escape/probes.def must hold in the sandbox"""
        name, *words = rest.split()
        fields = fields_of([word for word in words if "=" in word])
        box = self.box(name)
        self.client.write(box, "/tmp/probe", (BUILD / "tests/escape/probe").read_bytes(), "755").expect(200)
        for row in (word for word in words if "=" not in word):
            done = self.client.exec(box, ["/tmp/probe", "--only", row, "--host-pid", str(os.getpid())], **fields)
            verdicts = [line.split("\t") for line in done["stdout"].splitlines() if line.split("\t")[0] == row]
            if not verdicts or verdicts[0][1] != "held":
                raise Wrong(f"{row}: {verdicts}")

    # ---- the host ----

    def targets(self, who: str) -> list[int]:
        if who.startswith("agent:"):
            return [self.agents[who.removeprefix("agent:")]]
        found: list[int] = self.daemon.by_role(who)
        return found

    def host(self, rest: str) -> Any:
        """host VERB ARGUMENTS"""
        verb, *words = rest.split()
        if verb == "signal":  # host signal NAME ROLE|agent:SANDBOX
            for pid in self.targets(words[1]):
                if role(pid) == words[1].split(":")[0]:
                    os.kill(pid, getattr(signal, f"SIG{words[0]}"))
            return None
        if verb == "look":    # host look SANDBOX
            return self.look(words[0])
        if verb == "fds":     # host fds
            return self.daemon.descriptors()
        if verb == "restart": # host restart: after a SIGKILL of the supervisor, or instead of one
            if not self.daemon.ended():
                self.daemon.stop()
            self.daemon.start()
            return None
        if verb == "gone":    # host gone SANDBOX: within 5 s nothing of it runs and no group of it is left
            wait_until("the sandbox is gone", lambda: self.look(words[0])["processes"] == 0, 5)
            return None
        raise Wrong("no such verb")

    def look(self, name: str) -> dict[str, Any]:
        """Processes in the pid namespace of a sandbox as the host sees them."""
        states: list[str] = []
        agent = self.agents[name]
        namespace = read_link(f"/proc/{agent}/ns/pid")
        for pid in self.daemon.pids():
            if namespace and read_link(f"/proc/{pid}/ns/pid") == namespace:
                states.append(re.sub(r".*\) ", "", read(f"/proc/{pid}/stat"))[:1])
        return {"processes": len(states), "zombies": states.count("Z")}

    # ---- blocks ----

    def start(self, name: str, work: Callable[[], None]) -> None:
        faults: list[BaseException] = []

        def body() -> None:
            try:
                work()
            except BaseException as fault:
                faults.append(fault)

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        self.threads[name] = thread, faults

    def join(self, name: str) -> None:
        thread, faults = self.threads.pop(name)
        thread.join(SCENARIO_S)
        if thread.is_alive():
            raise Wrong(f"{name} did not end")
        if faults:
            raise faults[0]

    def parallel(self, rest: str, block: list[Line]) -> None:
        """parallel: each line of the block at the same time; goes on when all ended"""
        for line in block:
            self.start(f"line {line.number}", lambda line=line: self.play([line]))  # type: ignore[misc]
        for line in block:
            self.join(f"line {line.number}")

    def background(self, rest: str, block: list[Line]) -> None:
        """background NAME: goes on at once; `join NAME` waits for it"""
        self.start(rest, lambda: self.play(block))

    def within(self, rest: str, block: list[Line]) -> None:
        """within SECONDS: the block again and again until it passes"""
        end = time.monotonic() + float(rest)
        while True:
            try:
                return self.play(block)
            except Wrong:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def repeat(self, rest: str, block: list[Line]) -> None:
        """repeat COUNT"""
        for _ in range(int(rest)):
            self.play(block)


def read_link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def join(scenario: Scenario, rest: str) -> None:
    scenario.join(rest.strip())


COMMANDS: dict[str, Callable[[Scenario, str], Any]] = {
    "create": Scenario.create, "exec": Scenario.exec, "write": Scenario.write, "read": Scenario.read, "get": Scenario.get,
    "list": Scenario.listing, "kill": Scenario.kill, "request": Scenario.request, "expect": Scenario.expect,
    "keep": Scenario.keep, "wait": Scenario.wait, "guest": Scenario.guest, "host": Scenario.host, "join": join,
}
BLOCKS: dict[str, Callable[[Scenario, str, list[Line]], None]] = {
    "parallel": Scenario.parallel, "background": Scenario.background, "within": Scenario.within,
    "repeat": Scenario.repeat,
}


# ---- files ----


def parse(path: Path) -> tuple[str, dict[str, Any], list[Line]]:
    """Title, settings and lines; blocks end with `end`."""
    title = ""
    settings: dict[str, Any] = {}
    stack: list[list[Line]] = [[]]
    for number, text in enumerate(path.read_text().splitlines(), 1):
        word, _, rest = text.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        if word == "title":
            title = rest
        elif word == "settings":
            settings |= dict(pair.split("=", 1) for pair in shlex.split(rest))
        elif word == "end":
            stack.pop()
        else:
            stack[-1].append(Line(number, text))
            if word in BLOCKS:
                stack.append(stack[-1][-1].block)
    if len(stack) != 1 or not title:
        raise SystemExit(f"{path.name}: a block without end, or no title")
    return title, settings, stack[0]


def play(daemon: Daemon, lines: list[Line]) -> str:
    """What was wrong; empty when nothing."""
    scenario = Scenario(daemon)
    try:
        scenario.play(lines)
        for name in list(scenario.threads):
            scenario.join(name)
        return ""
    except Wrong as wrong:
        return str(wrong)
    finally:
        if not daemon.ended():
            try:
                wait_until("all sandboxes of the scenario can be ended", lambda: clear(daemon), 15)
            except AssertionError as left:
                raise AssertionError(f"{left}\n{daemon.log()[-1500:]}") from left


def clear(daemon: Daemon) -> bool:
    """Ends all sandboxes; false while the daemon cannot."""
    rows = daemon.client.request("GET", "/v1/sandboxes?limit=200")
    return rows.status == 200 and all(daemon.client.kill(row["id"]).status == 200 for row in rows.json["items"])


def play_file(path: Path, shared: Daemon) -> str:
    _, settings, lines = parse(path)
    own = bool(settings) or any(line.text.strip().startswith("host restart") for line in lines)
    if not own:
        return play(shared, lines)
    try:
        with Daemon(settings) as daemon:
            return play(daemon, lines)
    except AssertionError as left:
        return str(left)


def main() -> int:
    names = sys.argv[1:] or [""]
    paths = [path for path in sorted(FOLDER.glob("*.scn")) if any(path.name.startswith(name) for name in names)]
    print(f"1..{len(paths) + 1}", flush=True)
    bad = 0
    number = 0
    try:
        with Daemon(tcp=True) as shared:
            for number, path in enumerate(paths, 1):
                began = time.monotonic()
                wrong = play_file(path, shared)
                bad += bool(wrong)
                print(f"{'not ok' if wrong else 'ok'} {number} - {path.stem}: {parse(path)[0]} "
                      f"# {time.monotonic() - began:.1f} s", flush=True)
                if wrong:
                    print("# " + wrong.replace("\n", "\n# "), flush=True)
                    print("# " + shared.log()[-1500:].replace("\n", "\n# "), flush=True)
        print(f"ok {len(paths) + 1} - nothing is left of the daemon")
    except AssertionError as left:
        print(f"not ok {max(number, len(paths)) + 1} - nothing is left of the daemon")
        print("# " + str(left).replace("\n", "\n# "))
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
