# SPDX-License-Identifier: Apache-2.0
"""Every case of cases.txt has a test that is named by its id, and every id in a name is a case."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OTHER_TABLES = (  # their ids mean other cases
    "tests/dialer/",
    "tests/egress/",
    "tests/gateway/",
    "tests/scenario/",
    "tests/unit/dialer/",
    "tests/unit/egress/",
    "tests/unit/gateway/",
)
SHARED = ("tests/unit/lib/",)  # these too, beside those of this table
NAME = re.compile(r"(?:^|\b)(?:test_)?((?:[A-H][1-9]\d?_)(?:(?:to_|and_)?[A-H][1-9]\d?_)*)[A-Za-z0-9_]*", re.M)


def table() -> dict[str, tuple[str, str]]:
    rows: dict[str, tuple[str, str]] = {}
    for line in (ROOT / "tests/actions/cases.txt").read_text().splitlines():
        if not line.startswith("#"):
            case, how, text = line.split(" ", 2)
            assert case not in rows and text, line
            rows[case] = (how, text)
    return rows


def named() -> dict[str, list[str]]:
    """Each id in the name of a test, and where."""
    found: dict[str, list[str]] = {}
    for path in sorted(path for folder in ("tests", "fuzz") for path in (ROOT / folder).rglob("*")):
        name = str(path.relative_to(ROOT))
        if name.startswith(OTHER_TABLES) or path.suffix not in (".c", ".py") or not path.is_file():
            continue
        for match in NAME.finditer(path.read_text(errors="replace")):
            for case in re.findall(r"[A-H][1-9]\d?", match[1]):
                found.setdefault(case, []).append(f"{name}: {match[0]}")
    return found


def test_each_case_has_a_test() -> None:
    rows, found = table(), named()
    assert len(rows) >= 85
    missing = [f"{case} {text}" for case, (how, text) in rows.items() if how == "test" and case not in found]
    assert missing == []


def test_who_waits_for_a_component_has_none_yet() -> None:
    """Once there is a test, the row says so."""
    found = named()
    assert [case for case, (how, _) in table().items() if how != "test" and case in found] == []
    assert {how for how, _ in table().values()} <= {"test", "console", "none"}


def test_no_name_has_an_id_that_is_no_case() -> None:
    rows = table()
    unknown = {case: [one for one in where if not one.startswith(SHARED)] for case, where in named().items() if case not in rows}
    assert {case: where for case, where in unknown.items() if where} == {}
