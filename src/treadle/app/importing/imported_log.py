"""The log of an imported conversation: made by the machine itself, so that it folds, and ends with no turn open."""

import json
import time
from collections.abc import Iterable, Sequence
from hashlib import sha256
from textwrap import shorten
from typing import Any

from msgspec import Struct, field

from treadle.engine.core.past_history import calls_under_way, conversation, next_to_end, take_whole
from treadle.engine.core.sealing import written
from treadle.engine.core.state import Assembling, Calling, Money, Space, State
from treadle.engine.runtime.lost import lost_calls
from treadle.protocol.codec import encodable
from treadle.protocol.events import (
    IMPORTED,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    ContextReady,
    Delivery,
    Event,
    EventData,
    Prompt,
    ReplyFinished,
    SessionStarted,
    Source,
)
from treadle.protocol.limits import OF_NEW_SESSIONS, Limits
from treadle.protocol.messages import ContentBlock, Message, ResultContent, Role, Text, Thinking, ToolUse, UserContent
from treadle.protocol.models import ModelChoice, ReplyStop, ToolProtocol
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import Decision, Mode, Reason, Verdict
from treadle.protocol.sealed import PromptContent, SealedResult, StateSealed
from treadle.protocol.tools import CallResult, Outcome, Preview, Risk, ToolCall, ToolTraits
from treadle.protocol.usage import Usage

LATEST = 253_402_300_799_000
"""The last millisecond of the year 9999: a time behind it cannot be shown."""

_UNBOUNDED = 10**9
_SHOWN_TITLE = 120
_OTHER_SIGNS = regex(r"[^A-Za-z0-9_-]")
_BEGINNING_MISSING = "(What was asked here is not in the imported conversation.)"
_NO_RESULT = "(The result of this call is not in the imported conversation.)"


class ForeignCall(Struct, frozen=True, kw_only=True):
    """A call of a tool as another program kept it."""

    id: str
    name: str
    arguments: dict[str, Any]


class ForeignResult(Struct, frozen=True, kw_only=True):
    """What came of a call."""

    content: tuple[ResultContent, ...]
    is_error: bool = False


class ForeignMessage(Struct, frozen=True, kw_only=True):
    """A message as another program kept it; `at` is milliseconds since 1970, 0 where that is not known.

    The user's has `content` and the `results` of calls by their ids, the model's has `content` and `calls`.
    """

    role: Role
    at: int = 0
    content: tuple[UserContent | Thinking, ...] = ()
    calls: tuple[ForeignCall, ...] = ()
    results: dict[str, ForeignResult] = field(default_factory=dict)
    usage: Usage = Usage()
    cost: float | None = None


class ForeignSession(Struct, frozen=True, kw_only=True):
    """A conversation of another program: `origin` names the program, `problems` what could not be taken."""

    origin: str
    id: str
    messages: Sequence[ForeignMessage]
    title: str = ""
    workspace: str = ""
    model: str = ""
    problems: tuple[str, ...] = ()


def merged(messages: Iterable[ForeignMessage]) -> list[ForeignMessage]:
    """Put messages of one side that follow each other together: each speaks in turn."""
    found: list[ForeignMessage] = []
    for one in messages:
        if not (one.content or one.calls or one.results):
            continue
        if not found or found[-1].role is not one.role:
            found.append(one)
            continue
        last = found[-1]
        costs = [cost for cost in (last.cost, one.cost) if cost is not None]
        found[-1] = ForeignMessage(
            role=one.role,
            at=last.at or one.at,
            content=(*last.content, *one.content),
            calls=(*last.calls, *one.calls),
            results={**last.results, **one.results},
            usage=last.usage + one.usage,
            cost=sum(costs) if costs else None,
        )
    return found


def foreign_id(session: ForeignSession, at: int) -> str:
    """Name a session so that the same conversation gets the same id each time."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(at / 1000))
    return f"{stamp}-{sha256(f'{session.origin}:{session.id}'.encode(errors='replace')).hexdigest()[:6]}"


class LogBuilder:
    """Posts events to the machine and keeps them with what it says, each at a time that is not before the last."""

    def __init__(self, events: Sequence[Event] = (), state: State | None = None) -> None:
        self.events = list(events)
        self.state = State() if state is None else state
        self.at = self.events[-1].at if self.events else 0

    def post(self, data: EventData, at: int = 0, source: Source = IMPORTED) -> None:
        """Take an event; raises `RefusedError` where it is illegal."""
        self.at = min(max(self.at, at), LATEST)
        seq = self.events[-1].seq + 1 if self.events else 1
        event = encodable(Event(seq=seq, at=self.at, source=source, data=data))
        self.state, events, _ = take_whole(self.state, event)
        self.events += events

    def settle(self, session_id: str, at: int = 0) -> None:
        """End what is open, then keep of the state only what the conversation needs: no mode, allowance or yes.

        This is what the session goes on from, whatever the log before says. What a model call that was going on has
        used is estimated, and at what price is not known here.
        """
        if calls_under_way(self.state):
            for lost in tuple(lost_calls(self.state, conversation(self.events), None)):
                self.post(lost, at)
        while (ending := next_to_end(self.state)) is not None:
            self.post(ending, at)
        old = self.state
        clean = State(
            session_id=session_id,
            seq=old.seq,
            mode=Mode.ASK,
            model=Calling(choice=old.choice),
            limits=OF_NEW_SESSIONS,
            step=old.step,
            turns=old.turns,
            unread=old.unread,
            delivering=old.delivering,
            money=Money(spent=old.money.spent),
            checklist=old.checklist,
            space=Space(summary=old.space.summary, pins=old.space.pins),
        )
        if clean != old or self.events[-1].source != IMPORTED:
            self.post(StateSealed(state=written(clean)), at)


def imported_log(session: ForeignSession, session_id: str) -> list[Event]:
    """Make the log of a conversation; its messages are `merged`."""
    builder = LogBuilder()
    choice = ModelChoice(model=session.model or "unknown/unknown", tool_protocol=ToolProtocol.NATIVE)
    limits = Limits(max_mistakes=_UNBOUNDED, warn_repeats=_UNBOUNDED, max_repeats=_UNBOUNDED)
    first = next((one.at for one in session.messages if one.at), 0)
    builder.post(
        SessionStarted(session_id=session_id, workspace=session.workspace, choice=choice, mode=Mode.ASK, limits=limits),
        first,
    )
    messages = session.messages
    for index, message in enumerate(messages):
        if message.role is Role.USER:
            if builder.state.turn is None:
                _prompt(builder, message)
            continue
        if builder.state.turn is None:
            missing = ForeignMessage(role=Role.USER, content=(Text(text=_BEGINNING_MISSING),))
            _prompt(builder, missing)
        _reply(builder, message, messages[index + 1] if index + 1 < len(messages) else None)
    builder.settle(session_id)
    return builder.events


def _prompt(builder: LogBuilder, message: ForeignMessage, delivery: Delivery = Delivery.QUEUE) -> None:
    content = tuple(block for block in message.content if not isinstance(block, Thinking))
    if content:
        name = f"import-{len(builder.events)}"
        builder.post(Prompt(id=name, content=content, delivery=delivery), message.at)


def _reply(builder: LogBuilder, message: ForeignMessage, after: ForeignMessage | None) -> None:
    """Log the request of a step, its reply and its calls; what the user said with the results comes with them."""
    if not isinstance(builder.state.activity, Assembling):
        return
    state, step = builder.state, builder.state.step
    open_calls = (*state.unread, *(call.call.id for call in state.calls))
    builder.post(
        ContextReady(
            step=step,
            results=tuple(SealedResult(call_id=one) for one in open_calls),
            content=tuple(PromptContent(prompt_id=prompt.id) for prompt in state.delivering),
        ),
        message.at,
    )
    seq = len(builder.events)
    calls = [
        ToolCall(
            id=f"import-{seq}-{number}", name=_OTHER_SIGNS.sub("_", one.name)[:64] or "tool", arguments=one.arguments
        )
        for number, one in enumerate(message.calls)
    ]
    for call in calls:
        builder.post(CallProposed(step=step, attempt=1, call=call, traits=ToolTraits()), message.at)
    content: list[ContentBlock] = [
        *message.content,
        *(ToolUse(id=call.id, name=call.name, arguments=call.arguments) for call in calls),
    ]
    builder.post(
        ReplyFinished(
            step=step,
            attempt=1,
            message=Message(role=Role.ASSISTANT, content=tuple(content)),
            stop=ReplyStop.TOOL_USE if calls else ReplyStop.END_TURN,
            usage=message.usage,
            cost=message.cost,
        ),
        message.at,
    )
    for number, (call, foreign) in enumerate(zip(calls, message.calls, strict=True), start=1):
        decision = Decision(
            verdict=Verdict.ALLOW,
            risk=Risk.NONE,
            reasons=(Reason(rule="imported", text="it ran in another program, before the import"),),
        )
        builder.post(CallJudged(call_id=call.id, decision=decision, preview=_preview(call)))
        builder.post(CallStarted(call_id=call.id))
        if number == len(calls) and after is not None:
            _prompt(builder, after, Delivery.STEER)
        result = after.results.get(foreign.id) if after is not None else None
        builder.post(CallFinished(call_id=call.id, result=_result(result)), after.at if after is not None else 0)


def _preview(call: ToolCall) -> Preview:
    """Show the arguments of a call: the first in its title, all of them below where that is not enough."""
    texts = {name: one if isinstance(one, str) else as_json(one) for name, one in call.arguments.items()}
    first = next(iter(texts.values()), "")
    # No word is cut: an export would take a part of a key for none.
    short = shorten(first, _SHOWN_TITLE, placeholder=" …", break_on_hyphens=False, break_long_words=False)
    title = f"{call.name} {short}".rstrip()
    enough = len(texts) < 2 and first in title
    return Preview(title=title, text="" if enough else "\n".join(f"{name}: {text}" for name, text in texts.items()))


def as_json(value: object) -> str:
    """Write a value that is no text."""
    return json.dumps(value, ensure_ascii=False)


def _result(result: ForeignResult | None) -> CallResult:
    if result is None:
        return CallResult(outcome=Outcome.UNKNOWN, content=(Text(text=_NO_RESULT),))
    return CallResult(outcome=Outcome.FAILED if result.is_error else Outcome.OK, content=result.content)
