"""Lines that agents really ran, judged as in a session: what needs no right runs."""

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

FEW = {Mode.AUTO: 0, Mode.ASK: 0, Mode.FULL: 10}
"""Lines without a need that may ask, of 343: three in a hundred where nothing confines them. Mode ask asks for git."""


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


@pytest.mark.parametrize(
    "mode", [Mode.AUTO, *(pytest.param(mode, marks=pytest.mark.soak) for mode in (Mode.ASK, Mode.FULL))]
)
def test_what_needs_no_right_runs_unasked(mode: Mode, folder: Path) -> None:
    found = _judged(mode, folder)
    rights = ("",) if mode is Mode.ASK else ("", "git")
    runs, asks = (
        sum(found["run", right, verdict] for right in rights)
        for verdict in (Verdict.ALLOW, Verdict.REQUIRE_USER_CONFIRMATION)
    )
    assert (asks <= FEW[mode], runs >= 310) == (True, True)


_ALSO = [pytest.param(mode, marks=pytest.mark.soak) for mode in (Mode.ASK, Mode.EDITS, Mode.FULL)]


@pytest.mark.parametrize("mode", [Mode.AUTO, *_ALSO])
def test_what_loses_data_or_history_never_runs_unasked(mode: Mode, folder: Path) -> None:
    found = _judged(mode, folder)
    assert [found["ask", right, Verdict.ALLOW] for right in ("loss", "history")] == [0, 0]
