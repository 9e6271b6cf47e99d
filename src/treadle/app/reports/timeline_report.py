"""The timeline of a session: its events in their order, a page at a time, each as a person reads it."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.app.reports.event_words import EventTopic, EventWords, words_of_event
from treadle.present.words import elsewhere
from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored, Rewound
from treadle.protocol.children import ChildEnded, ChildMerges, ChildStarted
from treadle.protocol.codec import encode
from treadle.protocol.errors import SessionError
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    CompactNow,
    ContextExceeded,
    EditQueued,
    Event,
    MoveQueued,
    Pin,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    RevokeAllowance,
    SetFallback,
    SetMode,
    SetModel,
    Source,
    SummaryWritten,
)
from treadle.protocol.permissions import CallAsked, Decision
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.sealed import (
    ModelReplaced,
    PromptsDelivered,
    QuestionPut,
    ResultMade,
    RetryPlanned,
    SideAnswered,
    SideAsked,
    TurnSettled,
)
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import SessionRow, Store

PAGE_EVENTS = 200
"""Events of a page."""

_MOST_SHOWN = 200_000
"""Characters of one event."""

_TYPES: Mapping[EventTopic, tuple[type[msgspec.Struct], ...]] = MappingProxyType(
    {
        EventTopic.PROMPTS: (Prompt, EditQueued, MoveQueued, PromptsDelivered, SideAsked, SideAnswered),
        EventTopic.CALLS: (CallProposed, CallStarted, CallFinished, ResultMade, ChildStarted),
        EventTopic.DECISIONS: (CallJudged, Answer, RevokeAllowance),
        EventTopic.QUESTIONS: (QuestionPut, CallAsked, Answer),
        EventTopic.MODELS: (SetModel, SetMode, SetFallback, ModelReplaced),
        EventTopic.COSTS: (
            ReplyFinished,
            ReplyFailed,
            SummaryWritten,
            SideAnswered,
            TurnSettled,
            CallFinished,
            ChildEnded,
        ),
        EventTopic.COMPACTIONS: (Compacted, SummaryWritten, CompactNow, Pin),
        EventTopic.ERRORS: (
            ReplyFailed,
            RetryPlanned,
            ContextExceeded,
            CallFinished,
            ResultMade,
            Restored,
            SummaryWritten,
            TurnSettled,
            SideAnswered,
            ChildEnded,
        ),
        EventTopic.FILES: (CheckpointTaken, ChildMerges, Restore, Restored, Rewound, CallFinished),
    }
)
"""Which events can be of a topic; whether one is, its words say."""

_OF_A_CALL = (CallProposed, CallJudged, CallStarted, CallAsked, CallFinished, QuestionPut, Answer, ResultMade)


class TimelineRow(Struct, frozen=True, kw_only=True):
    """One event: its number, its time (milliseconds since 1970, UTC), where it came from, and what it says.

    `left` says that it left the conversation when the user went back.
    """

    seq: int
    at: int
    by: str
    words: EventWords
    left: bool


class TimelinePage(Struct, frozen=True, kw_only=True):
    """Some events in their order, of `events` in all; whether there are `earlier` and `later` ones."""

    rows: tuple[TimelineRow, ...]
    earlier: bool
    later: bool
    events: int


class Going(StrEnum):
    """Where a page is from the event that it is asked for with."""

    BEFORE = "before"
    AFTER = "after"
    AROUND = "around"


def timeline_page(
    store: Store,
    row: SessionRow,
    topic: EventTopic | None = None,
    *,
    at: int | None = None,
    going: Going = Going.BEFORE,
    most: int = PAGE_EVENTS,
) -> TimelinePage:
    """Read a page of the events; without `at` the last ones. What is damaged is left out. Raises `StoreError`."""
    end = row.events + 1
    at = end if at is None else max(0, min(at, end))
    if going is Going.AROUND:
        before = timeline_page(store, row, topic, at=at, most=most // 2)
        after = timeline_page(store, row, topic, at=at - 1, going=Going.AFTER, most=most - most // 2)
        return TimelinePage(
            rows=(*before.rows, *after.rows), earlier=before.earlier, later=after.later, events=row.events
        )
    if topic is None:
        first, last = (max(1, at - most), at - 1) if going is Going.BEFORE else (at + 1, min(end - 1, at + most))
        rows = _rows(store, row, store.read(row.id, after=first - 1, before=last + 1, go_on=True))
        return TimelinePage(rows=rows, earlier=first > 1, later=last < row.events, events=row.events)
    found, more = _of_topic(store, row, topic, at=at, going=going, most=most)
    events = (event for seq in found for event in store.read(row.id, after=seq - 1, before=seq + 1, go_on=True))
    forward = going is Going.AFTER
    return TimelinePage(
        rows=_rows(store, row, events),
        earlier=at > 1 if forward else more,
        later=more or not forward,
        events=row.events,
    )


def _of_topic(
    store: Store, row: SessionRow, topic: EventTopic, *, at: int, going: Going, most: int
) -> tuple[Sequence[int], bool]:
    """Give the numbers of the events of a topic before or after one, and whether there are more that way."""
    forward = going is Going.AFTER
    stored = store.of_types(row.id, tuple(map(tag_of, _TYPES[topic])), row.events + 1 if forward else at)
    found: list[int] = []
    for seq, _, raw, version in stored if forward else reversed(stored):
        if forward and seq <= at:
            continue
        if topic in words_of_event(event_data(raw, version)).topics:
            if len(found) == most:
                return found if forward else found[::-1], True
            found.append(seq)
    return found if forward else found[::-1], False


def _rows(store: Store, row: SessionRow, events: Iterable[Event]) -> tuple[TimelineRow, ...]:
    cuts = store.left_behind(row.id)
    calls: dict[str, str] = {}
    rows: list[TimelineRow] = []
    for event in events:
        words = words_of_event(event.data)
        if isinstance(event.data, CallProposed):
            calls[words.call] = f"{words.title.removeprefix('Call: ')} {words.text}"
        elif words.call in calls and isinstance(event.data, CallStarted | CallFinished):
            words = replace(words, text="\n".join(filter(None, (calls[words.call], words.text))))
        if isinstance(event.data, CallFinished | ResultMade):  # its files, as seen from the folder
            words = replace(words, text=words.text.replace(f"{row.workspace}/", ""))
        rows.append(
            TimelineRow(
                seq=event.seq,
                at=event.at,
                by=_came_from(event.source),
                words=words,
                left=any(event.seq in cut for cut in cuts),
            )
        )
    return tuple(rows)


_SURFACES = frozenset({"tui", "web", "acp", "mcp"})


def _came_from(source: Source) -> str:
    """Say where an event came from: `in Chrome on Linux`, `in terminal 2`; empty for the engine."""
    if source.kind in _SURFACES:
        return elsewhere(source.name)
    return "" if source.kind == "engine" else source.name.rstrip(":")


class EventDetail(Struct, frozen=True, kw_only=True):
    """All that is known of one event.

    `to_model` is what was written for the model, `why` are the reasons of a decision, each with where its rule is;
    `related` are the numbers and the words of the other events of its call; `chain` is the hash of the log up to it,
    `whole` its JSON, cut where it is long.
    """

    row: TimelineRow
    text: str
    to_model: str
    is_diff: bool
    why: tuple[str, ...]
    related: tuple[tuple[int, str], ...]
    chain: str
    whole: str


def event_detail(store: Store, row: SessionRow, seq: int) -> EventDetail:
    """Read one event; raises `SessionError` where there is none of that number, `StoreError`."""
    events = list(store.read(row.id, after=seq - 1, before=seq + 1, go_on=True)) if 0 < seq <= row.events else []
    if not events:
        raise SessionError(
            "event-unknown", f"Session {row.id} has no event {seq}.", fix=f"Its events are 1 to {row.events}."
        )
    event = events[0]
    (shown,) = _rows(store, row, events[:1])
    chains = store.chains(row.id)
    chain = chains[seq - 1] if len(chains) == row.events else b""
    whole = msgspec.json.format(encode(event.data), indent=2).decode()
    text, is_diff = _text_of(event)
    return EventDetail(
        row=shown,
        text=text[:_MOST_SHOWN],
        to_model=words_of_event(event.data, long=True).to_model[:_MOST_SHOWN],
        is_diff=is_diff,
        why=tuple(_why(event)),
        related=tuple(_related(store, row, shown)),
        chain=chain.hex(),
        whole=whole if len(whole) <= _MOST_SHOWN else f"{whole[:_MOST_SHOWN]}\n… {len(whole) - _MOST_SHOWN:,} more",
    )


def _text_of(event: Event) -> tuple[str, bool]:
    match event.data:
        case CallJudged(preview=preview):
            return preview.text, preview.is_diff
        case QuestionPut(question=question) if question.copy is not None:
            return question.copy.diff, True
        case data:
            return words_of_event(data, long=True).text, False


def _why(event: Event) -> Iterable[str]:
    match event.data:
        case CallJudged(decision=decision):
            yield from _reasons_of(decision)
        case QuestionPut(question=question) if question.decision is not None:
            yield from _reasons_of(question.decision)
        case _:
            return


def _reasons_of(decision: Decision) -> Iterable[str]:
    yield words_of_decision(decision).headline
    named = [("", decision.reasons), *((part.text, part.reasons) for part in decision.parts)]
    for text, reasons in named:
        for reason in reasons:
            about = f"{text}: " if text else ""
            where = f" ({reason.source})" if reason.source else ""
            yield f"{about}{reason.rule}: {reason.text}{where}"
    if decision.confinement is not None:
        yield f"Its commands run in: {decision.confinement}"
    yield from (f"With the right {grant.right} {grant.target}".rstrip() for grant in decision.grants)


def _related(store: Store, row: SessionRow, shown: TimelineRow) -> Iterable[tuple[int, str]]:
    call = shown.words.call
    if not call:
        return
    named = encode(call)
    for seq, _, raw, version in store.of_types(row.id, tuple(map(tag_of, _OF_A_CALL))):
        if seq != shown.seq and named in raw:
            yield seq, words_of_event(event_data(raw, version)).title
