"""The schedules of a user, in one file of the data folder, which servers change one after the other."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.places import data_directory
from treadle.app.schedules.schedule_rules import next_due, schedule_rule
from treadle.protocol.errors import ConfigError, StoreError
from treadle.workspace.files.folder_lock import alone
from treadle.workspace.files.private_file import write_private

LATE = 600
"""Seconds by which a run may be late and still begins; a later one is missed."""

_APART = 45 * 60
"""Seconds by which what is handled may be ahead of a clock."""

_KEPT_RUNS = 20
_MOST_COUNTED = 1_000
"""Missed runs that are counted one by one."""

_BEGINS_WITHIN = 300
"""Seconds after which a run without a session has not begun."""


class ScheduledRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run: when it was `due` (seconds since 1970), its session, or the `problem` that kept it from one."""

    due: float
    session: str = ""
    problem: str = ""


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task that is begun at the times that `when` says, in the `zone` of its person, in a `folder`.

    Each run is a session that may cost `max_cost` (US dollars). What was due until `handled` (seconds since 1970) was
    run or is counted among the `missed`, of which `last_missed` is the newest. `runs` are the last ones.
    """

    id: str
    when: str
    zone: str
    task: str
    folder: str
    max_cost: float
    created: float
    handled: float
    mode: str = ""
    model: str = ""
    paused: bool = False
    missed: int = 0
    last_missed: float = 0.0
    runs: tuple[ScheduledRun, ...] = ()

    @property
    def problem(self) -> str:
        """Why it is never due, though it should be: the file may have been edited, or come from another computer."""
        if not is_zone(self.zone):
            return f"this computer knows no time zone {self.zone!r}"
        try:
            schedule_rule(self.when)
        except ConfigError as error:
            return error.what.rstrip(".")
        return ""

    def next_after(self, moment: float) -> float | None:
        """Give when it is due next, after a moment; None where it never is."""
        if self.problem:
            return None
        after, begun = (datetime.fromtimestamp(one, UTC) for one in (moment, self.created))
        found = next_due(schedule_rule(self.when), ZoneInfo(self.zone), after, begun)
        return None if found is None else found.timestamp()

    @property
    def next(self) -> float | None:
        """When it is due next; None where that is never, or while it is paused."""
        return None if self.paused else self.next_after(self.handled)


def schedules_file() -> Path:
    """Name the file."""
    return data_directory() / "schedules.json"


def read_schedules() -> tuple[Schedule, ...]:
    """Give all schedules. Raises `StoreError`."""
    try:
        return msgspec.json.decode(schedules_file().read_bytes(), type=tuple[Schedule, ...])
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(
            "schedules-unreadable",
            "The schedules cannot be read.",
            why=str(error),
            fix=f"Correct {schedules_file()}, or move it away and add the schedules again.",
        ) from error


@contextmanager
def _changing() -> Iterator[list[Schedule]]:
    """Let the schedules be changed while no other process does; what is in the list at the end is kept."""
    try:
        with alone(data_directory()):
            before = read_schedules()
            now = list(before)
            yield now
            if tuple(now) != before:
                write_private(schedules_file(), msgspec.json.format(msgspec.json.encode(now)))
    except OSError as error:
        raise StoreError(
            "schedules-unreadable", "The schedules cannot be changed.", why=str(error), fix="Check the data folder."
        ) from error


def own_zone() -> str:
    """Name the time zone of this computer, or of `TZ`; UTC where it has no name."""
    named = os.environ.get("TZ", "").removeprefix(":")
    path = os.path.realpath(named if named.startswith("/") else "/etc/localtime")
    for name in (named, path.rpartition("/zoneinfo/")[2]):
        if name and is_zone(name):
            return name
    return "UTC"


def is_zone(name: str) -> bool:
    """Whether there is a time zone of this name."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def add_schedule(wanted: Schedule) -> Schedule:
    """Keep a new schedule, with an id of its own. Raises `ConfigError` where it is never due, or `StoreError`."""
    if not is_zone(wanted.zone):
        fix = "Name one such as Europe/Berlin. Where none is known, install the system's package tzdata."
        raise ConfigError("schedule-time", f"{wanted.zone!r} is no time zone of this computer.", fix=fix)
    schedule_rule(wanted.when)
    if wanted.next is None:
        raise ConfigError("schedule-time", f"{wanted.when!r} is over.", fix="Name a time that is still to come.")
    with _changing() as all_of_them:
        known = {one.id for one in all_of_them}
        name = next(name for _ in range(1_000) if (name := os.urandom(2).hex()) not in known)
        added = replace(wanted, id=name)
        all_of_them.append(added)
    return added


def remove_schedule(schedule_id: str) -> Schedule:
    """Remove a schedule; a run of it that works goes on. Raises `ConfigError`, `StoreError`."""
    with _changing() as all_of_them:
        found = _named(all_of_them, schedule_id)
        all_of_them.remove(found)
    return found


def pause_schedule(schedule_id: str, *, paused: bool) -> Schedule:
    """Begin no runs of a schedule for now, or begin them again; those in between are not missed.

    Raises `ConfigError`, `StoreError`.
    """
    with _changing() as all_of_them:
        found = _named(all_of_them, schedule_id)
        handled = time.time() if found.paused and not paused else found.handled
        changed = replace(found, paused=paused, handled=handled)
        all_of_them[all_of_them.index(found)] = changed
    return changed


def _named(schedules: Sequence[Schedule], schedule_id: str) -> Schedule:
    for one in schedules:
        if one.id == schedule_id:
            return one
    raise ConfigError(
        "schedule-unknown", f"There is no schedule {schedule_id!r}.", fix="`treadle schedule list` lists all."
    )


def take_due(now: float) -> list[tuple[Schedule, ScheduledRun]]:
    """Take what is due for this process alone: what it takes no other one takes. Raises `StoreError`."""
    taken = []
    with _changing() as all_of_them:
        for place, kept in enumerate(all_of_them):
            one = all_of_them[place] = _without_future(kept, now)
            due = one.next
            if due is None or due > now:
                continue
            handled, run = _handled(one, due, now)
            all_of_them[place] = handled
            if run is not None:
                taken.append((handled, run))
    return taken


def _without_future(schedule: Schedule, now: float) -> Schedule:
    """Forget what a clock that was ahead has handled: else nothing would be due until then.

    A clock that is set a little, or is another server's, begins none twice.
    """
    if schedule.handled - now <= _APART:
        return schedule
    missed = 0 if schedule.last_missed > now else schedule.missed  # nobody knows how many of them were
    return replace(schedule, handled=now, missed=missed, last_missed=schedule.last_missed if missed else 0.0)


def _handled(schedule: Schedule, due: float, now: float) -> tuple[Schedule, ScheduledRun | None]:
    """Count what was missed; the newest that is due is run, unless it is too late."""
    missed, passed, following = 0, schedule.last_missed, schedule.next_after(due)
    while following is not None and following <= now and missed < _MOST_COUNTED:
        missed, passed, due, following = missed + 1, due, following, schedule.next_after(following)
    uncounted = following is not None and following <= now
    if uncounted:  # so many that only one matters that still begins
        last = schedule.next_after(now - LATE)
        due = last if last is not None and last <= now else due
    late = now - due > LATE
    run = None if late else ScheduledRun(due=due)
    handled = replace(
        schedule,
        handled=now,
        missed=schedule.missed + missed + late,
        last_missed=0.0 if uncounted else due if late else passed,  # nobody knows the last of so many
        runs=schedule.runs if run is None else (*schedule.runs, run)[-_KEPT_RUNS:],
    )
    return handled, run


def note_run(schedule_id: str, run: ScheduledRun) -> None:
    """Keep what became of a run. Raises `StoreError`."""
    with _changing() as all_of_them:
        for place, one in enumerate(all_of_them):
            if one.id == schedule_id:
                runs = tuple(run if kept.due == run.due else kept for kept in one.runs)
                all_of_them[place] = replace(one, runs=runs)


def is_unknown(run: ScheduledRun, now: float) -> bool:
    """Whether the program that took a run ended before it could say what became of it."""
    return not run.session and not run.problem and now - run.due > _BEGINS_WITHIN + LATE
