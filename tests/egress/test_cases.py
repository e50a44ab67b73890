# SPDX-License-Identifier: Apache-2.0
"""Every case of cases.txt has a test that is named by its id."""

from __future__ import annotations

from case_table import CaseTable

FOLDERS = ("tests/egress", "tests/gateway", "tests/dialer", "tests/unit/http", "tests/unit/egress", "tests/unit/gateway", "tests/unit/dialer", "tests/supervisor",
           "tests/broker")
TABLE = CaseTable("tests/egress/cases.txt", "A-L", FOLDERS)


def test_each_case_has_a_test() -> None:
    assert len(TABLE.rows) == 178
    assert TABLE.missing() == []


def test_the_rest_says_why() -> None:
    assert {how for how, _ in TABLE.rows.values()} == {"test", "residual", "http2", "not_offered", "none"}
