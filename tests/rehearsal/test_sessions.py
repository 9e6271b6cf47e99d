"""A sample of the rehearsal: healthy work is never ended by a guard, a limit or a mistake; a real loop soon is."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.rehearsal.loops import LoopPlan, loop_plans
from tests.rehearsal.plans import WIRES, Plan, plans
from tests.rehearsal.rehearse import rehearse_all
from tests.rehearsal.sessions import KEY

SEED = 1


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(KEY, "key")


def check(wanted: Sequence[Plan | LoopPlan], folder: Path) -> None:
    verdicts = asyncio.run(rehearse_all(wanted, folder))
    assert [verdict.trouble for verdict in verdicts if verdict.trouble] == []
    assert len(verdicts) == len(wanted)


def test_healthy_work_is_done(tmp_path: Path) -> None:
    check([*plans(SEED, 3)], tmp_path)


def test_healthy_work_is_done_over_every_wire_api(tmp_path: Path) -> None:
    check([*plans(SEED + 1, len(WIRES), wires=WIRES)], tmp_path)


def test_a_loop_is_ended_within_twelve_steps(tmp_path: Path) -> None:
    check(loop_plans(SEED, 4), tmp_path)
