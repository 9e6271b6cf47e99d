"""What a batch says: what nobody knows is null or words, and notices are not lost in either form."""

import json
from pathlib import Path

import pytest

from treadle.app.reports.known_batches import known_batches
from treadle.headless.batch.batch_folder import TaskRow
from treadle.headless.batch.batch_lines import BatchEnded, BatchLines, BatchStarted, row_line
from treadle.present.batch_progress import BatchProgress, long_span, progress_line
from treadle.present.spending_words import Spending

STARTED = BatchStarted(run="r", tasks=2, ended_before=1, workers=1, max_cost=None, spent=0.5)
ENDED = BatchEnded(states={}, kinds={}, left=0, cost=None, exit_code=0)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))


def kept() -> tuple[BatchProgress, bool]:
    (found,) = known_batches()
    return found


def test_an_unknown_cost_is_null_and_a_notice_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    lines = BatchLines(as_json=True)
    lines.began(STARTED, Spending(ended=0.5), Path("/out"))
    lines.notice("Look.")
    lines.went("a", "run", 1, None)
    lines.concluded(ENDED, (), Spending(ended=0.5, unpriced=True))
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["type"] for one in said] == ["batch_started", "batch_notice", "task_step", "batch_ended"]
    assert (said[0]["spent"], said[1]["text"], said[2]["cost"], said[3]["cost"]) == (0.5, "Look.", None, None)


def line_of(lines: BatchLines) -> str:
    progress = lines._progress()
    assert progress is not None
    return progress_line(progress)


def test_the_line_of_progress_begins_with_what_was_spent_before() -> None:
    lines = BatchLines(as_json=False)
    lines.began(STARTED, Spending(ended=0.5), Path("/out"))
    lines.went("a", "run", 1, 0.25)
    assert line_of(lines) == "0/2 · $0.75 · a: run 1"
    lines.went("a", "run", 2, None)
    assert line_of(lines) == "0/2 · over $0.75 · a: run 2"
    assert row_line(TaskRow(id="a", state="done", cost=None)) == "a: done, 0 steps, cost unknown, 0 s"


def test_what_other_workers_do_and_have_spent_is_in_the_line_and_what_is_kept_for_the_page() -> None:
    lines = BatchLines(as_json=False, database="sqlite:///f.db")
    lines.began(STARTED, Spending(ended=0.5), Path("/out"), [TaskRow(id="old", state="failed", kind="check")])
    lines.stands(Spending(ended=1.25), {"b": "run"})
    assert line_of(lines) == "0/2 · $1.25 · b: run"
    progress, works = kept()
    assert (progress.run, progress.folder, progress.database, works) == ("r", "/out", "sqlite:///f.db", True)
    lines.ended(TaskRow(id="b", state="done", session="r.b", cost=0.75))
    lines.concluded(ENDED, (), Spending(ended=1.5))
    progress, works = kept()
    assert ([one.id for one in progress.before], [one.session for one in progress.ended]) == (["old"], ["r.b"])
    assert (progress.spending.total, progress.running, progress.exit_code, works) == (1.5, {}, 0, False)


def test_the_rate_and_what_is_left_are_those_of_this_time_and_unknown_is_not_zero() -> None:
    one = BatchProgress(
        run="r", folder="/", process="", began_at=0, at=120_000, tasks=10, workers=1, spending=Spending()
    )
    assert (one.a_minute, one.seconds_left) == (None, None)
    some = BatchProgress(
        run="r",
        folder="/",
        process="",
        began_at=0,
        at=120_000,
        tasks=10,
        workers=1,
        spending=Spending(),
        states={"done": 3, "failed": 1},
    )
    assert (some.a_minute, some.seconds_left, some.done) == (2.0, 180.0, 4)
    assert [long_span(seconds) for seconds in (1, 3_600, 5_400, 200_000)] == [
        "1 min",
        "1 h 0 min",
        "1 h 30 min",
        "2.3 days",
    ]


def test_the_names_that_no_other_task_can_have_are_kept_for_the_page() -> None:
    lines = BatchLines(as_json=False)
    lines.names(["A", "b"], {"a", "b", "unmeant"})
    lines.began(STARTED, Spending(), Path("/out"), [TaskRow(id="Old", state="done")])
    lines.heard(1, {}, tasks=["C"])
    progress, _ = kept()
    assert (progress.chosen, progress.besides) == (["A", "b", "C"], ["unmeant"])
    assert progress.taken == {"a", "b", "c", "old", "unmeant"}


def test_the_session_of_a_task_is_kept_for_the_page_until_it_has_ended() -> None:
    lines = BatchLines(as_json=False)
    lines.names(["a", "b"], ())
    lines.began(STARTED, Spending(), Path("/out"))
    lines.started("a")
    lines.opened("a", "r.a")
    progress, _ = kept()
    assert (progress.sessions, progress.waiting) == ({"a": "r.a"}, ["b"])
    lines.handed_back("a")
    lines.stops()
    progress, _ = kept()
    assert (progress.sessions, progress.waiting) == ({"a": "r.a"}, ["a", "b"])
    lines.ended(TaskRow(id="a", state="done"))
    lines.concluded(ENDED, (), Spending())
    progress, _ = kept()
    assert (progress.sessions, progress.waiting) == ({}, ["b"])
