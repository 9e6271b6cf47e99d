"""A sample of the rehearsal with the real program, headless and in a terminal."""

import asyncio
from pathlib import Path

from tests.orphans import no_orphans
from tests.rehearsal.program import interrupt_programs, program_plans, work_programs

__all__ = ["no_orphans"]

SEED = 1


def test_the_program_does_healthy_work_headless_and_in_a_terminal(tmp_path: Path) -> None:
    found = asyncio.run(work_programs(program_plans(SEED, 5)[3:], tmp_path))
    assert [one.trouble for one in found if one.trouble] == []


def test_an_interrupt_of_the_program_at_a_random_moment_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    found = asyncio.run(interrupt_programs(SEED, 3, tmp_path))
    assert [one.trouble for one in found if one.trouble] == []
