import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from treadle.protocol.notifications import CallChanged, CallStatus, TurnOutcome, TurnStop
from treadle.protocol.tools import (
    FileChange,
    Outcome,
    Preview,
    ToolCall,
    ToolKind,
)
from treadle.tui.items import CallDone, Diff, Item, Notice, Problem, Prose, Said, Thought, TurnDone
from treadle.tui.paint import Painter
from treadle.tui.prose import Growing
from treadle.tui.view import OpenCall, Reply, Thinking, View, Writing

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def plain(*items: Item, columns: int = 61) -> str:
    return ANSI.sub("", Painter(columns, colour=True).items(items))


def test_markdown_starts_at_the_left_with_one_blank_line_before() -> None:
    assert plain(Prose("# Title\n\n```python\nx = 1\n```\n\n[link](http://a.b)\n")) == (
        "\nTitle\n\n  x = 1\n\nlink (http://a.b)\n"
    )


def test_what_the_user_said_and_what_was_done_are_one_line_each() -> None:
    done = CallDone(title="Read a.py", kind=ToolKind.READ, outcome=Outcome.OK, note="5 lines")
    failed = CallDone(title="Run x", kind=ToolKind.EXECUTE, outcome=Outcome.FAILED, note="exit 1", output="a\nb\n")
    assert plain(Said("do\nit"), Thought("why not", 7), done, failed, Notice("Mode: ask")) == (
        "\n› do\n  it\n"
        "∴ thought, 7 characters: why not\n"
        "✓ Read a.py  5 lines\n"
        "✗ Run x  failed  exit 1\n  a\n  b\n"
        "Mode: ask\n"
    )


def test_the_end_of_a_turn_lists_the_files() -> None:
    changes = (FileChange(path="a.py", before="", after="1", added=3, removed=1),)
    outcome = TurnOutcome(stop=TurnStop.END_TURN, steps=2, cost=0.25, changes=changes)
    assert plain(TurnDone(outcome, 65.0, changes)) == (
        "\n  a.py  +3 -1\n■ done · 1 file +3 -1 · 2 steps · $0.2500 · 1m 05s\n"
    )


def test_an_error_has_its_reason_and_remedy() -> None:
    assert plain(Problem("It broke.", "full", "Make room.")) == "✗ It broke.\n  why: full\n  fix: Make room.\n"


def test_a_diff_is_coloured_and_without_colour_it_is_not() -> None:
    card = Diff("@@ -1 +1 @@\n-a\n+b\n")
    coloured = Painter(60, colour=True).items([card])
    assert "\x1b[31m-a" in coloured
    assert "\x1b[32m+b" in coloured
    bare = Painter(60, colour=False).items([card])
    assert re.search(r"\x1b\[[0-9;]*3[0-9]", bare) is None
    assert ANSI.sub("", bare) == ANSI.sub("", coloured)


def test_the_living_part_shows_reply_thought_call_being_written_and_calls_that_run() -> None:
    reply = Reply(
        growing=Growing(text="So **far**"),
        thinking=Thinking(end="hm\nwell", size=7),
        writing=Writing(index=0, name="edit", parameter="path", argument="a.py", size=1200),
    )
    call = ToolCall(id="c", name="run", arguments={})
    running = CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.RUNNING, preview=Preview(title="Run ls"))
    view = View(reply=reply, calls=(OpenCall(changed=running, output="".join(f"{n}\n" for n in range(9))),))
    painter = Painter(60, colour=True)
    assert ANSI.sub("", painter.living(view, 50)).split("\n") == [
        "",
        "So far",
        "∴ hm",
        "well",
        "… edit a.py  1,200 characters",
        "● running  Run ls",
        "  …",
        *[f"  {number}" for number in range(3, 9)],
    ]
    assert painter.living(view, 2).count("\n") == 1


@pytest.mark.parametrize("colour", [True, False])
@settings(max_examples=100, deadline=None)
@given(
    text=st.text(st.sampled_from("ab 日\n\t`*#|-[]()\x1b\x07🎉👩\u200d🚀"), max_size=200), columns=st.integers(20, 80)
)
def test_nothing_is_wider_than_the_terminal_or_steers_it(colour: bool, text: str, columns: int) -> None:
    done = CallDone(title="t", kind=ToolKind.EXECUTE, outcome=Outcome.OK, note="n", output=text, diff=text)
    painted = Painter(columns, colour=colour).items([Said(text), Prose(text), Diff(text), done, Notice(text)])
    bare = ANSI.sub("", painted)
    assert "\x1b" not in bare
    assert "\x07" not in bare
    assert max(cell_len(line) for line in bare.split("\n")) < max(columns, 21)
