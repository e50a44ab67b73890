# SPDX-License-Identifier: Apache-2.0
"""A table of cases (ID HOW TEXT, one to a line) and the tests that are named by its ids: `test_A1_what_happens`, `A1_A2_both` in C."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class CaseTable:
    def __init__(self, path: str, letters: str, folders: tuple[str, ...]) -> None:
        """letters: that ids begin with, as in a character class; folders: where the names of tests mean this table."""
        self.folders = folders
        one = rf"[{letters}][1-9]\d?"
        self.id = re.compile(one)
        self.name = re.compile(rf"(?:^|\b)(?:test_)?((?:{one}(?:_|\b))(?:(?:to_|and_)?{one}(?:_|\b))*)", re.M)
        self.rows: dict[str, tuple[str, str]] = {}
        for line in (ROOT / path).read_text().splitlines():
            if not line.startswith("#"):
                case, how, text = line.split(" ", 2)
                assert case not in self.rows and text, line
                self.rows[case] = (how, text)

    def named(self) -> dict[str, list[str]]:
        """Each id in the name of a test, and where. `A1_to_A9` names all between that there are."""
        found: dict[str, list[str]] = {}
        for path in sorted(path for folder in self.folders for path in (ROOT / folder).rglob("*")):
            if path.suffix not in (".c", ".py") or not path.is_file():
                continue
            for match in self.name.finditer(path.read_text(errors="replace")):
                for case in self.of(match[1]):
                    found.setdefault(case, []).append(f"{path.relative_to(ROOT)}: {match[0]}")
        return found

    def of(self, name: str) -> list[str]:
        cases = self.id.findall(name)
        for match in re.finditer(rf"({self.id.pattern})_to_({self.id.pattern})", name):
            first, last = match[1], match[2]
            if first[0] == last[0]:
                between = range(int(first[1:]) + 1, int(last[1:]))
                cases += [case for case in self.rows if case[0] == first[0] and int(case[1:]) in between]
        return cases

    def missing(self) -> list[str]:
        found = self.named()
        return [f"{case} {text}" for case, (how, text) in self.rows.items() if how == "test" and case not in found]
