# SPDX-License-Identifier: Apache-2.0
"""More at once than the edge between engine and api may queue, both ways: all is answered, and the daemon works on."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from daemon import Daemon, role

LONG = "/" + "/".join("d" * 200 for _ in range(20))[:4000]


def test_burst() -> None:
    with Daemon() as daemon:
        client = daemon.client
        box = client.create()
        rooms = {name: daemon.by_role(name) for name in ("engine", "api")}

        def record(_: int) -> int:
            status: int = client.request("GET", f"/v1/sandboxes/{box['id']}/fs?path={quote(LONG)}").status
            return status

        def page(_: int) -> tuple[int, int]:
            answer = client.request("GET", f"/v1/audit/{box['task']}?limit=200")
            return answer.status, len(answer.json["records"]) if answer.status == 200 else 0

        def run(_: int) -> int:
            status: int = client.request("POST", f"/v1/sandboxes/{box['id']}/exec",
                                         {"cmd": "true #" + "x" * 130000}).status
            return status

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(record, range(200))) == {404}
        with ThreadPoolExecutor(150) as pool:
            pages = list(pool.map(page, range(24)))
            assert all(status == 200 and records > 100 for status, records in pages), Counter(pages)
            # A sandbox runs so many commands at a time: the rest is refused by a sentence, never by a lost edge.
            statuses = Counter(pool.map(run, range(150)))
            assert statuses[200] > 0 and set(statuses) <= {200, 409}, statuses
            both = [pool.submit(page if n % 3 == 0 else run, n) for n in range(150)]
            assert all(one.result() is not None for one in both)
        assert client.exec(box["id"], "echo ok")["stdout"] == "ok\n"
        assert {name: daemon.by_role(name) for name in rooms} == rooms, daemon.log()
        assert all(role(pid) == name for name, pids in rooms.items() for pid in pids)
