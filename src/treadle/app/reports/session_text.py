"""A session as a person reads it afterwards."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from treadle.app.compose import session_log
from treadle.context.log_reader import with_cut_reply
from treadle.context.notified import stamped_notifications
from treadle.engine.core.past_history import last_state
from treadle.engine.core.turns import queued
from treadle.present.item_lines import note_line
from treadle.present.items import (
    CallItem,
    ChecklistItem,
    CompactedItem,
    Item,
    Placed,
    ProblemItem,
    ProseItem,
    SaidItem,
    ThoughtItem,
    TurnItem,
)
from treadle.present.record_words import (
    CAME_BACK,
    LEFT_CONVERSATION,
    call_record,
    file_lines,
    recorded,
    turn_words,
)
from treadle.present.view import SessionView
from treadle.present.words import counted, enclosed_line, written_by
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import DriftError
from treadle.protocol.events import Event, SessionStarted
from treadle.protocol.notifications import QueueChanged
from treadle.protocol.patterns import regex
from treadle.store.sqlite import SessionRow, Store

_TICKS = regex("`{3,}")


def as_it_ended(store: Store, session_id: str, events: Iterable[Event]) -> Iterable[Event]:
    """Give the events of a session; where no program has it open, a reply that did not end was cut off there."""
    return events if session_id in store.leased() else with_cut_reply(events)


def session_past(session_id: str) -> tuple[SessionRow, list[Stamped]]:
    """Give what surfaces were notified of in a session, as far as its log can be read, and what waits in it.

    Raises `TreadleError`.
    """
    with session_log(session_id) as (row, store):
        events = list(store.read(row.id))
        stamped = stamped_notifications(as_it_ended(store, row.id, events))
    with suppress(DriftError):
        state = last_state(events)
        waits = QueueChanged(prompts=queued(state.queue), held=queued(state.held))
        stamped.append(Stamped(notification=waits, seq=state.seq))
    return row, stamped


def session_lines(row: SessionRow, events: Iterable[Event], *, turn: int = 1) -> Iterator[str]:
    """Write a session, from a turn on, as Markdown."""
    yield f"# {row.title or row.id}"
    yield ""
    yield f"Session {row.id} in {row.workspace}, {row.model}, {counted(row.events, 'event')}"
    yield from record_lines(*session_items(events, turn=turn))


def session_items(events: Iterable[Event], *, turn: int = 1) -> tuple[SessionView, Sequence[Placed]]:
    """Give what a person saw of a session, from a turn on."""
    events = list(events)
    started = events[0].data if events else None
    view = SessionView()
    if isinstance(started, SessionStarted):
        view = SessionView(root=started.workspace, model=started.choice.model, mode=started.mode)
    return recorded(stamped_notifications(events), view, turn)


def record_lines(view: SessionView, items: Iterable[Placed]) -> Iterator[str]:
    """Write items as Markdown; those that left the conversation stand between two lines that say so."""
    before: Item | None = None
    left = False
    for placed in items:
        if isinstance(placed.item, ThoughtItem):
            continue
        if view.has_left(placed) != left:
            left, before = not left, None
            yield from ("", f"*{LEFT_CONVERSATION if left else CAME_BACK}*")
        if placed.item is not None:
            yield from _lines(placed.item, before)
            before = placed.item
    if view.active and view.listed:
        yield from _lines(ChecklistItem(view.checklist), before)


def _lines(item: Item, before: Item | None) -> Iterator[str]:  # noqa: C901 - one line for each kind of item
    match item:
        case SaidItem(text=text, enclosed=enclosed, by=by, commands=commands):
            yield from ("", f"## {written_by(by)}" if by else "## User", "", text)
            for command in commands:
                yield from ("", "Ran, and sent along:", "", *_fenced(command.rstrip()))
            if enclosed:
                yield from ("", f"({enclosed_line(enclosed)})")
        case ProseItem() as prose:
            yield from (() if isinstance(before, ProseItem) else ("", "## Treadle"))
            yield from (() if isinstance(before, ProseItem) and before.cut else ("",))
            yield prose.written.strip("\n")
        case CallItem():
            yield from _call(item)
        case ChecklistItem(markdown=text):
            yield from ("", "Checklist:", "", text)
        case ProblemItem(what=what, why=why, fix=fix):
            yield from ("", f"**{what}**", *filter(None, (why, fix)))
        case TurnItem():
            yield from ("", f"**{turn_words(item)}**", *(f"- {line}" for line in file_lines(item)))
        case CompactedItem(made=made):
            yield from ("", f"- {note_line(item)}")
            if made.summary:
                yield from ("", *_fenced(made.summary))
        case _:
            if line := note_line(item):
                yield f"- {line}" if isinstance(before, TurnItem) or _is_line(before) else f"\n- {line}"


def _is_line(item: Item | None) -> bool:
    return item is not None and bool(note_line(item))


def _call(item: CallItem) -> Iterator[str]:
    record = call_record(item)
    yield from ("", f"### {record.title} [{record.facts}]")
    if record.asked or record.diff or record.output.strip():
        yield ""
    if record.asked:
        yield from _fenced(record.asked)
    if record.diff:
        yield from _fenced(record.diff, "diff")
    if record.output.strip():
        yield from _fenced(record.output)


def _fenced(text: str, language: str = "") -> Iterator[str]:
    """Put a text between fences that are longer than any in it."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", text, fence)
