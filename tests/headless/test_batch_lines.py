"""What a batch says: what nobody knows is null or words, and notices are not lost in either form."""

import json

import pytest

from treadle.headless.batch.batch_folder import TaskRow
from treadle.headless.batch.batch_lines import BatchEnded, BatchLines, BatchStarted, row_line
from treadle.present.spending_words import Spending

STARTED = BatchStarted(run="r", tasks=2, ended_before=1, workers=1, max_cost=None, spent=0.5)
ENDED = BatchEnded(states={}, kinds={}, left=0, cost=None, exit_code=0)


def test_an_unknown_cost_is_null_and_a_notice_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    lines = BatchLines(as_json=True)
    lines.began(STARTED, Spending(ended=0.5))
    lines.notice("Look.")
    lines.went("a", "run", 1, None)
    lines.concluded(ENDED, ())
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["type"] for one in said] == ["batch_started", "batch_notice", "task_step", "batch_ended"]
    assert (said[0]["spent"], said[1]["text"], said[2]["cost"], said[3]["cost"]) == (0.5, "Look.", None, None)


def test_the_line_of_progress_begins_with_what_was_spent_before() -> None:
    lines = BatchLines(as_json=False)
    lines.began(STARTED, Spending(ended=0.5))
    lines.went("a", "run", 1, 0.25)
    assert lines._status(0.0) == "0/2 · $0.75 · a: run 1"
    lines.went("a", "run", 2, None)
    assert lines._status(0.0) == "0/2 · over $0.75 · a: run 2"
    assert row_line(TaskRow(id="a", state="done", cost=None)) == "a: done, 0 steps, cost unknown, 0 s"
