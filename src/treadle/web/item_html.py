"""Items of a session as HTML."""

import posixpath
from typing import Any, assert_never

from msgspec import Struct

from treadle.present.call_words import allowed_by, permission_line, said_of, tail_of
from treadle.present.escape import output_of_command, printable
from treadle.present.failure_words import advice, needs_key, waiting_words
from treadle.present.figures import by_name, restored_since, turn_figures, unseen_words
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
from treadle.present.job_words import exit_of, is_shortened, job_begun, job_ended
from treadle.present.view import SessionView
from treadle.present.words import (
    ANSWERS,
    counted,
    describe_call,
    elsewhere,
    ended,
    lines_read,
    note_of,
    output_of,
    room_made,
    spent,
    tokens,
    what_came_of,
    written_by,
)
from treadle.protocol.notifications import CallChanged, CallStatus, TurnStop
from treadle.protocol.reasons import why_decided
from treadle.protocol.tools import CallResult, Outcome, ToolKind
from treadle.web.markup import without_commands
from treadle.web.seen_jobs import SeenJob
from treadle.web.templating import render, span_words

_SHOWN_RESULT = 20_000

_SIGNS = {
    "Read": "file",
    "Search": "search",
    "List": "list",
    "Outline": "list",
    "Edit": "pencil",
    "Create": "plus",
    "Delete": "x",
    "Fetch": "globe",
    "Search the web": "globe",
    "Browse": "globe",
    "Ask": "comment",
    "Skill": "wand",
    "Run": "check",
}
_OTHER_SIGN = "plug"
"""The picture of a call beside its words, by what it does."""

_BAD = frozenset({Outcome.FAILED, Outcome.INVALID, Outcome.UNKNOWN})
_ENDED_EARLY = {Outcome.INTERRUPTED: "stop", Outcome.REJECTED: "off", Outcome.DENIED: "off", Outcome.SKIPPED: "off"}

_TAIL_RUNNING, _TAIL_GOOD, _TAIL_BAD = 6, 3, 10
"""Lines of what a command printed that are seen without a click."""

_LONG, _BEGINNING = 12, 10
"""Lines of a message that are shown whole, and those that are shown of a longer one."""


class Undone(Struct, frozen=True):
    """What left the conversation: its first and last step, if any, and whether that can be taken back."""

    steps: tuple[int, int] | None
    can_return: bool


def is_shown(placed: Placed) -> bool:
    """Whether the page shows an item among the others."""
    match placed.item:
        case None | ChecklistItem() | RetryItem(until=0):
            return False
        case _:
            return True


def item_html(
    placed: Placed,
    view: SessionView,
    *,
    is_open: bool,
    session: str = "",
    undone: Undone | None = None,
    job: SeenJob | None = None,
) -> str:
    """Give an item as HTML; one that is gone is an empty element that keeps its place.

    Unless the session `is_open` nothing of it goes on. `session` is the id that its links to files lead to, if any.
    What was `undone` begins with it. A call left the `job` in the background, as far as is known.
    """
    item = placed.item
    parts = {"kind": "gone"} if item is None else _parts(item, view, is_open=is_open)
    if isinstance(item, CallItem) and job_begun(item.changed):
        parts |= _in_background(job, is_open=is_open)
    left = view.has_left(placed)
    return render("item.html", position=placed.position, left=left, undone=undone, session=session, **parts)


def in_milliseconds(at: float) -> int:
    """Give a time in seconds since 1970 as browsers take it."""
    return round(at * 1000)


def _parts(item: Item, view: SessionView, *, is_open: bool) -> dict[str, Any]:  # noqa: C901, PLR0911, PLR0912 - one line each
    match item:
        case SaidItem():
            return _said(item)
        case ProseItem():
            return {"kind": "prose", "item": item}
        case ThoughtItem():
            return {"kind": "thought", "item": item}
        case WritingItem():
            return {"kind": "writing", "item": item}
        case ProblemItem():
            return _problem(item, is_open=is_open)
        case NoteItem(text=text, warns=warns):
            return _note(text, warns=warns)
        case AnswerItem(answer=answer):
            where = "" if answer.by.startswith(_HERE) or not answer.by else f" {elsewhere(answer.by)}"
            return _note(permission_line(item, where) if item.said else f"Answered{where}: {ANSWERS[answer.option]}.")
        case ModeItem(mode=mode):
            return _note(f"Mode: {mode}")
        case ModelItem(model=model, why=why):
            return _note(f"Model: {model}{f' ({why})' if why else ''}")
        case CompactedItem(made=made):
            return _note(f"{room_made(made)}.", warns=True)
        case RetryItem(error=error, seconds=seconds, until=until) if until:
            return _note(f"{waiting_words(error, view.model, resets=True)} That takes {span_words(seconds)}.")
        case RetryItem() | ChecklistItem():
            return {"kind": "gone"}  # the line of the moment has the one, and the plan beside the page the other
        case TurnItem(outcome=outcome):
            left = f" · {item.left_open}" if item.left_open else ""
            good = outcome.stop is TurnStop.END_TURN and not left
            files, sums = turn_figures(outcome)
            shown = {"files": files if outcome.changes else "", "sums": sums, "listed": by_name(item.files)}
            said = {"words": f"{ended(outcome.stop)}{left}", "good": good, "facts": _facts(item)}
            return {"kind": "end", "item": item, **said, **shown}
        case OwnCommandItem():
            since = None if item.since is None else in_milliseconds(item.since)
            output = output_of_command(item.output)
            most = _TAIL_RUNNING if since else _TAIL_GOOD if item.good else _TAIL_BAD
            tail, above = tail_of(output, most, item.above)
            bad = since is None and not item.good
            return {
                "kind": "own",
                "item": item,
                "since": since,
                "output": output,
                "tail": tail,
                "tail_above": above,
                "bad": bad,
            }
        case CallItem():
            return _card(item, is_open=is_open, waits=is_open and view.only_waits(item.changed.call.id))
        case _:
            assert_never(item)


def _printed(changed: CallChanged, result: CallResult) -> str:
    """Give what a call brought, but for what its line says anyway."""
    text = output_of(changed.kind, result)
    return "" if " ".join(text.split()) == note_of(changed.kind, result, changed.decision) else text


_HERE = "web:"


def _said(item: SaidItem) -> dict[str, Any]:
    """Give a message, of a long one its beginning with the rest behind a fold."""
    lines = item.text.split("\n")
    long = len(lines) > _LONG
    return {
        "kind": "said",
        "item": item,
        "who": written_by(item.by) if item.by else "",
        "shown": "\n".join(lines[:_BEGINNING]) if long else item.text,
        "rest": "\n".join(lines[_BEGINNING:]) if long else "",
        "rest_lines": len(lines) - _BEGINNING,
    }


def _facts(item: TurnItem) -> list[str]:
    """Say of the end of a turn what it changed, what it took and what it cost."""
    outcome = item.outcome
    took = span_words(item.seconds) if item.seconds else ""
    if item.seconds and item.waited >= 1:
        took = f"{span_words(item.seconds)}, and {span_words(item.waited)} for you"
    return [
        one
        for one in (
            restored_since(item.restored, item.in_part),
            unseen_words(outcome.unseen),
            counted(outcome.steps, "step"),
            f"{tokens(outcome.usage.context_tokens)} tokens",
            spent(outcome.usage, outcome.cost),
            took,
        )
        if one
    ]


class CallNote(Struct, frozen=True):
    """What became of a call, and what a person or a rule had to do with it; whether that was `bad`."""

    state: str
    said: str
    bad: bool = False


def note_of_call(item: CallItem, job: SeenJob | None, *, is_open: bool) -> CallNote:
    """Say of a call what its row in the conversation says, and of a command what its sign says there."""
    result, runs = item.changed.result, item.changed.kind is ToolKind.EXECUTE
    state, bad = _state(item, result, is_open=is_open), result is not None and result.outcome in _BAD
    if job_begun(item.changed):
        shown = _in_background(job, is_open=is_open)
        state, bad = shown["state"], shown.get("bad", False)
    elif runs and not state and result is not None and result.outcome is Outcome.OK:
        state = exit_of(result)
    return CallNote(state, _said_of_call(item), bad)


def _said_of_call(item: CallItem) -> str:
    return said_of(item, _HERE.rstrip(":")) or allowed_by(item.changed.decision)


def _state(item: CallItem, result: CallResult | None, *, is_open: bool) -> str:
    """Say where a call is in its life or how it ended."""
    changed = item.changed
    if result is None:
        runs = changed.status is CallStatus.RUNNING and item.since is not None and is_open
        return "" if runs else _open_state(changed.status, is_open=is_open)
    note = note_of(changed.kind, result, changed.decision)
    if result.outcome is Outcome.REJECTED:
        return ""
    if result.outcome is Outcome.OK or (result.outcome is Outcome.FAILED and note):
        return note
    # Who was asked is said behind it where it is known.
    came = result.outcome.value if item.answers else what_came_of(changed, result)
    return f"{came}: {note}" if note else came


def _problem(item: ProblemItem, *, is_open: bool) -> dict[str, Any]:
    """Say what failed; where that was a call of the model, what can be done about it are buttons."""
    if item.failed is None:
        return {"kind": "problem", "item": item, "fix": without_commands(item.fix), "ways": ()}
    key = ("key",) if needs_key(item.failed) else ()
    ways = (*key, "model") if is_open else key  # the model of a session that nobody has open cannot be chosen
    return {"kind": "problem", "item": item, "fix": advice(item.failed, item.model, buttons=True), "ways": ways}


def _note(text: str, *, warns: bool = False) -> dict[str, Any]:
    return {"kind": "note", "item": NoteItem(text, warns)}


_OPEN = {CallStatus.PROPOSED: "next", CallStatus.JUDGING: "next", CallStatus.ASKING: ""}


def _open_state(status: CallStatus, *, is_open: bool) -> str:
    """Say where a call is that has no result, or where it was when its session ended."""
    if is_open:
        # What is asked about stands in its question, and the line of the moment says that it waits.
        return _OPEN.get(status, status.value)
    if status is CallStatus.ASKING:
        return "waited for an answer"
    return "cut off" if status in (CallStatus.STARTING, CallStatus.RUNNING) else "did not run"


def _card(item: CallItem, *, is_open: bool, waits: bool) -> dict[str, Any]:
    changed = item.changed
    preview = changed.preview
    done = changed.status is CallStatus.FINISHED
    asks = changed.status is CallStatus.ASKING  # nothing has come of it yet
    if asks and is_open:
        return {"kind": "gone"}  # the question below shows all of it
    result = None if asks else changed.result
    text = output_of_command(item.output if result is None else _printed(changed, result)[:_SHOWN_RESULT])
    bad = result is not None and result.outcome in _BAD
    still = done or asks or waits or not is_open
    since = None if still or item.since is None else in_milliseconds(item.since)
    most = _TAIL_RUNNING if result is None else _TAIL_BAD if bad else _TAIL_GOOD
    prints = changed.kind is ToolKind.EXECUTE or result is None  # such as where subagents are
    is_cut = result is not None and is_shortened(result)
    tail, above = tail_of(text, most, item.above, is_cut=is_cut) if text and prints else ("", "")
    name = describe_call(changed)
    return {
        "kind": "call",
        "item": item,
        "name": name,
        "verb": name.verb,
        "item_name": posixpath.basename(name.about),
        "read_lines": 0 if result is None else lines_read(changed.kind, result),
        "state": "waits for your answer" if waits else _state(item, result, is_open=is_open),
        "said": "" if asks else _said_of_call(item),
        "outcome": result.outcome.value if result is not None else "open",
        "sign": _sign(name.verb, None if result is None else result.outcome),
        "bad": bad,
        "running": since is not None,
        "link": done and changed.kind is ToolKind.EDIT and result is not None and result.outcome is Outcome.OK,
        "diff": preview.text if preview is not None and preview.is_diff and not asks else "",
        "output": text,
        "is_cut": is_cut,
        "cut": "Its beginning and its end",
        "tail": tail,
        "tail_above": above,
        "since": since,
        "seconds": item.seconds if changed.kind is ToolKind.EXECUTE or (item.seconds or 0) >= 1 else None,
        "job": "",
        "decision": None if asks else changed.decision,
        "decision_why": "" if changed.decision is None else printable(why_decided(changed.decision)),
    }


_BACKGROUND = "in the background"


def _in_background(job: SeenJob | None, *, is_open: bool) -> dict[str, Any]:
    """Show a call by the command that it left in the background: as running only where that is known."""
    if job is None or (job.line.running and not is_open):
        return {"state": _BACKGROUND, "sign": "term", "seconds": None}
    line = job.line
    said, outcome = ("", Outcome.OK) if line.running else job_ended(line.state)
    bad = outcome in _BAD
    most = _TAIL_RUNNING if line.running else _TAIL_BAD if bad else _TAIL_GOOD
    text, is_cut = output_of_command(job.printed), job.begin > 0
    tail, above = tail_of(text, most, is_cut=is_cut) if text.strip() else ("", "")
    return {
        "state": _BACKGROUND if outcome is Outcome.OK else f"{said}, {_BACKGROUND}",
        "sign": _sign("Run", outcome),
        "outcome": outcome.value,
        "bad": bad,
        "running": line.running,
        "since": line.started_at if line.running else None,
        "seconds": None if line.running else (line.ended_at - line.started_at) / 1000,
        "job": line.id if line.running else "",
        "output": text,
        "is_cut": is_cut,
        "cut": "Its end",
        "tail": tail,
        "tail_above": above,
    }


def _sign(verb: str, outcome: Outcome | None) -> str:
    if outcome is None:
        return "clock"
    return "x" if outcome in _BAD else _ENDED_EARLY.get(outcome, _SIGNS.get(verb, _OTHER_SIGN))
