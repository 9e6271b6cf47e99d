import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.session.own_commands.own_shell import Ended
from treadle.protocol.messages import Image, Text
from treadle.tui.draft.draft_pieces import SHELL, Piece, Pieces

LONG = "\n".join(f"line {number}" for number in range(300))
IMAGE = Image(media_type="image/png", data="aaaa")
texts = st.text(st.one_of(st.characters(), st.sampled_from(["\U00100000", "\U00100001", "\U0010fffd", "\n"])))


@pytest.mark.parametrize(
    ("pasted", "shown"),
    [
        (LONG, "[pasted 300 lines]"),
        ("a\n" * 5, "a\n" * 5),
        ("a\n" * 6, "[pasted 6 lines]"),
        ("x" * 400, "x" * 400),
        ("x" * 401, "[pasted 401 characters]"),
        ("[pasted 300 lines]", "[pasted 300 lines]"),
        ("\U00100001", "\\U00100001"),
    ],
)
def test_a_long_paste_is_one_piece_and_a_short_one_is_itself(pasted: str, shown: str) -> None:
    pieces = Pieces()
    draft = pieces.fold(pasted)
    assert (pieces.shown(draft), pieces.text(draft)) == (shown, pasted)
    assert (len(draft) == 1) == (shown != pasted)


@given(st.lists(st.tuples(texts, st.booleans()), max_size=6))
def test_no_character_is_lost_whatever_is_typed_and_pasted(parts: list[tuple[str, bool]]) -> None:
    pieces = Pieces()
    draft = "".join(pieces.fold(text * 50) if folded else pieces.embed(text) for text, folded in parts)
    wanted = "".join(
        (text * 50).replace("\r\n", "\n").replace("\r", "\n") if folded else text for text, folded in parts
    )
    assert pieces.text(draft) == wanted
    assert pieces.content(draft) == (Text(text=wanted),)
    assert pieces.text(pieces.draft_of(pieces.content(draft))) == wanted


@given(texts, texts, texts)
def test_what_an_editor_makes_of_a_draft_is_its_text_whatever_it_was(before: str, after: str, edited: str) -> None:
    pieces = Pieces()
    draft = pieces.embed(before) + pieces.fold(LONG) + pieces.embed(after)
    assert pieces.refold(draft, pieces.text(draft)) == draft
    assert pieces.text(pieces.refold(draft, edited)) == edited
    assert pieces.text(pieces.refold(draft, edited + LONG + edited)) == edited + LONG + edited


def test_a_marker_that_is_typed_by_hand_stays_text_beside_a_real_one() -> None:
    pieces = Pieces()
    draft = "[pasted 300 lines] " + pieces.fold(LONG)
    assert pieces.content(draft) == (Text(text=f"[pasted 300 lines] {LONG}"),)
    assert pieces.refold(draft, pieces.text(draft)) == draft


def test_an_image_goes_behind_the_text_that_names_it_and_comes_back_from_the_queue() -> None:
    pieces = Pieces()
    draft = f"see {pieces.add(Piece(label='[image a.png]', text='/x/a.png', block=IMAGE))} here"
    assert pieces.content(draft) == (Text(text="see [image a.png] here"), IMAGE)
    assert pieces.text(draft) == "see /x/a.png here"
    again = pieces.draft_of((Text(text="see"), IMAGE))
    assert pieces.content(again)[1] == IMAGE


def test_the_output_of_a_command_in_a_message_that_was_not_written_here_is_a_piece() -> None:
    pieces = Pieces()
    block = Ended(line="ls", status=0, said="Exit status 0.", output="a\n```\n", seconds=1.0).block
    assert block.text.endswith("````\n$ ls\na\n```\n````\nExit status 0.")
    draft = pieces.draft_of((block, Text(text="why?")))
    assert pieces.shown(draft) == "[output of a command]\nwhy?"
    assert block in pieces.content(draft)


def test_an_earlier_message_comes_back_as_it_was_and_a_command_with_its_mark() -> None:
    pieces = Pieces()
    assert pieces.recalled("hello") == "hello"
    assert pieces.recalled("!git status") == f"{SHELL}git status"
    draft = pieces.recalled(LONG)
    assert (pieces.shown(draft), pieces.text(draft)) == ("[earlier message, 300 lines]", LONG)
