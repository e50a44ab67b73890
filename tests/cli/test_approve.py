# SPDX-License-Identifier: Apache-2.0
"""Approvers, what is shown, and signed decisions: with a real ssh-agent and, of the other side, the real ssh-keygen."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pty
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake import BINARY, TASK, Fake, Handler, Seen

PROPOSAL = "pr_0123456789abcdef"
# A hardware key in software (tests/unit/approval/fido_provider.c), and what it says of its owner: 1 touched, 4 verified.
FIDO = Path(os.environ["DEMILUNE_BUILD"]).resolve() / "tests/unit/approval/libfido_provider.so"
FIDO_FLAGS = FIDO.parent / "fido-flags"
EVIL = "\x1b[2J\x1b]0;owned\x07\u202etxt\nurl: https://elsewhere.example/"
PROVIDER = {"account": "acct_1", "capability": {}, "environment": "production", "name": "shop",
            "origin": {"host": "pay.example", "port": 443, "tls": True}, "response_max": 65536, "timeout_ms": 1000}
DOCUMENT: dict[str, Any] = {
    "amount": {"argument": "cents", "currency": "EUR", "exponent": 2},
    "approval": {"decide_within_ms": 600000, "dispatch_within_ms": 300000, "quorum": 1},
    "describe": "Pay money of an order back", "effect": "external", "name": "refund", "version": 1,
    "parameters": [{"max": 500000, "min": 1, "name": "cents", "type": "integer"},
                   {"max": 64, "min": 1, "name": "order_id", "type": "string"}],
    "request": {"body": {"object": [{"name": "amount", "value": {"argument": "cents"}}]}, "encoding": "json",
                "method": "POST", "path": ["v1", "refunds"], "provider": PROVIDER, "success": [200]}}


def canonical(what: Any) -> bytes:
    return json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(tag: str, data: bytes) -> str:
    return hashlib.sha256(tag.encode() + b"\0" + data).hexdigest()


SCHEMA = digest("demilune-schema-v1", canonical({k: DOCUMENT[k] for k in ("amount", "effect", "name", "parameters", "version")}))


ADAPTER = digest("demilune-adapter-v1", canonical({"request": DOCUMENT["request"]}))


def record(**other: Any) -> dict[str, Any]:
    now = int(time.time() * 1000)
    return {"action": "refund", "actor": "sandbox:sb_0123456789abcdef", "adapter": ADAPTER, "capability": "gr_0123456789abcdef",
            "arguments": {"cents": 4200, "order_id": "48221"}, "catalogue": "cc" * 32, "decide_by_ms": now + 600000,
            "defaulted": [], "dispatch_within_ms": 300000, "effect": "external", "environment": "production", "epoch": 1,
            "facts": {"order__tenant": "acme"}, "idempotency_key": "dml-" + "0" * 40, "issued_ms": now, "max_executions": 1,
            "owner": "uid:1000", "policy": "bb" * 32, "proposal": PROPOSAL, "provenance": {"cents": "sandbox", "order_id": "ticket"},
            "provider_account": "acct_1", "quorum": 1, "requester": "sandbox:sb_0123456789abcdef", "roles": [], "schema": SCHEMA,
            "request": {"body": '{"amount":4200}', "content_type": "application/json", "method": "POST",
                        "url": "https://pay.example/v1/refunds"},
            "task": TASK, "tenant": "acme", "v": 1, "where": ["order.tenant == @tenant"]} | other


def proposal(what: dict[str, Any], **other: Any) -> dict[str, Any]:
    data = canonical(what)
    return {"id": PROPOSAL, "task": TASK, "tenant": "acme", "operation": "refund", "state": "pending", "text": "",
            "duplicate": False, "digest": digest("demilune-proposal-v1", data), "quorum": 1, "note": "please\n" + EVIL,
            "record": base64.b64encode(data).decode(), "decisions": []} | other


@dataclass
class Agent:
    """A real ssh-agent with keys in a directory of its own, and a directory of trust."""

    at: Path
    socket: str = ""

    @property
    def env(self) -> dict[str, str]:
        return {"SSH_AUTH_SOCK": self.socket}

    def hardware_key(self, name: str) -> str:
        path = self.at / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519-sk", "-w", FIDO, "-N", "", "-C", name, "-f", path], check=True)
        self.ssh_add("-S", str(FIDO), str(path))
        return f"{path}.pub"

    def key(self, name: str, kind: str = "ed25519", add: bool = True) -> str:
        path = self.at / name
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", f"{name}@test", "-f", path], check=True)
        if add:
            self.ssh_add(str(path))
        return f"{path}.pub"

    def ssh_add(self, *args: str) -> None:
        subprocess.run(["ssh-add", "-q", *args], env=os.environ | self.env, check=True, stderr=subprocess.DEVNULL)

    @property
    def trust(self) -> str:
        (self.at / "trust").mkdir(exist_ok=True)
        return str(self.at / "trust")

    @property
    def approvers(self) -> Path:
        return Path(self.trust) / "approvers"

    def enrol(self, fake: Fake, name: str, key: str, *more: str, code: int = 0) -> bytes:
        done = fake.run("approver", "enrol", "--name", name, "--key", key, "--trust", self.trust, *more, code=code)
        return done.stdout if code == 0 else done.stderr


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    agent = Agent(tmp_path, str(tmp_path / "agent.sock"))
    with subprocess.Popen(["ssh-agent", "-D", "-a", agent.socket, "-P", str(FIDO)], stdout=subprocess.DEVNULL) as child:
        limit = time.monotonic() + 10
        while not Path(agent.socket).exists() and time.monotonic() < limit:
            time.sleep(0.01)
        yield agent
        child.terminate()


@pytest.fixture
def anna(agent: Agent, fake: Fake) -> Agent:
    """Anna is an approver, her key is in the agent, and a proposal waits."""
    agent.enrol(fake, "anna", agent.key("anna"), "--may", "refund")
    serve(fake, record())
    return agent


def serve(fake: Fake, what: dict[str, Any], **other: Any) -> None:
    fake.on("GET", f"/v1/proposals/{PROPOSAL}", 200, proposal(what, **other))
    fake.on("GET", "/v1/operations/refund", 200, {"name": "refund", "document": DOCUMENT})
    fake.on("POST", f"/v1/proposals/{PROPOSAL}/decision", 200, proposal(what, state="succeeded", execution="xc_0123456789abcdef"))


def posted(fake: Fake) -> list[Seen]:
    return [s for s in fake.seen if s.method != "GET"]


def approve(fake: Fake, agent: Agent, *more: str, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    return fake.run("approve", PROPOSAL, "--yes", "--trust", agent.trust, *more, env=agent.env, code=code)


def ssh_keygen_verifies(agent: Agent, public: str, message: bytes, blob: bytes, namespace: str = "demilune-approval") -> bool:
    signers, signature = agent.at / "signers", agent.at / "signature"
    signers.write_text("anna " + Path(public).read_text())
    text = base64.b64encode(blob).decode()
    lines = [text[i:i + 70] for i in range(0, len(text), 70)]
    signature.write_text("\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""]))
    done = subprocess.run(["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "anna", "-n", namespace, "-s", signature],
                          input=message, capture_output=True, check=False)
    return done.returncode == 0


# ---- approvers ----


def test_enrol_list_remove(agent: Agent, fake: Fake) -> None:
    key = agent.key("anna")
    out = agent.enrol(fake, "anna", key, "--may", "refund,reply", "--up-to", "cents=5000", "--up-to", "items=3", "--principal",
                      "uid:1000", "--role", "support", "--valid-until", "2999-01-01T00:00:00Z")
    shown = subprocess.run(["ssh-keygen", "-l", "-f", key], capture_output=True, check=True, text=True).stdout.split()[1]
    assert out.decode().split() == ["anna", shown]
    assert agent.approvers.read_text() == ("anna may=refund,reply role=support up-to=cents:5000,items:3 principal=uid:1000 "
                                           "valid-until=2999-01-01T00:00:00Z " + Path(key).read_text())
    assert agent.approvers.stat().st_mode & 0o7777 == 0o644
    with agent.approvers.open("a") as file:
        file.write("# a person who left\n\n")
    agent.enrol(fake, "bob", agent.key("bob", "ecdsa"), "--role", "release")
    table = fake.run("approver", "list", "--trust", agent.trust).stdout.decode().splitlines()
    assert table[1].split()[:4] == ["anna", shown, "ssh-ed25519", "refund,reply"] and table[2].split()[0] == "bob"
    rows = json.loads(fake.run("approver", "list", "--json", "--trust", agent.trust).stdout)
    assert rows[0]["up_to"] == "cents=5000,items=3" and rows[0]["valid_until"] == "2999-01-01T00:00:00Z"
    assert fake.run("approver", "remove", shown, "--trust", agent.trust).stdout.startswith(b"1 key removed")
    assert agent.approvers.read_text().startswith("# a person who left\n\nbob role=release ecdsa-")
    fake.run("approver", "remove", "bob", "--trust", agent.trust)
    assert agent.approvers.read_text() == "# a person who left\n\n"
    assert b"no approver" in fake.run("approver", "remove", "bob", "--trust", agent.trust, code=1).stderr
    assert os.listdir(agent.trust) == ["approvers"] and not fake.seen


@pytest.mark.parametrize(("more", "says"), [
    ([], b"what the person may decide"), (["--may", "*"], b"may="), (["--may", "refund,"], b"may="),
    (["--may", "refund", "--up-to", "cents=5.00"], b"up-to="), (["--may", "refund", "--valid-until", "tomorrow"], b"valid-until="),
    (["--may", "refund", "--principal", "uid:1000 role=release"], b"blanks"), (["--may", "refund\nbob"], b"blanks"),
    (["--may", "refund", "--principal", "anna"], b"principal="), (["--may", "refund", "--verify-required"], b"hardware")])
def test_what_would_spoil_the_file_never_gets_there(agent: Agent, fake: Fake, more: list[str], says: bytes) -> None:
    agent.enrol(fake, "carl", agent.key("carl"), "--may", "refund")
    before = agent.approvers.read_bytes(), agent.approvers.stat().st_ino
    assert says in agent.enrol(fake, "anna", agent.key("anna"), *more, code=1)
    assert (agent.approvers.read_bytes(), agent.approvers.stat().st_ino) == before
    assert os.listdir(agent.trust) == ["approvers"]


def test_a_name_is_that_of_the_key(agent: Agent, fake: Fake) -> None:
    key = agent.at / "key.pub"
    text = Path(agent.key("anna")).read_text().split()[:2]
    for comment, name in (("kim@laptop", "kim"), ("kim", "kim"), ("Kim Lee", ""), ("@host", ""), ("", "")):
        key.write_text(" ".join([*text, comment]).strip() + "\n")
        agent.approvers.unlink(missing_ok=True)
        done = fake.run("approver", "enrol", "--key", str(key), "--may", "refund", "--trust", agent.trust, code=0 if name else 1)
        if name:
            assert agent.approvers.read_text().startswith(f"{name} may=refund ssh-ed25519 ")
        else:
            assert b"say whose key it is, --name NAME" in done.stderr and not agent.approvers.exists()


def test_names_and_keys_that_are_none(agent: Agent, fake: Fake) -> None:
    key = agent.key("anna")
    assert b"begins with a name" in agent.enrol(fake, "Anna", key, "--may", "refund", code=1)
    assert b"blanks" in agent.enrol(fake, "anna role=x", key, "--may", "refund", code=1)
    assert b"not one line" in agent.enrol(fake, "anna", key[:-4], "--may", "refund", code=1)
    assert b"not taken" in agent.enrol(fake, "anna", agent.key("rsa", "rsa", add=False), "--may", "refund", code=1)
    assert b"No such file" in agent.enrol(fake, "anna", str(agent.at / "none.pub"), "--may", "refund", code=1)
    agent.enrol(fake, "anna", key, "--may", "refund")
    assert b"there already" in agent.enrol(fake, "bob", key, "--may", "refund", code=1)


def test_a_spoiled_file_is_mended_by_hand(agent: Agent, fake: Fake) -> None:
    key = agent.key("anna")
    agent.approvers.write_text("anna may=*\n")
    for args in (["enrol", "--name", "anna", "--key", key, "--may", "refund"], ["remove", "anna"], ["list"]):
        err = fake.run("approver", *args, "--trust", agent.trust, code=1).stderr
        assert b"line 1" in err
    assert agent.approvers.read_text() == "anna may=*\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes nobody")
def test_a_file_that_is_not_roots_is_told(agent: Agent, fake: Fake) -> None:
    key = agent.key("anna", add=False)
    where = Path("/tmp") / f"approval-nobody-{os.getpid()}"
    where.mkdir(mode=0o777)
    where.chmod(0o777)
    try:
        (where / "anna.pub").write_bytes(Path(key).read_bytes())
        done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", BINARY, "approver", "enrol", "--name", "anna", "--key",
                               where / "anna.pub", "--may", "refund", "--trust", where], env=fake.environment(), capture_output=True,
                              check=True)
        assert b"only from root" in done.stderr and (where / "approvers").stat().st_uid == 65534
    finally:
        subprocess.run(["rm", "-r", where], check=True)


def test_many_enrol_at_once(agent: Agent, fake: Fake) -> None:
    keys = [agent.key(f"k{i}", add=False) for i in range(8)]
    started = [fake.start("approver", "enrol", "--name", f"p{i}", "--key", key, "--may", "refund", "--trust", agent.trust)
               for i, key in enumerate(keys)]
    for child in started:
        child.communicate()
        assert child.returncode == 0
    rows = json.loads(fake.run("approver", "list", "--json", "--trust", agent.trust).stdout)
    assert sorted(r["name"] for r in rows) == [f"p{i}" for i in range(8)]


# ---- what is shown ----


def test_E4_the_models_words_stand_apart_and_marked(anna: Agent, fake: Fake) -> None:
    text = fake.run("proposal", "show", PROPOSAL).stdout.decode()
    shown, rest = text.split("\n\n", 1)
    assert shown.startswith("operation: refund\namount: 42.00 EUR (4200)\n")
    for line in ("url: https://pay.example/v1/refunds", "argument cents: 4200 (from sandbox)", 'fact order.tenant: "acme" (verified)',
                 'argument order_id: "48221" (from ticket)', "account: acct_1", "environment: production", "tenant: acme",
                 'body: {"amount":4200}'):
        assert line in shown.splitlines(), line
    words, state = rest.split("\n\n", 1)
    assert words.startswith("The model's own words. Nobody checked them")
    assert words.splitlines()[1:] == ["    | please", "    | \\u{1b}[2J\\u{1b}]0;owned\\u{7}\\u{202e}txt",
                                      "    | url: https://elsewhere.example/"]
    assert "elsewhere" not in shown and "state: pending" in state


def test_G13_what_a_lost_answer_means_is_told_before(anna: Agent, fake: Fake) -> None:
    says = "\nif no answer comes: nobody can ask the provider"
    assert says in fake.run("proposal", "show", PROPOSAL).stdout.decode()
    # Of an operation that is another by now nothing is said.
    fake.on("GET", f"/v1/proposals/{PROPOSAL}", 200, proposal(record(adapter="aa" * 32)))
    assert "if no answer comes" not in fake.run("proposal", "show", PROPOSAL).stdout.decode()


def test_D8_looking_decides_nothing(anna: Agent, fake: Fake) -> None:
    fake.run("proposal", "show", PROPOSAL, env=anna.env)
    assert json.loads(fake.run("proposal", "show", PROPOSAL, "--json").stdout)["state"] == "pending"
    assert not posted(fake)


def changed(**other: Any) -> Callable[[], dict[str, Any]]:
    return lambda: proposal(record()) | other


@pytest.mark.parametrize(("answer", "says"), [
    (changed(digest="ab" * 32), b"the digest is of other bytes"),
    (changed(record=base64.b64encode(canonical(record(tenant="other"))).decode()), b"the digest is of other bytes"),
    (changed(record="e30"), b"not in base 64"),
    (changed(record="e30="), b"the daemon's answer"),
    (lambda: proposal(record(proposal="pr_0123456789abcdeg")), b"of another proposal"),
    (lambda: proposal(record(provenance={"other": "db"})), b"cannot be shown"),
])
def test_a_daemon_that_contradicts_itself_is_not_believed(
        anna: Agent, fake: Fake, answer: Callable[[], dict[str, Any]], says: bytes) -> None:
    fake.on("GET", f"/v1/proposals/{PROPOSAL}", 200, answer())
    for args in (["proposal", "show", PROPOSAL], ["approve", PROPOSAL, "--yes", "--trust", anna.trust]):
        done = fake.run(*args, env=anna.env, code=1)
        assert says in done.stderr and not done.stdout, done.stderr
    assert not posted(fake)


def test_another_operation_is_not_believed(anna: Agent, fake: Fake) -> None:
    """One that shows 42.00 EUR as 0.42."""
    fake.on("GET", "/v1/operations/refund", 200,
            {"document": DOCUMENT | {"amount": {"argument": "cents", "currency": "EUR", "exponent": 3}}})
    assert b"nobody can sign it any more" in approve(fake, anna, code=1).stderr
    assert not posted(fake)


def test_A16_of_a_changed_operation_the_bytes_are_shown(anna: Agent, fake: Fake) -> None:
    fake.on("GET", f"/v1/proposals/{PROPOSAL}", 200, proposal(record(schema="00" * 32), state="superseded"))
    shown = fake.run("proposal", "show", PROPOSAL).stdout.decode()
    assert shown.startswith("The operation refund changed since this was proposed") and "state: superseded" in shown
    assert '"idempotency_key":"dml-' in shown and "\x1b" not in shown and "if no answer comes" not in shown
    for verb in (["approve", PROPOSAL, "--yes"], ["reject", PROPOSAL, "--reason", "old"]):
        done = fake.run(*verb, "--trust", anna.trust, env=anna.env, code=1)
        assert b"nobody can sign it any more" in done.stderr
    assert not posted(fake)


# ---- decisions ----


def test_an_approval_is_what_ssh_keygen_verifies(anna: Agent, fake: Fake) -> None:
    shown = fake.run("proposal", "show", PROPOSAL).stdout.decode().split("\n\n", 1)[0] + "\n"
    before = int(time.time() * 1000)
    done = approve(fake, anna, "--reason", "looked at the order")
    out = done.stdout.decode()
    assert out.startswith(shown) and "approved by anna with SHA256:" in out and "state: succeeded" in out
    body = fake.asked("POST", f"/v1/proposals/{PROPOSAL}/decision").json()
    assert set(body) == {"shown", "decision", "signature"}
    answer = fake_answer(fake)
    data = base64.b64decode(body["decision"])
    said = json.loads(data)
    assert canonical(said) == data and body["shown"] == answer["digest"] == said["proposal"]
    assert said["display"] == hashlib.sha256(shown.encode()).hexdigest()
    assert said == said | {"approver": "anna", "decision": "approve", "max_executions": 1, "policy": "bb" * 32,
                           "reason": "looked at the order", "schema": SCHEMA, "v": 1}
    assert before <= said["decided_ms"] <= int(time.time() * 1000) and said["dispatch_by_ms"] == said["decided_ms"] + 300000
    blob = base64.b64decode(body["signature"])
    key = str(anna.at / "anna.pub")
    assert blob.startswith(b"SSHSIG") and ssh_keygen_verifies(anna, key, data, blob)
    assert not ssh_keygen_verifies(anna, key, data + b" ", blob)
    assert not ssh_keygen_verifies(anna, key, data, blob, "git")


def fake_answer(fake: Fake) -> Any:
    return json.loads(fake.run("proposal", "show", PROPOSAL, "--json").stdout)


@pytest.mark.parametrize("kind", ["ecdsa", "ed25519"])
def test_kinds_of_keys(agent: Agent, fake: Fake, kind: str) -> None:
    key = agent.key("anna", kind)
    agent.enrol(fake, "anna", key, "--may", "refund")
    serve(fake, record())
    approve(fake, agent)
    body = fake.asked("POST", f"/v1/proposals/{PROPOSAL}/decision").json()
    assert ssh_keygen_verifies(agent, key, base64.b64decode(body["decision"]), base64.b64decode(body["signature"]))


@pytest.fixture
def device() -> Iterator[Path]:
    yield FIDO_FLAGS
    FIDO_FLAGS.unlink(missing_ok=True)


@pytest.mark.parametrize(("flags", "required", "says"), [
    ("1", False, None), ("5", False, None), ("5", True, None), ("0", False, b"nobody touched"), ("4", False, b"nobody touched"),
    ("1", True, b"did not verify its owner"), ("4", True, b"nobody touched")])
def test_hardware_keys(agent: Agent, fake: Fake, device: Path, flags: str, required: bool, says: bytes | None) -> None:
    key = agent.hardware_key("anna")
    agent.enrol(fake, "anna", key, "--may", "refund", *(["--verify-required"] if required else []))
    serve(fake, record())
    device.write_text(flags)
    done = approve(fake, agent, code=0 if says is None else 1)
    if says is not None:
        assert says in done.stderr and not posted(fake)
        return
    body = fake.asked("POST", f"/v1/proposals/{PROPOSAL}/decision").json()
    assert ssh_keygen_verifies(agent, key, base64.b64decode(body["decision"]), base64.b64decode(body["signature"]))


def test_a_rejection_needs_a_reason(anna: Agent, fake: Fake) -> None:
    assert b"--reason" in fake.run("reject", PROPOSAL, "--trust", anna.trust, env=anna.env, code=1).stderr
    fake.on("POST", f"/v1/proposals/{PROPOSAL}/decision", 200, proposal(record(), state="rejected"))
    done = fake.run("reject", PROPOSAL, "--reason", "not this order", "--trust", anna.trust, env=anna.env)
    said = json.loads(base64.b64decode(fake.asked("POST", f"/v1/proposals/{PROPOSAL}/decision").json()["decision"]))
    assert said["decision"] == "reject" and said["reason"] == "not this order" and said["dispatch_by_ms"] == 0
    assert b"rejected by anna" in done.stdout


def test_a_denial_is_told_with_its_code_and_sentence(anna: Agent, fake: Fake) -> None:
    fake.on("POST", f"/v1/proposals/{PROPOSAL}/decision", 403,
            {"error": "refused", "code": "denied", "denial": "approver_own", "request_id": "r"})
    err = approve(fake, anna, code=1).stderr
    assert b"approver_own" in err and b"nobody approves what they asked for" in err
    assert len(posted(fake)) == 1


@pytest.mark.parametrize(("state", "code"), [("pending", 0), ("approved", 0), ("dispatching", 0), ("succeeded", 0), ("failed", 1),
                                             ("unknown", 1), ("expired", 1), ("denied", 1)])
def test_the_exit_code_says_what_came_of_it(anna: Agent, fake: Fake, state: str, code: int) -> None:
    fake.on("POST", f"/v1/proposals/{PROPOSAL}/decision", 200, proposal(record(), state=state, denial="verify_failed"))
    out = approve(fake, anna, code=code).stdout
    assert f"state: {state}".encode() in out and b"verify_failed, the system of record says otherwise" in out


def test_what_does_not_wait_is_not_decided(anna: Agent, fake: Fake) -> None:
    for state in ("succeeded", "expired", "proposed", "denied"):
        serve(fake, record(), state=state)
        assert b"does not wait for a decision" in approve(fake, anna, code=1).stderr
    fake.on("GET", f"/v1/proposals/{PROPOSAL}", 200, proposal(record(), record="", state="denied", denial="no_grant"))
    assert b"nothing to decide" in approve(fake, anna, code=1).stderr
    assert b"no_grant" in fake.run("proposal", "show", PROPOSAL).stdout
    assert b"proposal" in fake.run("approve", "xc_0123456789abcdef", "--yes", code=1).stderr
    assert not posted(fake)


def test_decisions_so_far_are_verified_here(anna: Agent, fake: Fake) -> None:
    what = record()
    serve(fake, what)
    approve(fake, anna)
    body = fake.asked("POST", f"/v1/proposals/{PROPOSAL}/decision").json()
    one = {"decision": body["decision"], "signature": body["signature"]}
    bad = one | {"decision": base64.b64encode(base64.b64decode(one["decision"]).replace(b"approve\"", b"reject\"")).decode()}
    serve(fake, what, decisions=[one, bad])
    out = fake.run("proposal", "show", PROPOSAL).stdout
    assert b"decided: approved in the name of anna with SHA256:" in out and out.count(b"whose signature does not hold") == 1


def test_the_decision_about_another_proposal_is_none_of_this(anna: Agent, fake: Fake) -> None:
    """A daemon that shows somebody's true signature beside what they never saw."""
    serve(fake, record())
    approve(fake, anna)
    body = fake.asked("POST", f"/v1/proposals/{PROPOSAL}/decision").json()
    serve(fake, record(issued_ms=record()["issued_ms"] + 1), decisions=[{"decision": body["decision"], "signature": body["signature"]}])
    out = fake.run("proposal", "show", PROPOSAL).stdout
    assert b"in the name of anna" not in out and b"decided: a decision that somebody signed about other bytes" in out


# ---- asking the person ----


def typed(fake: Fake, agent: Agent, text: bytes) -> tuple[int, bytes]:
    ours, theirs = pty.openpty()
    with fake.start("approve", PROPOSAL, "--trust", agent.trust, env=agent.env, stdin=theirs, stdout=theirs) as child:
        os.close(theirs)
        out = b""
        try:
            while b"to approve: " not in out and (piece := os.read(ours, 65536)):
                out += piece
        except OSError:  # it ended
            assert child.stderr is not None
            raise AssertionError(child.stderr.read()) from None
        assert not posted(fake)
        os.write(ours, text)
        err = child.stderr.read() if child.stderr else b""
        child.wait()
    os.close(ours)
    return child.returncode, out + err


def test_E3_all_of_it_stands_there_before_the_question(anna: Agent, fake: Fake) -> None:
    body = "word " * 4000 + "the end"
    serve(fake, record(request={"body": body, "content_type": "application/json", "method": "POST", "url": "https://pay.example/"}))
    code, out = typed(fake, anna, b"refund\n")
    assert code == 0 and len(posted(fake)) == 1
    assert f"body: {body}".encode() in out and out.index(b"record version: 1") < out.index(b"Type the operation's name")


@pytest.mark.parametrize("text", [b"\n", b"y\n", b"yes\n", b"refund2\n", b"Refund\n", b" refund\n", b"\x04"])
def test_anything_else_approves_nothing(anna: Agent, fake: Fake, text: bytes) -> None:
    code, out = typed(fake, anna, text)
    assert code == 1 and b"nothing is approved" in out and not posted(fake)


def test_without_a_terminal_nobody_can_be_asked(anna: Agent, fake: Fake) -> None:
    done = fake.run("approve", PROPOSAL, "--trust", anna.trust, env=anna.env, input=b"refund\n", code=1)
    assert b"--yes" in done.stderr and not posted(fake)


# ---- agents ----


def test_no_agent(anna: Agent, fake: Fake) -> None:
    for env, says in (({}, b"SSH_AUTH_SOCK is not set"), ({"SSH_AUTH_SOCK": "/nonexistent"}, b"no ssh-agent answers"),
                      ({"SSH_AUTH_SOCK": "/" + "x" * 200}, b"too long")):
        err = fake.run("approve", PROPOSAL, "--yes", "--trust", anna.trust, env=env, code=1).stderr
        assert says in err
    assert not posted(fake)


def test_which_key(agent: Agent, fake: Fake) -> None:
    serve(fake, record())
    agent.approvers.write_text("")
    assert b"ssh-agent has no key" in approve(fake, agent, code=1).stderr
    anna, other = agent.key("anna"), agent.key("other")
    agent.key("rsa", "rsa")
    assert b"none of an approver" in approve(fake, agent, code=1).stderr
    agent.enrol(fake, "anna", anna, "--may", "refund")
    assert b"belongs to no approver" in approve(fake, agent, "--key", other, code=1).stderr
    assert b"approved by anna" in approve(fake, agent).stdout  # the only one of an approver
    agent.enrol(fake, "anna", other, "--may", "refund")
    assert b"--key FILE.pub" in approve(fake, agent, code=1).stderr
    assert b"approved by anna" in approve(fake, agent, "--key", other).stdout
    agent.ssh_add("-d", other)
    assert b"does not have the key" in approve(fake, agent, "--key", other, code=1).stderr
    assert len(posted(fake)) == 2


def test_a_file_with_a_fault_is_mended_not_named_around(anna: Agent, fake: Fake) -> None:
    anna.approvers.write_text(anna.approvers.read_text() + "garbage\n")
    err = fake.run("approve", PROPOSAL, "--yes", "--trust", anna.trust, env=anna.env, code=1).stderr
    assert b"line 2" in err and b"--name" not in err and posted(fake) == []


def test_enrol_says_how_to_make_the_directory(fake: Fake, agent: Agent) -> None:
    key = agent.key("anna")
    done = fake.run("approver", "enrol", "--name", "anna", "--key", key, "--may", "refund", "--trust", f"{agent.at}/no", code=1)
    assert b"install -d" in done.stderr


def test_a_name_where_the_file_is_elsewhere(anna: Agent, fake: Fake) -> None:
    nowhere = str(anna.at / "nowhere")
    err = fake.run("approve", PROPOSAL, "--yes", "--trust", nowhere, env=anna.env, code=1).stderr
    assert b"say --name NAME" in err
    done = fake.run("approve", PROPOSAL, "--yes", "--name", "anna.b", "--trust", nowhere, env=anna.env)
    assert b"approved by anna.b" in done.stdout
    assert b"begins with a-z" in fake.run("approve", PROPOSAL, "--yes", "--name", "Anna", env=anna.env, code=1).stderr


def test_a_key_that_the_agent_refuses(anna: Agent, fake: Fake) -> None:
    """A key that must be confirmed, where nobody can be asked."""
    anna.ssh_add("-d", str(anna.at / "anna"))
    anna.ssh_add("-c", str(anna.at / "anna"))
    assert b"refused to sign with SHA256:" in approve(fake, anna, code=1).stderr
    assert not posted(fake)


def ssh_string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def false_agent(path: str, answers: list[bytes]) -> threading.Thread:
    """Gives these bytes, one after each question, and hangs up."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)

    def serve_one() -> None:
        with listener, listener.accept()[0] as peer:
            for answer in answers:
                peer.recv(65536)
                peer.sendall(answer)

    thread = threading.Thread(target=serve_one, daemon=True)
    thread.start()
    return thread


def test_answers_of_a_false_agent(anna: Agent, fake: Fake) -> None:
    blob = base64.b64decode((anna.at / "anna.pub").read_text().split()[1])
    keys = ssh_string(b"\x0c" + struct.pack(">I", 1) + ssh_string(blob) + ssh_string(b"anna"))
    value = ssh_string(b"ssh-ed25519") + ssh_string(b"\0" * 64)
    rows: list[tuple[list[bytes], bytes]] = [
        ([b""], b"hung up"), ([b"\0\0\0\0"], b"wrong length"), ([b"\xff\xff\xff\xff"], b"wrong length"),
        ([struct.pack(">I", 300000) + b"x" * 100], b"wrong length"), ([ssh_string(b"\x05")], b"refused"),
        ([ssh_string(b"\x0e")], b"another answer"), ([ssh_string(b"\x0c\0\0")], b"cut off"),
        ([ssh_string(b"\x0c\0\0\0\2" + ssh_string(blob) + ssh_string(b""))], b"cut off"),
        ([ssh_string(b"\x0c\xff\xff\xff\xff")], b"more than"), ([ssh_string(b"\x0c\0\0\0\0x")], b"stands behind"),
        ([keys, ssh_string(b"\x0e" + ssh_string(value))], b"the signature is not of these bytes"),
        ([keys, ssh_string(b"\x0e" + ssh_string(value) + b"x")], b"wrong length"),
        ([keys, ssh_string(b"\x0e" + ssh_string(b""))], b"wrong length"), ([keys, ssh_string(b"\x0c\0\0\0\0")], b"another answer"),
        ([keys, ssh_string(b"\x0e" + ssh_string(b"x" * 5000))], b"too long"),
    ]
    for i, (answers, says) in enumerate(rows):
        path = str(anna.at / f"false{i}")
        thread = false_agent(path, answers)
        err = fake.run("approve", PROPOSAL, "--yes", "--trust", anna.trust, env={"SSH_AUTH_SOCK": path}, code=1).stderr
        thread.join(10)
        assert says in err, (i, err)
    assert not posted(fake)


def test_the_display_is_the_same_on_every_way(anna: Agent, fake: Fake) -> None:
    """With --json the display goes to standard error, the answer alone to standard output."""
    done = approve(fake, anna, "--json")
    assert json.loads(done.stdout)["state"] == "succeeded" and done.stderr.startswith(b"operation: refund\n")


def test_D2_the_daemon_shows_another_one_by_then(anna: Agent, fake: Fake) -> None:
    def conflict(h: Handler, s: Seen) -> None:
        h.answer(409, {"error": "the proposal is another one", "code": "conflict", "denial": "digest", "request_id": "r",
                       "shown": s.json()["shown"], "digest": "ab" * 32})

    fake.on("POST", f"/v1/proposals/{PROPOSAL}/decision", conflict)
    err = approve(fake, anna, code=1).stderr
    assert b"digest" in err and b"the decision is about other bytes" in err
