# SPDX-License-Identifier: Apache-2.0
"""What a person signs besides decisions, with a real ssh-agent; the signatures are verified by the real ssh-keygen."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake import TASK, Fake

EXECUTION = "xc_0123456789abcdef"
UNKNOWN = {"id": EXECUTION, "state": "unknown", "text": "no answer came", "receipt": {}}


@pytest.fixture
def signer(tmp_path: Path, fake: Fake) -> Iterator[dict[str, str]]:
    """The environment of a person whose key is anna's."""
    sock = str(tmp_path / "agent.sock")
    with subprocess.Popen(["ssh-agent", "-D", "-a", sock], stdout=subprocess.DEVNULL) as child:
        limit = time.monotonic() + 10
        while not Path(sock).exists() and time.monotonic() < limit:
            time.sleep(0.01)
        key = tmp_path / "anna"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        subprocess.run(["ssh-add", "-q", key], env=os.environ | {"SSH_AUTH_SOCK": sock}, check=True, stderr=subprocess.DEVNULL)
        (tmp_path / "trust").mkdir()
        fake.run("approver", "enrol", "--name", "anna", "--key", f"{key}.pub", "--may", "refund", "--role", "release",
                 "--trust", str(tmp_path / "trust"))
        yield {"SSH_AUTH_SOCK": sock}
        child.terminate()


def signed(tmp_path: Path, body: Any, key: str) -> dict[str, Any]:
    """The record of a body, once ssh-keygen took its signature as anna's over exactly its bytes."""
    record, blob = (base64.b64decode(body[name], validate=True) for name in (key, "signature"))
    assert set(body) == {key, "signature"} and blob.startswith(b"SSHSIG")
    armour = "\n".join(textwrap.wrap(base64.b64encode(blob).decode(), 70))
    (tmp_path / "sig").write_text(f"-----BEGIN SSH SIGNATURE-----\n{armour}\n-----END SSH SIGNATURE-----\n")
    public = (tmp_path / "anna.pub").read_text()
    (tmp_path / "allowed").write_text(f'anna namespaces="demilune-approval" {public}')
    subprocess.run(["ssh-keygen", "-Y", "verify", "-f", tmp_path / "allowed", "-I", "anna", "-n", "demilune-approval", "-s",
                    tmp_path / "sig"], input=record, check=True, stdout=subprocess.DEVNULL)
    what: dict[str, Any] = json.loads(record)
    assert json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() == record
    return what


def fresh(ms: int) -> bool:
    return abs(ms - time.time() * 1000) < 60000


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_settle(fake: Fake, signer: dict[str, str], tmp_path: Path, outcome: str) -> None:
    path = f"/v1/executions/{EXECUTION}"
    fake.on("GET", path, 200, UNKNOWN)
    fake.on("POST", path + "/reconcile", 200, UNKNOWN | {"state": "manual", "settled": outcome})
    done = fake.run("reconcile", EXECUTION, "--as", outcome, "--note", "seen in the provider's ledger: é #7", "--trust",
                    str(tmp_path / "trust"), env=signer)
    assert b"manual" in done.stdout and outcome.encode() in done.stdout
    what = signed(tmp_path, fake.asked("POST", path + "/reconcile").json(), "settlement")
    assert fresh(what.pop("decided_ms"))
    assert what == {"approver": "anna", "decision": "settle", "execution": EXECUTION, "note": "seen in the provider's ledger: é #7",
                    "outcome": outcome, "v": 1}


@pytest.mark.parametrize("state", ["succeeded", "failed", "dispatching", "manual", "\x1b[2J", ""])
def test_only_what_is_unknown_is_settled(fake: Fake, signer: dict[str, str], tmp_path: Path, state: str) -> None:
    fake.on("GET", f"/v1/executions/{EXECUTION}", 200, UNKNOWN | {"state": state})
    done = fake.run("reconcile", EXECUTION, "--as", "failed", "--note", "x", "--trust", str(tmp_path / "trust"), env=signer, code=1)
    assert b"nothing to settle" in done.stderr and b"\x1b" not in done.stderr
    assert all(s.method == "GET" for s in fake.seen)


@pytest.mark.parametrize("args", [["--as", "done", "--note", "x"], ["--as", "", "--note", "x"], ["--as", "Failed", "--note", "x"],
                                  ["--as", "failed"], ["--as", "succeeded", "--note", ""], ["--as", "failed", "--note", b"\xff"],
                                  ["--as", "failed", "--note", "x" * 5000], ["--as", "failed", "--note", "two\nlines"],
                                  ["--as", "failed", "--note", "\x1b[2J"]],
                         ids=lambda a: repr(a)[:40])
def test_settlements_that_are_none(fake: Fake, signer: dict[str, str], tmp_path: Path, args: list[Any]) -> None:
    fake.on("GET", f"/v1/executions/{EXECUTION}", 200, UNKNOWN)
    fake.on("POST", f"/v1/executions/{EXECUTION}/reconcile", 200, UNKNOWN)
    done = fake.run("reconcile", EXECUTION, *args, "--trust", str(tmp_path / "trust"), env=signer, code=None)
    assert done.returncode in (1, 2) and done.stderr.startswith(b"demilune: ") and b"\x1b" not in done.stderr
    assert all(s.method == "GET" for s in fake.seen)


def test_without_an_agent_nothing_is_sent(fake: Fake, tmp_path: Path) -> None:
    fake.on("GET", f"/v1/executions/{EXECUTION}", 200, UNKNOWN)
    done = fake.run("reconcile", EXECUTION, "--as", "failed", "--note", "x", "--name", "anna", code=1)
    assert b"ssh-agent" in done.stderr
    assert b"ssh-agent" in fake.run("release", "host", "--note", "x", "--name", "anna", code=1).stderr
    assert all(s.method == "GET" for s in fake.seen)


@pytest.mark.parametrize("scope,says", [("host", "host"), ("all", "host"), ("tenant:acme", "tenant:acme"), ("48221", f"task:{TASK}"),
                                        (TASK, f"task:{TASK}"), (f"task:{TASK}", f"task:{TASK}")])
def test_release(fake: Fake, signer: dict[str, str], tmp_path: Path, scope: str, says: str) -> None:
    fake.on("GET", "/v1/tasks/48221", 200, {"id": TASK})
    fake.on("POST", "/v1/releases", 200, {"scope": says, "since": "2026-11-29T16:13:04.000Z", "released_at": "2026-11-29T17:13:04.000Z"})
    args = ["release", scope, "--note", "the token was rotated", "--trust", str(tmp_path / "trust")]
    out = fake.run(*args, env=signer).stdout
    assert says.encode() in out and b"2026-11-29 17:13:04" in out and b"stay revoked" in out
    what = signed(tmp_path, fake.asked("POST", "/v1/releases").json(), "release")
    assert fresh(what.pop("decided_ms"))
    assert what == {"approver": "anna", "decision": "release", "note": "the token was rotated", "scope": says, "v": 1}
    assert json.loads(fake.run(*args, "--json", env=signer).stdout)["scope"] == says


def test_a_release_says_why(fake: Fake, signer: dict[str, str], tmp_path: Path) -> None:
    assert b"--note TEXT" in fake.run("release", "host", "--trust", str(tmp_path / "trust"), env=signer, code=1).stderr
    assert fake.seen == []


def test_a_release_that_is_refused_names_its_check(fake: Fake, signer: dict[str, str], tmp_path: Path) -> None:
    fake.on("POST", "/v1/releases", 403, {"error": "an execution of this scope is not settled", "code": "denied",
                                          "denial": "release_blocked", "request_id": "r"})
    done = fake.run("release", "host", "--note", "x", "--trust", str(tmp_path / "trust"), env=signer, code=1)
    assert b"not settled (release_blocked)" in done.stderr
