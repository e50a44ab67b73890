# SPDX-License-Identifier: Apache-2.0
"""demilune audit: the table, the export byte for byte, and that every change to an export is found."""

from __future__ import annotations

import hashlib
import json
import os
import pty
from pathlib import Path
from typing import Any

import pytest
from fake import SANDBOX, TASK, Fake, Handler, Seen

JOB = "ex_0123456789abcdef"


def record(number: int, event: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"data": data, "event": event, "seq": number + 7, "task": TASK, "task_seq": number, "tenant": "acme",
            "ts_ms": 1795972751435, "v": 1} | more


def export(records: list[dict[str, Any]]) -> list[bytes]:
    """The lines of the daemon, chained."""
    lines, previous = [], bytes(32)
    for number, what in enumerate(records, 1):
        text = json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        digest = hashlib.sha256(b"demilune-audit-v1\0" + previous + text).digest()
        lines.append(b'{"number":%d,"previous":"sha256:%b","digest":"sha256:%b","leaf":%d,"record":%b}\n'
                     % (number, previous.hex().encode(), digest.hex().encode(), number + 6, text))
        previous = digest
    return lines


STORY = export([
    record(1, "task.create", {"labels": ["ticket", "48221"], "template": "python"}),
    record(2, "sandbox.create", {"template": "python"}, sandbox=SANDBOX),
    record(3, "job.start", {"kind": "exec", "text": "curl \u001b[2J https://intake.evil.tld"}, job=JOB, sandbox=SANDBOX),
    record(4, "job.end", {"code": 6, "kind": "exec", "reason": "exited", "stderr_seen": 24, "stdout_seen": 1000,
                          "wall_us": 3250000}, job=JOB, sandbox=SANDBOX),
    record(5, "job.end", {"code": 0, "kind": "exec", "reason": "timeout", "stderr_seen": 0, "stdout_seen": 0, "wall_us": 1},
           job="ex_unknown"),
    record(6, "sandbox.gone", {"proof": {"mounts": 0}, "reason": "killed"}, sandbox=SANDBOX),
    record(7, "sandbox.gone", {"proof": None, "reason": "engine_restart"}, sandbox=SANDBOX),
    record(8, "input.store", {"path": "/work/é.eml", "size_bytes": 2048}),
])


def serve(fake: Fake, lines: list[bytes], name: str = "48221", tasks: int = 1, records: int | None = None) -> None:
    def answer(h: Handler, s: Seen) -> None:
        h.stream("application/x-ndjson")
        for line in lines:
            h.chunk(line)
        h.end()

    fake.on("GET", f"/v1/audit/{TASK}", answer)
    for task in (name, TASK):
        fake.on("GET", f"/v1/tasks/{task}", 200, {"id": TASK, "records": len(lines) if records is None else records})
    fake.on("GET", "/v1/tasks", 200, {"items": [{"id": TASK, "tenant": "acme"}] * tasks, "more": False})


def test_table(fake: Fake) -> None:
    serve(fake, STORY)
    done = fake.run("audit", "48221")
    rows = [line.split() for line in done.stdout.decode().splitlines()]
    assert rows[0] == ["#", "TIME", "(UTC)", "EVENT", "END", "BYTES", "TOOK", "WHAT"]
    assert rows[1][3:] == ["task.create", "ticket=48221"]
    assert rows[3][3:] == ["job.start", "curl", "\\x1b[2J", "https://intake.evil.tld"]
    assert rows[4][3:] == ["job.end", "exit", "6", "1", "KiB", "3.2", "s", "curl", "\\x1b[2J", "https://intake.evil.tld"]
    assert rows[5][3:5] == ["job.end", "timeout"] and rows[5][-1] == "ex_unknown"
    assert rows[6][3:] == ["sandbox.gone", "killed,", "0", "left", "over", SANDBOX]
    assert "nobody looked" in " ".join(rows[7])
    assert rows[8][3:] == ["input.store", "2", "KiB", "/work/é.eml"]
    assert done.stderr == b"" and len(rows) == 9


def test_cells(fake: Fake) -> None:
    serve(fake, export([
        record(1, "job.start", {"kind": "exec", "text": "python3 -u"}, job=JOB, sandbox=SANDBOX),
        record(2, "cell.start", {"cell": 1, "source": "api", "text": "x = 41"}, job=JOB, sandbox=SANDBOX),
        record(3, "cell.end", {"cell": 1, "code": 0, "reason": "exited", "source": "api", "stderr_seen": 0, "stdout_seen": 3,
                                "wall_us": 2000}, job=JOB, sandbox=SANDBOX),
        record(4, "cell.start", {"cell": 2, "source": "api", "text": "1/0"}, job=JOB, sandbox=SANDBOX),
        record(5, "cell.end", {"cell": 2, "reason": "oom", "source": "engine"}, job=JOB, sandbox=SANDBOX),
        record(6, "job.end", {"code": 9, "kind": "exec", "reason": "oom", "stdout_seen": 9}, job=JOB, sandbox=SANDBOX),
    ]))
    rows = [line.split() for line in fake.run("audit", "48221").stdout.decode().splitlines()]
    assert rows[2][3:] == ["cell.start", "x", "=", "41"]
    assert rows[3][3:6] == ["cell.end", "exit", "0"] and rows[3][-3:] == ["x", "=", "41"]
    assert rows[5][3:] == ["cell.end", "oom", "1/0"], "not the text of its job, nor of the cell before"
    assert rows[6][3:5] == ["job.end", "oom"] and rows[6][-2:] == ["python3", "-u"]


def test_a_ticket_of_several_tasks(fake: Fake) -> None:
    serve(fake, STORY, tasks=2)
    for args in (["audit", "48221"], ["audit", "--json", "48221"], ["audit", "verify", "48221"]):
        done = fake.run(*args)
        assert f"2 tasks have this ticket, this is the newest: {TASK}".encode() in done.stderr and b"--tenant" in done.stderr
    assert fake.run("audit", TASK).stderr == b""
    assert fake.asked("GET", "/v1/tasks").query["label"] == "ticket=48221"


def test_a_ticket_is_resolved_once(fake: Fake) -> None:
    """Whoever gives another task the same ticket while the record is read does not cut it short."""
    serve(fake, STORY)
    fake.run("audit", "--json", "48221")
    assert [s.path for s in fake.seen].count("/v1/tasks/48221") == 1
    assert fake.seen[-1].path == f"/v1/audit/{TASK}"


def test_the_tenant_of_a_ticket(fake: Fake) -> None:
    other = "tk_fedcba9876543210"
    serve(fake, STORY)
    fake.on("GET", "/v1/tasks", 200, {"items": [{"id": other, "tenant": "other"}, {"id": TASK, "tenant": "acme"}],
                                      "more": False})
    fake.on("GET", "/v1/tasks/48221", 200, {"id": other})
    for verb in (["audit"], ["audit", "verify"], ["audit", "--json"]):
        assert fake.run(*verb, "--tenant", "acme", "48221").stderr == b""
        assert fake.seen[-1].path == f"/v1/audit/{TASK}"
    done = fake.run("audit", "--tenant", "nobody", "48221", code=1)
    assert b"no task of tenant nobody has the ticket 48221" in done.stderr


@pytest.mark.parametrize("odd", [{"id": "tk_\x1b[2J0123456789a"}, {"id": "../../x"}, {"id": SANDBOX}, {}, []])
def test_odd_ids_of_the_daemon(fake: Fake, odd: Any) -> None:
    fake.on("GET", "/v1/tasks/48221", 200, odd)
    for verb in (["audit"], ["audit", "verify"]):
        assert b"\x1b" not in fake.run(*verb, "48221", code=1).stderr
    assert {s.path for s in fake.seen} == {"/v1/tasks/48221"}


def test_json_on_a_terminal_is_safe(fake: Fake) -> None:
    evil = STORY[0].replace(b"python", b"\x1b[2J\xc2\x9b")
    serve(fake, [evil])
    ours, theirs = pty.openpty()
    with fake.start("audit", "--json", "48221", stdout=theirs) as child:
        os.close(theirs)
        assert child.wait(timeout=10) == 0
    seen = os.read(ours, 65536)
    os.close(ours)
    assert b"\x1b" not in seen and b"\xc2\x9b" not in seen and b"\\x1b[2J" in seen and seen.count(b"\n") == 1
    assert fake.run("audit", "--json", "48221").stdout == evil


def test_json_is_the_export_byte_for_byte(fake: Fake, tmp_path: Path) -> None:
    serve(fake, STORY)
    done = fake.run("audit", "--json", "48221")
    assert done.stdout == b"".join(STORY)
    assert b"8 records" in fake.run("audit", "verify", "-", input=done.stdout).stdout


def verify(fake: Fake, path: Path, lines: list[bytes], code: int) -> bytes:
    path.write_bytes(b"".join(lines))
    done = fake.run("audit", "verify", str(path), code=code)
    return done.stdout if code == 0 else done.stderr


def test_verify_a_file_offline(fake: Fake, tmp_path: Path) -> None:
    out = verify(fake, tmp_path / "a", STORY, 0)
    head = json.loads(STORY[-1])["digest"]
    assert out.decode() == f"{TASK}: 8 records, each follows the one before; head {head}\n"
    assert fake.seen == []


def test_verify_finds_every_change(fake: Fake, tmp_path: Path) -> None:
    path = tmp_path / "a"
    for i in range(len(STORY)):
        assert verify(fake, path, STORY[:i] + STORY[i + 1:], 0 if i == len(STORY) - 1 else 1)  # left out
        assert verify(fake, path, STORY[:i + 1] + STORY[i:], 1)  # repeated
        if i:
            assert verify(fake, path, [*STORY[:i - 1], STORY[i], STORY[i - 1], *STORY[i + 1:]], 1)  # swapped
        at = STORY[i].index(b'"tenant":"acme"')
        assert b"was changed" in verify(
            fake, path, [*STORY[:i], STORY[i][:at] + b'"tenant":"acne"' + STORY[i][at + 15:], *STORY[i + 1:]], 1)
    assert verify(fake, path, [STORY[0][:-1]], 1)
    assert verify(fake, path, [*STORY[:-1], STORY[-1][:-2]], 1)
    assert verify(fake, path, [], 1) and verify(fake, path, [b"\n"], 1) and verify(fake, path, [b"x" * 300000], 1)
    assert fake.run("audit", "verify", str(tmp_path / "none"), code=1) and fake.run("audit", "verify", str(tmp_path), code=1)


def test_verify_finds_records_of_another_task_or_order(fake: Fake, tmp_path: Path) -> None:
    path = tmp_path / "a"
    mixed = export([record(1, "task.create", {}), record(2, "task.close", {}, task="tk_other")])
    assert b"another task" in verify(fake, path, mixed, 1)
    assert verify(fake, path, export([record(2, "task.create", {})]), 1)
    assert verify(fake, path, export([record(1, "task.create", {}) | {"v": 2}]), 1)


@pytest.mark.parametrize("change", [b" ", b"\r"])
def test_verify_takes_only_the_one_form(fake: Fake, tmp_path: Path, change: bytes) -> None:
    assert verify(fake, tmp_path / "a", [STORY[0][:-1] + change + b"\n"], 1)


def test_verify_the_daemon(fake: Fake) -> None:
    serve(fake, STORY)
    assert b"8 records" in fake.run("audit", "verify", "48221").stdout
    serve(fake, STORY[:-1], records=8)
    assert b"has 8 records, but only 7 came" in fake.run("audit", "verify", "48221", code=1).stderr
    serve(fake, STORY, records=7)  # one came meanwhile
    fake.run("audit", "verify", "48221")
    serve(fake, export([record(1, "task.create", {}, task="tk_other")]))
    assert b"are of the task tk_other" in fake.run("audit", "verify", "48221", code=1).stderr


@pytest.mark.parametrize("lines", [[b"nonsense\n"], [b"{}\n"], [STORY[0][:-1]], [b"x" * 300000],
                                   [STORY[0].replace(b'"v":1', b'"v":1,"v":1')]])
def test_a_broken_record_is_no_table(fake: Fake, lines: list[bytes]) -> None:
    serve(fake, lines)
    done = fake.run("audit", "48221", code=1)
    assert done.stdout == b"" and done.stderr
