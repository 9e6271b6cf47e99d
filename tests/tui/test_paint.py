"""What goes to the scrollback and what still moves, as it is drawn: at three widths, in every look."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tui.snapshots import same_as_before
from treadle.app.presentation.words import CallName
from treadle.protocol.notifications import CallChanged, CallStatus, TurnOutcome, TurnStop
from treadle.protocol.tools import FileChange, Outcome, Preview, ToolCall, ToolKind
from treadle.tui.calls import OpenCall
from treadle.tui.items import (
    CallDone,
    Diff,
    Greeting,
    Item,
    Notice,
    Problem,
    Prose,
    Reads,
    Said,
    Thought,
    Todos,
    Tone,
    TurnDone,
)
from treadle.tui.paint import Painter
from treadle.tui.prose import Growing
from treadle.tui.reply import Reply, Thinking, Writing
from treadle.tui.theme import ASCII_SIGNS, Palette, Theme
from treadle.tui.view import View

ANSI = re.compile(r"\x1b\[[0-9;]*m")
LOOKS = [Theme(palette=palette) for palette in Palette]


def read(path: str, lines: int = 5) -> CallDone:
    return CallDone(name=CallName("Read", path), kind=ToolKind.READ, outcome=Outcome.OK, note="5 lines", lines=lines)


def ran(command: str, outcome: Outcome = Outcome.OK, **more: object) -> CallDone:
    return CallDone(name=CallName("Run", command), kind=ToolKind.EXECUTE, outcome=outcome, **more)  # type: ignore[arg-type]


DIFF = """--- a/shop/cart.py
+++ b/shop/cart.py
@@ -21,5 +21,7 @@
         total = 0.0
         for item in self.items:
-            total += item.price
+            if item.count < 0:
+                raise ValueError(f"{item.name}: the count must not be negative, and it is not allowed to be {item}")
+            total += item.price * item.count
         return round(total, 2)
         # the end
"""
CHANGES = (FileChange(path="shop/cart.py", before="", after="1", added=3, removed=1),)
OUTPUT = "".join(f"building module {number} of 40\n" for number in range(1, 41))
TOUR: tuple[Item, ...] = (
    Greeting("0.1.0", "anthropic/claude-sonnet-4-5", "ask", "~/shop", "master"),
    Said("Fix the total of the cart, it ignores the count"),
    Prose("The cart has **two** methods that matter, `total()` and `discount()`.\n"),
    Thought(3.0),
    Reads((read("shop/cart.py", 27), read("tests/test_cart.py", 12))),
    CallDone(name=CallName("Search", "def total"), kind=ToolKind.SEARCH, outcome=Outcome.OK, note="1 match in 1 file"),
    Diff(DIFF),
    CallDone(
        name=CallName("Edit", "shop/cart.py", "+3 -1"),
        kind=ToolKind.EDIT,
        outcome=Outcome.OK,
        said="you allowed it",
    ),
    ran("python3 -m unittest -q", output="Ran 3 tests in 0.001s\n\nOK\n", seconds=0.4),
    ran("npm run build", Outcome.FAILED, note="exit 2", output=OUTPUT, above=10, seconds=8.0),
    CallDone(
        name=CallName("Edit", "shop/cart.py"),
        kind=ToolKind.EDIT,
        outcome=Outcome.REJECTED,
        said="you said no: keep the old name",
    ),
    ran("./slow.sh 16", Outcome.INTERRUPTED, seconds=6.0),
    ran("cat <<EOF\none\ntwo\nEOF", note=""),
    Notice("Allowed this session: python3 -m unittest · /approvals"),
    Notice("There is no /moo.\nDid you mean /mode?", Tone.WARNING),
    Todos("- [x] Read the code\n- [x] Fix the total\n  - [x] Test it\n"),
    Problem("The provider refused the API key (401).", "Invalid key (HTTP 401).", "treadle login anthropic."),
    TurnDone(
        TurnOutcome(stop=TurnStop.END_TURN, steps=6, cost=0.0912, changes=CHANGES), 44.0, waited=41.0, files=CHANGES
    ),
    Said("/queue", quiet=True),
    Said("\n".join(f"line {number}" for number in range(30))),
    TurnDone(TurnOutcome(stop=TurnStop.CANCELLED, steps=1, cost=0.02), 4.0),
)


def plain(*items: Item, columns: int = 61) -> str:
    return ANSI.sub("", Painter(columns, Theme()).items(items))


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_the_scrollback_of_a_tour_has_its_picture(columns: int) -> None:
    same_as_before(f"scrollback-{columns}", plain(*TOUR, columns=columns))


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.palette.value)
def test_the_scrollback_has_its_picture_in_every_look(look: Theme) -> None:
    painted = Painter(80, look).items(TOUR)
    same_as_before(f"scrollback-{look.palette.value}", "".join(f"{row!r}\n" for row in painted.split("\n")))
    coloured = re.search(r"\x1b\[[0-9;]*[349][0-9;]*[0-9]m", painted) is not None
    assert coloured == (look.palette not in (Palette.PLAIN, Palette.DUMB))
    assert ("\x1b" in painted) == (look.palette is not Palette.DUMB)


def test_markdown_starts_at_the_left_and_code_has_no_frame() -> None:
    assert plain(Prose("# Title\n\n```python\nx = 1\n```\n\n[link](http://a.b)\n")) == (
        "Title\n\n  x = 1\n\nlink (http://a.b)\n"
    )


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.palette.value)
def test_inline_code_has_no_background(look: Theme) -> None:
    assert re.search(r"\x1b\[[0-9;]*4[0-9]", Painter(80, look).items([Prose("see `total()` there")])) is None


def test_the_cells_of_a_table_are_never_cut() -> None:
    table = (
        "| name | where |\n|---|---|\n| a_very_long_identifier_of_a_function | src/a/very/long/path/to/a/file.py |\n"
    )
    shown = plain(Prose(table), columns=40)
    assert "…" not in shown
    assert "a_very_long_identifier_of_a_function" in "".join(line[:18].strip() for line in shown.split("\n"))


def test_blank_lines_stand_between_messages_and_groups_of_calls_also_across_prints() -> None:
    first = Painter(60, Theme())
    text = first.items([Said("go"), read("a.py"), ran("ls")])
    second = Painter(60, Theme(), first.last)
    text += second.items([ran("pwd"), Prose("So."), Notice("Note.")])
    assert ANSI.sub("", text) == ("› go\n\n✓ Read a.py  5 lines\n✓ Run ls\n✓ Run pwd\n\nSo.\nNote.\n")


def test_the_living_part_shows_reply_thought_call_being_written_and_calls_that_run() -> None:
    reply = Reply(
        growing=Growing(text="So **far**"),
        thinking=Thinking(end="first\nhm\nwell", size=7),
        writing=Writing(index=0, name="edit", parameter="path", argument="a.py", size=1200),
    )
    call = ToolCall(id="c", name="run", arguments={})
    running = CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.RUNNING, preview=Preview(title="Run ls"))
    output = "".join(f"{n}\n" for n in range(9))
    view = View(reply=reply, calls=(OpenCall(changed=running, output=output, running=10.0),))
    painter = Painter(60, Theme())
    assert ANSI.sub("", painter.living(view, 50, 22.0)).split("\n") == [
        "",
        "So far",
        "  hm",
        "  well",
        "… edit a.py",
        "● Run ls  12 s",
        "  … 3 lines above",
        *[f"  {number}" for number in range(3, 9)],
    ]
    assert painter.living(view, 2, 22.0).count("\n") == 1


def test_an_edit_streams_without_its_markers() -> None:
    body = "------- SEARCH\nold = 1\n=======\nnew = 2\n+++++++ REPLACE\n"
    writing = Writing(index=0, name="replace_in_file", argument="a.py", body=body)
    shown = ANSI.sub("", Painter(60, Theme()).living(View(reply=Reply(writing=writing)), 50, 0.0))
    assert shown.split("\n") == ["… replace_in_file a.py", "  - old = 1", "  + new = 2"]


def test_without_utf_8_the_signs_are_ascii() -> None:
    shown = ANSI.sub("", Painter(80, Theme(signs=ASCII_SIGNS)).items([Said("go"), ran("ls"), ran("x", Outcome.FAILED)]))
    assert shown == "> go\n\nok Run ls\nx Run x\n"


def test_a_reply_of_5000_lines_is_printed_whole() -> None:
    shown = plain(Prose("\n".join(f"- line {number}" for number in range(5_000))))
    assert shown.count("line ") == 5_000


TRICKY = st.text(st.sampled_from("ab 日\n\t`*#|-[]()\x1b\x07\u202eאב🎉👩\u200d🚀"), max_size=200)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.palette.value)
@settings(max_examples=60, deadline=None)
@given(text=TRICKY, columns=st.integers(20, 130))
def test_nothing_is_wider_than_the_terminal_or_steers_it(look: Theme, text: str, columns: int) -> None:
    done = ran(text, note=text[:20].replace("\x1b", "").replace("\x07", ""), output=text, diff=text)
    diff = f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{text}\n+{text}b\n"
    from treadle.app.presentation.escape import printable

    named = CallDone(
        name=CallName("Run", printable(text)), kind=done.kind, outcome=done.outcome, output=text, diff=diff
    )
    painted = Painter(columns, look).items([Said(text), Prose(text), Diff(diff), named, Notice(text), Problem(text)])
    bare = ANSI.sub("", painted)
    assert "\x1b" not in bare
    assert "\x07" not in bare
    assert "\u202e" not in bare
    assert max(cell_len(line) for line in bare.split("\n")) < max(columns, 21)
