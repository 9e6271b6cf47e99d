"""A few kills of sessions in the middle of trials, questions and servers; `make soak ARGS=crashes` has two hundred."""

from pathlib import Path

import pytest

from tests.needed import needs
from tests.ready import started_anew
from tests.rehearsal.crash_work import Moment
from tests.rehearsal.crashes import kill_sessions
from tests.workspace.copies.copied import skip_without_copies
from treadle.protocol.permissions import Mode

__all__ = ["started_anew"]

pytestmark = needs("bwrap")

SAMPLE = {
    Mode.ASK: (("a trial is kept", 0.01), ("a trial is asked about", 0.0), ("a host is asked about", 0.0)),
    Mode.AUTO: (("git writes", 0.005), ("git is asked about", 0.0), ("a port is open", 0.0)),
}


@pytest.mark.parametrize("mode", SAMPLE, ids=str)
async def test_after_a_kill_nothing_runs_all_or_nothing_is_there_and_the_start_says_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started_anew: None, mode: Mode
) -> None:
    skip_without_copies(tmp_path)
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    when = [Moment(what, seconds, most=60) for what, seconds in SAMPLE[mode]]
    found = await kill_sessions("sample", tmp_path / "life", len(when), mode=mode, when=iter(when), moves=1)
    assert found.troubles == []
    met = [found.met[what] for what, _ in SAMPLE[mode]]
    assert (found.kills, max(met)) == (3, 1)  # a busy machine may pass one of the moments by
