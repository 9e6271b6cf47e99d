"""The plugin for Neovim, in the real editor with the real agent: tasks, diffs, answers, unsaved text, and a kill."""

import asyncio
import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.acp.driving import editor
from tests.e2e.running import PATIENCE, model
from tests.editors.panes import Pane
from tests.editors.scripted_tasks import DAY, LINES, TWO_CHANGED, Tasks, day_folder
from tests.needed import needs, neovim
from tests.ready import treadle
from treadle.providers.scripted.scripted_server import ScriptedServer

pytestmark = [needs("neovim", "tmux"), pytest.mark.timeout(PATIENCE * 8)]

_CODECOMPANION = """
local adapter = {
  name = "gemini_cli", formatted_name = "Gemini CLI", commands = { default = { "gemini", "--acp" } },
  defaults = { auth_method = "oauth-personal", timeout = 20000 },
}
package.preload["codecompanion.adapters"] = function()
  return { extend = function(_, changes) return vim.tbl_deep_extend("force", adapter, changes) end }
end
package.preload["codecompanion"] = function()
  return { setup = function(set) io.write(vim.json.encode(set.adapters.acp[set.interactions.chat.adapter]())) end }
end
"""
"""CodeCompanion as far as a recipe reaches: its adapter for another agent, which is extended."""

DOCUMENT = Path(__file__).parents[2] / "docs" / "editors.md"
PLUGIN = Path(__file__).parents[2] / "editors" / "neovim"


class Neovim(Pane):
    """Neovim with the plugin, and nothing else of the user."""

    def begin(self, server: ScriptedServer) -> None:
        command = json.dumps([*treadle(), "acp", *model(server)])
        self.start(
            [
                *(neovim(), "-u", "NONE", "-i", "NONE", "--cmd", f"set rtp^={PLUGIN} noswapfile autoread"),
                *("-c", "runtime plugin/treadle.lua"),
                *("-c", f"lua require('treadle').setup({{ command = vim.json.decode([=[{command}]=]) }})"),
            ]
        )

    def do(self, command: str) -> None:
        """Enter a command."""
        self.keys("Escape")
        self.type(f":{command}")
        self.keys("Enter")


async def test_a_day_in_neovim(tmp_path: Path) -> None:
    folder = day_folder(tmp_path)
    async with ScriptedServer(Tasks(DAY)) as server:
        seen = Neovim(tmp_path, folder)
        seen.begin(server)
        try:
            await _edits(seen, folder)
            await _answers(seen, folder, server)
            await _stop_and_kill(seen, folder)
            await _again(seen, server)
        finally:
            seen.end()


async def _edits(seen: Neovim, folder: Path) -> None:
    seen.do("Treadle Task LOOK")
    await seen.until("Do you trust", "2. Yes, for this session only")
    seen.do("TreadleAnswer 2")
    await seen.until("The file has 30 lines.", "✓ Read a.txt", "> Done.")
    seen.do("Treadle Task EDIT")
    await seen.until("(proposed)", "line two", "line twenty", "line 20")
    assert (folder / "a.txt").read_text() == LINES, "nothing is changed before the answer"
    seen.do("TreadleAnswer 1")
    await seen.until("Both are changed.")
    await seen.holds(folder / "a.txt", TWO_CHANGED)
    seen.do("Treadle Task HAND")
    await seen.until("(proposed)", "two")
    seen.do("%s/two/2, by hand/")
    await seen.until("2, by hand")
    seen.do("TreadleAnswer 1")
    await seen.until("Written by hand.")
    await seen.holds(folder / "b.txt", "one\n2, by hand\n")


async def _answers(seen: Neovim, folder: Path, server: ScriptedServer) -> None:
    seen.do("Treadle Task DENY")
    await seen.until("(proposed)", "no.txt")
    seen.do("TreadleAnswer 3 Not in this folder.")
    await seen.until("I leave it.")
    assert not (folder / "no.txt").exists()
    assert "Not in this folder." in json.dumps(server.requests[-1].body)
    seen.do("edit calc.py")
    await seen.until("def less")
    seen.keys("g", "g", "O")
    seen.type("# typed here")
    seen.do("Treadle Task TYPED")
    await seen.until("(proposed)", "+ b")
    seen.do("TreadleAnswer 1")
    await seen.until("Both are in it.")
    await seen.holds(folder / "calc.py", "# typed here\ndef less(a, b):\n    return a \\\n    + b\n")
    assert any("# typed here" in json.dumps(request.body) for request in server.requests)


async def _stop_and_kill(seen: Neovim, folder: Path) -> None:
    seen.do("TreadleMode full")
    await seen.until("> Mode full.")
    seen.do("Treadle Task WAIT")
    await seen.until("I wait.")
    seen.do("TreadleStop")
    await seen.until("> Done: cancelled.")
    seen.do("TreadleMode ask")
    await seen.until("> Mode ask.")
    seen.do("Treadle Task KILL")
    await seen.until("(proposed)", "kill.txt")
    seen.kill_agent()
    await seen.until("The agent is not running (signal 9).")
    assert "(proposed)" not in seen.shown
    assert not (folder / "kill.txt").exists()
    seen.do("Treadle Go on with Task KILL")
    await seen.until("Do you trust")
    seen.do("TreadleAnswer 2")
    await seen.until("Gone on.")
    assert not (folder / "kill.txt").exists()


async def _again(seen: Neovim, server: ScriptedServer) -> None:
    """Another Neovim goes on with the session, which is shown as it was."""
    seen.do("qall!")
    async with asyncio.timeout(PATIENCE):
        while seen.agents():
            await asyncio.sleep(0.05)
    seen.begin(server)
    seen.do("TreadleResume")
    await seen.until("1: Task LOOK")
    seen.keys("1", "Enter")
    await seen.until("Both are in it.", "Gone on.")


async def test_the_recipe_for_codecompanion_shows_treadle_and_starts_it(tmp_path: Path) -> None:
    (recipe,) = re.findall(r"```lua\n(require\(\"codecompanion\"\).*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "recipe.lua").write_text(_CODECOMPANION + recipe)
    nvim = (neovim(), "--headless", "-u", "NONE", "-i", "NONE", "-l", str(tmp_path / "recipe.lua"))
    process = await asyncio.create_subprocess_exec(*nvim, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    made = json.loads((await process.communicate())[0])
    assert (made["name"], made["formatted_name"]) == ("treadle", "Treadle")
    assert made["commands"]["default"] == ["treadle", "acp"]
    async with editor(tmp_path / "home") as client:
        offered = (await client.initialize())["authMethods"]
    assert made["defaults"]["auth_method"] in {one["id"] for one in offered}
