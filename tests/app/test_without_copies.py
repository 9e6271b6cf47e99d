"""Where no throw-away copy can be made, as under Landlock, what may change something asks before it runs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.rehearsal import rehearse, run
from tests.needed import require
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.tools import Outcome, Right
from treadle.workspace.sandbox import Backend, probe


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    require("landlock")
    monkeypatch.setattr("treadle.workspace.sandbox.backend.find_bubblewraps", list)
    probe.cache_clear()
    assert probe().backend is Backend.LANDLOCK
    root = Path(os.path.realpath(tmp_path), "ws")
    root.mkdir()
    (root / "AGENTS.md").write_text("rules")
    (root / "a.txt").write_text("one\n")
    (root / "Makefile").write_text("all:\n\techo made > made.txt\n")
    yield root
    probe.cache_clear()


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.EDITS])
@pytest.mark.parametrize("line", ["make", "python3 -c 'print(1)'", "sh -c 'echo x >> a.txt'"])
async def test_a_command_that_may_change_something_asks_before_it_runs(folder: Path, line: str, mode: Mode) -> None:
    found = await rehearse(folder, [run(line)], mode=mode, present=True, option=OptionKind.REJECT_ONCE)
    assert [question.denial for question in found.asked] == [None]
    assert found.results[0].outcome is Outcome.REJECTED
    assert sorted(path.name for path in folder.iterdir()) == ["AGENTS.md", "Makefile", "a.txt"]


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.EDITS, Mode.AUTO])
async def test_a_yes_leads_to_the_end_also_beside_a_protected_file(folder: Path, mode: Mode) -> None:
    found = await rehearse(folder, [run("make")], mode=mode, present=True)
    rights = [question.denial.right for question in found.asked if question.denial is not None]
    assert (rights, found.results[0].outcome) == ([Right.UNSANDBOXED], Outcome.OK)
    assert (folder / "made.txt").read_text() == "made\n"


async def test_what_only_reads_runs_without_a_question_and_plan_mode_reads(folder: Path) -> None:
    for mode in (Mode.ASK, Mode.PLAN):
        found = await rehearse(folder, [run("cat a.txt")], mode=mode, present=True)
        assert (found.asked, found.results[0].outcome) == ([], Outcome.OK)
    found = await rehearse(folder, [run("python3 -c 'print(1)'; make")], mode=Mode.PLAN, present=True)
    assert (found.asked, (folder / "made.txt").exists()) == ([], False)
