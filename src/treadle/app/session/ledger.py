"""The ledger of edits: how well each model writes each edit format, read off the events as they are logged."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct, field

from treadle.engine.ports import EventLog
from treadle.protocol.base import Record
from treadle.protocol.events import CallFinished, Event, ReplyFinished, SessionStarted, SetModel
from treadle.protocol.tools import EditReport
from treadle.store.sqlite import EditCount, Store

OK = "ok"
EDIT_TOOLS = frozenset({"replace_in_file", "apply_patch"})
"""The tools of which a model is told one."""

_TOOL_OF_FORMAT = MappingProxyType({"search_replace": "replace_in_file", "apply_patch": "apply_patch"})
_DEFAULT = "replace_in_file"
_TRAINED_ON_PATCHES = ("gpt-5", "gpt-4.1", "codex", "o3", "o4-mini")
_ENOUGH = 20
"""First tries of a format before its rate counts as evidence."""

_POOR = 0.8
"""A default format is left when its first-try rate is under this and the other format does better."""


def choose_edit_tool(model: str, counts: Sequence[EditCount]) -> str:
    """Choose the edit tool for a model: what it was trained on, unless the ledger shows that it does it badly."""
    name = model.rpartition("/")[2]
    default = "apply_patch" if name.startswith(_TRAINED_ON_PATCHES) else _DEFAULT
    rates = first_try_rates(counts)
    own = next((rates[form] for form, tool in _TOOL_OF_FORMAT.items() if tool == default and form in rates), None)
    if own is None or own >= _POOR:
        return default
    others = {tool: rates.get(form) for form, tool in _TOOL_OF_FORMAT.items() if tool != default}
    untried = next((tool for tool, rate in others.items() if rate is None), None)
    better = next((tool for tool, rate in others.items() if rate is not None and rate > own), None)
    return better or untried or default


def first_try_rates(counts: Sequence[EditCount]) -> Mapping[str, float]:
    """Give the share of first tries that were applied, for each format with enough of them."""
    tries: dict[str, int] = {}
    good: dict[str, int] = {}
    for one in counts:
        if one.repair:
            continue
        tries[one.format] = tries.get(one.format, 0) + one.count
        good[one.format] = good.get(one.format, 0) + (one.count if one.code == OK else 0)
    return {form: good[form] / tries[form] for form in tries if tries[form] >= _ENOUGH}


class LedgerRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One model and format: first tries, how they came out, what repairs cost (tokens that the model wrote)."""

    model: str
    format: str
    first_tries: int
    first_try_rate: float
    refused: dict[str, int]
    repairs: int
    repair_tokens: int


def ledger_rows(counts: Sequence[EditCount]) -> list[LedgerRow]:
    """Sum up the ledger."""
    kinds = dict.fromkeys((one.model, one.format) for one in counts)
    return [_row([one for one in counts if (one.model, one.format) == kind]) for kind in kinds]


def _row(counts: Sequence[EditCount]) -> LedgerRow:
    first = [one for one in counts if not one.repair]
    repairs = [one for one in counts if one.repair]
    tries = sum(one.count for one in first)
    refused: dict[str, int] = {}
    for one in counts:
        if one.code != OK:
            refused[one.code] = refused.get(one.code, 0) + one.count
    return LedgerRow(
        model=counts[0].model,
        format=counts[0].format,
        first_tries=tries,
        first_try_rate=sum(one.count for one in first if one.code == OK) / tries if tries else 0.0,
        refused=refused,
        repairs=sum(one.count for one in repairs),
        repair_tokens=sum(one.tokens for one in repairs),
    )


class Ledger(Struct):
    """What is remembered of a session to tell a first try from a repair."""

    model: str = ""
    tokens: int = 0
    refused: set[str] = field(default_factory=set)

    def take(self, event: Event) -> Iterator[EditCount]:
        """Read one event; yields what it adds to the ledger."""
        match event.data:
            case SessionStarted(model=model) | SetModel(model=model):
                self.model = model
            case ReplyFinished(usage=usage):
                self.tokens = usage.output_tokens
            case CallFinished(result=result):
                yield from (self._count(report) for report in result.edits)
            case _:
                return

    def _count(self, report: EditReport) -> EditCount:
        repair = report.path in self.refused
        if report.code == OK:
            self.refused.discard(report.path)
        else:
            self.refused.add(report.path)
        return EditCount(model=self.model, format=report.format, code=report.code, repair=repair, tokens=self.tokens)


class LedgerLog:
    """An event log that keeps the ledger on the side."""

    def __init__(self, log: EventLog, store: Store, history: Sequence[Event]) -> None:
        self._log = log
        self._store = store
        self._ledger = Ledger()
        for event in history:
            for _ in self._ledger.take(event):
                pass

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        """Append, then count."""
        await self._log.append(events, durable=durable)
        counts = [count for event in events for count in self._ledger.take(event)]
        if counts:
            await self._store.count_edits(counts)
