"""Items of a session as HTML."""

from typing import Any, assert_never

from treadle.present.call_words import said_of
from treadle.present.escape import output_of_command, printable
from treadle.present.failure_words import waiting_words
from treadle.present.items import (
    AnswerItem,
    CallItem,
    ChecklistItem,
    CompactedItem,
    Item,
    ModeItem,
    ModelItem,
    NoteItem,
    OwnCommandItem,
    Placed,
    ProblemItem,
    ProseItem,
    RetryItem,
    SaidItem,
    ThoughtItem,
    TurnItem,
    WritingItem,
)
from treadle.present.view import SessionView
from treadle.present.words import (
    ANSWERS,
    changed_lines,
    describe_call,
    elsewhere,
    ended,
    note_of,
    output_of,
    room_made,
    span,
    what_came_of,
    written_by,
)
from treadle.protocol.notifications import CallChanged, CallStatus, TurnStop
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import CallResult, Outcome
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


def item_html(placed: Placed, view: SessionView, *, is_open: bool) -> str:
    """Give an item as HTML; one that is gone is an empty element that keeps its place.

    Unless the session `is_open` nothing of it goes on.
    """
    parts = {"kind": "gone"} if placed.item is None else _parts(placed.item, view, is_open=is_open)
    return render("item.html", position=placed.position, left=view.has_left(placed), **parts)


def in_milliseconds(at: float) -> int:
    """Give a time in seconds since 1970 as browsers take it."""
    return round(at * 1000)


def _parts(item: Item, view: SessionView, *, is_open: bool) -> dict[str, Any]:  # noqa: C901, PLR0911, PLR0912 - one line each
    match item:
        case SaidItem(by=by):
            return {"kind": "said", "item": item, "who": written_by(by) if by else "You"}
        case ProseItem():
            return {"kind": "prose", "item": item}
        case ThoughtItem():
            return {"kind": "thought", "item": item}
        case WritingItem():
            return {"kind": "writing", "item": item}
        case ProblemItem():
            return {"kind": "problem", "item": item}
        case NoteItem(text=text, warns=warns):
            return _note(text, warns=warns)
        case AnswerItem(answer=answer):
            where = f" {_in_browser(answer.by)}" if answer.by else ""
            return _note(f"Answered{where}: {ANSWERS[answer.option]}.")
        case ModeItem(mode=mode):
            return _note(f"Mode: {mode}")
        case ModelItem(model=model, why=why):
            return _note(f"Model: {model}{f' ({why})' if why else ''}")
        case CompactedItem(made=made):
            return _note(f"{room_made(made)}.", warns=True)
        case RetryItem(error=error, seconds=seconds, until=until) if until or error.paced:
            return _note(f"{waiting_words(error, view.model, resets=until > 0)} That takes {span(seconds)}.")
        case RetryItem(error=error, attempt=attempt, seconds=seconds, most=most):
            of = f" of {most}" if most else ""
            return _note(
                f"{waiting_words(error, view.model, resets=False)} Attempt {attempt}{of} after {span(seconds)}."
            )
        case ChecklistItem():
            return {"kind": "gone"}  # it stands beside the page
        case TurnItem(outcome=outcome):
            left = f" · {item.left_open}" if item.left_open else ""
            good = outcome.stop is TurnStop.END_TURN and not left
            words, lines = f"{ended(outcome.stop)}{left}", changed_lines(outcome)
            return {"kind": "end", "item": item, "words": words, "good": good, "sum": lines}
        case OwnCommandItem():
            since = None if item.since is None else in_milliseconds(item.since)
            return {"kind": "own", "item": item, "since": since, "output": output_of_command(item.output)}
        case CallItem():
            return _card(item, is_open=is_open)
        case _:
            assert_never(item)


def _printed(changed: CallChanged, result: CallResult) -> str:
    """Give what a call brought, but for what its line says anyway."""
    text = output_of(changed.kind, result)
    return "" if " ".join(text.split()) == note_of(changed.kind, result, changed.decision) else text


def _in_browser(by: str) -> str:
    """Say where another surface is, on the page itself."""
    kind, _, name = by.partition(":")
    return f"in {printable(name)}" if kind == "web" else elsewhere(by)


def _state(item: CallItem, result: CallResult | None, *, is_open: bool) -> str:
    """Say where a call is in its life or how it ended, and what a person said of it."""
    changed = item.changed
    said = "" if changed.status is CallStatus.ASKING else said_of(item, "", _in_browser)
    if result is None:
        return ": ".join(filter(None, (_open_state(changed.status, is_open=is_open), said)))
    if result.outcome is Outcome.REJECTED:
        return said
    # Who was asked is said behind it where it is known.
    came = result.outcome.value if item.answers else what_came_of(changed, result)
    words = ", ".join(filter(None, (note_of(changed.kind, result, changed.decision), said)))
    return f"{came}: {words}" if words else came


def _note(text: str, *, warns: bool = False) -> dict[str, Any]:
    return {"kind": "note", "item": NoteItem(text, warns)}


def _open_state(status: CallStatus, *, is_open: bool) -> str:
    """Say where a call is that has no result, or where it was when its session ended."""
    if is_open:
        return status.value
    if status is CallStatus.ASKING:
        return "waited for an answer"
    return "cut off" if status in (CallStatus.STARTING, CallStatus.RUNNING) else "did not run"


def _card(item: CallItem, *, is_open: bool) -> dict[str, Any]:
    changed = item.changed
    preview = changed.preview
    done = changed.status is CallStatus.FINISHED
    asks = changed.status is CallStatus.ASKING  # the question below shows it, and nothing has come of it yet
    result = None if asks else changed.result
    text = item.output if result is None else _printed(changed, result)[:_SHOWN_RESULT]
    return {
        "kind": "call",
        "item": item,
        "name": describe_call(changed),
        "state": _state(item, result, is_open=is_open),
        "outcome": result.outcome.value if result is not None else "open",
        "sign": "●" if result is None else _SIGNS.get(result.outcome, "✗"),
        "diff": preview.text if preview is not None and preview.is_diff and not asks else "",
        "output": output_of_command(text),
        "done": done,
        "since": None if done or asks or item.since is None or not is_open else in_milliseconds(item.since),
        "decision": None if asks else changed.decision,
        "decision_why": "" if changed.decision is None else printable(words_of_decision(changed.decision).headline),
    }
