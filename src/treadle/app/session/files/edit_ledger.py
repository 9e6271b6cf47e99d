"""The ledger of edits: how well each model writes each edit format, read off the events as they are logged."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType

from msgspec import Struct, field

from treadle.app.models.model_notes import plain_ref
from treadle.protocol.base import Record
from treadle.protocol.events import (
    CallFinished,
    CallProposed,
    Event,
    ReplyFinished,
    SessionStarted,
    SetMode,
    SetModel,
)
from treadle.protocol.models import ModelChoice
from treadle.protocol.sealed import ModelReplaced, TurnSettled
from treadle.protocol.tools import EditReport
from treadle.store.edit_counts import EditCount, ReadingCount
from treadle.store.spent import day_of
from treadle.store.sqlite import Store
from treadle.tools.declarations import APPLY_PATCH, REPLACE_IN_FILE

OK = "ok"
EDIT_TOOLS = frozenset({REPLACE_IN_FILE.name, APPLY_PATCH.name})
"""The tools of which a model is given one."""

_TOOL_OF_FORMAT = MappingProxyType({"search_replace": REPLACE_IN_FILE.name, "apply_patch": APPLY_PATCH.name})
_DEFAULT = REPLACE_IN_FILE.name
_TRAINED_ON_PATCHES = ("gpt-5", "gpt-4.1", "codex", "o3", "o4-mini")
_IDLE = frozenset({"no_change", "already_applied", "changed_since"})
"""What says nothing of how a model writes a format: there was nothing to do, or the file was another one by then."""

_WINDOW = timedelta(days=30)
"""What is longer ago has no part in the choice, so a format that was given up is tried again."""

_ENOUGH = 30
"""First tries of a format within the window before they are evidence."""

_GOOD = 0.8
"""A default format whose rate may well be this is kept."""

_BAD = 0.5
"""A default format whose rate is surely below this gives way to one of which too little is known."""

_SIGMAS = 1.96
"""Of the margin of a rate: right in 95 % of cases."""


class FirstTries(Struct, frozen=True):
    """First tries of a format within the window, and the bounds of the rate of applied ones (Wilson's interval)."""

    tries: int = 0
    applied: int = 0

    @property
    def enough(self) -> bool:
        """Whether they are evidence."""
        return self.tries >= _ENOUGH

    @property
    def low(self) -> float:
        """The rate is surely not below this."""
        return self._bound(-1)

    @property
    def high(self) -> float:
        """The rate is surely not above this."""
        return self._bound(1)

    def _bound(self, side: int) -> float:
        if not self.tries:
            return max(0.0, float(side))
        rate, tries, square = self.applied / self.tries, self.tries, _SIGMAS**2
        margin = _SIGMAS * math.sqrt(rate * (1 - rate) / tries + square / (4 * tries**2))
        return (rate + square / (2 * tries) + side * margin) / (1 + square / tries)


class ReadingsRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What was read for one model: in how many calls, by the code of the reading (`parsing/readings.py`)."""

    model: str
    readings: dict[str, int]


def readings_rows(counts: Sequence[ReadingCount]) -> list[ReadingsRow]:
    """Sum up what was read for each model, the most frequent first."""
    sums: dict[str, dict[str, int]] = {}
    for one in counts:
        of_model = sums.setdefault(one.model, {})
        of_model[one.code] = of_model.get(one.code, 0) + one.count
    return [
        ReadingsRow(model=model, readings=dict(sorted(found.items(), key=lambda one: (-one[1], one[0]))))
        for model, found in sums.items()
    ]


def choose_edit_tool(model: str, counts: Sequence[EditCount], today: date) -> str:
    """Choose the edit tool for a model: what it was trained on, unless the ledger surely shows that it does it badly.

    `counts` are those of the model. The other tool must be surely better, or untried where the default is bad.
    """
    name = model.rpartition("/")[2]
    default, other = _DEFAULT, APPLY_PATCH.name
    if name.startswith(_TRAINED_ON_PATCHES):
        default, other = other, default
    tries = {tool: first_tries(counts, form, today) for form, tool in _TOOL_OF_FORMAT.items()}
    own, rival = tries[default], tries[other]
    if not own.enough or own.high >= _GOOD:
        return default
    if rival.enough:
        return other if rival.low > own.high else default
    return other if own.high < _BAD else default


def first_tries(counts: Sequence[EditCount], form: str, today: date) -> FirstTries:
    """Sum up the first tries of a format that are evidence."""
    since = (today - _WINDOW).isoformat()
    telling = [
        one for one in counts if one.format == form and not one.repair and one.code not in _IDLE and one.day > since
    ]
    return FirstTries(sum(one.count for one in telling), sum(one.count for one in telling if one.code == OK))


def today() -> date:
    """The present day (UTC), as the ledger counts days."""
    return datetime.now(UTC).date()


class LedgerRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One model and format: first tries, how they came out, what repairs cost (tokens that the model wrote).

    `recent_tries` are those of the last 30 days that are evidence, `recent_low` and `recent_high` the bounds of
    their rate; `chosen` says whether the model is given the tool of this format.
    """

    model: str
    format: str
    first_tries: int
    first_try_rate: float
    refused: dict[str, int]
    repairs: int
    repair_tokens: int
    recent_tries: int = 0
    recent_low: float = 0.0
    recent_high: float = 1.0
    chosen: bool = False


def ledger_rows(counts: Sequence[EditCount], today: date) -> list[LedgerRow]:
    """Sum up the ledger."""
    models = {model: [one for one in counts if one.model == model] for model in dict.fromkeys(o.model for o in counts)}
    return [
        _row(own, form, today, chosen=_TOOL_OF_FORMAT.get(form) == choose_edit_tool(model, own, today))
        for model, own in models.items()
        for form in dict.fromkeys(one.format for one in own)
    ]


def _row(model_counts: Sequence[EditCount], form: str, today: date, *, chosen: bool) -> LedgerRow:
    counts = [one for one in model_counts if one.format == form]
    first = [one for one in counts if not one.repair]
    repairs = [one for one in counts if one.repair]
    tries = sum(one.count for one in first)
    refused: dict[str, int] = {}
    for one in counts:
        if one.code != OK:
            refused[one.code] = refused.get(one.code, 0) + one.count
    recent = first_tries(counts, form, today)
    return LedgerRow(
        model=counts[0].model,
        format=form,
        first_tries=tries,
        first_try_rate=sum(one.count for one in first if one.code == OK) / tries if tries else 0.0,
        refused=refused,
        repairs=sum(one.count for one in repairs),
        repair_tokens=sum(one.tokens for one in repairs),
        recent_tries=recent.tries,
        recent_low=round(recent.low, 3),
        recent_high=round(recent.high, 3),
        chosen=chosen,
    )


class Ledger(Struct):
    """What is remembered of a session to tell a first try from a repair, and whose it was.

    `model` is the one that is called, without the profile of its key; `chosen` is called again after the turn.
    """

    model: str = ""
    chosen: str = ""
    tokens: int = 0
    refused: set[str] = field(default_factory=set)

    def take(self, event: Event) -> Iterator[EditCount | ReadingCount]:
        """Read one event; yields what it adds to the ledger."""
        match event.data:
            case SessionStarted(choice=choice) | SetModel(choice=choice) | SetMode(choice=ModelChoice() as choice):
                self.model = self.chosen = plain_ref(choice.model)
            case ModelReplaced(model=model):
                self.model = plain_ref(model)
            case TurnSettled():
                self.model = self.chosen
            case CallProposed(readings=readings) if readings:
                day = day_of(event.at)
                yield from (ReadingCount(model=self.model, code=code, day=day) for code in readings)
            case ReplyFinished(usage=usage):
                self.tokens = usage.output_tokens
            case CallFinished(result=result):
                yield from (self._count(report, day_of(event.at)) for report in result.edits)
            case _:
                return

    def follow(self, event: Event) -> None:
        """Read one event that was counted when it happened."""
        for _ in self.take(event):
            pass

    def _count(self, report: EditReport, day: str) -> EditCount:
        repair = report.path in self.refused
        if report.code == OK:
            self.refused.discard(report.path)
        elif report.code not in _IDLE:
            self.refused.add(report.path)
        return EditCount(
            model=self.model, format=report.format, code=report.code, repair=repair, day=day, tokens=self.tokens
        )


class LedgerObserver:
    """Keeps the ledger as events are logged."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    async def __call__(self, events: Sequence[Event], /) -> None:
        """Count the edits and the readings among them."""
        counts = [count for event in events for count in self._ledger.take(event)]
        if counts:
            edits = [one for one in counts if isinstance(one, EditCount)]
            await self._store.count_edits(edits, [one for one in counts if isinstance(one, ReadingCount)])
