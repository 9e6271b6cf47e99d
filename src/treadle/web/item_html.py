"""Items of a session's page as HTML; each version is made once, however many browsers look."""

from typing import Any

from treadle.app.presentation.copies import fate_of
from treadle.app.presentation.escape import output_of_command, printable
from treadle.app.presentation.words import changed_lines, describe_call, ended, note_of, plain, what_came_of
from treadle.protocol.notifications import CallChanged, CallStatus, TurnStop
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import CallResult, Outcome, ToolKind
from treadle.web.clock import milliseconds
from treadle.web.items import (
    CallCard,
    Note,
    OwnCommand,
    PageEntry,
    Problem,
    ProseItem,
    SaidItem,
    ThoughtItem,
    TurnEnd,
    Writing,
)
from treadle.web.templating import render

_SHOWN_RESULT = 20_000

_SIGNS = {
    Outcome.OK: "✓",
    Outcome.REJECTED: "⊘",
    Outcome.DENIED: "⊘",
    Outcome.SKIPPED: "⊘",
    Outcome.INTERRUPTED: "■",
}
"""Signs of what came of a call, besides the colour."""

_NOT_RUN = frozenset({Outcome.DENIED, Outcome.REJECTED, Outcome.SKIPPED})
"""Outcomes of which the text is for the model alone: a person reads why in the line of the call."""


def entry_html(entry: PageEntry) -> str:
    """Give an entry as HTML; one that is gone is an empty element that keeps its place."""
    if not entry.html:
        entry.html = render("item.html", position=entry.position, **_parts(entry))
    return entry.html


def _parts(entry: PageEntry) -> dict[str, Any]:
    item = entry.item
    match item:
        case None:
            return {"kind": "gone"}
        case SaidItem() | ProseItem() | ThoughtItem() | Writing() | Note() | Problem():
            return {"kind": type(item).__name__.removesuffix("Item").lower(), "item": item}
        case TurnEnd(outcome=outcome):
            good = outcome.stop is TurnStop.END_TURN
            return {"kind": "end", "item": item, "words": ended(outcome.stop), "good": good, "sum": _sum(item)}
        case OwnCommand():
            since = None if item.since is None else milliseconds(item.since)
            return {"kind": "own", "item": item, "since": since, "output": output_of_command(item.output)}
        case CallCard():
            return _card(item)


def _sum(end: TurnEnd) -> str:
    return changed_lines(end.outcome)


def _note(changed: CallChanged, result: CallResult) -> str:
    """Say how a call went, and what became of the changes that it made in a copy."""
    note = note_of(changed.kind, result, changed.decision)
    said = f"“{note}”" if note and result.outcome is Outcome.REJECTED else note
    return ", ".join(filter(None, (said, fate_of(result.copy))))


def _state(card: CallCard) -> str:
    """Say where a call is that has no result, or where it was when its session ended."""
    status = card.changed.status
    if not card.left:
        return status.value
    if status is CallStatus.ASKING:
        return "waited for an answer"
    return "cut off" if status in (CallStatus.STARTING, CallStatus.RUNNING) else "did not run"


def _card(card: CallCard) -> dict[str, Any]:
    changed = card.changed
    preview = changed.preview
    done = changed.status is CallStatus.FINISHED
    asks = changed.status is CallStatus.ASKING  # the question below shows it, and nothing has come of it yet
    result = None if asks else changed.result
    output = output_of_command(card.output)
    if not output and result is not None and changed.kind is not ToolKind.EDIT and result.outcome not in _NOT_RUN:
        output = output_of_command(plain(result.content)[:_SHOWN_RESULT])
    return {
        "kind": "call",
        "item": card,
        "name": describe_call(changed),
        "state": what_came_of(changed, result) if result is not None else _state(card),
        "outcome": result.outcome.value if result is not None else "open",
        "sign": "●" if result is None else _SIGNS.get(result.outcome, "✗"),
        "note": _note(changed, result) if result is not None else "",
        "diff": preview.text if preview is not None and preview.is_diff and not asks else "",
        "output": output,
        "done": done,
        "since": None if done or asks or card.since is None else milliseconds(card.since),
        "decision": None if asks else changed.decision,
        "decision_why": "" if changed.decision is None else printable(words_of_decision(changed.decision).headline),
    }
