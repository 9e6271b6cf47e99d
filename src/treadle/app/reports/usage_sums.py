"""What a session used, summed up from its log by time, model, mode and tool; a log that goes on is read from there."""

from collections.abc import Iterable, Iterator
from math import fsum

from msgspec import field
from msgspec.structs import replace

from treadle.app.models.model_notes import NO_MODELS
from treadle.context.sizes import bytes_of_text
from treadle.context.transcript import estimated_tokens
from treadle.present.spending_words import Spending
from treadle.protocol.base import Record
from treadle.protocol.checkpoints import Parent
from treadle.protocol.events import (
    CallFinished,
    CallProposed,
    ContextReady,
    Event,
    ReplyFailed,
    ReplyFinished,
    Resumed,
    SessionStarted,
    SetMode,
    SetModel,
    SummaryWritten,
    TimerFired,
)
from treadle.protocol.messages import ResultContent, Text
from treadle.protocol.models import ModelChoice
from treadle.protocol.sealed import ModelReplaced, ResultMade, RetryPlanned, SideAnswered, SideAsked, TurnSettled
from treadle.protocol.tools import CallResult, Outcome
from treadle.protocol.usage import Usage

SLOT = 15 * 60 * 1000
"""Milliseconds for which one sum is kept: every time zone's midnight is at the edge of one."""

OF_TOOLS = "(used by tools)"
"""In the place of the model where a call itself used one."""

NO_TOOL = "(no tool)"
"""In the place of the tool for what no call used or brought."""

_MEDIA_TOKENS = 1_500
_FAILED = (Outcome.FAILED, Outcome.INVALID)
_DENIED = (Outcome.DENIED, Outcome.REJECTED)
_TAKEN = frozenset(
    {
        SessionStarted,
        SetModel,
        SetMode,
        ModelReplaced,
        TurnSettled,
        ContextReady,
        TimerFired,
        Resumed,
        ReplyFinished,
        ReplyFailed,
        SummaryWritten,
        SideAsked,
        SideAnswered,
        CallProposed,
        CallFinished,
        ResultMade,
        RetryPlanned,
    }
)


class Amounts(Record, frozen=True, kw_only=True):
    """What was used: `requests` to models with their tokens and price, and calls with what the model read of them.

    `cost` is US dollars as far as it is known; `unpriced` counts what has an unknown price, `uncounted` the requests
    of which the provider did not say what they used. `result_tokens` are estimated.
    """

    requests: int = 0
    usage: Usage = Usage()
    cost: float = 0.0
    unpriced: int = 0
    uncounted: int = 0
    calls: int = 0
    failed: int = 0
    denied: int = 0
    result_tokens: int = 0


def sum_amounts(amounts: Iterable[Amounts]) -> Amounts:
    """Add amounts up, in whatever order."""
    found = list(amounts)
    numbers = ("requests", "unpriced", "uncounted", "calls", "failed", "denied", "result_tokens")
    return Amounts(
        usage=sum((one.usage for one in found), start=Usage()),
        cost=fsum(one.cost for one in found),
        **{name: sum(getattr(one, name) for one in found) for name in numbers},
    )


class UsageSlot(Record, frozen=True, kw_only=True):
    """What was used in one quarter of an hour (`slot`, counted from 1970, UTC), by one model, mode and tool."""

    slot: int
    model: str
    mode: str
    tool: str
    amounts: Amounts

    @property
    def key(self) -> "_Key":
        """What it is the sum of."""
        return (self.slot, self.model, self.mode, self.tool)


class _OpenCall(Record, frozen=True, kw_only=True):
    """A call whose outcome may still come, or be replaced: what was counted of it last, and where."""

    model: str
    tool: str
    mode: str
    slot: int = 0
    amounts: Amounts = Amounts()


class LoggedUsage(Record, frozen=True, kw_only=True):
    """What a log says was used, up to event number `through`; what else is here is needed to read on from there.

    `chosen` is the model that the user chose, `model` the one that is called, `sent` the one of the last request. While
    a limit's reset is waited for (`waits`), another model gets the request as soon as it is chosen. `begun`: since the
    last turn ended a call may have begun.
    """

    through: int = 0
    slots: tuple[UsageSlot, ...] = ()
    shared: int = 0
    chosen: str = ""
    model: str = ""
    sent: str = ""
    mode: str = ""
    waits: bool = False
    begun: bool = False
    open_calls: dict[str, _OpenCall] = field(default_factory=dict)

    @property
    def spending(self) -> Spending:
        """What all of it cost, as far as that is known."""
        total = sum_amounts(one.amounts for one in self.slots)
        return Spending(ended=total.cost, unpriced=total.unpriced > 0, estimated=total.usage.estimated)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that had requests, the first called first."""
        return tuple(dict.fromkeys(one.model for one in self.slots if one.amounts.requests))


class SessionUsage(Record, frozen=True, kw_only=True):
    """What a session used; of one that is not `whole` a part of the log is missing or cannot be read.

    `project` is the folder that it works for, also where it works in a copy of that, or as a subagent. Calls of
    which nobody will tell what they used, since their program was killed, are in it as unpriced.
    """

    id: str
    project: str
    usage: LoggedUsage
    whole: bool


def spending_of(usage: LoggedUsage | None, *, lost: int) -> Spending:
    """Give what a log says was spent; unknown is that of a log that was not read, and of calls that were `lost`."""
    return Spending(unpriced=True) if usage is None else with_lost(usage, lost, 0).spending


def with_lost(usage: LoggedUsage, calls: int, at: int) -> LoggedUsage:
    """Add calls that were lost at a time (milliseconds since 1970): that there were these is all that is known."""
    model = usage.sent or usage.model
    if not calls or model in NO_MODELS:
        return usage
    lost = Amounts(requests=calls, unpriced=calls, uncounted=calls)
    slot = UsageSlot(slot=at // SLOT, model=model, mode=usage.mode, tool=NO_TOOL, amounts=lost)
    return replace(usage, slots=(*usage.slots, slot))


_Key = tuple[int, str, str, str]


class UsageReader:
    """Reads a log event by event, from its beginning or from where an earlier reader stopped."""

    def __init__(self, known: LoggedUsage = LoggedUsage()) -> None:  # noqa: B008 - it is frozen
        self._through, self._shared = known.through, known.shared
        self._chosen, self._model, self._sent, self._mode = known.chosen, known.model, known.sent, known.mode
        self._waits, self._begun = known.waits, known.begun
        self._open = dict(known.open_calls)
        self._slots: dict[_Key, list[Amounts]] = {one.key: [one.amounts] for one in known.slots}

    def take(self, event: Event) -> None:
        """Read the next event."""
        self._through = event.seq
        if type(event.data) in _TAKEN:
            self._follow(event)
            self._note_begun(event)
            self._count(event)

    def logged(self) -> LoggedUsage:
        """Give the sums, and what the next reader needs."""
        return LoggedUsage(
            through=self._through,
            slots=tuple(self._summed()),
            shared=self._shared,
            chosen=self._chosen,
            model=self._model,
            sent=self._sent,
            mode=self._mode,
            waits=self._waits,
            begun=self._begun,
            open_calls=self._open,
        )

    def _summed(self) -> Iterator[UsageSlot]:
        for (slot, model, mode, tool), parts in self._slots.items():
            amounts = sum_amounts(parts)
            if amounts != Amounts():
                yield UsageSlot(slot=slot, model=model, mode=mode, tool=tool, amounts=amounts)

    def _follow(self, event: Event) -> None:
        """Keep track of who is called in which mode. A request that is out is the old model's."""
        match event.data:
            case SessionStarted(choice=choice, mode=mode, parent=parent):
                self._chosen = self._model = self._sent = choice.model
                self._mode = mode
                self._shared = parent.seq if isinstance(parent, Parent) else 0
            case SetModel(choice=choice):
                self._choose(choice)
            case SetMode(mode=mode, choice=choice):
                self._mode = mode
                self._choose(choice)
            case RetryPlanned(until=until):
                self._waits = until > 0
            case ModelReplaced(model=model):
                self._model = self._sent = model
            case TurnSettled():
                self._model = self._chosen
            case ContextReady() | TimerFired() | Resumed():
                self._sent, self._waits = self._model, False
                if isinstance(event.data, ContextReady):
                    self._open.clear()  # the model has their results now
            case CallProposed(call=call):
                self._open[call.id] = _OpenCall(model=self._sent, tool=call.name, mode=self._mode)
            case _:
                pass

    def _note_begun(self, event: Event) -> None:
        match event.data:
            case ContextReady() | SideAsked():
                self._begun = True
            case TurnSettled(state=state):
                self._begun = bool(state.get("asked"))
            case _:
                pass

    def _choose(self, choice: ModelChoice | None) -> None:
        if choice is None:
            return
        self._chosen = self._model = choice.model
        if self._waits:
            self._sent, self._waits = choice.model, False

    def _count(self, event: Event) -> None:
        match event.data:
            case ReplyFinished(usage=usage, cost=cost):
                self._request(event, self._sent, usage, cost, uncounted=not usage.context_tokens)
            case ReplyFailed(usage=usage, cost=cost, error=error) if not error.paced:
                self._request(event, self._sent, usage, cost)
            case SummaryWritten(usage=usage, cost=cost) | SideAnswered(usage=usage, cost=cost):
                self._request(event, self._model, usage, cost)
            case CallFinished(call_id=call_id, result=result):
                self._spent_by_call(event, call_id, result)
                self._result(event, call_id, result)
            case ResultMade(call_id=call_id, result=result):
                self._result(event, call_id, result)
            case _:
                pass

    def _request(self, event: Event, model: str, usage: Usage, cost: float | None, *, uncounted: bool = False) -> None:
        if model in NO_MODELS:  # no model was called
            return
        amounts = Amounts(
            requests=1, usage=usage, cost=cost or 0.0, unpriced=int(cost is None), uncounted=int(uncounted)
        )
        self._add(event, (event.at // SLOT, model, self._mode, NO_TOOL), amounts)

    def _spent_by_call(self, event: Event, call_id: str, result: CallResult) -> None:
        """Count the models that a call used. Each time that it ran counts."""
        if result.usage != Usage() or result.cost is None or result.cost:
            tool = self._open[call_id].tool if call_id in self._open else NO_TOOL
            amounts = Amounts(usage=result.usage, cost=result.cost or 0.0, unpriced=int(result.cost is None))
            self._add(event, (event.at // SLOT, OF_TOOLS, self._mode, tool), amounts)

    def _result(self, event: Event, call_id: str, result: CallResult) -> None:
        """Count a call by its last result: what the machine makes of it stands in place of what it brought."""
        call = self._open.get(call_id)
        if call is None:
            return
        slot = call.slot or event.at // SLOT
        now = Amounts(
            calls=1,
            failed=int(result.outcome in _FAILED),
            denied=int(result.outcome in _DENIED),
            result_tokens=_tokens_of(result.content),
        )
        key = (slot, call.model, call.mode, call.tool)
        self._add(event, key, _less(now, call.amounts))
        self._open[call_id] = _OpenCall(model=call.model, tool=call.tool, mode=call.mode, slot=slot, amounts=now)

    def _add(self, event: Event, key: _Key, amounts: Amounts) -> None:
        """Add to a sum, unless another session has counted it already: the one that this one was copied from."""
        if event.seq > self._shared:
            self._slots.setdefault(key, []).append(amounts)


def _less(now: Amounts, before: Amounts) -> Amounts:
    return Amounts(
        calls=now.calls - before.calls,
        failed=now.failed - before.failed,
        denied=now.denied - before.denied,
        result_tokens=now.result_tokens - before.result_tokens,
    )


def _tokens_of(content: tuple[ResultContent, ...]) -> int:
    return sum(
        estimated_tokens(bytes_of_text(block.text)) if isinstance(block, Text) else _MEDIA_TOKENS for block in content
    )
