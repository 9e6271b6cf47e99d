"""Every number of a document is bound to its source by `numbers.txt`, or the paragraph says what measures it."""

from collections.abc import Callable

import pytest

from tests.docs import numbers
from tests.docs.numbers import Number, Row, agrees, bound, is_measured, numbers_of, rows, trouble
from tests.docs.pages import Page, pages

WAY = (
    "Bind it in tests/docs/numbers.txt (`PHRASE | file.py: CONSTANT`, forms in tests/docs/numbers.py), "
    "or name the command that measures it in the same paragraph (`make bench ARGS=...`)."
)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.path)
def test_every_number_says_what_the_source_says(page: Page, record_property: Callable[[str, object], None]) -> None:
    found, _ = bound(page)
    every = list(numbers_of(page))
    wrong = [
        f"{one.place} {why} (numbers.txt:{found[one.start][0].line})"
        for one in every
        if one.start in found and (why := trouble(one, *found[one.start]))
    ]
    assert wrong == [], "Correct the page, or the row of tests/docs/numbers.txt."
    free = [one.place for one in every if one.start not in found and not is_measured(page, one.line)]
    assert free == [], WAY
    record_property("count: claims of documents, number", len(every))


def test_every_row_of_the_table_is_about_a_number_of_its_page() -> None:
    idle = [row for page in pages() for row in bound(page)[1]]
    assert idle == [], "The page has no such phrase with a number any more: correct the row, or take it away."
    assert {row.page for row in rows()} <= {page.name for page in pages()}


def test_what_has_a_reason_instead_of_a_source_is_the_smaller_part() -> None:
    reasons = [row for row in rows() if row.binding.startswith("= ")]
    assert len(reasons) < len(rows()) / 4


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("At most 20 s, or 1,000 lines.", [20.0, 1000.0]),
        ("1. the first\n2. the second\n", []),
        ("| 1 | a |\n| 2 | b |\n| 20 | c |\n", [20.0]),
        ("It ends with exit code 55, or exits with 1.", []),
        ("It exits with 7.", [7.0]),
        ("`max_steps = 5` and [decision 12](decisions/0012-x.md)", []),
        ("After three of them, version 4.6, $0.25 and 75 %.", [3.0, 4.6, 0.25, 75.0]),
        ("```\n12\n```\n", []),
    ],
)
def test_numbers_are_found_where_they_claim_something(text: str, wanted: list[float]) -> None:
    assert [one.value for one in numbers_of(Page("docs/x.md", text))] == wanted


@pytest.mark.parametrize(
    ("text", "value", "same"),
    [
        ("64 KiB", 65_536, True),
        ("64 kB", 65_536, False),
        ("30 minutes", 1800.0, True),
        ("30 minutes", 30, True),
        ("30 %", 0.3, True),
        ("20 ms", 0.02, True),
        ("five seconds", 6.0, False),
    ],
)
def test_a_number_agrees_with_a_constant_in_its_unit(text: str, value: float, same: bool) -> None:
    (number,) = numbers_of(Page("docs/x.md", text))
    assert agrees(number, value) is same


@pytest.mark.parametrize(
    ("binding", "wrong"),
    [
        ("__init__.py: _RATE", True),
        ("web/request_guard.py: _RATE", False),
        ("web/request_guard.py: _BURST", True),
        ("web/request_guard.py: 25 * 2", True),
        ("web/request_guard.py: 25.0 * _BURST / 100", False),
        ("web/request_guard.py: _NOTHING", True),
        ("nowhere.py: 50", True),
        ("web/request_guard.py ~ _RATE, _BURST = {}.0", False),
        ("web/request_guard.py ~ _BURST, _RATE = {}.0", True),
        ("web/request_guard.py ~ _RATE", True),
        ("tests/docs/test_numbers.py::test_a_binding_is_looked_up", False),
        ("tests/docs/test_numbers.py::test_of_nothing", True),
        ("tests/docs/nowhere.py::test_of_nothing", True),
        ("= because", True),
        ("= a count in the sentence itself", False),
    ],
)
def test_a_binding_is_looked_up(binding: str, wrong: bool) -> None:
    number: Number = next(numbers_of(Page("docs/x.md", "At most 50 a second.")))
    assert bool(trouble(number, Row("x.md", "50 a second", binding, 1), 0)) is wrong
    assert numbers.TABLE.exists()
