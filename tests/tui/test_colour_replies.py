"""What a terminal answers about its colours never becomes something that was typed, and nothing typed is lost to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress

from treadle.tui.draft.pasting import KeyParser
from treadle.tui.paint.colour_replies import ReplyFilter, is_dark

REPLIES = (
    "\x1b]11;rgb:1e1e/1e1e/1e1e\x07",
    "\x1b]11;rgb:fdfd/f6f6/e3e3\x1b\\",
    "\x1b]10;rgb:f/f/f\x07",
    "\x1b]11;rgba:00/00/00/ff\x07",
)
TYPED = st.text("ab;:/]1\r\x1b[ä日", max_size=6)


@pytest.mark.parametrize(
    ("reply", "dark"),
    [
        ("\x1b]11;rgb:0000/0000/0000\x07", True),
        ("\x1b]11;rgb:28/2c/34\x1b\\", True),
        ("\x1b]11;rgb:0000/2b2b/3636\x07", True),
        ("\x1b]11;rgba:ffff/ffff/ffff/ffff\x07", False),
        ("abc\x1b]11;rgb:fdf/6e3/fff\x07def", False),
        ("\x1b]11;rgb:f/f/f\x1b\\", False),
        ("\x1b]11;rgb:1e1e/1e1e/", None),
        ("\x1b]11;?\x07", None),
        ("hello", None),
    ],
)
def test_the_luminance_of_the_answer_says_whether_it_is_dark(reply: str, dark: bool | None) -> None:
    assert is_dark(reply) is dark


def keys_of(pieces: list[str]) -> list[tuple[str, str]]:
    found: list[KeyPress] = []
    parser = KeyParser(Vt100Parser(found.append))
    for piece in pieces:
        parser.feed(piece)
    parser.flush()
    return [(str(press.key), press.data) for press in found]


@given(TYPED, st.sampled_from(REPLIES), TYPED, st.integers(1, 30))
def test_an_answer_cut_anywhere_leaves_the_keys_around_it(before: str, reply: str, after: str, size: int) -> None:
    if before.endswith("\x1b") or "\x1b" in after[:2]:
        before, after = before.replace("\x1b", ""), after.replace("\x1b", "")
    before = before.replace("\x1b]", "]")  # nobody types the beginning of an answer
    text = before + reply + after
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert keys_of(pieces) == keys_of([before + after])


@given(st.sampled_from(REPLIES), st.integers(5, 20), st.sampled_from(REPLIES), TYPED, st.integers(1, 60))
def test_an_answer_whose_end_never_came_does_not_spoil_the_next(
    broken: str, length: int, reply: str, after: str, size: int
) -> None:
    text = broken[:length] + reply + (after := after.replace("\x1b", ""))
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert keys_of(pieces) == keys_of([after])


def test_half_an_answer_is_held_until_the_other_half_comes_however_late() -> None:
    found: list[KeyPress] = []
    parser = KeyParser(Vt100Parser(found.append))
    parser.feed("a\x1b]11;rgb:1e1e/1e")
    parser.flush()
    parser.feed("1e/1e1e\x07b")
    parser.flush()
    assert [press.data for press in found] == ["a", "b"]


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("first", [1, 2, 3, 4])
@pytest.mark.parametrize("second", [0, 9])
def test_of_an_answer_that_was_taken_for_keys_at_first_the_other_part_is_no_typing(
    reply: str, first: int, second: int
) -> None:
    held = ReplyFilter()
    assert held.feed(reply[:first]) == ""
    assert held.release() == reply[:first]
    if second:
        assert held.feed(reply[first:second]) == ""
        assert held.release() == ""
    assert held.feed(f"{reply[max(first, second) :]}hello") == "hello"


def test_keys_after_escape_are_typing() -> None:
    held = ReplyFilter()
    held.feed("\x1b")
    held.release()
    assert "".join(held.feed(key) + held.release() for key in "]11;rgb:f/f/f") == "]11;rgb:f/f/f"
    held.feed("\x1b")
    held.release()
    assert held.feed("]1 of 2") == "]1 of 2"


def test_an_answer_that_never_ends_takes_no_later_key_with_it() -> None:
    held = ReplyFilter()
    assert held.feed("\x1b]11;rgb:1e") == ""
    assert held.release() == ""
    assert held.feed("hello") == "hello"


def test_escape_and_alt_keys_are_keys_once_nothing_follows() -> None:
    for keys in ("\x1b", "\x1b]", "\x1b]1"):
        held = ReplyFilter()
        assert held.feed(keys) == ""
        assert held.release() == keys


def test_what_is_pasted_stays_as_it_is_even_if_it_looks_like_an_answer() -> None:
    pieces = ["\x1b[200~x", f"{REPLIES[0]}y\x1b", "[201~z"]
    assert keys_of(pieces) == [("Keys.BracketedPaste", f"x{REPLIES[0]}y"), ("z", "z")]
