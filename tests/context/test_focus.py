"""The task's checklist."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.context.focus import (
    Checklist,
    FocusItem,
    checklist_summary,
    edited,
    merge_checklists,
    parse_checklist,
    reminder,
    render_checklist,
    rewrite,
)

TEXTS = st.sampled_from(["read", "write", "test", "Say so"])
ITEMS = st.lists(st.builds(FocusItem, TEXTS, st.booleans(), st.integers(0, 2)), max_size=6).map(tuple)
UNIQUE = st.lists(
    st.builds(FocusItem, TEXTS, st.booleans(), st.integers(0, 2)),
    max_size=4,
    unique_by=lambda item: item.text.casefold(),
).map(tuple)


def test_items_are_read_from_markdown() -> None:
    text = (
        "# Task\n- [ ] one\n  - [x]   two  words \n* [X] three\n1. [ ] four\n- [] five\n- no\n- [ ]\n[ ] no\n\n- [-] no"
    )
    assert parse_checklist(text) == (
        FocusItem("one"),
        FocusItem("two words", done=True, depth=1),
        FocusItem("three", done=True),
        FocusItem("four"),
        FocusItem("five"),
    )


def test_items_are_written_as_markdown() -> None:
    assert render_checklist((FocusItem("one"), FocusItem("two", done=True, depth=1))) == "- [ ] one\n  - [x] two"


@settings(max_examples=100)
@given(ITEMS)
def test_what_is_written_reads_back(checklist: Checklist) -> None:
    assert parse_checklist(render_checklist(checklist)) == checklist


@settings(max_examples=200)
@given(st.text(alphabet="-*[] xX\n\ta1.", max_size=60), ITEMS)
def test_rewriting_keeps_the_other_lines(text: str, checklist: Checklist) -> None:
    new = rewrite(text, checklist)
    assert parse_checklist(new) == checklist
    others = [line for line in text.splitlines() if not parse_checklist(line)]
    assert [line for line in new.splitlines() if not parse_checklist(line)] == others


def test_the_new_list_takes_the_place_of_the_old() -> None:
    text = "# Mine\n\n- [ ] a\nnote\n- [ ] b\nend"
    assert rewrite(text, (FocusItem("a", done=True), FocusItem("c"))) == "# Mine\n\n- [x] a\n- [ ] c\nnote\nend\n"
    assert rewrite("", (FocusItem("a"),)) == "- [ ] a\n"


@pytest.mark.parametrize(
    ("base", "model", "user", "expected"),
    [
        ("- [ ] a\n- [ ] b", "- [x] a\n- [ ] b", "- [ ] a\n- [ ] b\n- [ ] c", "- [x] a\n- [ ] b\n- [ ] c"),
        ("- [ ] a\n- [ ] b", "- [x] a\n- [ ] b", "- [ ] a\n- [ ] new\n- [ ] b", "- [x] a\n- [ ] new\n- [ ] b"),
        ("- [ ] a\n- [ ] b", "- [x] a\n- [ ] b", "- [ ] b", "- [ ] b"),
        ("- [ ] a", "- [ ] a\n- [ ] b", "- [x] a", "- [x] a\n- [ ] b"),
        ("- [x] a", "- [x] a\n- [ ] b", "- [ ] a", "- [ ] a\n- [ ] b"),
        ("- [ ] a\n- [ ] b", "- [ ] b", "- [ ] a\n- [ ] b", "- [ ] b"),
        ("- [ ] a", "- [x] a", "- [ ] a, and well", "- [ ] a, and well"),
        ("", "- [ ] a", "- [x] A", "- [x] A"),
        ("- [ ] a", "- [ ] b", "", "- [ ] b"),
    ],
)
def test_changes_of_model_and_user_are_joined(base: str, model: str, user: str, expected: str) -> None:
    assert (
        render_checklist(merge_checklists(parse_checklist(base), parse_checklist(model), parse_checklist(user)))
        == expected
    )


@settings(max_examples=200)
@given(UNIQUE, UNIQUE)
def test_one_change_alone_stands_as_it_is(base: Checklist, changed: Checklist) -> None:
    assert merge_checklists(base, changed, base) == changed
    assert merge_checklists(base, base, changed) == changed


@settings(max_examples=200)
@given(ITEMS, ITEMS, ITEMS)
def test_nothing_that_the_user_wrote_is_lost(base: Checklist, model: Checklist, user: Checklist) -> None:
    merged = {item.text.casefold() for item in merge_checklists(base, model, user)}
    known = {item.text.casefold() for item in base}
    assert {item.text.casefold() for item in user} - known <= merged


def test_the_model_is_reminded_after_six_requests_and_again_after_twelve() -> None:
    checklist = (FocusItem("a", done=True), FocusItem("b"))
    assert [requests for requests in range(14) if reminder(checklist, requests)] == [6, 12]
    assert reminder(checklist, 6) == (
        "The task's checklist was not updated for a while. It now says:\n- [x] a\n- [ ] b\n"
        "Give the whole list, with finished items marked `[x]`, as `task_progress` with your next call."
    )
    assert reminder((), 6) == reminder((FocusItem("a", done=True),), 6) == ""


def test_progress_is_told_in_a_line() -> None:
    assert checklist_summary((FocusItem("a", done=True), FocusItem("b"), FocusItem("c"))) == "1/3 · b"
    assert checklist_summary((FocusItem("a", done=True),)) == "1/1"
    assert checklist_summary(()) == ""


def test_the_users_change_is_told_to_the_model() -> None:
    assert (
        edited((FocusItem("a"),), (FocusItem("a", done=True),))
        == "The user changed the task's checklist. It now says:\n- [x] a"
    )
    assert edited((FocusItem("a"),), ()) == "The user changed the task's checklist. It now says:\n(empty)"
    assert edited((FocusItem("a"),), (FocusItem("a"),)) == ""
