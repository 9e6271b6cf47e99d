"""What a person reads of a session afterwards: what its calls and turns were, in words without layout."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from treadle.present.call_words import said_of, whole_output
from treadle.present.escape import exact_line
from treadle.present.figures import by_name, restored_since, unlisted_words
from treadle.present.item_book import ItemBook
from treadle.present.items import CallItem, Placed, TurnItem
from treadle.present.view import SessionView
from treadle.present.words import CallName, clip_text, counted, describe_call, ended, note_of, remarks_of, span, spent
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import CallStatus, TurnStarted
from treadle.protocol.permissions import Verdict
from treadle.protocol.tools import Outcome, ToolKind

LEFT_CONVERSATION = "What follows left the conversation: the user went back to before it."
CAME_BACK = "From here on the conversation continues from before that."

_LONGEST_TITLE = 160
_WORTH_SAYING = 0.05
"""Seconds."""


class CallRecord(Struct, frozen=True):
    """A call as it is read afterwards: its title, what else is to be known, what it was to do, and what it brought.

    `asked` is a command or arguments that the title does not hold, `diff` what it was to change.
    """

    title: str
    facts: str
    asked: str = ""
    diff: str = ""
    output: str = ""


def call_record(item: CallItem) -> CallRecord:
    """Put a call into words."""
    preview, result = item.changed.preview, item.changed.result
    name = describe_call(item.changed)
    text = "" if preview is None else preview.text.rstrip()
    is_diff = preview is not None and preview.is_diff
    if item.changed.kind is ToolKind.EXECUTE and text and not is_diff:
        name = CallName(name.verb)
    title = clip_text(name.text, _LONGEST_TITLE)
    note, output = _note(item), whole_output(item).strip("\n")
    if text.strip() in (output.strip(), note):  # a refusal is there before the call, and comes of it
        text = ""
    if output.strip() == note:
        output = ""
    elif result is not None and output.strip().startswith(note.removesuffix("…")):
        note = ""
    return CallRecord(
        title=title,
        facts=f"{item.changed.call.name}: {', '.join(filter(None, _facts(item, note)))}",
        asked="" if is_diff or clip_text(text, _LONGEST_TITLE) in title else text,
        diff=text if is_diff else "",
        output="\n".join(filter(None, (output, "" if result is None else remarks_of(result)))),
    )


def _note(item: CallItem) -> str:
    result = item.changed.result
    if result is None or result.outcome is Outcome.REJECTED:
        return ""
    return note_of(item.changed.kind, result, item.changed.decision)


def _facts(item: CallItem, note: str) -> Iterator[str]:
    changed, result = item.changed, item.changed.result
    if changed.status is not CallStatus.FINISHED or result is None:
        yield "waits for an answer" if changed.status is CallStatus.ASKING else "not finished"
        return
    denied = result.outcome is Outcome.DENIED
    match changed.decision:
        case None:
            yield "not checked"
        case decision if decision.verdict is Verdict.ALLOW:
            yield "allowed"
        case decision if decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION and not denied:
            yield "asked"
        case _:
            pass
    yield result.outcome.value
    yield note
    yield span(item.seconds) if item.seconds is not None and item.seconds >= _WORTH_SAYING else ""
    yield said_of(item, "")


def turn_words(item: TurnItem) -> str:
    """Say how a turn ended: `Done: 3 steps in 2m 05s, besides 4 s of waiting for answers, $0.12`."""
    outcome = item.outcome
    why = f" ({outcome.why})" if outcome.why else ""
    took = "" if item.seconds is None else f" in {span(item.seconds)}"
    waited = f"{span(item.waited)} of waiting for answers" if item.waited >= _WORTH_SAYING else ""
    denied = f"{counted(outcome.denied, 'call')} denied with nobody there to ask" if outcome.denied else ""
    since = restored_since(item.restored, item.in_part)
    said = f"{ended(outcome.stop)}{why}: {counted(outcome.steps, 'step')}{took}"
    return ", ".join(
        filter(None, (said, waited and f"besides {waited}", denied, since, spent(outcome.usage, outcome.cost)))
    )


def file_lines(item: TurnItem) -> Iterator[str]:
    """Name the files that a turn changed."""
    yield from (f"{exact_line(one.path)} (+{one.added} -{one.removed})" for one in by_name(item.files))
    if item.files and (why := unlisted_words(item.outcome)):
        yield f"at least these: {why}"


def recorded(past: Sequence[Stamped], view: SessionView, turn: int = 1) -> tuple[SessionView, tuple[Placed, ...]]:
    """Give what is true at the end of a past, and its items, from a turn on, which is counted from 1.

    What a reply did that is not whole stands at the end.
    """
    book, begun, first = ItemBook(view), 0, 0 if turn <= 1 else None
    for stamped in past:
        begun += isinstance(stamped.notification, TurnStarted)
        if begun == turn and first is None:
            first = book.view.places
        book.take(stamped)
    for item in book.view.proposed:
        book.show(item)
    left = () if first is None else tuple(one for one in book.items() if one.position >= first)
    return book.view, left
