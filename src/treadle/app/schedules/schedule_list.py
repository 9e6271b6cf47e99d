"""What a person or a script reads of schedules."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from treadle.app.compose import open_store
from treadle.app.reports.known_sessions import listed_in
from treadle.app.reports.listed_words import listed_words
from treadle.app.schedules.schedule_book import Schedule, ScheduledRun, is_unknown, is_zone, read_schedules
from treadle.present.words import counted
from treadle.protocol.base import Record

_LONGEST = 80
RUN_BY = "Runs begin while `treadle web` or `treadle serve` runs; those that are due while neither does are missed."


class ScheduleRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A schedule as scripts read it; times are seconds since 1970, `last` is its newest run."""

    id: str
    when: str
    zone: str
    task: str
    folder: str
    mode: str
    model: str
    max_cost: float
    paused: bool
    next: float | None
    missed: int
    last_missed: float | None
    last_session: str
    last_due: float | None
    last_problem: str


def schedule_rows() -> list[ScheduleRow]:
    """Give all schedules. Raises `StoreError`."""
    schedules = read_schedules()
    stopped = stopped_runs(schedules)
    return [_row(one, stopped) for one in schedules]


def _row(one: Schedule, stopped: Mapping[str, str]) -> ScheduleRow:
    last = one.runs[-1] if one.runs else None
    named: dict[str, Any] = {
        name: getattr(one, name)
        for name in ("id", "when", "zone", "task", "folder", "mode", "model", "max_cost", "paused", "missed")
    }
    return ScheduleRow(
        **named,
        next=one.next,
        last_missed=one.last_missed or None,
        last_session="" if last is None else last.session,
        last_due=None if last is None else last.due,
        last_problem="" if last is None else _problem(last, stopped),
    )


def _problem(run: ScheduledRun, stopped: Mapping[str, str]) -> str:
    """Say why a run, or its session, did not come to its end; empty where it did, or still may."""
    if is_unknown(run, time.time()):
        return "it is not known whether its session began, as the server was ended meanwhile"
    return run.problem or stopped.get(run.session, "")


def stopped_runs(schedules: Sequence[Schedule]) -> Mapping[str, str]:
    """Say of the sessions of last runs why they stopped; nothing of those that did not, or that were deleted."""
    begun = {one.runs[-1].session for one in schedules if one.runs} - {""}
    if not begun:
        return {}
    store = open_store()
    try:
        listed = listed_in(store, [row for row in store.sessions() if row.id in begun])
        return {one.id: f"session {one.id} {listed_words(one)}" for one in listed if one.ended}
    finally:
        store.close()


def next_words(one: Schedule) -> str:
    """Say when a schedule is due next, in its zone."""
    if one.paused:
        return "paused"
    if one.problem:
        return f"never due: {one.problem}"
    due = one.next
    return "not due any more" if due is None else f"next {_moment(due, one.zone)}"


def _moment(at: float, zone: str) -> str:
    own = ZoneInfo(zone) if is_zone(zone) else UTC
    return f"{datetime.fromtimestamp(at, own):%a %Y-%m-%d %H:%M %Z}"


def past_words(one: Schedule, stopped: Mapping[str, str]) -> str:
    """Say what became of the last run, and which were missed; empty where there is nothing to say.

    `stopped` says why sessions stopped, as `stopped_runs` gives it.
    """
    said = []
    if one.runs:
        last = one.runs[-1]
        became = _problem(last, stopped) or (f"session {last.session}" if last.session else "it begins")
        said.append(f"last {_moment(last.due, one.zone)}: {became}")
    if one.missed:
        newest = f", the last {_moment(one.last_missed, one.zone)}" if one.last_missed else ""
        said.append(f"{counted(one.missed, 'run')} missed{newest}")
    return "; ".join(said)


def last_scheduled(one: Schedule) -> str:
    """Give the session that was begun last; empty for none."""
    return next((run.session for run in reversed(one.runs) if run.session), "")


def schedules_text(schedules: Sequence[Schedule]) -> str:
    """List schedules, each with what is next and what was last."""
    if not schedules:
        return 'There are no schedules. Add one: treadle schedule add "every weekday 9:00" TASK'
    lines, stopped = [], stopped_runs(schedules)
    for one in schedules:
        task = " ".join(one.task.split())
        task = task if len(task) <= _LONGEST else f"{task[: _LONGEST - 1]}…"
        lines += [f"{one.id}  {one.when}  {task}", f"    {next_words(one)}, ${one.max_cost:g} a run, {one.folder}"]
        if past := past_words(one, stopped):
            lines.append(f"    {past}")
    return "\n".join((*lines, RUN_BY))
