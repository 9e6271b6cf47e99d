import asyncio
import os
from pathlib import Path

import pytest

from tests.person import BACKSPACE, CTRL_C, CTRL_D, ENTER, ESCAPE, UP
from tests.tui.session import FOREVER, SECRET, Pause, calls, says, session, text
from tests.tui.terminal import Terminal, terminal
from treadle.app.session.own_commands.own_shell import Ended
from treadle.protocol.events import Prompt
from treadle.protocol.messages import OWN_COMMAND, Image, Text
from treadle.protocol.models import ModelRequest
from treadle.tui.paint.lines import cells, line_text
from treadle.tui.paint.printed_items import OwnDone
from treadle.tui.paint.printed_lines import item_lines
from treadle.tui.paint.theme import ASCII_SIGNS, Signs

READY = "? for keys"
ASKED = "ctrl-o"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NO_COLOR", raising=False)


def said(request: ModelRequest) -> list[str]:
    """The blocks of the last user message, without what Treadle adds."""
    return [block.text for block in request.messages[-1].content if isinstance(block, Text)]


async def enters(term: Terminal, command: str) -> None:
    """Type a command of the person's own and run it: Enter comes by itself."""
    term.type("!")
    await term.until("Command to run here")
    term.type(command)
    await term.until(f"! {command}"[:90])
    term.type(ENTER)


async def test_an_exclamation_mark_on_the_empty_line_begins_a_command_and_goes_away_again(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("!")
        await term.until("! Command to run here")
        term.type(BACKSPACE)
        await term.until("› Describe a task")
        term.type("!")
        await term.until("! Command to run here")
        term.type(ESCAPE)
        await term.until("› Describe a task")
        term.type("!ls")
        await term.until("! ls")
        term.type(ESCAPE)
        await term.until("› ls")
        term.type("!")
        await term.until("› ls!")


async def test_a_command_of_the_person_runs_at_once_and_its_output_goes_with_the_next_message(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("I see"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        await enters(term, "echo one; echo two >&2; exit 3")
        await term.until("! echo one; echo two >&2; exit 3  exit 3", "one\n", "two\n", "goes with your next message")
        assert rig.provider.requests == []
        (tmp_path / "secret.txt").write_text(SECRET)
        await enters(term, "cat secret.txt; cat; pwd")
        await term.when(lambda: term.shown.count("goes with your next message") == 2, "both wait")
        term.type("what is it?")
        await term.until("› what is it?")
        term.type(ENTER)
        await term.until("I see")
        blocks = said(rig.provider.requests[0])
        first, second, message = (block for block in blocks if block.startswith(OWN_COMMAND) or "what is" in block)
        assert first == f"{OWN_COMMAND}```\n$ echo one; echo two >&2; exit 3\none\ntwo\n```\nExit status 3."
        assert str(tmp_path) in second
        assert SECRET not in second + term.shown
        assert message == "what is it?"
        assert "goes with your next message" not in term.shown
        assert term.shown.count("› what is it?") == 1


async def test_what_a_command_printed_waits_for_a_message_when_a_question_is_asked_beside_the_work(
    tmp_path: Path,
) -> None:
    async with session(tmp_path, says(text("Beside.")), says(text("I see"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        await enters(term, "echo one")
        await term.until("goes with your next message")
        for words, reply in (("/btw what is this?", "Beside."), ("and now?", "I see")):
            term.type(words)
            await term.until(f"› {words}")
            term.type(ENTER)
            await term.until(reply)
        beside, message = (str(request.messages) for request in rig.provider.requests)
        assert ("$ echo one" in beside, "$ echo one" in message) == (False, True)
        assert "was not sent" not in term.shown


async def test_an_image_with_a_question_beside_the_work_is_said_to_be_left_out(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("Beside."))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        content = (Text(text="/btw what is this?"), Image(data="aGVsbG8=", media_type="image/png"))
        await rig.live.post(Prompt(id="p", content=content), rig.live.source)
        await term.until("Nothing that came along with the command was sent.", "Beside.")
        assert "image/png" not in str(rig.provider.requests)


async def test_a_command_runs_beside_a_turn_and_escape_stops_the_command_first(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("Half"), Pause(FOREVER))) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("Half", "Writing")
        await enters(
            term, "trap '' TERM; for n in 1 2 3 4 5 6 7 8 9; do echo row $n; done; sleep 1000 & echo $! >pid; wait"
        )
        await term.until("row 4", "row 9", "3 lines above")
        assert "row 3" not in term.shown
        await term.when((tmp_path / "pid").exists, "the command runs")
        pid = int((tmp_path / "pid").read_text())
        term.type(ESCAPE)
        await term.until("stopped · ", "goes with your next message")
        assert rig.live.status.turn_active
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        term.type(ESCAPE)
        await term.until("■ Stopped")


async def test_ctrl_c_stops_a_command_and_control_characters_do_nothing(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        (tmp_path / "bar.sh").write_text(
            r"""printf '\033[2J\033]0;evil\007\033[31mred\n'; for n in 7 8; do printf "step$n \r"; done
echo; sleep 1000"""
        )
        await enters(term, "sh bar.sh")
        await term.until("  red", "  step8")
        term.type(CTRL_D)
        await term.until("Your command is still running.")
        assert "step7" not in term.shown
        assert "lines above" not in term.shown
        assert "evil" not in "".join(term.titles)
        term.type(CTRL_C)
        await term.until("stopped · ", READY)


async def test_a_command_gets_no_terminal_and_no_input(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        await enters(term, "cat; test -t 0 || echo none; : </dev/tty || echo no tty")
        await term.until("  none", "  no tty")


async def test_enter_amid_pasted_keys_runs_nothing(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"!touch made{ENTER}")
        await term.until("! touch made", "enter again")
        await asyncio.sleep(0.2)
        assert not (tmp_path / "made").exists()
        term.type(ENTER)
        await term.when((tmp_path / "made").exists, "it runs")


async def test_pasted_text_that_begins_with_an_exclamation_mark_is_a_message(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("ok"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("\x1b[200~!touch made\x1b[201~")
        await term.until("› !touch made")
        term.type(ENTER)
        await term.until("ok")
        assert not (tmp_path / "made").exists()


async def test_commands_come_back_from_the_history_with_their_mark(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        await enters(term, "echo once")
        await term.until("  once")
        term.type(UP)
        await term.until("\n! echo once")
    assert (tmp_path / "home/history").read_text().endswith("+!echo once\n")
    (tmp_path / "again").mkdir()
    async with session(tmp_path / "again") as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(UP)
        await term.until("! echo once")
        term.type(ENTER)
        await term.until("  once")


async def test_a_message_taken_back_from_the_queue_takes_the_output_back_with_it(tmp_path: Path) -> None:
    replies = (says(Pause(FOREVER)), says(text("seen")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("esc to stop")
        await enters(term, "echo out")
        await term.until("goes with your next message")
        term.type("and now?")
        await term.until("› and now?")
        term.type(ENTER)
        await term.until("next  and now?")
        await term.until_gone("goes with your next message")
        assert OWN_COMMAND not in term.shown
        term.type(UP)
        await term.until("› and now?", "goes with your next message")
        term.type(ESCAPE)
        await term.until("■ Stopped")
        term.type(ENTER)
        await term.until("seen")
        assert any(block.startswith(OWN_COMMAND) for block in said(rig.provider.requests[1]))


async def test_a_command_is_typed_while_a_question_is_open(tmp_path: Path) -> None:
    async with session(tmp_path, calls("edit", "{}")) as rig, terminal(rig.live, "edit it") as (term, _):
        await term.until(ASKED)
        term.type("!")
        await term.until("! Command to run here", "tab to answer")
        term.type("echo beside")
        await term.until("! echo beside")
        await asyncio.sleep(1)
        term.type(ENTER)
        await term.until("  beside", "goes with your next message")
        assert rig.live.status.questions != ()


async def test_the_end_of_treadle_ends_commands(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, code):
        await term.until(READY)
        await enters(term, "echo $$ >pid; sleep 1000")
        await term.when(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "", "it runs")
        term.type("/quit")
        await term.until("› /quit")
        term.type(ENTER)
        assert await code == 0
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_a_command_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("!")
        await term.until("Command to run here")
        await asyncio.to_thread(term.type, f"\x1b[200~echo {'x' * 140_000}\x1b[201~")
        await term.until("! [pasted 140,005 characters]")
        term.type(ENTER)
        await term.until("The command is longer than")


@pytest.mark.parametrize("signs", [Signs(), ASCII_SIGNS], ids=["signs", "ascii"])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_what_a_command_leaves_fits_and_steers_nothing(width: int, signs: Signs) -> None:
    output = "".join(f"line {number} \u202e{'日' * 90}\n" for number in range(30))
    for status, said in ((0, "Exit status 0."), (2, "Exit status 2."), (None, "Stopped: you stopped it.")):
        ended = Ended(line="make \x1b[31m all\nsecond", status=status, said=said, output=output, seconds=8.0)
        rows = item_lines(OwnDone(ended), width, signs)
        assert all(cells(row) <= width for row in rows)
        assert not any("\x1b" in line_text(row) or "\u202e" in line_text(row) for row in rows)
        first = line_text(rows[0])
        assert first.startswith("! make")
        assert first.endswith({0: "  8 s", 2: f"  exit 2 {signs.dot} 8 s", None: f"  stopped {signs.dot} 8 s"}[status])
        assert line_text(rows[1]) == f"  {signs.more} 10 lines above"
        assert len(rows) == 22
