"""The package for Emacs, in the real editor with the real agent: tasks, diffs, answers, unsaved text, and a kill."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.e2e.running import PATIENCE, model
from tests.editors.panes import Pane
from tests.editors.scripted_tasks import DAY, LINES, TWO_CHANGED, Tasks, day_folder
from tests.needed import needs
from tests.ready import treadle
from treadle.providers.scripted.scripted_server import ScriptedServer

pytestmark = [needs("emacs", "tmux"), pytest.mark.timeout(PATIENCE * 8)]

PACKAGE = Path(__file__).parents[2] / "editors" / "emacs" / "treadle.el"


class Emacs(Pane):
    """Emacs with the package, and nothing else of the user."""

    def begin(self, server: ScriptedServer) -> None:
        words = " ".join(json.dumps(word) for word in [*treadle(), "acp", *model(server)])
        set_it = f"(setq treadle-command '({words}) make-backup-files nil auto-save-default nil)"
        as_it_is = (
            "(setq native-comp-jit-compilation nil native-comp-deferred-compilation nil)"  # else it compiles itself
        )
        self.start(["emacs", "-nw", "-Q", "--eval", as_it_is, "-l", str(PACKAGE), "--eval", set_it])

    def do(self, command: str, *entered: str) -> None:
        """Do a command by its name, and enter what it asks for."""
        self.keys("M-x")
        for text in (command, *entered):
            self.type(text)
            self.keys("Enter")

    def answer(self, name: str, comment: str = "") -> None:
        """Give an answer."""
        self.do("treadle-answer", name, comment)


async def test_a_day_in_emacs(tmp_path: Path) -> None:
    folder = day_folder(tmp_path)
    async with ScriptedServer(Tasks(DAY)) as server:
        seen = Emacs(tmp_path, folder)
        seen.begin(server)
        try:
            await seen.until("*scratch*")
            await _edits(seen, folder)
            await _answers(seen, folder, server)
            await _stop_and_kill(seen, folder)
            await _again(seen, server)
        finally:
            seen.end()


async def _edits(seen: Emacs, folder: Path) -> None:
    seen.do("treadle", "Task LOOK")
    await seen.until("Do you trust", "- Yes, for this session only")
    seen.answer("Yes, for this session only")
    await seen.until("The file has 30 lines.", "✓ Read a.txt", "> Done.")
    seen.do("treadle", "Task EDIT")
    await seen.until("@@ -17,7 +17,7 @@", "+line two", "+line twenty", "-line 20")
    assert (folder / "a.txt").read_text() == LINES, "nothing is changed before the answer"
    seen.answer("Yes")
    await seen.until("Both are changed.")
    await seen.holds(folder / "a.txt", TWO_CHANGED)
    assert "+line two" not in seen.shown


async def _answers(seen: Emacs, folder: Path, server: ScriptedServer) -> None:
    seen.do("treadle", "Task DENY")
    await seen.until("+++ ", "no.txt")
    seen.answer("No", "Not in this folder.")
    await seen.until("I leave it.")
    assert not (folder / "no.txt").exists()
    assert "Not in this folder." in json.dumps(server.requests[-1].body)
    seen.do("find-file", "calc.py")
    await seen.until("def less")
    seen.type("# typed here")
    seen.keys("Enter")
    seen.do("treadle", "Task TYPED")
    await seen.until("+    + b")
    seen.answer("Yes")
    await seen.until("Both are in it.")
    await seen.holds(folder / "calc.py", "# typed here\ndef less(a, b):\n    return a \\\n    + b\n")
    assert any("# typed here" in json.dumps(request.body) for request in server.requests)


async def _stop_and_kill(seen: Emacs, folder: Path) -> None:
    seen.do("treadle-mode-set", "full")
    await seen.until("> Mode full.")
    seen.do("treadle", "Task WAIT")
    await seen.until("I wait.")
    seen.do("treadle-stop")
    await seen.until("> Done: cancelled.")
    seen.do("treadle-mode-set", "ask")
    await seen.until("> Mode ask.")
    seen.do("treadle", "Task KILL")
    await seen.until("+++ ", "kill.txt")
    seen.kill_agent()
    await seen.until("The agent is not running (signal 9).")
    assert "+++ " not in seen.shown
    assert not (folder / "kill.txt").exists()
    seen.do("treadle", "Go on with Task KILL")
    await seen.until("Do you trust")
    seen.answer("Yes, for this session only")
    await seen.until("Gone on.")
    assert not (folder / "kill.txt").exists()


async def _again(seen: Emacs, server: ScriptedServer) -> None:
    """Another Emacs goes on with the session, which is shown as it was."""
    seen.keys("C-x", "C-c")
    async with asyncio.timeout(PATIENCE):
        while seen.agents():
            await asyncio.sleep(0.05)
    seen.begin(server)
    await seen.until("*scratch*")
    seen.do("treadle-resume")
    await seen.until("Continue:")
    seen.type("Task LOOK")
    seen.keys("Tab", "Enter")
    await seen.until("Gone on.")
