"""Lives in which trials, hooks, checkpoints and a person meet; `make soak` lives a few dozen."""

import asyncio
from pathlib import Path

import pytest

from tests.e2e.effects.table import DATES
from tests.e2e.running import PATIENCE
from tests.needed import needs
from tests.rehearsal.seams import live_through
from tests.workspace.copies.copied import skip_without_copies
from treadle import Treadle
from treadle.app.checkpoints.points import Points
from treadle.app.compose import session_log
from treadle.library import OptionKind
from treadle.protocol.checkpoints import Restore
from treadle.testing import call, scripted_model

pytestmark = needs("bwrap")

TURNS = 6
LIVES = 30
SAMPLE = ("sample 6", "sample 9")


@pytest.mark.parametrize("seed", [*SAMPLE, *(pytest.param(str(seed), marks=pytest.mark.soak) for seed in range(LIVES))])
async def test_what_is_told_is_there_and_an_undo_brings_back_what_the_session_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: str
) -> None:
    skip_without_copies(tmp_path)
    for name, value in {**DATES, "TREADLE_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    found = await live_through(seed, tmp_path / "life", TURNS)
    assert found.troubles == []
    assert found.turns == TURNS


@pytest.mark.parametrize(
    ("answer", "there"),
    [(OptionKind.ALLOW_ONCE, "neat"), (OptionKind.RUN_FOR_REAL, "neat"), (OptionKind.REJECT_ONCE, None)],
)
async def test_a_hook_finds_what_a_trial_made_once_that_is_in_the_workspace_and_an_undo_takes_both_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: OptionKind, there: str | None
) -> None:
    skip_without_copies(tmp_path)
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(
        "[[hooks.PostToolUse]]\nhooks = [{ type = 'command', command = 'sed -i s/raw/neat/ made' }]\n"
    )
    folder = tmp_path / "ws"
    folder.mkdir()
    model = scripted_model(
        call("execute_command", command="echo raw > made"), call("attempt_completion", result="Done.")
    )
    async with Treadle(folder, model=model, mode="ask", approve=lambda _: answer, trust=True) as treadle:
        await treadle.run("Make it.")
        found = (folder / "made").read_text().strip() if (folder / "made").exists() else None
        assert found == there
        with session_log(treadle.session_id) as (row, store):
            point = Points(store, row.id).undo()
        assert bool(point) is (there is not None)
        if point:
            await treadle.post(Restore(checkpoint=point))
            async with asyncio.timeout(PATIENCE):
                while (folder / "made").exists():
                    await asyncio.sleep(0.05)
