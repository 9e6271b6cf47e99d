"""Rebuilding a log from its inputs, event by event, through the machine itself and the pure parts of the runtime.

Inputs are taken as they are recorded: what people asked and answered, what models wrote, what tools brought, how calls
were judged, the clock, and facts of the surroundings. The rest is made anew and compared.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.context.compaction_words import CompactionSettings
from treadle.context.log_reader import TranscriptReader, offer_size
from treadle.engine.core import sealing
from treadle.engine.core.machine_effects import Effect, MakeRoom, Seal
from treadle.engine.core.past_history import conversation, still_in_conversation
from treadle.engine.core.state import Activity, State
from treadle.engine.replay.difference import (
    ABSENT,
    DiffersError,
    LogDifference,
    Recorded,
    event_type,
    is_same,
    require_same,
    short_json,
)
from treadle.engine.replay.recorded_replies import ReadAgain, read_again, recorded_replies
from treadle.engine.runtime.compacting import RoomPlan, carried_out, plan_room
from treadle.engine.runtime.track import Track
from treadle.engine.runtime.window import bytes_of, in_force, next_message
from treadle.protocol.base import StoredEvent
from treadle.protocol.codec import encodable, encode
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import (
    ENGINE,
    FORKED,
    IMPORTED,
    SCHEMA_VERSION,
    CallProposed,
    Compacted,
    ContextReady,
    Event,
    EventData,
    OfferChanged,
    Op,
    ReplyFailed,
    ReplyFinished,
    SetLimits,
    SetMode,
    SetModel,
    SetPresence,
)
from treadle.protocol.models import ModelSpec, ToolProtocol
from treadle.protocol.sealed import Passage, PassageKind, Sealed, StateSealed, TurnSettled
from treadle.protocol.stored import LogReader
from treadle.protocol.tools import ToolSpec

_IN_WORDS = (
    "What the tools take is not in the log where calls are XML. It was read as this Treadle declares them: another one "
    "may have written it."
)
_SINCE_SCHEMA_2 = ("files",)
"""Parts of the state that no machine of an older schema had."""

_BEFORE, _AFTER = "<environment>\n", "\n</environment>"


class Conditions(Struct, frozen=True, kw_only=True):
    """What a session ran under that its log does not hold: the models, settings of compaction, tools by name.

    `exact`: they are those of the session, and not those of today; then what compaction chose must come out the same.
    """

    model: Callable[[str], ModelSpec]
    compaction: CompactionSettings = CompactionSettings()
    tools: Mapping[str, ToolSpec] = {}
    exact: bool = False


class ReplayResult(Struct, frozen=True, kw_only=True):
    """What came of a replay. `made` events are the machine's own; `derived` are others of which parts were made anew.

    `taken` are compactions whose choice was taken from the log, since other settings would choose otherwise.
    """

    events: int
    made: int = 0
    derived: int = 0
    taken: int = 0
    difference: LogDifference | None = None


def read_rows(rows: Iterable[StoredEvent]) -> list[Recorded]:
    """Read the rows of a log; raises `StoreError`."""
    reader = LogReader()
    found: list[Recorded] = []
    for row in rows:
        for event in reader.read(row):
            if row.version == SCHEMA_VERSION:
                found.append(Recorded(event=event, version=row.version, source=row.source, data=row.data))
                continue
            data = _whole(event.data)
            old = Recorded(
                event=replace(event, data=data), version=row.version, source=encode(event.source), data=encode(data)
            )
            found.append(old)
    return found


def _whole(data: EventData) -> EventData:
    """Write the state in an old event with the fields of today's, which have their defaults there."""
    match data:
        case TurnSettled(state=state) | StateSealed(state=state):
            whole = sealing.written(sealing.read(state))
            return replace(data, state={part: of for part, of in whole.items() if part not in _SINCE_SCHEMA_2})
        case _:
            return data


def _as_far_as_known(data: Sealed, recorded: Recorded) -> Sealed:
    """Write a state as far as the machine that wrote the log knew it.

    Parts that it had no notion of are left out, and its fingerprints of calls, which an older schema made by another
    rule, stand for as many of today's.
    """
    match data, recorded.event.data:
        case (TurnSettled() | StateSealed(), TurnSettled(state=then) | StateSealed(state=then)):
            state = {part: of for part, of in data.state.items() if part in then}
            guard, before = state.get("guard", {}), then.get("guard", {}).get("recent", [])
            if not recorded.own and len(guard.get("recent", ())) == len(before):
                state["guard"] = {**guard, "recent": before}
            return replace(data, state=state)
        case _:
            return data


def replay_strictly(log: Sequence[Recorded], conditions: Conditions) -> ReplayResult:
    """Rebuild a log from its inputs; gives the first difference, if there is one."""
    replay = _Replay(log, conditions)
    difference: LogDifference | None = None
    try:
        replay.run()
    except DiffersError as error:
        difference = error.difference
    return ReplayResult(
        events=replay.at, made=replay.made, derived=replay.derived, taken=replay.taken, difference=difference
    )


def rebuild(log: Sequence[Recorded], conditions: Conditions) -> list[Event]:
    """Make a log anew from its inputs, as when those were changed; raises `DiffersError` where it has other events."""
    replay = _Replay(log, conditions, compared=False)
    replay.run()
    return replay.events


class _Replay:
    """Goes through a log. Where it is not `compared`, what was made anew stands in the place of what is recorded."""

    def __init__(self, log: Sequence[Recorded], conditions: Conditions, *, compared: bool = True) -> None:
        self.at = self.made = self.derived = self.taken = 0
        self.events: list[Event] = []
        self._compared = compared
        self._log = log
        self._conditions = conditions
        self._track = Track(reader_at=self._conversation_at)
        self._replies = recorded_replies([one.event.data for one in log])
        self._read: dict[tuple[int, int], list[ReadAgain]] = {}
        self._activity: Activity | None = None
        self._states: list[State] = []
        """Since the machine began what it does now: work looks at one of these, whichever event was on its way."""
        self._begun = 0
        self._room = MakeRoom(step=0)
        self._counted_otherwise = False

    def run(self) -> None:
        """Take every event; raises `DiffersError`."""
        while (recorded := self._next()) is not None:
            data = recorded.event.data
            if (given := _given_state(recorded.event)) is not None:
                self._track.restate(replace(sealing.read(given), seq=recorded.event.seq))
                self.events.append(recorded.event)
                continue
            if isinstance(data, Sealed):
                raise _unexpected(recorded, "Nothing in the log is the cause of it.")
            seq = self._track.state.seq + 1 if recorded.own else recorded.event.seq
            said_elsewhere = isinstance(data, Op) or recorded.event.source == IMPORTED
            source = recorded.event.source if said_elsewhere else ENGINE
            made: list[Event] = []
            for one in self._made(data, recorded):
                made.append(Event(seq=seq, at=recorded.event.at, source=source, data=encodable(one)))
                if is_same(recorded, made[-1]):
                    break
            else:
                made.append(self._agreed(recorded, made[-1 if isinstance(data, Compacted) else 0]))
            self._take(recorded, made[-1])

    def _conversation_at(self, seq: int) -> TranscriptReader:
        return conversation(still_in_conversation(event for event in self.events if event.seq <= seq))

    def _next(self) -> Recorded | None:
        if self.at == len(self._log):
            return None
        self.at += 1
        return self._log[self.at - 1]

    def _take(self, recorded: Recorded, event: Event) -> None:
        """Take an event, and behind it what the machine says because of it, which must be what was recorded."""
        try:
            effects = self._track.take(event)
        except RefusedError as refusal:
            raise _unexpected(recorded, f"This version does not take it here: {refusal}") from refusal
        self.events.append(event)
        self._look(effects)
        for effect in effects:
            if isinstance(effect, Seal):
                self._take_sealed(event, effect.data)

    def _take_sealed(self, cause: Event, data: Sealed) -> None:
        recorded = self._next()
        if recorded is None:
            made = Event(seq=cause.seq + 1, at=cause.at, source=ENGINE, data=data)
            difference = LogDifference(
                seq=made.seq,
                type=event_type(made),
                path="",
                recorded=ABSENT,
                rebuilt=short_json(msgspec.to_builtins(data)),
                why="The log ends before it.",
            )
            raise DiffersError(difference)
        seq = self._track.state.seq + 1 if recorded.own else cause.seq
        data = _as_far_as_known(data, recorded)
        rebuilt = Event(seq=seq, at=recorded.event.at, source=ENGINE, data=encodable(data))
        self.made += 1
        self._take(recorded, self._agreed(recorded, rebuilt))

    def _agreed(self, recorded: Recorded, rebuilt: Event) -> Event:
        """Give what was made anew where it is what was recorded, or may stand in its place."""
        if self._compared or type(recorded.event.data) is not type(rebuilt.data):
            unknown = isinstance(rebuilt.data, CallProposed | ReplyFinished) and not self._track.reader.offer.tools
            require_same(recorded, rebuilt, _IN_WORDS if unknown and recorded.own else "")
        return rebuilt

    def _look(self, effects: Iterable[Effect]) -> None:
        state = self._track.state
        if state.activity != self._activity:
            self._activity = state.activity
            self._states.clear()
            self._begun = self.at
        self._states.append(state)
        for effect in effects:
            if isinstance(effect, MakeRoom):
                self._room = effect

    def _made(self, data: EventData, recorded: Recorded) -> Iterator[EventData]:
        """Give what the event would be, made anew from each state that its work can have seen; the likeliest first."""
        states = reversed(self._states)
        self.derived += isinstance(data, ContextReady | Compacted | CallProposed | ReplyFinished)
        match data:
            case ContextReady():
                yield from self._contexts(data, recorded)
            case Compacted():
                yield from (self._compacted(data, state) for state in states)
                if not self._conditions.exact:
                    self.taken += 1
                    yield from (chosen := [self._carried_out(data, state) for state in self._states])
                    self._counted_otherwise = True  # as another version counts tokens, or an older schema says of them
                    counts = {"largest": data.largest, "before": data.before, "after": data.after}
                    yield from (replace(one, **counts) for one in chosen)
            case CallProposed():
                yield from (made := [self._proposed(data, read) for read in self._parsed(data)])
                if not data.readings:  # an earlier Treadle read the same and did not log it
                    yield from (made := [replace(one, readings=()) for one in made])
                if not recorded.own and data.call.problem:  # it names the tools of then
                    problem = data.call.problem
                    yield from (
                        replace(one, call=replace(one.call, problem=problem)) for one in made if one.call.problem
                    )
            case ReplyFinished():
                yield from (replace(data, message=read.message, hint=read.hint) for read in self._parsed(data))
            case _:
                yield data

    def _contexts(self, data: ContextReady, recorded: Recorded) -> Iterator[ContextReady]:
        """Make the user message of a step again around the facts of its environment, and count it."""
        reader = self._track.reader
        for state in reversed(self._states):
            message = next_message(state, reader, _environment(data))
            if not recorded.own:  # older schemas did not keep what the first request held besides the conversation
                yield replace(message, tokens=data.tokens, terms=data.terms)
                continue
            for size in self._sizes_of_offer(data.step):
                tokens = reader.transcript.tokens + reader.transcript.tokens_of(bytes_of(message, reader) + size)
                yield replace(message, tokens=tokens, terms=data.terms)
            if not self._is_offer_known(data.step) or self._counted_otherwise:
                yield replace(message, tokens=data.tokens, terms=data.terms)

    def _sizes_of_offer(self, step: int) -> tuple[int, ...]:
        """Give the bytes that go out besides the conversation, as long as no provider has counted them."""
        if self._track.reader.transcript.is_measured:
            return (0,)
        new = self._offer_of(step)
        return (offer_size(self._track.reader.offer if new is None else new),)

    def _offer_of(self, step: int) -> OfferChanged | None:
        """Find the offer of a step, which follows on its message where it is new."""
        for one in self._log[self.at :]:
            match one.event.data:
                case OfferChanged(step=number) as offer if number == step:
                    return offer
                case ContextReady() | ReplyFinished() | ReplyFailed():
                    return None
                case _:
                    pass
        return None

    def _is_offer_known(self, step: int) -> bool:
        """Whether the log says what the model was offered when the message was counted.

        It does not where the request never went out, and where the user changed the model or the mode in between.
        """
        if self._track.reader.transcript.is_measured:
            return True
        for one in self._log[self._begun :]:
            match one.event.data:
                case SetModel() | SetMode() | SetPresence() | SetLimits():
                    return False
                case OfferChanged(step=number) if number == step:
                    return True
                case ReplyFinished(step=number) | CallProposed(step=number) if number == step:
                    return True
                case ContextReady(step=number) if number > step:
                    return False
                case _:
                    pass
        return False

    def _compacted(self, data: Compacted, state: State) -> Compacted:
        """Choose again what leaves the conversation, and say what it does."""
        spec = in_force(self._conditions.model(state.choice.model), state)
        reader, effect = self._track.reader, self._room
        plan = plan_room(state, reader, spec, self._conditions.compaction, wanted=effect.wanted)
        return carried_out(plan, state, reader, spec, step=data.step, written=effect.summary)

    def _carried_out(self, data: Compacted, state: State) -> Compacted:
        """Say what a choice that other settings made does to the conversation."""
        reader, effect = self._track.reader, self._room
        transcript = reader.transcript
        won = transcript.tokens_of(transcript.size_of_results(dict.fromkeys(transcript.superseded(), "")))
        tokens = transcript.tokens_of(transcript.size_of(data.dropped)) + won
        nothing = effect.wanted and not data.dropped and not data.shortened
        plan = RoomPlan(dropped=data.dropped, shortened=data.shortened, tokens=0 if nothing else tokens)
        spec = in_force(self._conditions.model(state.choice.model), state)
        made = carried_out(plan, state, reader, spec, step=data.step, written=effect.summary)
        return replace(made, summary=data.summary, after=data.after)

    def _parsed(self, data: CallProposed | ReplyFinished) -> list[ReadAgain]:
        key = data.step, data.attempt
        if key not in self._read:
            offer, tools = self._track.reader.offer, self._conditions.tools
            protocols: dict[ToolProtocol, None] = {state.choice.tool_protocol: None for state in self._states}
            self._read[key] = [read_again(self._replies[key], offer, one, tools) for one in protocols]
        return self._read[key]

    def _proposed(self, data: CallProposed, read: ReadAgain) -> CallProposed:
        return next((one for one in read.calls if one.call.id == data.call.id), data)


def _environment(data: ContextReady) -> str:
    """Give what a message says of the surroundings, which is an input."""
    said = [one.text for one in data.content if isinstance(one, Passage) and one.kind is PassageKind.ENVIRONMENT]
    framed = said[-1] if said else ""
    return framed[len(_BEFORE) : -len(_AFTER)] if framed.startswith(_BEFORE) and framed.endswith(_AFTER) else ""


def _unexpected(one: Recorded, why: str) -> DiffersError:
    """Say that an event stands in the log for which there is no reason."""
    seq, written = one.event.seq, short_json(msgspec.to_builtins(one.event.data))
    return DiffersError(
        LogDifference(seq=seq, type=event_type(one.event), path="", recorded=written, rebuilt=ABSENT, why=why)
    )


def _given_state(event: Event) -> dict[str, Any] | None:
    """Give the state with which a copy of another session begins, or an import ends; None for any other event."""
    match event.data:
        case StateSealed(state=state) if event.source in (FORKED, IMPORTED):
            return state
        case TurnSettled(state=state) if event.source == FORKED:
            return state
        case _:
            return None
