# SPDX-License-Identifier: Apache-2.0
"""The last part of the story: a task with a policy. What an allowed host is good for, what it is not, and what the record says.

play.py hands its Demo over. The servers of network.py are asked what arrived: a refusal that only the sandbox tells of is none.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import agent
import network
from story import printable, shorten_end

if TYPE_CHECKING:
    from play import Demo, Sandbox

SETTLE_SECONDS = 5
WIDTH = 130
# All that may arrive, in this order.
DOCS_HEARD = ["GET /help/returns?lang=en", "GET /help/moved"]
CARRIER_HEARD = ["GET /v1/track/7?number=48221"]


def is_row(data: dict[str, Any], row: tuple[str, str, str, str, str]) -> bool:
    """Whether a verdict of the record is this row of agent.LEFT."""
    _, reason, scheme, name, address = row
    said = (data["reason"], data["scheme"]) == (reason, scheme)
    named = data["name"].endswith(name) if name.startswith(".") else data["name"] == name
    return said and (data.get("address") == address if address else named)


class Egress:
    def __init__(self, demo: Demo, box: Sandbox):
        self.demo, self.box, self.story = demo, box, demo.story
        self.network = demo.outside.network

    def tell(self) -> None:
        self.shown("policy", "show", "--task", "48221", facts="what the gateway of this sandbox goes by", must=("fetch", "brokered"))
        self.demo.play(self.box, agent.STEPS_LEAVE)
        self.story.chapter("What arrived, by the servers' own notes")
        self.arrived()
        self.story.chapter("What was refused, by the record")
        self.refusals()
        self.shown("net", "48221", facts="the same as sums, and what is left of the task's budgets", must=("raw-address", "brokered"))
        self.tried()

    # ---- outside ----

    def site(self, what: str, site: network.Site, lines: list[str], authorization: str, facts: str) -> None:
        host = self.network.placed(site.name + network.WRITTEN[what])
        wrong = [] if [h.line for h in site.heard] == lines else [f"it heard {[h.line for h in site.heard]}, not {lines}"]
        for h in site.heard:
            wrong += [] if h.host == host else [f"{h.line}: for the host {h.host}"]
            wrong += [] if h.authorization == authorization else [f"{h.line}: with Authorization: {h.authorization}"]
            wrong += [f"{h.line}: with a body of {h.body}"] if h.body not in ("", "0") else []
        wrong += [f"{site.silent} connections without a request"] if site.silent else []
        self.story.verdict(what, wrong, facts, "ok")
        for h in site.heard:
            key = f", Authorization: {h.authorization[:14]}..." if h.authorization else ""
            self.story.line("heard", f"{h.line}, Host: {h.host}{key}")

    def arrived(self) -> None:
        self.site("docs", self.network.docs, DOCS_HEARD, "", "two pages, and nothing else: no other host, no body, no data")
        key = f"Bearer {network.CREDENTIAL}"
        self.site("carrier", self.network.carrier, CARRIER_HEARD, key, "one look-up, with the key that no sandbox has")
        asked = self.network.names.asked
        wrong = [f"it was asked for {name}" for name in asked if name != network.MIRROR]
        wrong += [] if asked else ["it was not asked for the one name that is resolved"]
        self.story.verdict("name server", wrong, f"asked for {network.MIRROR}, never for anything below evil.tld")

    # ---- on record ----

    def verdicts(self) -> list[dict[str, Any]]:
        return [r["data"] for r in self.demo.records(self.box) if r["event"] == "egress.verdict"]

    def refusals(self) -> None:
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            refused = [data for data in self.verdicts() if data["reason"] != "none"]
            wanted = [row for row in agent.LEFT if not any(is_row(data, row) for data in refused)]
            if not wanted or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        for row in agent.LEFT:
            step, reason, scheme, name, address = row
            found = [data for data in refused if is_row(data, row)]
            least = sum(other[1:] == row[1:] for other in agent.LEFT)
            wrong = [] if len(found) >= least else [f"the record has {reason} of it {len(found)} times, not {least}"]
            names = {data["name"] for data in found}
            where = address or (f"{len(names)} names below {name[1:]}" if name.startswith(".") else name)
            self.story.verdict(step, wrong, f"{reason:14} {'' if scheme == 'none' else scheme:6} {where}")
        strange = [f"{data}" for data in refused if not any(is_row(data, row) for row in agent.LEFT)]
        kept = json.dumps(self.demo.records(self.box))
        secret = [f"the record has {text}" for text in (network.CREDENTIAL, network.PARCEL["recipient"]) if text in kept]
        self.story.verdict("no secret", secret, "neither the carrier's key nor what it said of the recipient is on record")
        self.story.verdict("nothing else", strange, f"each of the {len(refused)} refusals on record is one of these")
        allowed = [(data["name"], data.get("method"), data.get("path")) for data in self.verdicts() if data["reason"] == "none"]
        three = [(network.DOCS, "GET", "/help/returns"), (network.CARRIER, "GET", "/v1/track/7"), (network.DOCS, "GET", "/help/moved")]
        self.story.verdict("allowed", [] if allowed == three else [f"{allowed}, not {three}"], "three requests, those that arrived", "ok")

    def shown(self, *words: str, facts: str = "", code: int = 0, must: tuple[str, ...] = ()) -> None:
        ran = self.demo.cli(*words)
        self.story.say("  $ demilune " + " ".join(words))
        for line in ran.stdout.splitlines():
            self.story.say("  | " + shorten_end(printable(line), WIDTH).rstrip())
        wrong = [] if ran.returncode == code else [f"it ended with {ran.returncode}, not {code}: {ran.stderr}"]
        wrong += [f"it does not say {text}" for text in must if text not in ran.stdout]
        self.story.verdict(" ".join(words[:2]) if len(words) > 2 else words[0], wrong, facts, "ok")

    def tried(self) -> None:
        """The gateway's own decision, asked for by a person; nothing is sent."""
        self.shown("policy", "try", "--task", "48221", self.network.placed(agent.DOCS + "?d=customers"), code=1,
                   facts="the gateway's own decision, step by step; nothing is sent", must=("refused: query",))
