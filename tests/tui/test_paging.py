"""Ctrl-O shows whole what the screen shows folded; while it does, nothing is answered and the turn goes on."""

import asyncio
from pathlib import Path

import pytest

from tests.person import CTRL_C, CTRL_J, CTRL_O, CTRL_S, CTRL_Z, DOWN, ENTER, ESCAPE, SHIFT_TAB, TAB
from tests.tui.session import Pause, calls, says, session, text
from tests.tui.terminal import terminal
from treadle.protocol.notifications import Phase

LONG = "--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,150 @@\n" + "".join(f"+line {number}\n" for number in range(150))
READY, ASKED, BACK = "? for keys", "❯ Yes", "q back"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


async def test_a_folded_diff_is_shown_whole_and_no_key_of_the_pager_answers(tmp_path: Path) -> None:
    replies = (calls("edit", "{}"), says(text("ok")))
    async with session(tmp_path, *replies, diff=LONG) as rig, terminal(rig.live, "go") as (term, _):
        await term.until(ASKED, "ctrl-o all", "more lines, ctrl-o shows all")
        assert "+ line 75" not in term.shown
        term.type(CTRL_O)
        await term.until("+ line 0", "+ line 75", "+ line 149", "test-rule", BACK)
        await asyncio.sleep(1)
        keys = (ENTER, "y", "1", TAB, SHIFT_TAB, DOWN, "yes\r", CTRL_J, CTRL_S, CTRL_Z, "\x1b[200~yes\r\x1b[201~", "é")
        for key in keys:
            term.type(key)
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        term.type(ENTER)
        await asyncio.sleep(0.2)
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION
        term.type("q")
        await term.until(ASKED, "ctrl-o all")
        assert "yes" not in term.shown
        term.type(ENTER)
        await term.until("enter again to confirm")
        await asyncio.sleep(1)
        term.type(ENTER)
        await term.until("✓ Edit x.py  you allowed it", "■ Done")


@pytest.mark.parametrize("key", [ESCAPE, CTRL_O, CTRL_C, "q"])
async def test_the_keys_that_close_the_pager_say_nothing_to_the_question(tmp_path: Path, key: str) -> None:
    async with session(tmp_path, calls("edit", "{}"), diff=LONG) as rig, terminal(rig.live, "go") as (term, _):
        await term.until(ASKED)
        term.type(CTRL_O)
        await term.until(BACK)
        term.type(key)
        await term.until(ASKED)
        await term.until_gone(BACK)
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION


async def test_the_turn_goes_on_under_the_pager_and_a_question_waits(tmp_path: Path) -> None:
    replies = (
        says(text("First of all.\n\n"), Pause(1), text("And then this.\n\n"), Pause(1), *calls("run", "{}")),
        says(text("ok")),
    )
    async with session(tmp_path, *replies) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"go{ENTER}")
        await term.until("First of all.")
        term.type(CTRL_O)
        await term.until("› go", BACK)
        await term.until("Treadle needs an answer.")
        assert "❯ Yes" not in term.shown
        term.type("q")
        await term.until("First of all.", "And then this.", "❯ Yes")
        term.type(ESCAPE)
        await term.until("⊘ Run")


async def test_the_pager_holds_outputs_and_long_messages_whole(tmp_path: Path) -> None:
    replies = (calls("run", "{}"), says(text("ok")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("\x1b[200~" + "\n".join(f"part {number}" for number in range(12)) + "\x1b[201~")
        await term.until("› [pasted 12 lines]")
        term.type(ENTER)
        await term.until(ASKED, "› [pasted 12 lines]")
        await asyncio.sleep(1)
        term.type(ENTER)
        await term.until("■ Done")
        term.type(CTRL_O)
        await term.until(BACK, "part 9", "as wanted", "ok")
        assert r"echo hi\u202e; rm \x1b[31m-rf" in term.shown
        term.type("q")
        await term.until(READY)


async def test_an_end_while_the_pager_is_open_prints_what_waited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = (says(text("First.\n\n"), Pause(1), text("Second.")),)
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "go") as (term, task):
        await term.until("First.")
        term.type(CTRL_O)
        await term.until(BACK)
        await term.when(lambda: not rig.live.status.turn_active, "the end of the turn")
        await asyncio.sleep(0.2)
        assert "Second." not in term.shown
        task.cancel()
        await asyncio.wait([task])
        assert "Second." in capsys.readouterr().out
