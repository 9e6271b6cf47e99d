"""What goes to the scrollback and what still moves, as it is drawn: at three widths, in every look."""

import re

import pytest

from tests.tui.drawing import ran, read
from treadle.present.items import CallItem, NoteItem, ProseItem, SaidItem, ThoughtItem, WritingItem
from treadle.protocol.notifications import CallChanged, CallStatus
from treadle.protocol.tools import Outcome, Preview, ToolCall, ToolKind
from treadle.tui.paint.painter import Painter
from treadle.tui.paint.printed_items import PrintedItem
from treadle.tui.paint.theme import ASCII_SIGNS, Palette, Theme

ANSI = re.compile(r"\x1b\[[0-9;]*m")
LOOKS = [Theme(palette=palette) for palette in Palette]


def plain(*items: PrintedItem, columns: int = 61) -> str:
    return ANSI.sub("", Painter(columns, Theme()).items(items))


def test_markdown_starts_at_the_left_and_code_has_no_frame() -> None:
    assert plain(ProseItem("# Title\n\n```python\nx = 1\n```\n\n[link](http://a.b)\n")) == (
        "Title\n\n  x = 1\n\nlink (http://a.b)\n"
    )


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.palette.value)
def test_inline_code_has_no_background(look: Theme) -> None:
    assert re.search(r"\x1b\[[0-9;]*4[0-9]", Painter(80, look).items([ProseItem("see `total()` there")])) is None


def test_the_cells_of_a_table_are_never_cut() -> None:
    table = (
        "| name | where |\n|---|---|\n| a_very_long_identifier_of_a_function | src/a/very/long/path/to/a/file.py |\n"
    )
    shown = plain(ProseItem(table), columns=40)
    assert "…" not in shown
    assert "a_very_long_identifier_of_a_function" in "".join(line[:18].strip() for line in shown.split("\n"))


def test_blank_lines_stand_between_messages_and_groups_of_calls_also_across_prints() -> None:
    first = Painter(60, Theme())
    text = first.items([SaidItem("go"), read("a.py"), ran("ls")])
    second = Painter(60, Theme(), first.last)
    text += second.items([ran("pwd"), ProseItem("So."), NoteItem("Note.")])
    assert ANSI.sub("", text) == ("› go\n\n✓ Read a.py  5 lines\n✓ Run ls\n✓ Run pwd\n\nSo.\nNote.\n")


def test_the_living_part_shows_reply_thought_call_being_written_and_calls_that_run() -> None:
    call = ToolCall(id="c", name="run", arguments={})
    running = CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.RUNNING, preview=Preview(title="Run ls"))
    output = "".join(f"{n}\n" for n in range(9))
    living = (
        ProseItem("So **far**", growing=True),
        ThoughtItem("first\nhm\nwell", growing=True),
        WritingItem(index=0, tool="edit", first="path", argument="a.py", parameter="path", text="a.py"),
        CallItem(running, output=output, since=10.0),
    )
    painter = Painter(60, Theme())
    assert ANSI.sub("", painter.living(living, 50, 22.0)).split("\n") == [
        "",
        "So far",
        "  hm",
        "  well",
        "… edit a.py",
        "● Run ls  12 s",
        "  … 3 lines above",
        *[f"  {number}" for number in range(3, 9)],
    ]
    assert painter.living(living, 2, 22.0).count("\n") == 1


def test_an_edit_streams_without_its_markers() -> None:
    body = "------- SEARCH\nold = 1\n=======\nnew = 2\n+++++++ REPLACE\n"
    writing = WritingItem(index=0, tool="replace_in_file", first="path", argument="a.py", parameter="diff", text=body)
    shown = ANSI.sub("", Painter(60, Theme()).living([writing], 50, 0.0))
    assert shown.split("\n") == ["… Edit a.py", "  - old = 1", "  + new = 2"]


def test_without_utf_8_the_signs_are_ascii() -> None:
    shown = ANSI.sub(
        "", Painter(80, Theme(signs=ASCII_SIGNS)).items([SaidItem("go"), ran("ls"), ran("x", Outcome.FAILED)])
    )
    assert shown == "> go\n\nok Run ls\nx Run x\n"


def test_a_reply_of_5000_lines_is_printed_whole() -> None:
    shown = plain(ProseItem("\n".join(f"- line {number}" for number in range(5_000))))
    assert shown.count("line ") == 5_000
