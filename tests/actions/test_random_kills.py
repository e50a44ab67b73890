# SPDX-License-Identifier: Apache-2.0
"""Thirty actions, and in each a process dies at a random moment while the provider does as it likes. Nothing happens twice, no state
is a lie, nothing stays open. DEMILUNE_KILLS is the number, DEMILUNE_SEED draws the same again.
"""

from __future__ import annotations

import os
import random
import time

from acting import ROOMS, Acting
from truth import Sent, settled, truth

KILLS = int(os.environ.get("DEMILUNE_KILLS", "30"))
SEED = int(os.environ.get("DEMILUNE_SEED", str(random.randrange(1 << 30))))
MOODS: tuple[list[str], ...] = (
    [], [], ["effect slow 0.03"], ["read stall 0.02"], ["effect executes_then_drops"], ["effect drop"], ["effect executes_then 500"],
    ["effect executes_then_drops", "lookup pending"], ["effect truncated"], ["effect retry 1"], ["effect status 503"])


def test_F1_to_F6_at_random_moments() -> None:
    draw = random.Random(SEED)
    print(f"seed {SEED}")  # pytest shows it when this fails
    with Acting() as host:
        task = host.task()
        host.grant(task)
        outcomes: dict[str, int] = {}
        rows = []
        for number in range(KILLS):
            room, mood, wait_s = draw.choice(ROOMS), draw.choice(MOODS), draw.uniform(0, 0.045)
            print(f"{number}: {room} after {wait_s * 1000:.1f} ms, {mood}")
            row = host.pending(task, cents=number + 1)
            host.script(*mood)
            sent = Sent(host, row)
            time.sleep(wait_s)
            host.kill(room)
            sent.join()
            host.whole()
            host.script()
            state = settled(host, row)
            truth(host, row, state)
            if state == "pending":  # it can still be decided, once
                host.approve(row["id"], code=None)
                state = settled(host, row)
                truth(host, row, state)
            outcomes[state] = outcomes.get(state, 0) + 1
            rows.append((row, state))
        time.sleep(0.5)
        for row, state in rows:  # and nothing came after all
            assert host.row(row["id"])["state"] == state
            truth(host, row, state)
        print(outcomes)
        assert outcomes.get("succeeded", 0) >= KILLS // 4
        assert host.executions(task) and not [e for e in host.executions(task) if e["state"] in ("dispatching", "unknown")]
        assert len(host.effects()) == sum(state in ("succeeded", "manual") for _, state in rows)
        host.verify(task)
