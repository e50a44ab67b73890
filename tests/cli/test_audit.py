# SPDX-License-Identifier: Apache-2.0
"""demilune audit: the table, the export byte for byte, and that every change to an export is found."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pty
import re
import resource
from pathlib import Path
from typing import Any

import pytest
from fake import SANDBOX, TASK, Fake, Handler, Seen
from signed_log import Log

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


def log_of(lines: list[bytes], key: Log | None = None) -> Log:
    """The log in which these lines stand, among records of others."""
    digests = [hashlib.sha256(b"other %d" % i).digest() for i in range(7 + len(lines) + 3)]
    for line in lines:
        if at := re.match(rb'{"number":\d+,"previous":"sha256:\w{64}","digest":"sha256:(\w{64})","leaf":(\d+),', line):
            digests[int(at[2])] = bytes.fromhex(at[1].decode())
    return Log(digests, key=key)


def answer(h: Handler, status: int, what: Any) -> None:
    body = json.dumps(what).encode()
    h.send_response(status)
    h.send_header("Content-Type", "application/json")
    h.send_header("Content-Length", str(len(body)))
    h.end_headers()
    h.wfile.write(body)


def serve_log(fake: Fake, log: Log, size: int | None = None) -> None:
    size = log.size if size is None else size

    def inclusion(h: Handler, s: Seen) -> None:
        of = int(s.query["size"])
        items = [{"leaf": int(x), "size": of, "hashes": log.inclusion(int(x), of)} for x in s.query["leaves"].split(",")]
        answer(h, 200, {"items": items, "more": False})

    def consistency(h: Handler, s: Seen) -> None:
        old, new = int(s.query["from"]), int(s.query["size"])
        answer(h, 200, {"size": new, "hashes": log.consistency(old, new)})

    fake.on("GET", "/v1/audit/checkpoint", 200, {"size": size, "note": log.note(size), "audit_key": log.key})
    fake.on("GET", f"/v1/audit/{TASK}/inclusion", inclusion)
    fake.on("GET", "/v1/audit/consistency", consistency)


def serve(fake: Fake, lines: list[bytes], name: str = "48221", tasks: int = 1, records: int | None = None) -> None:
    serve_log(fake, log_of(lines))
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


def test_actions(fake: Fake) -> None:
    said = {"operation": "refund", "proposal": "pr_0123456789abcdef", "state": "pending"}
    serve(fake, export([
        record(1, "grant.issued", {"grant": "gr_0123456789abcdef", "operation": "refund", "uses": 1}),
        record(2, "proposal.denied", {"denial": "arguments", "proposal_digest": "aa", "text": "no\u001b[2J"}, sandbox=SANDBOX),
        record(3, "decision.accepted", said | {"said": {"approve": False, "approver": "anna", "key": "SHA256:x"}}, sandbox=SANDBOX),
        record(4, "execution.succeeded", {"denial": "none", "execution": "xc_0123456789abcdef", "operation": "refund",
                                          "proposal": "pr_0123456789abcdef", "text": "done (201)"}),
    ]))
    lines = fake.run("audit", "48221").stdout.decode().splitlines()
    rows = [line.split(None, 3)[3] for line in lines]
    assert rows[1].split(None, 1) == ["grant.issued", "gr_0123456789abcdef, refund"]
    assert rows[2].split(None, 1) == ["proposal.denied", "arguments, no\\x1b[2J"]
    assert rows[3].split(None, 1) == ["decision.accepted", "pr_0123456789abcdef, refund, rejected by anna"]
    assert rows[4].split(None, 1) == ["execution.succeeded", "xc_0123456789abcdef, pr_0123456789abcdef, refund, done (201)"]


def test_what_was_reached(fake: Fake) -> None:
    verdict = {"name": "docs.example", "port": 443, "reason": "none", "rule": 2, "scheme": "https", "verdict": "allowed"}
    serve(fake, export([
        record(1, "egress.verdict", verdict | {"address": "192.0.2.7", "method": "GET", "path": "/a\u001b[2J", "query": ["lang", "v"]},
               sandbox=SANDBOX),
        record(2, "egress.verdict", {"name": "x.evil.tld", "port": 53, "reason": "no-rule", "scheme": "dns", "verdict": "refused"},
               sandbox=SANDBOX),
        record(3, "egress.verdict", {"name": "2001:db8::1", "port": 22, "reason": "ip-literal", "scheme": "none", "verdict": "refused"},
               sandbox=SANDBOX),
        record(4, "egress.flow", verdict | {"bytes_in": 2048, "bytes_out": 1024, "count": 7}, sandbox=SANDBOX),
        record(5, "egress.lease", {"rule": 2, "policy": "aa" * 32}, sandbox=SANDBOX),
        record(6, "egress.flows", {"bytes_in": 0, "bytes_out": 0, "count": 900, "flows": 12}, sandbox=SANDBOX),
        record(7, "egress.verdict", {"name": "", "address": "10.0.0.5", "port": 80, "reason": "raw-address", "scheme": "none",
                                     "verdict": "refused"}, sandbox=SANDBOX)]))
    rows = [line.split(None, 3)[3].split() for line in fake.run("audit", "48221").stdout.decode().splitlines()]
    assert rows[1] == ["egress.verdict", "allowed", "GET", "https", "docs.example:443/a\\x1b[2J?lang=&v=,", "rule", "2"]
    assert rows[2] == ["egress.verdict", "refused:", "no-rule", "dns", "x.evil.tld"]
    assert rows[3] == ["egress.verdict", "refused:", "ip-literal", "[2001:db8::1]:22"]
    assert rows[4] == ["egress.flow", "allowed", "3", "KiB", "https", "docs.example:443,", "rule", "2,", "7", "times"]
    assert rows[5] == ["egress.lease", "rule", "2"]
    assert rows[6] == ["egress.flows", "0", "B", "900", "times"]
    assert rows[7] == ["egress.verdict", "refused:", "raw-address", "10.0.0.5:80"]


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
        assert f"/v1/audit/{TASK}" in {s.path for s in fake.seen}
        fake.seen.clear()
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


# ---- the signed log, and what a person holds of it ----


PROPOSAL = b'{"action":"refund","v":1}'
EXECUTION = "xc_0123456789abcdef"
DIGEST = hashlib.sha256(b"demilune-proposal-v1\0" + PROPOSAL).hexdigest()


def story(digest: str = DIGEST) -> list[bytes]:
    lines = [json.loads(line)["record"] for line in STORY]
    return export([*lines, record(9, "proposal.pending", {"digest": digest}),
                   record(10, "execution.dispatching", {"execution": EXECUTION}),
                   record(11, "execution.succeeded", {"execution": EXECUTION, "state": "succeeded"})])


def evidence(fake: Fake, digest: str = DIGEST, body: bytes = PROPOSAL) -> None:
    fake.on("GET", "/v1/grants", 200, {"items": [{"id": "gr_0123456789abcdef"}], "more": False})
    fake.on("GET", "/v1/proposals", 200, {"more": False, "items": [
        {"id": "pr_0123456789abcdef", "digest": digest, "record": base64.b64encode(body).decode(), "decisions": []}]})
    fake.on("GET", "/v1/executions", 200, {"items": [{"id": EXECUTION, "state": "succeeded", "receipt": {"id": "re_1"}}], "more": False})


def exported(fake: Fake, path: Path, lines: list[bytes], log: Log, *args: str) -> list[bytes]:
    serve(fake, lines)
    serve_log(fake, log)
    path.unlink(missing_ok=True)
    done = fake.run("audit", "export", "--out", str(path), *args, "48221")
    assert b"11 records in a signed log of 21, 1 grants, 1 proposals, 1 executions" in done.stderr
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_bytes().splitlines(keepends=True)


def test_an_export_is_verified_offline(fake: Fake, tmp_path: Path) -> None:
    log, path = log_of(story()), tmp_path / "receipt"
    evidence(fake)
    lines = exported(fake, path, story(), log)
    assert json.loads(lines[0]) == {"export": "demilune-audit-v1", "task": TASK, "audit_key": log.key, "checkpoint": log.note()}
    assert [next(iter(json.loads(x))) for x in lines[1:4]] == ["grant", "proposal", "execution"]
    fake.seen.clear()
    out = fake.run("audit", "verify", str(path)).stdout.decode()
    assert f"{TASK}: 11 records" in out
    assert f"all in the log host.test/audit of 21 records, signed by host.test/audit+{log.hash_of().hex()}" in out
    assert "a key that came along" in out
    (tmp_path / "key").write_text(log.key + "\n")
    (tmp_path / "held").write_text(log.note())
    for key in (log.key, str(tmp_path / "key")):
        out = fake.run("audit", "verify", "--key", key, "--checkpoint", str(tmp_path / "held"), str(path)).stdout.decode()
        assert "came along" not in out and "the log continues the checkpoint" in out
    assert fake.seen == []
    assert fake.run("audit", "export", "--out", str(path), "48221", code=1)  # nothing is written over


def test_every_change_of_an_export_is_found(fake: Fake, tmp_path: Path) -> None:
    log, path = log_of(story()), tmp_path / "receipt"
    evidence(fake)
    lines = exported(fake, path, story(), log)
    for i in range(4, len(lines)):
        at = lines[i].index(b'"proof":"') + 9
        for other in (lines[i][:at] + (b"1" if lines[i][at:at + 1] != b"1" else b"2") + lines[i][at + 1:],
                      lines[i][:at] + lines[i][at + 64:], lines[i].replace(b'"leaf":', b'"leaf":1'),
                      lines[i].replace(b'"tenant":"acme"', b'"tenant":"acne"')):
            assert verify(fake, path, [*lines[:i], other, *lines[i + 1:]], 1)
        if i + 1 < len(lines):
            assert verify(fake, path, lines[:i] + lines[i + 1:], 1)
            assert verify(fake, path, [*lines[:i], lines[i + 1], lines[i], *lines[i + 2:]], 1)
    head = json.loads(lines[0])

    def with_head(**other: Any) -> list[bytes]:
        return [json.dumps(head | other).encode() + b"\n", *lines[1:]]

    assert b"is not signed by" in verify(fake, path, with_head(checkpoint=head["checkpoint"].replace("\n21\n", "\n22\n")), 1)
    assert b"is not signed by" in verify(fake, path, with_head(audit_key=Log([]).key), 1)
    assert b"is not in the log" in verify(fake, path, with_head(checkpoint=log.note(20)), 1)
    assert verify(fake, path, lines[1:], 1) and verify(fake, path, [lines[0], *lines], 1)
    told = json.loads(lines[3])
    told["execution"]["state"] = "failed"
    for instead, says in (([json.dumps(told).encode() + b"\n"], b"is failed in this file, and succeeded in the record"),
                        ([], b"the record has execution"),
                        ([lines[3], lines[3].replace(b"xc_01", b"xc_02")], b"is in no record")):
        assert says in verify(fake, path, [*lines[:3], *instead, *lines[4:]], 1)
    changed: dict[str, Any] = json.loads(lines[2])
    changed["proposal"]["record"] = base64.b64encode(PROPOSAL + b" ").decode()
    assert b"do not have its digest" in verify(fake, path, [*lines[:2], json.dumps(changed).encode() + b"\n", *lines[3:]], 1)
    changed["proposal"]["digest"] = hashlib.sha256(b"demilune-proposal-v1\0" + PROPOSAL + b" ").hexdigest()
    assert b"is in no record" in verify(fake, path, [*lines[:2], json.dumps(changed).encode() + b"\n", *lines[3:]], 1)
    verify(fake, path, lines, 0)


def test_a_whole_chain_made_anew(fake: Fake, tmp_path: Path) -> None:
    """The writer of the records changes one, makes all digests and the whole tree again; it has no key of the broker."""
    log, path = log_of(story()), tmp_path / "receipt"
    evidence(fake)
    forged = [json.loads(line)["record"] for line in story()]
    forged[3]["data"]["code"] = 0
    lines = export(forged)
    own = log_of(lines)
    serve(fake, lines)
    serve_log(fake, own)
    assert fake.run("audit", "verify", "48221").returncode == 0  # without anything held it is believed
    held = tmp_path / "held"
    held.write_text(log.note(12))
    assert b"is not signed by the key" in fake.run("audit", "verify", "--key", log.key, "48221", code=1).stderr
    assert b"is not signed by" in fake.run("audit", "verify", "--checkpoint", str(held), "48221", code=1).stderr
    # Even with the key: two histories.
    serve_log(fake, log_of(lines, key=log))
    assert b"does not continue the checkpoint of 12 records that you hold" in fake.run(
        "audit", "verify", "--key", log.key, "--checkpoint", str(held), "48221", code=1).stderr
    held.write_text(log.note())
    assert b"have two roots" in fake.run("audit", "checkpoint", "--checkpoint", str(held), code=1).stderr
    assert fake.run("audit", "export", "--out", str(path), "--checkpoint", str(held), "48221", code=1) and not path.exists()


def test_against_a_held_checkpoint(fake: Fake, tmp_path: Path) -> None:
    log, held = log_of(STORY), tmp_path / "held"
    for size in (1, 8, 17, 18):
        serve(fake, STORY)
        serve_log(fake, log)
        held.write_text(log.note(size))
        out = fake.run("audit", "verify", "--checkpoint", str(held), "--key", log.key, "48221").stdout
        assert b"the log continues the checkpoint" in out
    # The tail was cut, or all of it removed, and the key is still there.
    held.write_text(log.note())
    for size in (0, 1, 17):
        serve_log(fake, log, size=max(size, 1))
        assert b"records were cut off" in fake.run(
            "audit", "verify", "--checkpoint", str(held), "48221", code=1).stderr
    held.write_text(log.note(origin="host.test/audit/2"))
    serve_log(fake, log)
    assert b"is of the log host.test/audit/2" in fake.run("audit", "verify", "--checkpoint", str(held), "48221", code=1).stderr
    held.write_text("nonsense\n")
    assert fake.run("audit", "verify", "--checkpoint", str(held), "48221", code=1).stderr


def test_a_daemon_with_false_proofs(fake: Fake) -> None:
    log = log_of(STORY)
    serve(fake, STORY)
    serve_log(fake, log)

    def swapped(h: Handler, s: Seen) -> None:
        asked = [int(x) for x in s.query["leaves"].split(",")]
        answer(h, 200, {"more": False, "items": [
            {"leaf": x, "size": log.size, "hashes": log.inclusion(x ^ 1 if x ^ 1 < log.size else x - 1, log.size)} for x in asked]})

    fake.on("GET", f"/v1/audit/{TASK}/inclusion", swapped)
    assert b"is not in the log that was signed" in fake.run("audit", "verify", "48221", code=1).stderr
    fake.on("GET", f"/v1/audit/{TASK}/inclusion", 200, {"items": [], "more": False})
    assert b"proofs of other records" in fake.run("audit", "verify", "48221", code=1).stderr
    fake.on("GET", f"/v1/audit/{TASK}/inclusion", 200, {"items": [{"leaf": 7, "size": 18, "hashes": ["00"]}] * 8, "more": False})
    assert b"no hash" in fake.run("audit", "verify", "48221", code=1).stderr


def test_key_and_checkpoint(fake: Fake) -> None:
    log = log_of(STORY)
    serve_log(fake, log)
    assert fake.run("audit", "key").stdout.decode() == log.key + "\n"
    assert fake.run("audit", "checkpoint").stdout.decode() == log.note()
    assert fake.asked("GET", "/v1/audit/checkpoint").query == {"fresh": "1"}


def test_records_that_came_after_the_checkpoint(fake: Fake) -> None:
    log = log_of(STORY)
    serve(fake, STORY, records=6)
    serve_log(fake, log, size=13)
    assert b"6 records" in fake.run("audit", "verify", "48221").stdout


def test_100_000_records_in_two_seconds(fake: Fake, tmp_path: Path) -> None:
    lines = export([record(i, "job.end", {"code": 0, "kind": "exec", "reason": "exited", "stdout_seen": 1000, "wall_us": 3250000})
                    for i in range(1, 100001)])
    log, path = log_of(lines), tmp_path / "receipt"
    head = {"export": "demilune-audit-v1", "task": TASK, "audit_key": log.key, "checkpoint": log.note()}
    with path.open("wb") as out:
        out.write(json.dumps(head).encode() + b"\n")
        for i, line in enumerate(lines):
            proof = "".join(log.inclusion(i + 7, log.size)).encode()
            out.write(line.replace(b',"record":', b',"proof":"%b","record":' % proof, 1))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert b"100000 records" in fake.run("audit", "verify", "--key", log.key, str(path)).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"100,000 records in {took:.2f} s of a processor")
    assert took < 2 * float(os.environ.get("DEMILUNE_SLOW", "1"))
