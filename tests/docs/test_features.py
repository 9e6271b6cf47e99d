"""The page about what works is written from its rows, has every capability, and each row names tests that exist."""

import re
from collections.abc import Mapping

from tests.architecture.test_shape import ROOT
from tests.docs.features import PAGE, STATES, TABLE, Feature, features, features_page, taken_over
from tests.docs.pages import Claim
from tests.docs.test_code import wrong

ROWS = features(TABLE.read_text(encoding="utf-8"))
LAST = {"L": 20, "P": 12, "R": 8, "X": 14, "T": 14, "S": 8, "H": 7, "U": 10, "F": 3, "N": 17}
"""How many capabilities of each kind Treadle is to have; those that are absent say so."""

ABSENT: Mapping[str, str] = {}
"""A word of each capability that is absent: where Treadle knows it, the row is out of date."""


def test_the_page_is_written_from_its_rows() -> None:
    assert PAGE.read_text(encoding="utf-8") == features_page(ROWS), (
        "Change tests/docs/features.txt and run `make docs`. After a merge that changed docs/features.md itself: "
        "`python -m tests.docs.features --take > features.new && mv features.new docs/features.md`."
    )


def test_every_capability_has_a_row() -> None:
    wanted = {f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)}
    found = {number for row in ROWS for number in row.numbers}
    assert found == wanted, "Add the row to tests/docs/features.txt; what is absent begins with `not yet`."


def test_each_row_that_works_names_tests_that_exist() -> None:
    trouble = []
    for row in ROWS:
        absent = row.today.startswith("not yet")
        if absent is bool(row.tests):
            trouble.append(f"{row.ids}: " + ("it is not there, and has tests" if absent else "it names no test"))
        for one in row.tests:
            file = ROOT / "tests" / one
            if not file.is_file() or not re.search(
                r"^(?:async )?def test_", file.read_text(encoding="utf-8"), re.MULTILINE
            ):
                trouble.append(f"{row.ids}: {one} has no test")
    assert trouble == []


def test_what_is_called_absent_is_not_there() -> None:
    assert {row.ids for row in ROWS if row.today.startswith("not yet")} == set(ABSENT)
    there = {ids for ids, word in ABSENT.items() if not wrong(Claim("docs/features.md", 1, word))}
    assert there == set(), "Say in tests/docs/features.txt what works of it, with its tests."


def test_what_is_absent_is_not_called_there() -> None:
    for row in ROWS:
        assert not re.match(r"(?:no|none)\b", row.today), f"{row.ids}: write one of {STATES}"


def test_what_another_branch_wrote_into_the_page_is_taken_over() -> None:
    table = "## A\nL1 | Start | yes | e2e/a.py\nL2 | Queue | not yet | -\n"
    page = features_page(features(table)).replace("| not yet |", "| yes: `/queue` |")
    assert taken_over(table, page) == table.replace("not yet", "yes: `/queue`")
    old = "| id | capability | today |\n|---|---|---|\n| L1 | Start | yes, at once |\n"
    assert features(taken_over(table, old))[0] == Feature("A", "L1", "Start", "yes, at once", ("e2e/a.py",))
