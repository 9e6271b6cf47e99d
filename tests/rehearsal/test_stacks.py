"""Goals with a server, a database and a build; `make soak ARGS=stacks` has all, also those that install packages."""

from pathlib import Path

import pytest

from tests.needed import needs, require
from tests.rehearsal.stacks import GOALS, MODES, Goal, compare, reach
from tests.workspace.copies.copied import skip_without_copies

pytestmark = needs("bwrap")

SAMPLE = [goal for goal in GOALS if goal.name == "redis"]


@pytest.mark.parametrize("goal", SAMPLE, ids=lambda goal: goal.name)
async def test_confined_modes_take_no_more_calls_than_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goal: Goal
) -> None:
    require(*goal.needs)
    skip_without_copies(tmp_path)
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    rows, wrong = compare([await reach(goal, mode, tmp_path / mode) for mode in MODES])
    assert wrong == [], "\n".join(rows)
