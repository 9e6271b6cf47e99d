"""The pager shows all of a text, moves in it, and does nothing else."""

from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from treadle.present.items import Placed, ProseItem
from treadle.present.view import SessionView
from treadle.tui.paint.lines import Line, line, line_text, wrap
from treadle.tui.paint.pager import Pager, PagerKey
from treadle.tui.paint.pager_rows import whole_rows
from treadle.tui.paint.theme import Signs


def pager(count: int, *, at_end: bool = False, alert: str = "") -> Pager:
    rows = [line(f"row {number}") for number in range(count)]
    return Pager(lambda _: rows, Signs(), at_end=at_end, alert=lambda: alert)


def drawn(one: Pager, width: int = 60, height: int = 11) -> list[str]:
    return [line_text(row) for row in one.draw(width, height)]


def test_it_begins_at_the_first_row_or_at_the_last() -> None:
    assert drawn(pager(100))[0] == "row 0"
    assert drawn(pager(100))[-1].startswith("1-10 of 100")
    assert drawn(pager(100, at_end=True))[-2] == "row 99"
    assert drawn(pager(3))[:4] == ["row 0", "row 1", "row 2", ""]


def test_its_keys_move_it_and_only_three_close_it() -> None:
    one = pager(100)
    moves = (
        (PagerKey.DOWN, "", "row 1"),
        (PagerKey.TEXT, " ", "row 10"),
        (PagerKey.PAGE_UP, "", "row 1"),
        (PagerKey.UP, "", "row 0"),
        (PagerKey.UP, "", "row 0"),
        (PagerKey.TEXT, "G", "row 90"),
        (PagerKey.PAGE_DOWN, "", "row 90"),
        (PagerKey.TEXT, "g", "row 0"),
        (PagerKey.TEXT, "y", "row 0"),
        (PagerKey.OTHER, "\x01", "row 0"),
        (PagerKey.ENTER, "", "row 1"),
    )
    drawn(one)
    for key, text, first in moves:
        assert one.press(key, text), key
        assert drawn(one)[0] == first, key
    assert not one.press(PagerKey.TEXT, "q")
    assert not one.press(PagerKey.CLOSE)


def test_it_searches_goes_on_searching_and_says_when_there_is_nothing() -> None:
    one = pager(100)
    drawn(one)

    def search(text: str) -> None:
        for char in f"/{text}":
            assert one.press(PagerKey.TEXT, char)
        assert drawn(one)[-1] == f"/{text}"
        assert one.press(PagerKey.ENTER)

    search("ROW 9")
    assert "row 9" in drawn(one)
    one.press(PagerKey.TEXT, "n")
    assert drawn(one)[:-1] == [f"row {number}" for number in range(90, 100)]
    for _ in range(10):
        one.press(PagerKey.TEXT, "n")
    assert "row 9" in drawn(one), "after the last the first"
    one.press(PagerKey.TEXT, "N")
    assert "row 99" in drawn(one)
    search("nowhere")
    assert "not found: nowhere" in drawn(one)[-1]
    one.press(PagerKey.TEXT, "/")
    one.press(PagerKey.TEXT, "q")
    assert one.press(PagerKey.CLOSE), "it ends the search only"
    assert not one.press(PagerKey.CLOSE)


def test_an_alert_comes_first_and_stays_when_there_is_little_room() -> None:
    assert drawn(pager(3, alert="Treadle needs an answer."), 40)[-1].startswith("Treadle needs an answer.  1-3 of 3")


@settings(max_examples=40)
@given(st.integers(1, 60), st.lists(st.tuples(st.sampled_from(PagerKey), st.sampled_from([*"gGqnN/ jkx", ""]))))
def test_every_row_can_be_reached_and_nothing_breaks_it(height: int, keys: list[tuple[PagerKey, str]]) -> None:
    words = " ".join(f"w{number}" for number in range(60))

    def lay_out(width: int) -> list[Line]:
        return wrap(line(words), width)

    one = Pager(lay_out, Signs())
    for number, (key, text) in enumerate(keys):
        width = 20 + number % 3 * 40
        rows = one.draw(width, height)
        assert len(rows) == max(2, height)
        assert all(get_cwidth(line_text(row)) <= width for row in rows)
        one.press(key, text)
    one.press(PagerKey.CLOSE)
    one.press(PagerKey.FIRST)
    seen: list[str] = []
    for _ in range(30):
        for row in one.draw(30, height)[:-1]:
            seen += [word for word in line_text(row).split() if word not in seen]
        one.press(PagerKey.DOWN)
    assert seen == words.split()


CODE = "Look:\n\n```python\ndef one():\n    return 1\n```\n\nand\n\n~~~\nplain\n~~~\n\n```sh\nopen # end"


def prose_rows(markdown: str, width: int = 60) -> list[Line]:
    item = Placed(position=0, version=1, seq=1, item=ProseItem(markdown))
    return whole_rows([item], SessionView(), "here", width, Signs())[:-1]


def test_code_of_an_answer_is_coloured_and_all_of_its_text_is_there() -> None:
    rows = prose_rows(CODE)
    assert [line_text(row)[2:] for row in rows] == CODE.split("\n")
    assert [text for row in rows for role, text in row if role == "code-keyword"] == ["def", "return"]
    assert rows[-1][-1] == ("code-comment", "# end")


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["", "```", "```python", "~~~", "x = 1", "  def", "````"]), max_size=10))
def test_no_line_of_an_answer_is_lost_in_the_pager(lines: list[str]) -> None:
    wanted = "\n".join(lines).strip("\n").split("\n")
    assert [line_text(row)[2:] for row in prose_rows("\n".join(lines))] == (wanted if any(wanted) else [])
