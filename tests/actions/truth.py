# SPDX-License-Identifier: Apache-2.0
"""What must be true of a proposal whatever died meanwhile: its state and the provider's ledger say the same, and never twice."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from acting import CLOSED, Acting
from daemon import Answer, wait_until


class Asked:
    """Somebody waits in a thread for an answer; None when whom he asked has died."""

    def __init__(self, question: Callable[[], Answer]) -> None:
        self.question = question
        self.answer: Answer | None = None
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def ask(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.answer = self.question()

    def join(self) -> Answer | None:
        self.thread.join(60)
        assert not self.thread.is_alive(), "it was never answered"
        return self.answer


class Sent(Asked):
    """A decision that was posted."""

    def __init__(self, host: Acting, row: dict[str, Any], body: dict[str, Any] | None = None) -> None:
        self.body = body or host.signed(row["id"])
        super().__init__(lambda: host.decide(row["id"], self.body))


def key_of(row: dict[str, Any]) -> str:
    key: str = json.loads(base64.b64decode(row["record"]))["idempotency_key"]
    return key


def state_of(host: Acting, row: dict[str, Any]) -> str:
    state: str = host.row(row["id"])["state"]
    return state


def settled(host: Acting, row: dict[str, Any], within_s: float = 20) -> str:
    """Its state when nothing moves any more; what is unknown is looked up, again until the provider's word is proof."""
    end = time.monotonic() + within_s
    while True:
        state = state_of(host, row)
        if state in CLOSED or state == "pending":
            return state
        assert time.monotonic() < end, f"{row['id']} is {state} for ever"
        if state == "unknown":
            host.reconcile(host.row(row["id"])["execution"])
        time.sleep(0.05)


def truth(host: Acting, row: dict[str, Any], state: str) -> int:
    """How many effects there are: as many as the state says, by the key of the record."""
    found = len(host.effects(key_of(row)))
    assert found == (1 if state in ("succeeded", "manual") else 0), f"{row['id']} is {state}, and the provider has {found} effects"
    events = [e for e in host.records(row["task"]) if e["data"].get("proposal") == row["id"]]
    assert sum(e["event"] == "execution.dispatching" for e in events) <= 1
    assert len(host.effects()) == len({e["key"] for e in host.effects()}), "one key has two effects"
    return found


def until_dispatching(host: Acting, row: dict[str, Any]) -> None:
    wait_until("it is dispatching", lambda: state_of(host, row) == "dispatching", 5)


def until_requests(host: Acting, method: str, more_than: int) -> None:
    wait_until(f"a {method} more", lambda: host.requests(method) > more_than, 5)
