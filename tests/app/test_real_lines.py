"""Lines that agents really ran, judged as in a session whose commands are confined: what needs no right runs."""

import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.policy.views import labelled
from tests.workspace.sandbox.running import bubblewrap
from treadle.app.reports.policy_explain import asked_context, judge_access
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import RunCommand

FEW = 6
"""Lines without a need that may ask in auto or ask, of 343: what deletes by a list, and what xargs runs."""


@cache
def _judged(mode: Mode, folder: Path) -> Counter[tuple[str, str, Verdict]]:
    context = asked_context(folder, mode, trusted=True, tainted=False, home=Path("/home/u"))
    found: Counter[tuple[str, str, Verdict]] = Counter()
    for row in labelled("real-lines.jsonl"):
        if not row["doubt"]:
            line = row["command"].replace("$WS", str(folder))
            decision = judge_access(RunCommand(command=line, cwd=str(folder)), context)
            found[row["expect"], row["right"] or "", decision.verdict] += 1
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bubblewrap()
    place = Path(os.path.realpath(tmp_path_factory.mktemp("real") / "work"))
    place.mkdir()
    return place


@pytest.mark.parametrize("mode", [Mode.AUTO, pytest.param(Mode.ASK, marks=pytest.mark.soak)])
def test_what_needs_no_right_runs_unasked_where_commands_are_confined(mode: Mode, folder: Path) -> None:
    found = _judged(mode, folder)
    runs, asks = (found["run", "", verdict] for verdict in (Verdict.ALLOW, Verdict.REQUIRE_USER_CONFIRMATION))
    assert (asks <= FEW, runs >= 300) == (True, True)


_ALSO = [pytest.param(mode, marks=pytest.mark.soak) for mode in (Mode.ASK, Mode.EDITS, Mode.FULL)]


@pytest.mark.parametrize("mode", [Mode.AUTO, *_ALSO])
def test_what_loses_data_or_history_never_runs_unasked(mode: Mode, folder: Path) -> None:
    found = _judged(mode, folder)
    assert [found["ask", right, Verdict.ALLOW] for right in ("loss", "history")] == [0, 0]
