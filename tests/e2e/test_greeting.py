"""A session begins with the one before it in the same folder, and ends with its own name."""

from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import model
from tests.person import ENTER
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer


async def test_the_session_before_is_named_and_so_is_what_is_kept(tmp_path: Path) -> None:
    for name in ("project", "other"):
        (tmp_path / name).mkdir()
    program = Program(tmp_path / "home")
    async with ScriptedServer(Script(turns=(Turn(items=(SayText(text="First."),)),))) as server:

        async def work(folder: str, prompt: str = "") -> str:
            async with on_terminal(program, *model(server), "--directory", str(tmp_path / folder)) as terminal:
                await terminal.until_shown("▞▚ Treadle", "? for keys")
                greeted = terminal.shown
                if prompt:
                    terminal.type(f"{prompt}{ENTER}")
                    await terminal.until_shown("First.", "■ Done")
                terminal.type(f"/quit{ENTER}")
                assert await terminal.ended() == Exit.DONE
                if prompt:
                    await terminal.until_shown(f"Session kept: {prompt} · 1 turn · ", "Go on with: treadle --resume ")
                return greeted

        assert "last session" not in await work("project", "fix the cart total")
        assert "last session: fix the cart total, just now (/resume)" in await work("project")
        assert "last session: fix the cart total, just now (/resume)" in await work("project")
        assert "last session" not in await work("other", "look around")
