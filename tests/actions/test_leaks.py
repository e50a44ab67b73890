# SPDX-License-Identifier: Apache-2.0
"""Where a secret may not be: answers, records, logs, files, and the memory of every process but the broker. And what a hostile program in a
sandbox does not hear: facts of the system of record about others.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from acting import ROOMS, Acting
from daemon import read, role
from truth import key_of, settled, truth

EVERYBODY = ("supervisor", "engine", "broker", "dialer", "api", "relay")
STRANGER = '{"order_id":"777","cents":4200}'


@pytest.fixture(scope="module")
def host() -> Iterator[Acting]:
    """After a day of work: good answers, bad ones, a provider that echoes the credential, a sandbox that lies, a lost answer."""
    with Acting() as host:
        task = host.task()
        host.grant(task)
        host.grant(task, operation="order_status")
        box = host.daemon.client.create(task=task)["id"]
        for command in (["demilune-propose", "refund", STRANGER], ["demilune-read", "order_status", '{"order_id":"48221"}']):
            host.daemon.client.exec(box, command)
        for cents, mood in enumerate(("effect echo", "read echo", "effect executes_then_drops", "effect garbage", "effect status 500",
                                      "effect ok"), 1):
            row = host.propose(task, cents=cents).json
            host.script(mood)
            host.approve(row["id"], code=None)
            settled(host, row)
        host.script("read echo")
        host.propose(task, cents=99)  # the credential would be a fact
        host.script()
        host.box, host.used = box, task
        yield host


def codings(secret: str) -> list[bytes]:
    """The secret as it is and as a provider or a program may write it; base64 at each of its three places."""
    raw = secret.encode()
    found = [raw, raw.hex().encode(), quote(secret, safe="").encode(), raw[::-1], raw.decode().encode("utf-16-le")]
    for shift in range(3):
        found.append(base64.b64encode(b"x" * shift + raw)[4 if shift else 0:-4])
    return found


def memory(pid: int) -> Iterator[tuple[str, bytes]]:
    """Everything that a process can read itself, mapping by mapping."""
    with open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in read(f"/proc/{pid}/maps").splitlines():
            span, rights = line.split()[:2]
            start, end = (int(one, 16) for one in span.split("-"))
            if rights[0] != "r" or "[vvar" in line or "[vsyscall" in line:
                continue
            try:
                mem.seek(start)
                yield line, mem.read(end - start)
            except OSError:
                continue  # pages of secret memory, or without a page behind them


def holders(pid: int, needles: list[bytes]) -> list[str]:
    return [line for line, data in memory(pid) if any(needle in data for needle in needles)]


def test_H11_no_process_but_the_broker_has_it(host: Acting) -> None:
    needles = codings(host.secret)
    program = f"import sys,time; s={host.secret!r}; sys.stdout.write('x'); sys.stdout.flush(); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as control:
        assert control.stdout is not None
        control.stdout.read(1)
        try:
            assert holders(control.pid, needles), "this search finds nothing at all"
        finally:
            control.kill()
    for name in EVERYBODY:
        pids = host.daemon.by_role(name)
        assert pids, name
        for pid in pids:
            assert sum(len(data) for _, data in memory(pid)) > 500_000, name
            if name != "broker":
                assert holders(pid, needles) == [], name
    boxed = [pid for pid in host.daemon.pids() if role(pid) in ("agent", "guest")]
    assert boxed and all(holders(pid, needles) == [] for pid in boxed)


def test_H11_even_the_broker_has_it_in_no_memory_that_can_be_read(host: Acting) -> None:
    """Secret memory of the kernel: also root reads nothing there; copies of libraries are wiped."""
    pid = host.pid("broker")
    if not any("secretmem" in line for line in read(f"/proc/{pid}/maps").splitlines()):
        assert any("VmLck" in line and line.split()[1] != "0" for line in read(f"/proc/{pid}/status").splitlines())
        return
    assert holders(pid, codings(host.secret)) == []


def test_no_process_leaves_a_core(host: Acting) -> None:
    """Not dumpable, and a limit of 0 or of 1, with which a program of core_pattern gets none either."""
    for name in EVERYBODY:
        for pid in host.daemon.by_role(name):
            if name == "supervisor":
                continue
            assert os.stat(f"/proc/{pid}/mem").st_uid == 0, f"{name} is dumpable"
            limit = next(line.split()[4:6] for line in read(f"/proc/{pid}/limits").splitlines() if line.startswith("Max core file size"))
            assert limit in (["0", "0"], ["1", "1"]), name


def files(*roots: Path) -> Iterator[Path]:
    for root in roots:
        for path in root.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.suffix != ".erofs":
                yield path


def test_H4_no_file_and_no_log_has_it(host: Acting) -> None:
    needles = codings(host.secret)
    seen = 0
    for path in files(host.daemon.home, host.trust, host.home / "operations.d"):
        data = path.read_bytes()
        seen += 1
        assert not any(needle in data for needle in needles), path
    assert seen > 8 and (host.daemon.state / "engine/engine.db") in list(files(host.daemon.state))
    assert (host.home / "secrets/shop").read_text() == host.secret and os.stat(host.home / "secrets").st_mode & 0o77 == 0


def test_H4_H11_no_answer_has_it(host: Acting) -> None:
    needles = codings(host.secret)
    rows = host.ask("GET", f"/v1/proposals?task={host.used}").expect(200).json["items"]
    task = f"/v1/tasks/{host.used}"
    paths = [f"/v1/audit/{host.used}?format=ndjson", f"/v1/audit/{host.used}", f"/v1/proposals?task={host.used}",
             f"/v1/executions?task={host.used}", "/v1/operations", "/v1/operations/refund", task, f"{task}/budgets",
             f"/v1/grants?task={host.used}",
             "/v1/containments", f"/v1/sandboxes/{host.box}", "/version", "/openapi.json",
             *(f"/v1/proposals/{row['id']}" for row in rows), *(f"/v1/executions/{one['id']}" for one in host.executions(host.used))]
    assert len(paths) > 20
    for path in paths:
        body = host.ask("GET", path).expect(200).body
        decoded = b"".join(base64.b64decode(row["record"]) for row in rows if row.get("record"))
        assert not any(needle in body or needle in decoded for needle in needles), path
    for words in (["audit", host.used], ["execution", "list", host.used], ["proposal", "list", host.used], ["operation", "list"]):
        done = host.cli(*words, code=None)
        assert not any(needle in done.stdout + done.stderr for needle in needles), words


def test_H11_the_echo_was_redacted_and_is_an_answer_all_the_same(host: Acting) -> None:
    """The provider did write it into its receipt: this is no test of a provider that behaves."""
    assert any(one.get("receipt") and "re " not in str(one["receipt"].get("id")) for one in host.executions(host.used))
    assert [effect for effect in host.effects() if effect["body"]["amount"] == 1]


FORGED = [("777", 4200), ("777", 1), ("1", 4200), ("48221", 9001)]


def test_what_a_sandbox_hears_has_no_fact(host: Acting) -> None:
    """A program proposes for orders of another tenant only to hear about them; it hears the condition, and never if there is one."""
    client = host.daemon.client
    heard = {}
    for order, cents in FORGED:
        done = client.exec(host.box, ["demilune-propose", "refund", f'{{"order_id":"{order}","cents":{cents}}}'])
        assert done["exit_code"] == 1 and '"denial":"verify_failed"' in done["stderr"]
        heard[order, cents] = done["stdout"] + done["stderr"]
        done = client.exec(host.box, ["demilune-read", "order_status", f'{{"order_id":"{order}"}}'])
        if order != "48221":
            heard[order, 0] = done["stdout"] + done["stderr"]
    for text in heard.values():
        assert "globex" not in text and "9000" not in text and "acme" not in text and " is " not in text.replace(" is refused", ""), text
    assert "order.tenant == @tenant does not hold" in heard["777", 4200]
    assert "order.paid_cents >= cents does not hold" in heard["48221", 9001]
    assert heard["777", 4200] == heard["1", 4200] == heard["777", 1] and heard["777", 0] == heard["1", 0]
    rows = host.ask("GET", f"/v1/proposals?task={host.used}").expect(200).json["items"]
    assert any("it is globex" in row.get("error", row.get("text", "")) for row in rows), "people see the values"


def test_an_outage_says_nothing_of_the_system_behind(host: Acting) -> None:
    host.script("read status 418")
    done = host.daemon.client.exec(host.box, ["demilune-propose", "refund", '{"order_id":"48221","cents":77}'])
    assert done["exit_code"] == 1 and "verify_unavailable" in done["stderr"] and "418" not in done["stderr"]


def test_H11_nor_after_a_restart_of_each_room(host: Acting) -> None:
    """Each room starts anew and none has it; the new broker does."""
    for room in ROOMS:
        host.kill(room)
        host.whole()
    row = host.pending(host.used, cents=111)
    host.approve(row["id"])
    assert truth(host, row, "succeeded") == 1 and len(host.effects(key_of(row))) == 1
    time.sleep(0.1)
    for name in EVERYBODY:
        if name != "broker":
            assert all(holders(pid, codings(host.secret)) == [] for pid in host.daemon.by_role(name)), name
