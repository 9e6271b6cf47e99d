"""What searching leaves in the window of a session whose subagents do it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rehearsal.searches import LEAST_READ, TASKS, search

MOST = 0.2
"""What may be in the window, as a part of what is in it without subagents."""


@pytest.mark.parametrize("task", [pytest.param(task, marks=pytest.mark.soak if task else ()) for task in range(TASKS)])
async def test_subagents_keep_what_they_read_out_of_the_window(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    task: int,
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    found = await search((tmp_path / "ws").resolve(), task)
    assert found.alone >= LEAST_READ
    share = f"{found.with_subagents:,} of {found.alone:,} tokens, {found.with_subagents / found.alone:.1%}"
    record_property("figure", f"window of a search by subagents, task {task:02}: {share}")
    assert found.with_subagents <= MOST * found.alone
