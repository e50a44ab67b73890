# SPDX-License-Identifier: Apache-2.0
"""SIGHUP while an action is on its way: its end is known, not looked up, and it happened once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from acting import Acting
from daemon import wait_until
from truth import Sent, settled, truth


@pytest.fixture
def host() -> Iterator[Acting]:
    with Acting() as host:
        yield host


def test_a_reload_makes_no_unknown(host: Acting) -> None:
    task = host.task()
    host.grant(task)
    row = host.pending(task)
    broker = host.pid("broker")
    host.script("effect executes_then_stalls 2")
    sent = Sent(host, row)
    wait_until("it happened", lambda: len(host.effects()) == 1, 5)
    os.kill(host.pid("supervisor"), signal.SIGHUP)
    sent.join()
    wait_until("another broker", lambda: host.pid("broker") not in (0, broker), 10)
    host.whole()
    assert settled(host, row) == "succeeded"
    truth(host, row, "succeeded")
    assert not [event for event in host.events(task) if "unknown" in event or "look" in event], host.events(task)
    host.verify(task)
