"""Running the calls of a session again in a copy of its files, to see what comes out differently now."""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path

import msgspec
from msgspec import Struct

from treadle.app.compose import Opening, open_session, session_log
from treadle.app.history.branching import copied_files
from treadle.app.history.session_export import with_each_text
from treadle.app.models.model_choice import OwnModel
from treadle.app.models.model_notes import RECORDED
from treadle.app.session.shared.turn_asking import SessionClient
from treadle.present.words import clip_text, counted
from treadle.protocol.base import Record
from treadle.protocol.events import CallFinished, CallProposed, Event, ReplyFinished, Source
from treadle.protocol.messages import Text, text_of
from treadle.protocol.models import (
    ModelRequest,
    ModelSpec,
    Prices,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
)
from treadle.protocol.notifications import CallChanged, CallStatus, Notification
from treadle.protocol.sealed import ResultMade, TurnSettled
from treadle.protocol.tools import CallResult, Flow, Outcome, ToolCall
from treadle.protocol.usage import Usage

_SPEC = ModelSpec(provider="scripted", name=RECORDED, prices=Prices(input=0.0, output=0.0))
_REPLAY = Source(kind="replay", id="main")
_PROMPT = (Text(text="Run the recorded calls again."),)
"""What was asked then could enclose files, or run commands."""

_RAN = (Outcome.OK, Outcome.FAILED)
_LONGEST = 160


class RecordedCall(Struct):
    """A call of a session that ran, and what came of it."""

    step: int
    call: ToolCall
    result: CallResult | None = None


class DriftOutcome(StrEnum):
    """What came of a call that was run again."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_RUN = "not_run"


class Drift(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What came of one call now; for one that was not run `now` is the reason. Texts are first lines."""

    step: int
    tool: str
    outcome: DriftOutcome
    recorded: str
    now: str


RecordedTurn = list[list[RecordedCall]]
"""The calls of each reply of a turn."""


def recorded_turns(events: Iterable[Event]) -> list[RecordedTurn]:
    """Read what a session called, turn by turn, but for calls that only mean something to the loop, or never ran."""
    turns: list[RecordedTurn] = [[]]
    open_calls: dict[str, RecordedCall] = {}
    for event in events:
        match event.data:
            case CallProposed(call=call, traits=traits, step=step) if traits.flow is Flow.RUN and not call.problem:
                open_calls[call.id] = RecordedCall(step, call)
            case ReplyFinished(step=step):
                turns[-1].append([one for one in open_calls.values() if one.step == step])
            case CallFinished(call_id=call_id, result=result) | ResultMade(call_id=call_id, result=result):
                if call_id in open_calls:
                    open_calls[call_id].result = result
            case TurnSettled():
                turns.append([])
                open_calls.clear()
            case _:
                pass
    ran = ([[one for one in reply if _ran(one)] for reply in turn] for turn in turns)
    return [turn for replies in ran if (turn := [reply for reply in replies if reply])]


def _ran(one: RecordedCall) -> bool:
    return one.result is not None and one.result.outcome in _RAN


class RecordedReplies:
    """A model that makes the recorded calls again, with the paths of the copy."""

    def __init__(self, moved: Callable[[str], str]) -> None:
        self._moved = moved
        self.waiting: deque[list[RecordedCall]] = deque()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:  # noqa: ARG002 - the port's shape
        """Give the next reply."""
        if not self.waiting:
            yield StreamText(text="These are all calls of the turn.")
            yield StreamStop(reason=ReplyStop.END_TURN, usage=Usage())
            return
        for index, one in enumerate(self.waiting.popleft()):
            arguments = msgspec.json.encode(with_each_text(one.call.arguments, self._moved)).decode()
            yield StreamCallStart(index=index, name=one.call.name, wire_id=f"again-{index}")
            yield StreamCallArguments(index=index, text=arguments)
            yield StreamCallDone(index=index)
        yield StreamStop(reason=ReplyStop.TOOL_USE, usage=Usage())

    async def close(self) -> None:
        """Nothing is held."""


async def run_tools_again(prefix: str, folder: Path, opening: Callable[[], Opening]) -> list[Drift]:
    """Run the calls of a session again in a copy of its files at the first step, in the empty or new `folder`.

    What needs a yes does not run: the mode of the `opening` says what that is. Raises `TreadleError`.
    """
    with session_log(prefix) as (row, store):
        log = store.read(row.id, whole=False)
        turns = recorded_turns(log)
        if log.damage is not None:
            raise log.damage.error()
        copied_files(store, row, 1, folder)
    replies = RecordedReplies(lambda text: text.replace(row.workspace, str(folder)))
    model = OwnModel(spec=_SPEC, provider=replies)
    wanted = opening()
    settings = msgspec.structs.replace(wanted.settings, model=_SPEC.ref)
    wanted = msgspec.structs.replace(wanted, models=(model,), settings=settings)
    found: list[Drift] = []
    async with SessionClient(await open_session(wanted), _REPLAY) as client:
        for turn in turns:
            replies.waiting = deque(turn)
            run = await client.ask(_PROMPT, followed=True)
            notifications = [one async for one in run]
            recorded = [one for reply in turn for one in reply]
            found += _compared(recorded, _results(notifications), row.workspace, str(folder))
    return found


def _results(notifications: Sequence[Notification]) -> list[CallResult | None]:
    """Give what came of the calls, in their order; None for one that got no result."""
    results: dict[str, CallResult | None] = {}
    for notification in notifications:
        if isinstance(notification, CallChanged):
            results.setdefault(notification.call.id, None)
            if notification.status is CallStatus.FINISHED:
                results[notification.call.id] = notification.result
    return [*results.values()]


def _compared(
    recorded: Sequence[RecordedCall], results: Sequence[CallResult | None], old: str, new: str
) -> Iterator[Drift]:
    for one, now in zip(recorded, [*results, *[None] * len(recorded)], strict=False):
        before = "" if one.result is None else text_of(one.result.content)
        after = "" if now is None else text_of(now.content).replace(new, old)
        was, seen = "", ""
        if now is None or now.outcome not in _RAN:
            outcome, seen = DriftOutcome.NOT_RUN, clip_text(after, _LONGEST)
        elif one.result is not None and (one.result.outcome, before) == (now.outcome, after):
            outcome = DriftOutcome.SAME
        else:
            outcome = DriftOutcome.DIFFERS
            was, seen = _first_difference(before, after)
        yield Drift(step=one.step, tool=one.call.name, outcome=outcome, recorded=was, now=seen)


def _first_difference(before: str, after: str) -> tuple[str, str]:
    pairs = zip_longest(before.splitlines(), after.splitlines(), fillvalue="")
    was, now = next(((was, now) for was, now in pairs if was != now), ("", ""))
    return clip_text(was, _LONGEST), clip_text(now, _LONGEST)


def drift_lines(drifts: Sequence[Drift], folder: Path) -> Iterator[str]:
    """Put what came out differently into words."""
    for one in drifts:
        match one.outcome:
            case DriftOutcome.DIFFERS:
                yield f"step {one.step}, {one.tool}: differs"
                yield f"  recorded: {one.recorded}"
                yield f"  now:      {one.now}"
            case DriftOutcome.NOT_RUN:
                yield f"step {one.step}, {one.tool}: not run: {one.now or 'the run ended before it'}"
            case DriftOutcome.SAME:
                pass
    same, differ, left = (sum(one.outcome is kind for one in drifts) for kind in DriftOutcome)
    yield (
        f"{counted(len(drifts), 'call')}: {same} the same, {differ} different, {left} not run. The copy is in {folder}."
    )
