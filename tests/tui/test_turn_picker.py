"""The time line: what its rows say, what is asked of a message, and which keys take something back."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.clock import run_at_once
from treadle.app.reports.checkpoint_list import PreviewedPath
from treadle.app.slash.going_back import ListedTurn, TurnPreview
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.messages import Text
from treadle.protocol.notifications import ConversationRewound, Notification, PromptDelivered
from treadle.protocol.tools import FileChange
from treadle.tui.lists.filter_list import Pick
from treadle.tui.lists.filter_list_rows import turn_rows
from treadle.tui.lists.turn_picker import TurnPicker, asking_back, way_back, ways_back
from treadle.tui.paint.lines import cells, line_text
from treadle.tui.paint.scrollback import Scrollback
from treadle.tui.paint.theme import ASCII_SIGNS, Signs
from treadle.tui.question.dialog import QUIET_SECONDS
from treadle.tui.session.aside import Aside
from treadle.tui.session.entered_lines import DoCommand

DIFF = "--- a/cart.py\n+++ b/cart.py\n@@ -1,2 +1 @@\n-new\n-more\n+old\n"
TURNS = (
    ListedTurn(
        number=1,
        asked="Fix\x1b it",
        files=(FileChange(path="shop/cart.py", before="a", after="b", added=3, removed=1),),
    ),
    ListedTurn(number=2, asked="Ask", files=(), exact=True),
    ListedTurn(number=3, asked="Stopped", flaw="There is no checkpoint of them."),
)
PATHS = (
    PreviewedPath(what="write", path="cart.py", diff=DIFF),
    PreviewedPath(what="delete", path="new\x1b.py"),
    PreviewedPath(what="conflict", path="README.md", why="Others changed the same lines."),
)


def preview(number: int = 2, paths: tuple[PreviewedPath, ...] = PATHS, flaw: str = "") -> TurnPreview:
    return TurnPreview(number=number, asked="Fix the total\nof the cart", leaving=2, paths=paths, flaw=flaw)


def test_a_row_says_which_files_a_message_changed_and_what_of_them_cannot_come_back() -> None:
    rows = [(row.columns, row.below) for row in turn_rows(TURNS)]
    assert rows == [
        (("3", "Stopped", "files not known"), "Its files cannot be brought back. There is no checkpoint of them."),
        (("2", "Ask", ""), ""),
        (("1", "Fix\\x1b it", "at least cart.py +3 -1"), ""),
    ]


def test_a_row_of_several_files_sums_them_up_and_names_them_below() -> None:
    files = tuple(FileChange(path=name, before="", after="b", added=2, removed=1) for name in ("a/b.py", "c.py"))
    (row,) = turn_rows([ListedTurn(number=1, asked="Do it", files=files, exact=True)])
    assert (row.columns[2], row.below) == ("2 files +4 -2", "a/b.py +2 -1, c.py +2 -1")


def test_what_would_become_of_each_file_stands_above_the_choice() -> None:
    choosing = asking_back(preview())
    assert choosing.text == (
        "2 messages would leave the conversation.",
        "Restored: cart.py",
        "Deleted: new\\x1b.py",
        "Left as it is, because it has been changed since then: README.md (Others changed the same lines.)",
        "Changes that you or others have made since then are kept.",
    )
    assert choosing.approves
    assert [way_back(preview(), row).argument for row in range(len(choosing.rows))] == [
        "2",
        "2 conversation",
        "2 files",
        "2",
    ]


@pytest.mark.parametrize(
    ("paths", "flaw", "said"),
    [
        ((), "", "No file would change."),
        ((), "Their checkpoint was removed.", "The files cannot be brought back. Their checkpoint was removed."),
        (PATHS[2:], "", "No file would change."),
    ],
)
def test_files_that_cannot_go_back_are_not_offered(paths: tuple[PreviewedPath, ...], flaw: str, said: str) -> None:
    found = preview(paths=paths, flaw=flaw)
    assert asking_back(found).text[1] == said
    assert [(one.part, one.then_model) for one in ways_back(found)] == [("conversation", False), ("conversation", True)]


class FakeAside:
    """What is read aside is there when `answer` is called."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[object], None]] = []

    def start(self, work: object, done: Callable[[object], None], instead: object) -> None:
        self._waiting.append(done)

    def answer(self, *values: object) -> None:
        for value, done in zip(values, self._waiting, strict=True):
            done(value)
        self._waiting.clear()


def opened(command: str = "rewind") -> tuple[TurnPicker, FakeAside, list[int]]:
    aside, pages = FakeAside(), list[int]()
    picker = TurnPicker(
        "s",
        command,
        aside=cast("Aside", aside),
        changed=lambda: None,
        page=lambda lay_out: pages.append(len(lay_out(40, Signs()))),
    )
    aside.answer(TURNS)
    return picker, aside, pages


KEYS = st.tuples(
    st.sampled_from([0.0, 0.05, 0.4, 0.79, 0.81, 2.0]),
    st.one_of(
        st.just((Pick.TAKE, "")),
        st.tuples(st.sampled_from([one for one in Pick if one is not Pick.TEXT]), st.just("")),
        st.tuples(st.just(Pick.TEXT), st.sampled_from(["y", "n", "1", "3", "4", "a", "yes\n", " "])),
    ),
)


@given(st.lists(KEYS, max_size=14), st.booleans())
def test_only_enter_after_a_pause_takes_something_back(
    strokes: list[tuple[float, tuple[Pick, str]]], late: bool
) -> None:
    async def drive() -> None:
        picker, aside, _ = opened()
        loop, last = asyncio.get_running_loop(), float("-inf")
        picker.press(Pick.TAKE)
        if not late:
            aside.answer(preview())
            last = loop.time()
        for pause, (key, text) in strokes:
            await asyncio.sleep(pause)
            asked = not picker.closes
            taken = picker.press(key, text)
            if taken is not None:
                assert (asked, key) == (True, Pick.TAKE)
                assert loop.time() - last >= QUIET_SECONDS - 0.01
                assert taken.name == "rewind"
                assert taken.argument in ("2", "2 conversation", "2 files")
                return
            if key is not Pick.DETAILS:
                last = loop.time()

    run_at_once(drive())


def test_whoever_waits_takes_what_is_chosen_and_escape_goes_back_to_the_list() -> None:
    async def drive() -> None:
        picker, aside, pages = opened()
        assert picker.press(Pick.TAKE) is None
        aside.answer(preview())
        seen = [picker.closes, picker.press(Pick.CLOSE), picker.closes]
        assert seen == [False, None, True]
        picker.press(Pick.TAKE)
        aside.answer(preview())
        picker.press(Pick.DETAILS)
        assert pages
        picker.press(Pick.TEXT, "4")
        assert picker.press(Pick.TAKE) is None
        await asyncio.sleep(QUIET_SECONDS)
        assert picker.press(Pick.TAKE) == DoCommand("rewind", "2", then_model=True)

    run_at_once(drive())


def test_a_preview_that_comes_after_another_key_asks_nothing() -> None:
    async def drive() -> None:
        picker, aside, _ = opened()
        picker.press(Pick.TAKE)
        picker.press(Pick.DOWN)
        aside.answer(preview())
        assert picker.closes

    run_at_once(drive())


def test_a_copy_is_made_without_a_question() -> None:
    async def drive() -> None:
        assert opened("fork")[0].press(Pick.TAKE) == DoCommand("fork", "3")

    run_at_once(drive())


@given(st.integers(20, 130), st.integers(8, 40), st.sampled_from([Signs(), ASCII_SIGNS]))
def test_the_choice_and_its_preview_fit_the_screen(width: int, rows: int, signs: Signs) -> None:
    async def drive() -> None:
        picker, aside, _ = opened()
        picker.press(Pick.TAKE)
        aside.answer(preview())
        shown = picker.lines(width, rows, signs)
        assert all(cells(row) <= width for row in shown)
        texts = " ".join(line_text(row).strip("▎| ") for row in shown)
        assert all(way.label.split()[0] in texts for way in ways_back(preview()))

    run_at_once(drive())


def test_a_diff_is_laid_out_once_for_each_message_and_width() -> None:
    async def drive() -> None:
        picker, aside, _ = opened()
        picker.press(Pick.TAKE)
        aside.answer(preview())
        first = picker.lines(80, 30, Signs())
        picker.press(Pick.DOWN)
        again, narrow = picker.lines(80, 30, Signs()), picker.lines(40, 30, Signs())
        assert "cart.py" in line_text(first[0])
        assert (first[0] is again[0], first[0] is narrow[0]) == (True, False)
        picker.press(Pick.CLOSE)
        picker.press(Pick.TAKE)
        aside.answer(preview(paths=(PreviewedPath(what="write", path="b.py", diff=DIFF.replace("cart", "b")),)))
        assert "b.py" in line_text(picker.lines(80, 30, Signs())[0])

    run_at_once(drive())


def said(number: int) -> Notification:
    return PromptDelivered(prompt_id=str(number), content=(Text(text=f"message {number}"),))


def test_what_left_is_known_until_the_next_message() -> None:
    scrollback = Scrollback(SessionView(), "tui:main")
    for seq in (10, 20, 30):
        scrollback.take(Stamped(notification=said(seq), seq=seq))
    assert scrollback.just_left == ()
    printed = scrollback.take(Stamped(notification=ConversationRewound(to=15), seq=40))
    assert list(scrollback.just_left) == ["message 20", "message 30"]
    assert "2 messages left the conversation" in str(printed[-1])
    scrollback.take(Stamped(notification=ConversationRewound(to=5), seq=50))
    assert list(scrollback.just_left) == ["message 10", "message 20", "message 30"]
    scrollback.take(Stamped(notification=said(60), seq=60))
    assert list(scrollback.just_left) == []
