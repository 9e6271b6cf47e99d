"""In a window of any size the answer that Enter takes is on the screen, and so is what it is given to."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from tests.tui.asked import EDIT, EVERY_KIND, RUN, command, decided
from tests.tui.drawing import stages
from tests.tui.session import calls, says, session, text
from tests.tui.terminal import terminal
from treadle.protocol.notifications import Phase
from treadle.protocol.tools import Risk
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.theme import Signs
from treadle.tui.question.answer_lines import choice_row
from treadle.tui.question.asked import Asking, ask, choices, move
from treadle.tui.question.asked_about import about_of, diff_of
from treadle.tui.question.dialog import ONCE_MORE, TOO_LOW, Dialog, Key, Press, moment, press
from treadle.tui.question.low_window import QuestionRows
from treadle.tui.question.question_lines import question_lines

ROOTS = ("/project",)
LONG = command("\n".join(f"echo {number} {'x' * 90}" for number in range(40)), decided(Risk.EXECUTE))
ASKED: list[Asking] = [
    *(
        move(ask(question), row)
        for question in (*EVERY_KIND.values(), LONG)
        for row in range(len(choices(ask(question))))
    ),
    *(asking for _, asking in stages()),
]
NOT_FOR_THE_QUESTION = 6
"""Rows of the draft, the rule, the status, the working line and the scrollback."""


def laid_out(asking: Asking, columns: int, rows: int, hint: str = "") -> QuestionRows:
    dialog = Dialog(asking=asking, focused=True, hint=hint)
    return question_lines(
        dialog, ROOTS, width=columns, rows=rows - NOT_FOR_THE_QUESTION, signs=Signs(), screen=rows - 1
    )


def rows_of(laid: QuestionRows) -> list[str]:
    return [line_text(row) for row in (*laid.above, *((laid.field,) if laid.field else ()), *laid.under)]


def begins(row: str, columns: int) -> str:
    """What of a row must be seen whatever stands behind it."""
    return row[: columns // 3].rstrip()


@settings(max_examples=600)
@given(st.sampled_from(ASKED), st.integers(20, 120), st.integers(1, 30), st.sampled_from(["", ONCE_MORE]))
@example(ask(EDIT), 20, 5, "")
@example(ask(RUN), 80, 7, ONCE_MORE)
def test_what_enter_takes_and_what_for_are_on_the_screen(asking: Asking, columns: int, rows: int, hint: str) -> None:
    laid = laid_out(asking, columns, rows, hint)
    shown = rows_of(laid)
    assert len(shown) <= max(1, rows - (1 if laid.alone else NOT_FOR_THE_QUESTION))
    assert all(get_cwidth(row) <= columns for row in shown)
    if not laid.drawn:
        assert rows < 3
        assert begins(TOO_LOW, columns) in shown[0]
        return
    inner = columns - 2
    about = about_of(asking, ROOTS, inner)
    texts = [line_text(row) for row in about.text or about.tail or about.head]
    if diff_of(asking) and not laid.alone:
        left = rows - NOT_FOR_THE_QUESTION - len(shown) + 1
        assert left >= 4, "the diff above it is not seen"
    elif diff_of(asking):
        assert any(row.removeprefix("▎ ").lstrip(" 0123456789").startswith("- ") for row in shown)
    else:
        assert any(begins(texts[0], columns) in row for row in shown)
    if asking.field:
        assert line_text(laid.field).startswith("▎ ❯ ")
        assert laid.words is None or 1 <= laid.words <= rows - len(laid.above) - len(laid.under)
        return
    assert asking.chosen in laid.drawn
    for place, choice in enumerate(choices(asking)):
        begin = line_text(choice_row(choice, inner, Signs(), chosen=place == asking.chosen)[0])
        assert place not in laid.drawn or any(begins(begin, columns) in row for row in shown), shown
    if len(laid.drawn) < len(choices(asking)):
        assert any(row.endswith(f"{asking.chosen + 1}/{len(choices(asking))}") for row in shown)


@pytest.mark.parametrize("name", EVERY_KIND)
def test_no_answer_is_taken_that_is_not_drawn(name: str) -> None:
    asking = ask(EVERY_KIND[name])
    rested = moment(Dialog(asking=asking, focused=True, shown_at=0.0), 5.0, draft=False)
    for chosen in range(len(choices(asking))):
        there = press(rested, Press(Key.DOWN), 5.0)[0] if chosen else rested
        rested = moment(there, 10.0, draft=False)
        assert rested.asking is not None
        places = [place for place in range(len(choices(asking))) if place != rested.asking.chosen]
        for drawn in (range(0), *(range(place, place + 1) for place in places)):
            after, effects = press(rested, Press(Key.ENTER, drawn=drawn), 11.0)
            assert (effects, after.hint, after.asking) == ((), TOO_LOW, rested.asking)
            assert press(rested, Press(Key.ESCAPE, drawn=drawn), 11.0)[1] != ()


def test_shift_tab_shows_what_it_would_take_first() -> None:
    rested = moment(Dialog(asking=ask(EDIT), focused=True, shown_at=0.0), 5.0, draft=False)
    after, effects = press(rested, Press(Key.SHIFT_TAB, drawn=range(1)), 6.0)
    assert effects == ()
    assert after.asking == move(ask(EDIT), 1)
    again = moment(after, 12.0, draft=False)
    assert len(press(again, Press(Key.SHIFT_TAB, drawn=range(1, 2)), 13.0)[1]) == 1


@pytest.mark.parametrize(("columns", "rows"), [(20, 5), (80, 5), (80, 7), (80, 9), (40, 12)])
async def test_an_edit_in_a_low_terminal_is_answered_by_what_is_on_the_screen(
    tmp_path: Path, columns: int, rows: int
) -> None:
    replies = (calls("edit", "{}"), says(text("ok")))
    low = partial(terminal, columns=columns, rows=rows)
    async with session(tmp_path, *replies) as rig, low(rig.live, "go") as (term, _):
        await term.until("❯ Yes", "- old")
        term.type("\x1b[B")
        await term.until("❯ Yes, and", "- old")
        term.type("n")
        await term.until("❯ No, and", "- old")
        await asyncio.sleep(1.2)
        term.type("\r")
        await term.until("❯ No.", "- old")
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION
        term.type("\x1b")
        await term.until("❯ No, and")


async def test_a_second_question_in_a_window_that_becomes_low_is_answered_by_what_is_on_the_screen(
    tmp_path: Path,
) -> None:
    replies = (calls("edit", "{}"), calls("edit", "{}"), says(text("ok")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "go", rows=30) as (term, _):
        await term.until("❯ Yes", "  No, and")
        (first,) = [one.id for one in rig.live.status.questions]
        await asyncio.sleep(1.2)
        term.resize(80, 5)
        await asyncio.sleep(0.1)
        term.type("\r")
        await term.until("❯ Yes", "- old", "1/4")
        assert [one.id for one in rig.live.status.questions] == [first], "while nothing was drawn"
        await asyncio.sleep(1.2)
        term.type("\r")
        await term.when(lambda: [one.id for one in rig.live.status.questions] not in ([], [first]), "the second one")
        (second,) = [one.id for one in rig.live.status.questions]
        term.resize(80, 2)
        await term.until("Make the window")
        await asyncio.sleep(1.2)
        term.type("\r")
        await asyncio.sleep(0.1)
        term.resize(80, 30)
        await term.until("❯ Yes", "  No, and")
        assert [one.id for one in rig.live.status.questions] == [second]
        term.type("\x1b")
        await term.when(lambda: rig.live.status.questions == (), "an answer")


async def test_in_two_rows_nothing_is_answered_but_with_no(tmp_path: Path) -> None:
    replies = (calls("edit", "{}"), says(text("ok")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "go", rows=2) as (term, _):
        await term.until("Make the window higher")
        await asyncio.sleep(1.2)
        term.type("\r")
        await asyncio.sleep(0.3)
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION
        term.type("\x1b")
        await term.when(lambda: rig.live.status.phase is not Phase.AWAITING_USER_CONFIRMATION, "an answer")
