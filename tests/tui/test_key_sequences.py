"""A key is the same key however slowly its bytes come; only an Esc that is alone is one after a moment."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from treadle.tui.draft.key_sequences import NEXT_BYTE_WITHIN
from treadle.tui.draft.pasting import KeyParser

KNOWN = sorted(sequence for sequence in ANSI_SEQUENCES if sequence[:2] in ("\x1b[", "\x1bO"))
PASTE = "\x1b[200~first\rsecond \x1b[A\x1b[201~"
UNKNOWN = ("\x1b[13;2u", "\x1b[99~", "\x1b[?1;2c", "\x1b[1;9Z", "\x1b[h")
TYPED = ("a", "\r", "ä", "\t", "\x03", "\x1bp", "[", "O", "200~")


class Line:
    """A slow line from a terminal: pieces come with pauses, and each is followed by what the program does in them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.found: list[KeyPress] = []
        self.parser = KeyParser(Vt100Parser(self.found.append), lambda: self.now)

    def bring(self, piece: str, pause: float) -> None:
        self.parser.feed(piece)
        if pause >= 0.05:
            self.parser.flush()
        self.now += pause

    @property
    def keys(self) -> list[tuple[str, str]]:
        return [(str(press.key), press.data) for press in self.found]


def keys_of(*pieces: str, pause: float = 0.0) -> list[tuple[str, str]]:
    line = Line()
    for piece in pieces:
        line.bring(piece, pause)
    line.parser.flush()
    return line.keys


def usual_keys_of(text: str) -> list[tuple[str, str]]:
    found: list[KeyPress] = []
    Vt100Parser(found.append).feed_and_flush(text)
    return [(str(press.key), press.data) for press in found if press.key is not Keys.Ignore]


@pytest.mark.parametrize("sequence", [*KNOWN, "\x1b[<0;12;5M", "\x1b[M abc"[:6], "\x1b[12;40R", *UNKNOWN, PASTE])
@pytest.mark.parametrize("pause", [0.01, 0.06, 0.3, NEXT_BYTE_WITHIN - 0.1])
def test_a_sequence_cut_anywhere_is_the_key_that_it_is_whole(sequence: str, pause: float) -> None:
    whole = keys_of(sequence)
    assert whole == ([] if sequence in UNKNOWN else usual_keys_of(sequence))
    for at in range(2, len(sequence)):
        assert keys_of(sequence[:at], sequence[at:], pause=pause) == whole
    assert keys_of(sequence[:2], *sequence[2:], pause=pause) == whole


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from([*KNOWN, *UNKNOWN, PASTE, *TYPED]), max_size=6),
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0.0, 0.06, 0.5, NEXT_BYTE_WITHIN - 0.1])), min_size=1),
)
def test_keys_are_the_same_however_they_are_cut_and_slowed(typed: list[str], cuts: list[tuple[int, float]]) -> None:
    text, places, number = "".join(typed), [0], 0
    while places[-1] < len(text):
        place = places[-1] + cuts[number % len(cuts)][0]
        # An Esc alone may be one; that is for the tests below.
        places.append(place + 1 if text[:place].endswith("\x1b") else place)
        number += 1
    line = Line()
    for (start, end), (_, pause) in zip(pairwise(places), cuts * len(places), strict=False):
        line.bring(text[start:end], pause)
    line.parser.flush()
    assert line.keys == keys_of(text)


def test_an_escape_alone_is_one_after_a_moment_and_text_behind_it_is_text() -> None:
    assert keys_of("\x1b", "a", pause=0.06) == [("Keys.Escape", "\x1b"), ("a", "a")]
    assert keys_of("\x1b", "a", pause=0.01) == keys_of("\x1ba") == [("Keys.Escape", "\x1b"), ("a", "a")]
    assert keys_of("\x1b\x1b") == [("Keys.Escape", "\x1b")] * 2
    assert keys_of("\x1b", "[", "x", pause=0.06) == [("Keys.Escape", "\x1b"), ("[", "["), ("x", "x")]


@pytest.mark.parametrize("begun", ["\x1b[", "\x1bO", "\x1b[1;", "\x1b[200", "\x1b[["])
def test_what_never_becomes_whole_is_dropped_and_what_comes_then_is_typed(begun: str) -> None:
    line = Line()
    line.bring(begun, NEXT_BYTE_WITHIN + 1)
    line.bring("hello", 1.0)
    assert [data for _, data in line.keys] == list("hello")
    assert keys_of(f"{begun}\r")[-1] == ("Keys.ControlM", "\r")
    assert begun == "\x1bO" or keys_of(f"{begun}\r") == [("Keys.ControlM", "\r")]


def test_the_end_of_a_paste_that_never_began_is_nothing() -> None:
    assert keys_of("a\x1b[201~b") == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize("begun", ["\x1b[200~", "\x1b[200~half", "\x1b[200~half\x1b[20"])
def test_ctrl_c_ends_a_paste_whose_end_never_comes(begun: str) -> None:
    line = Line()
    for piece, pause in ((begun, NEXT_BYTE_WITHIN + 1), ("\x03", 0.0), ("\x1b[A", 0.0)):
        line.bring(piece, pause)
    assert line.keys == [("Keys.ControlC", "\x03"), *keys_of("\x1b[A")]
    assert keys_of(PASTE) == keys_of(PASTE[:-6], PASTE[-6:], pause=NEXT_BYTE_WITHIN + 1), "else it is waited for"


def test_ctrl_c_in_a_paste_that_is_slow_is_pasted() -> None:
    assert keys_of("\x1b[200~a", "\x03", "b\x1b[201~", pause=NEXT_BYTE_WITHIN - 0.1) == keys_of(
        "\x1b[200~a\x03b\x1b[201~"
    )


@pytest.mark.parametrize("pause", [0.06, 0.4, NEXT_BYTE_WITHIN - 0.1])
def test_a_paste_whose_first_byte_was_taken_for_escape_is_a_paste(pause: float) -> None:
    assert keys_of("\x1b", PASTE[1:], pause=pause) == [("Keys.Escape", "\x1b"), *keys_of(PASTE)]
    assert keys_of("\x1b", "[O", pause=pause) == [("Keys.Escape", "\x1b")]
    assert keys_of("\x1b", "[", "O", "k", pause=pause)[1:] == [("[", "["), ("O", "O"), ("k", "k")]


def test_typing_in_one_read_is_counted_once_for_each_key_however_it_came() -> None:
    line = Line()
    for piece, count in (("\x1b[", 0), ("A", 1), ("\x1bp", 2), ("\x1b[201~", 0)):
        line.bring(piece, 0.0)
        assert line.parser.keys == count
