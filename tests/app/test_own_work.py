"""Whoever was asked in between: review, list, the end of a turn and a way back agree with who wrote which bytes."""

import pytest

from tests.app.owning import own_work_scene

SAMPLE, ALL = 24, 600


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.soak if seed >= SAMPLE else ()) for seed in range(ALL)]
)
async def test_own_work_is_own_work(seed: int) -> None:
    async with own_work_scene(seed) as scene:
        await scene.work(turns=5)
