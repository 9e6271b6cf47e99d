"""How far a batch is: one value for its line on the terminal and for the page, and the words for it."""

from collections.abc import Mapping, Sequence

from treadle.present.spending_words import Spending
from treadle.present.words import counted
from treadle.protocol.base import Record
from treadle.protocol.models import money

_SECONDS_A_DAY = 86_400


class TaskMark(Record, frozen=True, kw_only=True):
    """A task that ended: how, why where that has a name, in which session, and what it cost (None: not known)."""

    id: str
    state: str
    kind: str = ""
    session: str = ""
    cost: float | None = 0.0


class BatchProgress(Record, frozen=True, kw_only=True):
    """A batch as it is at `at` (ms since 1970). `tasks` are to be done this time, of which `states` have ended.

    `before` are those that had ended when it began. `process` names who does it; `exit_code` is None as long as it
    works, `stopping` that it hands its tasks back. `most` is the limit of its money (US dollars), `database` where
    a fleet shares it, without its password. `command` are the words with which it was begun, in the folder
    `began_in`; empty where nobody else begins it again. `chosen` names the tasks of this time, `besides` those of
    its file that are not meant, in small letters; both are empty in a fleet, and in what an older version wrote.
    `sessions` are those of begun tasks that have not ended. `heard` lines of the file of added tasks were read;
    `refused` says what is wrong with those that were left out, by their number.
    """

    run: str
    folder: str
    process: str
    began_at: int
    at: int
    tasks: int
    workers: int
    spending: Spending
    most: float | None = None
    database: str = ""
    exit_code: int | None = None
    stopping: bool = False
    command: Sequence[str] = ()
    began_in: str = ""
    chosen: Sequence[str] = ()
    besides: Sequence[str] = ()
    heard: int = 0
    refused: Mapping[int, str] = {}
    states: Mapping[str, int] = {}
    running: Mapping[str, str] = {}
    sessions: Mapping[str, str] = {}
    ended: Sequence[TaskMark] = ()
    before: Sequence[TaskMark] = ()

    @property
    def taken(self) -> frozenset[str]:
        """The names that no other task can have, in small letters."""
        marks = (mark.id for mark in (*self.before, *self.ended))
        return frozenset(name.lower() for name in (*self.chosen, *self.besides, *self.running, *marks))

    @property
    def waiting(self) -> Sequence[str]:
        """The tasks of this time that have not ended and are not worked on, as far as their names are known."""
        ended = {mark.id for mark in self.ended}
        return [name for name in self.chosen if name not in ended and name not in self.running]

    @property
    def done(self) -> int:
        """How many have ended this time."""
        return sum(self.states.values())

    @property
    def a_minute(self) -> float | None:
        """How many end in a minute; None while none has."""
        seconds = (self.at - self.began_at) / 1000
        return 60 * self.done / seconds if self.done and seconds > 0 else None

    @property
    def cost_at_end(self) -> float | None:
        """About what all of it will have cost (US dollars); None while nobody can say, and where nothing is left."""
        left = self.tasks - self.done
        if not self.done or left <= 0 or self.exit_code is not None or self.spending.unpriced:
            return None
        return self.spending.total + self.spending.turn / self.done * left

    @property
    def seconds_left(self) -> float | None:
        """About how long it takes; None while nobody can say, and where nothing is left."""
        rate, left = self.a_minute, self.tasks - self.done
        return 60 * left / rate if rate and left > 0 and self.exit_code is None else None


def progress_line(one: BatchProgress) -> str:
    """Say in a line how far it is: what ended, what it costs, how long it may take, and what runs."""
    states = [f"{number} {state}" for state, number in sorted(one.states.items())]
    left = one.seconds_left
    rest = [] if left is None else [f"about {long_span(left)} left"]
    running = [f"{name}: {step}" for name, step in one.running.items()]
    return " · ".join([f"{one.done}/{one.tasks}", *states, spent_of(one), *rest, *running])


_STEPS = {
    "": "Begins",
    "prepare": "Prepares its copy",
    "run": "Works",
    "collect": "Collects its changes",
    "check": "Runs the check",
}


def step_words(step: str) -> tuple[str, str]:
    """Say what a task does now, and how many steps its model has made, of what its batch says: `run 3`."""
    doing, _, number = step.partition(" ")
    return _STEPS.get(doing, doing), counted(int(number), "step") if number.isdecimal() else ""


def spent_of(one: BatchProgress) -> str:
    """Say what it has cost, of how much."""
    return " of ".join(filter(None, spent_parts(one)))


def spent_parts(one: BatchProgress) -> tuple[str, str]:
    """Say what it has cost, and what it may; empty without a limit."""
    return one.spending.words, "" if one.most is None else money(one.most)


def long_span(seconds: float) -> str:
    """Say a time that may be long, in minutes, hours or days."""
    if seconds >= _SECONDS_A_DAY:
        return f"{seconds / _SECONDS_A_DAY:.1f} days"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{max(1, minutes)} min"
