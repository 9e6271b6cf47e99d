"""The five steps of a task, called as an engine with a journal calls them: each twice, and after what went wrong."""

import asyncio
import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.needed import needs
from tests.small_disk import fill, small_disk
from tests.workspace.processes import numbers_of
from treadle.app.compose import open_store
from treadle.app.reports.session_account import session_account, spent_by_run
from treadle.headless.batch.batch_folder import BatchFolder, TaskBegun, TaskRow
from treadle.headless.batch.batch_main import BatchWishes, run_batch
from treadle.headless.batch.batch_steps import (
    BatchOptions,
    Said,
    UnfinishedError,
    check_task,
    collect_task,
    failed_row,
    goes_on_from,
    is_run_unpriced,
    next_attempt,
    prepare_task,
    report_task,
    run_task,
)
from treadle.headless.batch.batch_tasks import BatchTask
from treadle.headless.batch.batch_worker import work_on
from treadle.protocol.errors import ConfigError
from treadle.protocol.notifications import Notification, TurnEnded
from treadle.store.sqlite import SessionRow

LOOK = [{"type": "call", "name": "read_file", "arguments": {"path": "a.txt"}}]
WRITE = [{"type": "call", "name": "write_to_file", "arguments": {"path": "b.txt", "content": "new\n"}}]
DONE = [{"type": "call", "name": "attempt_completion", "arguments": {"result": "Done."}}]
REFUSED = [{"type": "error", "status": 400, "message": "no"}]


class Steps:
    """A batch of one task, whose model plays a script in process."""

    def __init__(self, place: Path, *turns: Sequence[Any], **more: Any) -> None:
        (place / "project").mkdir()
        (place / "project" / "a.txt").write_text("old\n")
        self.script = place / "script.json"
        self.plays(*turns)
        self.folder = BatchFolder(place / "out")
        self.task = BatchTask(id="t", prompt="Write b.txt.", repo=str(place / "project"), **more)
        self.run_name = f"run-{place.name}"
        self.options = BatchOptions(run=self.run_name, flags={"model": f"scripted/{self.script}", "mode": "edits"})
        (place / "out").mkdir()

    def plays(self, *turns: Sequence[Any]) -> None:
        self.script.write_text(json.dumps({"turns": [{"items": items} for items in turns]}))

    def prepare(self) -> TaskBegun:
        return prepare_task(self.folder, self.options, self.task)

    def run(self, begun: TaskBegun) -> None:
        run_task(self.folder, self.options, self.task, begun)

    def collect(self, begun: TaskBegun) -> TaskRow:
        return collect_task(self.folder, self.task, begun)


def logged(session: str) -> int:
    store = open_store()
    try:
        return len(list(store.read(session)))
    finally:
        store.close()


def test_each_step_may_be_begun_twice_and_does_nothing_the_second_time(tmp_path: Path) -> None:
    steps = Steps(tmp_path, LOOK, WRITE, DONE)
    begun = steps.prepare()
    with pytest.raises(UnfinishedError):
        steps.collect(begun)
    assert steps.prepare() == begun
    steps.run(begun)
    events = logged(begun.session)
    steps.run(begun)
    assert logged(begun.session) == events
    row = steps.collect(begun)
    assert steps.collect(begun) == row
    patch = (steps.folder.path / "patches" / "t.diff").read_bytes()
    assert b"+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n" in patch
    assert (row.state, row.kind, row.steps, row.session) == ("done", "", 3, f"{steps.run_name}.t")
    assert row.patch_sha256 == hashlib.sha256(patch).hexdigest()
    assert not (tmp_path / "project" / "b.txt").exists()
    report_task(steps.folder, row, keeps_copies=False)
    assert steps.folder.results() == {"t": row}
    assert not (steps.folder.path / "copies" / "t").exists()


def test_an_error_of_the_provider_goes_on_in_its_session_once(tmp_path: Path) -> None:
    steps = Steps(tmp_path, REFUSED)
    begun = steps.prepare()
    steps.run(begun)
    failed = steps.collect(begun)
    assert (failed.state, failed.kind) == ("error", "provider-bad_request")
    steps.run(begun)
    assert steps.collect(begun) == failed
    steps.plays(WRITE, DONE)
    going_on = goes_on_from(begun)
    assert going_on.goes_on_after == 1
    steps.run(going_on)
    row = steps.collect(begun)
    assert (row.state, row.session) == ("done", failed.session)
    events = logged(begun.session)
    steps.run(going_on)
    steps.run(goes_on_from(going_on))
    assert logged(begun.session) == events


def test_a_task_whose_session_cannot_go_on_begins_again_in_another_one(tmp_path: Path) -> None:
    steps = Steps(tmp_path, LOOK, DONE)
    begun = steps.prepare()
    row = SessionRow(
        id=f"{steps.run_name}.t", workspace="/w", model="p/m", title="", created_at=1, updated_at=1, events=0
    )
    store = open_store()
    asyncio.run(store.create(row))
    store.close()
    again = steps.prepare()
    assert (again.session, again.attempt, again.tree) == (f"{steps.run_name}.t-2", 2, begun.tree)
    steps.run(again)
    (steps.folder.path / "copies" / "t").rename(tmp_path / "gone")
    assert steps.prepare().session == f"{steps.run_name}.t-3"
    steps.task = BatchTask(id="t", prompt="Something else.", repo=steps.task.repo)
    changed = steps.prepare()
    assert (changed.session, changed.digest) != (f"{steps.run_name}.t-3", begun.digest)
    gone = TaskRow(id="t", state="error", kind="killed", why="Killed.")
    assert failed_row(steps.folder, steps.task, "killed", "Killed.") == gone
    steps.folder.note("t", again)
    assert failed_row(steps.folder, steps.task, "killed", "Killed.").steps == 2


@needs("bwrap")
def test_a_check_sees_the_copy_and_the_variables_and_changes_nothing(tmp_path: Path) -> None:
    steps = Steps(tmp_path, DONE, check='test "$X" = 1 && cat a.txt && rm a.txt', env={"X": "1"})
    steps.prepare()
    assert check_task(steps.folder, steps.task)
    assert (steps.folder.path / "checks" / "t.txt").read_text() == "exit status 0\n\nold\n"
    assert (steps.folder.path / "copies" / "t" / "a.txt").exists()
    slow, said = BatchTask(id="t", prompt="x", check="echo begun; sleep 600"), ""
    for seconds in (1, 8, 64):  # on a busy machine it may print only then
        assert not check_task(steps.folder, slow, seconds=seconds)
        said = (steps.folder.path / "checks" / "t.txt").read_text()
        if "begun" in said:
            break
    assert said == f"exit status 1\n\nbegun\n\nIt did not end within {seconds} s.\n"


@needs("bwrap")
@pytest.mark.parametrize(("kills", "passes"), [(1, True), (2, False)])
def test_a_check_that_is_killed_from_outside_runs_once_more(tmp_path: Path, kills: int, passes: bool) -> None:
    steps = Steps(tmp_path, DONE)
    steps.prepare()
    line = f"sleep 3.{os.getpid()}{kills}"
    ended: set[int] = set()
    over = threading.Event()

    def kill() -> None:
        while len(ended) < kills and not over.is_set():
            for pid in numbers_of(line):
                if pid not in ended:
                    os.kill(pid, signal.SIGKILL)
                    ended.add(pid)
            time.sleep(0.01)

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        assert check_task(steps.folder, BatchTask(id="t", prompt="x", check=line)) is passes
    finally:
        over.set()
        killing.join()
    assert len(ended) == kills


def test_the_money_of_the_run_leaves_the_task_for_later(tmp_path: Path) -> None:
    steps = Steps(tmp_path, LOOK, DONE)
    flags = {**steps.options.flags, "models": {steps.options.flags["model"]: {"input_price": 1.0, "output_price": 1.0}}}
    steps.options = BatchOptions(run=steps.run_name, run_cost=0.000001, flags=flags)
    begun = steps.prepare()
    steps.run(begun)
    with pytest.raises(UnfinishedError) as capped:
        steps.collect(begun)
    assert capped.value.capped.startswith("the run's budget of <$0.01: $0.00 is spent, and the next call can cost")
    steps.options = BatchOptions(run=steps.run_name, run_cost=10.0, flags=flags)
    steps.run(begun)
    assert steps.collect(begun).state == "done"
    account = session_account(begun.session)
    assert account is not None
    assert account.turns == 2


def test_a_task_costs_what_its_subagents_cost_too(tmp_path: Path) -> None:
    steps = Steps(tmp_path)
    asked = {"type": "call", "name": "use_subagents", "arguments": {"tasks": [{"prompt": "Look.", "agent": "explore"}]}}
    of_child = {"when": {"system": {"contains": ["You are a subagent"]}}, "items": [{"type": "text", "text": "Seen."}]}
    steps.script.write_text(json.dumps({"turns": [of_child, {"items": [asked]}, {"items": DONE}]}))
    prices = {"input_price": 1000.0, "output_price": 1000.0, "context_window": 100_000}
    flags = {**steps.options.flags, "models": {steps.options.flags["model"]: prices}}
    steps.options = BatchOptions(run=steps.run_name, flags=flags)
    begun = steps.prepare()
    steps.run(begun)
    row = steps.collect(begun)
    spent = spent_by_run(steps.run_name)
    assert (row.state, row.steps) == ("done", 2)
    assert row.cost == pytest.approx(spent.cost)
    assert row.tokens == spent.tokens
    store = open_store()
    assert sorted(
        bool(one.root) for one in store.sessions(subagents=True) if one.id.startswith(begun.session[:-2])
    ) == [False, True]
    store.close()


BEGINS = {"type": "call", "name": "use_subagents", "arguments": {"tasks": [{"prompt": "Look."}], "wait": False}}
PUSHES = {"type": "call", "name": "execute_command", "arguments": {"command": "git push origin main"}}
OF_CHILD = {"when": {"system": {"contains": ["You are a subagent"]}}}
BEHIND = [
    {**OF_CHILD, "items": [{"type": "wait", "seconds": 0.3}, {"type": "text", "text": "Seen."}]},
    {"when": {"last_user": {"contains": ["has ended"]}}, "items": [{"type": "text", "text": "Thanks."}]},
    {"when": {"assistant_messages": 0}, "items": [PUSHES, BEGINS]},
    {"when": {"assistant_messages": 1}, "items": [{"type": "text", "text": "Going on."}]},
]
"""Its first turn has a call that is denied, the one that a subagent wakes has none."""


def test_all_turns_of_a_task_say_how_it_ended(tmp_path: Path) -> None:
    steps = Steps(tmp_path)
    steps.script.write_text(json.dumps({"turns": BEHIND}))
    begun = steps.prepare()
    steps.run(begun)
    account = session_account(begun.session)
    assert account is not None
    assert [one.denied for one in account.outcomes] == [1, 0]
    row = steps.collect(begun)
    assert (row.state, row.kind, row.steps) == ("done", "denied", 3)


def test_a_task_that_was_stopped_while_a_subagent_worked_goes_on_until_that_has_ended(tmp_path: Path) -> None:
    def ends(notification: Notification) -> None:
        if isinstance(notification, TurnEnded):
            os.kill(os.getpid(), signal.SIGTERM)

    steps = Steps(tmp_path)
    steps.script.write_text(json.dumps({"turns": BEHIND}))
    begun = steps.prepare()
    with pytest.raises(UnfinishedError):
        run_task(steps.folder, steps.options, steps.task, begun, hears=ends)
    with pytest.raises(UnfinishedError):
        steps.collect(begun)
    steps.run(begun)
    row = steps.collect(begun)
    assert (row.state, row.kind, row.steps) == ("done", "denied", 3)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", 2) as place:
        yield place


def test_a_full_disk_is_an_error_of_the_environment_and_the_work_goes_on_after_it(tmp_path: Path, small: Path) -> None:
    steps = Steps(tmp_path, WRITE, DONE)
    steps.folder = BatchFolder(small)
    full = fill(small)
    said: list[Said] = []
    assert work_on(steps.folder, steps.options, steps.task, said.append) == 0
    row = said[-1].row
    assert row is not None
    assert (row.state, row.kind, row.cost) == ("error", "environment", 0.0)
    assert row.why.startswith("prepare: ")
    assert "No space left on device" in row.why
    full.unlink()
    begun = steps.prepare()
    steps.run(begun)
    full = fill(small)
    assert work_on(steps.folder, steps.options, steps.task, said.append) == 0
    assert [one.row and (one.row.kind, one.row.steps) for one in said][-1] == ("environment", 2)
    full.unlink()
    assert work_on(steps.folder, steps.options, steps.task, said.append) == 0
    row = said[-1].row
    assert row is not None
    assert (row.state, row.steps) == ("done", 2)
    full = fill(small)
    with pytest.raises(ConfigError, match=r"results\.jsonl cannot be written\.") as failed:
        report_task(steps.folder, row, keeps_copies=False)
    assert failed.value.why == "No space left on device."
    full.unlink()
    assert steps.folder.results() == {}
    assert report_task(steps.folder, row, keeps_copies=False) == ""
    assert (steps.folder.results(), len((small / "predictions.jsonl").read_text().splitlines())) == ({"t": row}, 1)


def test_what_cannot_be_called_is_refused_before_a_result_is_forgotten(tmp_path: Path) -> None:
    steps = Steps(tmp_path, DONE)
    begun = steps.prepare()
    steps.folder.add(TaskRow(id="t", state="done", session=begun.session), None)
    (tmp_path / "tasks.jsonl").write_text('{"id": "t", "prompt": "x"}\n')
    wishes = BatchWishes(
        tasks=tmp_path / "tasks.jsonl", out=steps.folder.path, workers=1, redo=True, flags={"model": "nobody/nothing"}
    )
    (steps.folder.path / "batch.json").write_text('{"run": "r"}')
    with pytest.raises(ConfigError):
        run_batch(wishes)
    assert set(steps.folder.results()) == {"t"}
    assert steps.folder.begun("t") == begun


def test_an_unknown_cost_stays_unknown_whatever_becomes_of_the_attempt(tmp_path: Path) -> None:
    steps = Steps(tmp_path, DONE)
    begun = steps.prepare()
    row = TaskRow(id="t", state="done", cost=0.01)
    assert not is_run_unpriced(steps.folder, {"t": row})
    assert is_run_unpriced(steps.folder, {"t": replace(row, cost=None)})
    again = next_attempt(steps.run_name, steps.task, replace(begun, unpriced=True))
    steps.folder.note("t", again)
    assert is_run_unpriced(steps.folder, {"t": row})
    assert is_run_unpriced(steps.folder, {})
