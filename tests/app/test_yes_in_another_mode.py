"""Another mode is chosen while a question about a copy is open: the yes is to what was asked about."""

import asyncio
from pathlib import Path

import pytest

from tests.needed import needs
from treadle import Treadle
from treadle.library import OptionKind, Question
from treadle.protocol.messages import ToolResult, text_of
from treadle.testing import call, scripted_model

pytestmark = needs("bwrap")

LINE = "echo x > new.txt; rm old.txt"
PAIRS = [
    (before, after)
    for before in ("ask", "edits")
    for after in ("ask", "edits", "auto", "full", "plan")
    if before != after
]


@pytest.mark.parametrize("option", [OptionKind.RUN_FOR_REAL, OptionKind.ALLOW_ONCE])
@pytest.mark.parametrize(("before", "after"), PAIRS)
async def test_a_yes_is_carried_out_in_every_mode_but_plan(
    before: str, after: str, option: OptionKind, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("old\n")
    model = scripted_model(call("execute_command", command=LINE), call("attempt_completion", result="Done."))

    async def approve(question: Question) -> OptionKind:
        await asyncio.sleep(0)
        await agent.set_mode(after)
        return option if option in question.options else OptionKind.ALLOW_ONCE

    async with Treadle(folder, model=model, mode=before, approve=approve, trust=True) as agent:
        await agent.run("Change it.")
    said = "".join(
        text_of(block.content) for block in model.requests[1].messages[-1].content if isinstance(block, ToolResult)
    )
    assert "Not run" not in said
    changed = sorted(path.name for path in folder.iterdir() if path.suffix == ".txt")
    assert changed == (["old.txt"] if after == "plan" else ["new.txt"]), said
