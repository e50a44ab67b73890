# SPDX-License-Identifier: Apache-2.0
"""rows.py from inside of a real sandbox: the answer, the verdict on record, and that nothing left the host."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rows import ROWS, Row
from world import Got, World

HOSTS = {"plain": b"plain.test", "tls": b"allowed.test", "proxy": b"plain.test"}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as made:
        yield made


def send(world: World, row: Row) -> Got:
    chunks = [one.replace(b"Host: @", b"Host: " + HOSTS[row.via]) for one in row.send]
    more = dict(row.more)
    if sum(map(len, chunks)) > 60000:
        more["file"] = b"".join(chunks)
        chunks = []
    if row.via == "proxy":
        return world.proxy(*chunks, **more)
    if row.via == "plain":
        return world.talk("plain.test", 80, *chunks, **more)
    return world.talk("allowed.test", 443, *chunks, tls="allowed.test", **more)


def numbered(rows: list[Row]) -> list[object]:
    seen: dict[str, int] = {}
    params: list[object] = []
    for row in rows:
        seen[row.case] = seen.get(row.case, 0) + 1
        params.append(pytest.param(row, id=f"{row.case}_{row.via}_{seen[row.case]}"))
    return params


@pytest.mark.parametrize("row", numbered(ROWS))
def test_refused(world: World, row: Row) -> None:
    if row.late:
        for origin in world.outside.origins:
            origin.forget()
    with world.refused(row.reason, verdict=None if row.late else "refused", silent=not row.late):
        got = send(world, row)
    assert not row.late or not any(origin.data.endswith(b"0\r\n\r\n") for origin in world.outside.origins)
    assert got.status in row.status, f"{got.status} {got.error} {got.data[:300]!r}"
    if got.status:
        said = got.said
        assert said["code"] in row.reason
        assert "another way" in said["hint"] + said["error"]
    else:
        assert got.ended, "it was left open"


def test_and_what_is_allowed_arrives(world: World) -> None:
    """Else all of the above could be refused for another reason."""
    for via in ("plain", "tls"):
        got = send(world, Row("", via, [b"GET /v1/x?q=1 HTTP/1.1\r\nHost: @\r\n\r\n"], (200,)))
        assert (got.status, got.data[-6:]) == (200, b"fine.\n"), got
    got = send(world, Row("", "proxy", [b"GET http://plain.test/v1/y HTTP/1.1\r\nHost: plain.test\r\n\r\n"], (200,)))
    assert got.status == 200
    assert b"GET /v1/y HTTP/1.1\r\nHost: plain.test\r\n" in world.plain.data
    assert b"GET /v1/x?q=1 HTTP/1.1\r\nHost: allowed.test\r\n" in world.allowed.data
