"""What code mode saves beside plain calls: the window, the steps and the money of the session."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rehearsal.programs import TASKS, ProgramTask, as_program, one_by_one, spent_on, write_parts


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, id=task.name, marks=pytest.mark.soak if number else ()) for number, task in enumerate(TASKS)],
)
async def test_a_program_keeps_what_it_reads_out_of_the_window(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    task: ProgramTask,
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = (tmp_path / "ws").resolve()
    folder.mkdir()
    names = write_parts(folder, TASKS.index(task))
    plain = await spent_on(folder, one_by_one(task, names))
    program = await spent_on(folder, as_program(task))
    record_property(
        "figure",
        f"{task.name}: {program.tokens:,} of {plain.tokens:,} tokens in the window, {program.steps} of {plain.steps} "
        f"steps, ${program.cost:.4f} of ${plain.cost:.4f}",
    )
    assert (program.tokens, program.steps, program.cost) < (plain.tokens, plain.steps, plain.cost)
    assert program.cost < plain.cost
