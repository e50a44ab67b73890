#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo's raw material: same bytes every time, files that the template's tools open, a sound table.

Usage: test_demo.py [STATE]. With a state directory that holds the template `python` (as root) attachments are opened
by the image's own programs. Prints `ok NAME` or `not ok NAME: why` per case; ends with 1 if any failed.
"""

import contextlib
import http.client
import io
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "demo"))

import agent
import host
import make_ticket
import network
from story import Story

ROOT = Path(__file__).resolve().parents[2]
ALL_STEPS = [*agent.STEPS_48221, *agent.STEPS_48222, *agent.STEPS_AGAIN, *agent.STEPS_LEAVE]


class Failure(Exception):
    """A condition of a case did not hold."""


def check(condition: bool, why: str) -> None:
    if not condition:
        raise Failure(why)


def same_bytes_every_time() -> None:
    check(make_ticket.tickets() == make_ticket.tickets(), "two runs differ")


def bomb_is_whole() -> None:
    bomb = make_ticket.make_bomb()
    check(len(bomb) < 11_000_000, f"the bomb has {len(bomb)} bytes")
    with zipfile.ZipFile(io.BytesIO(bomb)) as archive:
        members = archive.infolist()
        check(sum(m.file_size for m in members) == 10 << 30, "not 10 GiB")
        check(len({m.filename for m in members}) == len(members), "a name twice")
        for member in (members[0], members[-1]):
            with archive.open(member) as f:  # the CRC is checked at the end
                total = 0
                while piece := f.read(1 << 20):
                    check(not any(piece), "not zeros")
                    total += len(piece)
            check(total == member.file_size, "wrong size")


def tickets_do_not_share_a_mark() -> None:
    files = make_ticket.tickets()
    check(all(make_ticket.CANARY.encode() not in data for data in files["48221"].values()), "48221 holds the canary")
    check(make_ticket.CANARY.encode() in files["48222"]["body.txt"], "48222 lacks the canary")
    check(all(b"evil.tld" not in data for data in files["48222"].values()), "48222 is not clean")


def table_holds_together() -> None:
    names = set()
    for step in ALL_STEPS:
        check(step.name not in names, f"{step.name} stands twice")
        names.add(step.name)
        check(step.chapter in agent.CHAPTERS, f"{step.name}: no chapter {step.chapter}")
        check(len(step.command) < 60_000, f"{step.name}: the command is too long for one argument")
        for pattern in (*step.expect.shows, *step.expect.never):
            re.compile(pattern)
        attack = step.chapter in ("plant", "reach", "look", "break")
        check(
            bool(step.asked and step.stopped_by) or not attack,
            f"{step.name}: says not what was asked or what stopped it",
        )
        check(bool(step.asked) == bool(step.stopped_by) or step.chapter != "leave", f"{step.name}: says one of both only")
        parsed = subprocess.run(["sh", "-n"], input=step.command, text=True, capture_output=True, check=False)
        check(parsed.returncode == 0, f"{step.name}: {parsed.stderr}")
    for path in agent.COMMANDS.glob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
        check(
            any(path.read_text(encoding="utf-8") in s.command for s in ALL_STEPS),
            f"{path.name} is used nowhere",
        )


def each_refusal_has_its_reason() -> None:
    reasons = set(re.findall(r'"([a-z0-9-]+)"', (ROOT / "proto/enums.def").read_text()))
    attacks = {step.name for step in agent.STEPS_LEAVE if step.stopped_by} - {"carrier-key"}
    check({row[0] for row in agent.LEFT} == attacks, "a refusal without a reason, or a reason of nothing")
    for row in agent.LEFT:
        check(row[1] in reasons, f"{row[1]} is no reason of proto/enums.def")


def ports_stand_where_they_are_written() -> None:
    for text in ((ROOT / "demo/policy.d/support.yaml").read_text(), *(step.command for step in agent.STEPS_LEAVE)):
        for site, port in (("docs.example.com", "docs"), ("mirror.example.org", "docs"), ("api.carrier.example", "carrier")):
            hosts = re.findall(rf"{re.escape(site)}(:\d+)", text)
            check(set(hosts) <= {network.WRITTEN[port]}, f"{site} at {hosts}")


def servers_hear_all_that_comes() -> None:
    """Whatever the method, and connections on which nothing is asked: else "nothing arrived" would say nothing."""
    with tempfile.TemporaryDirectory(prefix="demilune-demo-") as scratch:
        place = Path(scratch)
        for name in ("trust", "secrets"):
            (place / name).mkdir()
        world = network.Network(place / "network", place / "trust", place / "secrets")
        try:
            believe = ssl.create_default_context(cafile=str(place / "trust/demo.pem"))
            port = world.docs.port
            for method, body in (("GET", None), ("POST", b"customers"), ("BREW", None)):
                client = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=believe)
                with socket.create_connection(("127.0.0.1", port), 10) as plain:
                    client.sock = believe.wrap_socket(plain, server_hostname=network.DOCS)
                    client.request(method, "/help/returns", body, {"Authorization": "x"} if body else {})
                    client.getresponse().read()
                    client.close()
            heard = [(h.line.split()[0], h.authorization, h.body) for h in world.docs.heard]
            check(heard == [("GET", "", ""), ("POST", "x", "9"), ("BREW", "", "")], f"{heard}")
            with socket.create_connection(("127.0.0.1", port), 10) as silent:
                silent.shutdown(socket.SHUT_WR)
                silent.settimeout(10)
                with contextlib.suppress(OSError):
                    silent.recv(100)
            check(world.docs.silent == 1, f"{world.docs.silent} silent connections")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.settimeout(10)
                for wire, answers in ((b"\x06mirror\x07example\x03org", 1), (b"\x04evil\x03tld", 0)):
                    s.sendto(bytes(5) + b"\x01" + bytes(6) + wire + b"\0\0\x01\0\x01", ("127.0.0.1", world.names.port))
                    check(s.recv(512)[7] == answers, f"answers to {wire!r}")
            check(world.names.asked == [network.MIRROR, "evil.tld"], f"{world.names.asked}")
        finally:
            world.stop()


def judge_finds_each_fault() -> None:
    expect = agent.Expect(shows=("^yes$",), never=("^no$",), at_most_bytes=20, at_most_seconds=2)
    good = agent.Outcome("a\nyes\nb", "", 0, "exited", 1.0)
    check(agent.judge(expect, good) == [], "a good outcome is refused")
    bad = {
        "does not show": replace(good, stdout="yes no"),
        "shows": replace(good, stderr="no"),
        "ended with": replace(good, exit_code=1),
        "reason": replace(good, reason="timeout"),
        "bytes": replace(good, stderr="x" * 20),
        "took": replace(good, seconds=2.1),
    }
    for word, outcome in bad.items():
        wrong = agent.judge(expect, outcome)
        check(len(wrong) == 1 and word in wrong[0], f"{word}: {wrong}")


def opens_in_template() -> None:
    templates = Path(sys.argv[1]).resolve() / "templates"
    image = templates / ((templates / "index/python").read_text().strip() + ".erofs")
    for ticket, steps in (("48221", agent.READ[:-1]), ("48222", agent.STEPS_48222[1:])):
        with tempfile.TemporaryDirectory(prefix="demilune-demo-") as scratch:
            root, work = Path(scratch, "root"), Path(scratch, "work")
            root.mkdir()
            (work / ticket).mkdir(parents=True)
            for name, data in make_ticket.tickets()[ticket].items():
                (work / ticket / name).write_bytes(data)
            Path(scratch).chmod(0o755)
            # The mounts are seen, and end, in the program's own mount namespace.
            inside = (
                f"mount -t erofs -o ro,nosuid,nodev {image} {root} && mount --bind {work} {root}/work"
                f' && mount --bind /dev {root}/dev && exec chroot --userspec=10001:10001 {root} /bin/sh -c "$1"'
            )
            for step in steps:
                done = subprocess.run(
                    ["unshare", "--mount", "sh", "-c", inside, "sh", step.command],
                    capture_output=True,
                    text=True,
                    stdin=subprocess.DEVNULL,
                    timeout=60,
                    check=False,
                )
                outcome = agent.Outcome(done.stdout, done.stderr, done.returncode, "exited", 0.0)
                wrong = agent.judge(step.expect, outcome)
                check(not wrong, f"{step.name}: {wrong}: {done.stdout[:500]}{done.stderr[:500]}")


ORPHAN = """
import os, socket, subprocess, sys
sys.path.insert(0, sys.argv[1])
import host

host.adopt()
before = host.listening(host.descendants(os.getpid()))
# A shell that ends at once leaves a server behind, in a session of its own.
server = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print('up', flush=True); time.sleep(60)"
shell = subprocess.Popen(["sh", "-c", 'setsid python3 -c "$0" &', server], stdout=subprocess.PIPE, text=True)
shell.stdout.readline()
shell.wait()
found = host.descendants(os.getpid())
new = host.listening(found) - before
for pid in found:
    os.kill(pid, 9)
print(sorted(found.values()), len(new), sorted(n.split()[0] for n in new))
"""


def orphans_and_their_sockets_are_seen() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN, str(agent.COMMANDS.parent)], capture_output=True, text=True, timeout=30, check=True
    )
    check(done.stdout.strip() == "['python3'] 1 ['tcp']", f"{done.stdout}{done.stderr}")


def namespaces_and_groups_are_seen() -> None:
    if os.geteuid() != 0:
        return
    with subprocess.Popen(["unshare", "--net", "--uts", "sleep", "60"]) as held:
        while "sleep" not in Path(f"/proc/{held.pid}/comm").read_text():
            time.sleep(0.01)
        place = host.place_of(held.pid)
        check(len(place.namespaces) == 2, f"{place.namespaces}")
        left = host.remains(place)
        check(len(left) == 2, f"{left}")
        held.kill()
        held.wait()
        check(host.remains(place) == [], "what is gone is still seen")
    with tempfile.TemporaryDirectory(prefix="demilune-") as group:
        check(host.remains(host.Place(frozenset(), frozenset([Path(group)]))) != [], "a group that is there is not seen")


def a_changed_host_is_seen() -> None:
    before = host.Snapshot()
    check(before.differences(before) == [], "it differs from itself")
    other = replace(
        before,
        mounts=before.mounts ^ {"/left tmpfs tmpfs"},
        loops=before.loops | {"/sys/block/loop99/loop/backing_file"},
        files=("0" * 64, *before.files[1:]),
    )
    wrong = before.differences(other)
    check(len(wrong) == 3 and len(other.differences(before)) == 3, f"{wrong}")


def a_broken_expectation_ends_the_story_with_one() -> None:
    told = Story()
    with contextlib.redirect_stdout(io.StringIO()) as text:
        told.verdict("good", [])
        good = told.end(1.0)
        told.verdict("bad", ["\x1b[2Jwiped"])
        bad = told.end(1.0)
    check((good, bad) == (0, 1), f"{good} {bad}")
    check("bad: " in text.getvalue() and "\x1b" not in text.getvalue(), "a sandbox can write to the terminal")


CASES: list[Callable[[], None]] = [
    same_bytes_every_time,
    bomb_is_whole,
    tickets_do_not_share_a_mark,
    table_holds_together,
    each_refusal_has_its_reason,
    ports_stand_where_they_are_written,
    servers_hear_all_that_comes,
    judge_finds_each_fault,
    orphans_and_their_sockets_are_seen,
    namespaces_and_groups_are_seen,
    a_changed_host_is_seen,
    a_broken_expectation_ends_the_story_with_one,
]


def main() -> int:
    cases = CASES + ([opens_in_template] if len(sys.argv) > 1 else [])
    failed = 0
    for case in cases:
        try:
            case()
            print(f"ok {case.__name__}", flush=True)
        except (Failure, OSError, subprocess.SubprocessError, ValueError) as e:
            failed += 1
            print(f"not ok {case.__name__}: {e}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
