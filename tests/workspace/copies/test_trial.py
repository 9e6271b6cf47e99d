"""Trying out copies does not outlive the program, whenever that ends."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.orphans import nothing_left_behind
from tests.workspace.copies.copied import Bench

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize("programs", [10, pytest.param(40, marks=pytest.mark.soak)])
def test_no_trial_outlives_the_program(bench: Bench, programs: int) -> None:
    chance = random.Random(17)

    def run_and_end(seconds: float) -> None:
        command = (sys.executable, "-m", "tests.workspace.copies.ended_trial", bench.folder, str(seconds))
        subprocess.run(command, check=True, cwd=REPOSITORY)

    with nothing_left_behind(), ThreadPoolExecutor(4) as workers:
        list(workers.map(run_and_end, [chance.uniform(0.0, 0.12) for _ in range(programs)]))
