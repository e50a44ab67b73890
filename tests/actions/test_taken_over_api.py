# SPDX-License-Identifier: Apache-2.0
"""The api is taken over: its edge to the engine is ours, and we say what we like to the real engine, with the real broker and
the provider's own ledger behind it. It knows all tokens that pass through it and every decision that people sent; it has no key
of a person. Nothing may be sent."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acting import Acting
from truth import key_of, state_of, truth

PIDFD_GETFD = 438
ENGINE_FD = 3  # proto/fds.def
ROOT = Path(__file__).resolve().parents[2]
LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


def numbers(build: Path, enum: str) -> dict[str, int]:
    """The names of an enum as the build made them of the tables."""
    text = (build / "src/lib/ipc/proto_gen.h").read_text()
    found = re.search(rf"enum {enum} \{{(.*?)\}};", text, re.S)
    assert found is not None
    values, at = {}, 0
    for name, number in re.findall(r"[A-Z]+?_(\w+)(?: = (\d+))?", found[1]):
        at = int(number) if number else at
        values[name] = at
        at += 1
    return values


def id_bytes(text: str) -> bytes:
    bits = "".join(f"{LETTERS.index(c):05b}" for c in text.split("_")[1])
    return int(bits, 2).to_bytes(10, "big")


def sized(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


class Edge:
    """The engine's peer now. The real api stands still meanwhile and is never let go on."""

    def __init__(self, host: Acting, api: int, token: str) -> None:
        pidfd = os.pidfd_open(api)
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.syscall(PIDFD_GETFD, pidfd, ENGINE_FD, 0)
        os.close(pidfd)
        assert fd >= 0, os.strerror(ctypes.get_errno())
        self.socket = socket.socket(fileno=fd)
        self.socket.setblocking(True)
        self.socket.settimeout(40)
        self.types, self.tag = numbers(host.daemon.build, "msg_type"), 1 << 32
        self.denials = {number: name.lower() for name, number in numbers(host.daemon.build, "denial").items()}
        self.errors = {number: name.lower() for name, number in numbers(host.daemon.build, "error").items()}
        table = (ROOT / "proto/messages.def").read_text()
        found = re.search(r"STRUCT\(caller,.*?FIELD\(caller_kind, kind\)\s+FIELD\(u(\d+),", table, re.S)
        assert found is not None
        self.caller = b"\x01" + bytes(int(found[1]) // 8) + hashlib.sha256(token.encode()).digest()

    def say(self, name: str, body: bytes) -> int:
        self.tag += 1
        self.socket.send(struct.pack(">HHIQ", self.types[name], 0, len(body), self.tag) + body)
        return self.tag

    def heard(self, tag: int) -> str:
        """`row`, or the denial or error of the answer to this."""
        while True:
            answer = self.socket.recv(1 << 18)
            assert answer, "the engine gave the edge up"
            kind, _, _, got = struct.unpack(">HHIQ", answer[:16])
            if got != tag:
                continue
            if kind != self.types["REFUSED"]:
                return "row"
            error, denial = struct.unpack(">HB", answer[16:19])
            return self.denials[denial] if denial else self.errors[error]

    def decide(self, proposal: str, shown: str, decision: bytes, signature: bytes) -> str:
        return self.heard(self.say("PROPOSAL_DECIDE", self.caller + id_bytes(proposal) + bytes.fromhex(shown) + sized(decision) +
                                   sized(signature) + sized(b"")))

    def propose(self, task: str, proposal: bytes) -> str:
        return self.heard(self.say("PROPOSAL_CREATE", self.caller + sized(task.encode()) + sized(proposal) + sized(b"") + sized(b"")))

    def reconcile(self, execution: str, settlement: bytes) -> str:
        return self.heard(self.say("RECONCILE", self.caller + id_bytes(execution) + sized(settlement) + sized(b"s" * 80) + sized(b"")))

    def release(self, record: bytes) -> str:
        return self.heard(self.say("RELEASE", self.caller + sized(record) + sized(b"s" * 80) + sized(b"")))


@pytest.fixture(scope="module")
def host() -> Iterator[Acting]:
    with Acting() as host:
        yield host


def words(body: dict[str, Any]) -> tuple[bytes, bytes]:
    """What a person signed, and the signature."""
    return base64.b64decode(body["decision"]), base64.b64decode(body["signature"])


def altered(signed: bytes, /, **values: Any) -> bytes:
    return json.dumps(json.loads(signed) | values, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def test_a_taken_over_api_gets_nothing_sent(host: Acting) -> None:
    task = host.task()
    host.grant(task)
    token = host.ask("POST", "/v1/me/tokens", {"tenant": "acme", "label": "seen by the api"}).expect(201).json["token"]
    spent = host.pending(task, cents=100)
    used = words(host.signed(spent["id"]))
    assert host.decide(spent["id"], host.signed(spent["id"])).expect(200).json["state"] == "succeeded"
    spent = host.row(spent["id"])
    target, other, own = (host.pending(task, cents=cents) for cents in (4300, 4301, 4302))
    good, kim = words(host.signed(other["id"])), words(host.signed(own["id"], "kim"))
    refusal = words(host.signed(target["id"], "bert", "reject"))
    before, requests = len(host.effects()), host.requests("POST")
    api = host.pid("api")
    with host.stopped("api"):
        edge = Edge(host, api, token)

        def to(row: dict[str, Any], decision: bytes, signature: bytes) -> Callable[[], str]:
            return lambda: edge.decide(row["id"], row["digest"], decision, signature)

        yes = altered(refusal[0], decision="approve", dispatch_by_ms=json.loads(good[0])["dispatch_by_ms"])
        moved = altered(good[0], proposal=target["digest"])
        attacks: dict[str, tuple[Callable[[], str], str]] = {
            "a decision without a signature": (to(target, yes, b"s" * 80), "signature"),
            "the signature of another decision": (to(target, altered(yes, approver="anna"), good[1]), "signature"),
            "the digest of another, the display of the first": (to(target, moved, good[1]), "digest"),
            "the decision about another proposal": (to(target, *good), "digest"),
            "a rejection turned round": (to(target, yes, refusal[1]), "signature"),
            "more time than was signed": (to(other, altered(good[0], dispatch_by_ms=json.loads(good[0])["dispatch_by_ms"] - 1), good[1]),
                                          "signature"),
            "in somebody else's name": (to(other, altered(good[0], approver="bert"), good[1]), "approver_unknown"),
            "one more field": (to(other, altered(good[0], zz="1"), good[1]), "record_malformed"),
            "half a signature": (to(other, good[0], good[1][:-9]), "signature"),
            "the requester's own": (to(own, *kim), "approver_own"),
            "a decision that was used": (to(spent, *used), "conflict"),
            "what was shown is not what is decided": (lambda: edge.decide(other["id"], target["digest"], *good), "conflict"),
            "the same proposal again": (lambda: edge.propose(
                task, b'{"arguments":{"cents":100,"order_id":"48221"},"note":"","operation":"refund"}'), "row"),
            "a proposal that says it is approved": (lambda: edge.propose(
                task, b'{"approved":true,"arguments":{"cents":7,"order_id":"48221"},"note":"","operation":"refund"}'), "record_malformed"),
            "an end that nobody signed": (lambda: edge.reconcile(spent["execution"], altered(
                b"{}", approver="anna", decided_ms=1, decision="settle", execution=spent["execution"], note="n", outcome="failed", v=1)),
                "conflict"),
            "a release of nothing": (lambda: edge.release(altered(
                b"{}", approver="anna", decided_ms=1, decision="release", note="n", scope="tenant:acme", v=1)), "conflict"),
        }
        heard = {what: attack() for what, (attack, _) in attacks.items()}
        assert heard == {what: want for what, (_, want) in attacks.items()}
        for _ in range(40):
            assert to(other, altered(good[0], approver="bert"), good[1])() == "approver_unknown"
        assert len(host.effects()) == before and host.requests("POST") == requests
        # The very same words as the person signed them are worth what they say: the edge was a real one.
        assert to(other, *good)() == "row"
        assert len(host.effects(key_of(other))) == 1 and len(host.effects()) == before + 1
        assert to(other, *good)() == "conflict"
        # What is the engine's alone to say to the broker ends the edge.
        edge.say("EXECUTE", id_bytes(spent["execution"]) + id_bytes(spent["id"]) + sized(b"{}") + sized(b""))
        assert edge.socket.recv(1 << 18) == b""
        edge.socket.close()
        host.kill("api", api)
    host.whole()
    assert len(host.effects()) == before + 1 and host.requests("POST") == requests + 1
    for row, state in ((spent, "succeeded"), (target, "pending"), (own, "pending"), (other, "succeeded")):
        assert state_of(host, row) == state
        truth(host, row, state)
    host.verify(task)
