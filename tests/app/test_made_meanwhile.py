"""A control file that appears while a command runs in the background: the user hears at once where it is."""

import asyncio
from pathlib import Path

import pytest

from tests.needed import needs
from treadle import Treadle
from treadle.protocol.notifications import Notice
from treadle.testing import call, scripted_model
from treadle.workspace.commands import process

pytestmark = needs("sandbox")

WAITS = "while [ ! -e seen ]; do sleep 0.05; done; echo ended"


async def test_what_a_person_makes_while_a_command_runs_is_moved_and_they_hear_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_SETTLE_EVERY", 0.05)
    folder = tmp_path / "work"
    folder.mkdir()
    model = scripted_model(
        call("execute_command", command="sleep 600", background=True),
        call("execute_command", command=WAITS),
        call("attempt_completion", result="Done."),
    )
    told: list[str] = []
    made = False
    async with Treadle(folder, model=model, mode="auto", trust=True) as agent:
        async for one in agent.run("Serve."):
            if isinstance(one, Notice) and "was made" in one.text:
                told.append(one.text)
                (folder / "seen").touch()
            if len(model.requests) == 2 and not made:
                made = True
                await asyncio.to_thread((folder / "CLAUDE.md").write_text, "mine")
    moved = [text for text in told if text.endswith("If it is yours, bring it back once `sleep 600` has ended.")]
    assert len(moved) == 1, told
    kept = Path(moved[0].partition(" moved to ")[2].partition(". If it is")[0])
    assert kept.read_text() == "mine"
    assert not (folder / "CLAUDE.md").exists()
