"""A session as a person reads it afterwards."""

from collections.abc import Iterable, Iterator, Sequence

from treadle.context.notified import notifications
from treadle.present.words import counted, enclosed_line, room_made, written_by
from treadle.protocol.events import Event
from treadle.protocol.messages import Text, ToolUse, UserContent
from treadle.protocol.models import money
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    ChecklistChanged,
    ContextCompacted,
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notification,
    PromptDelivered,
    RetryScheduled,
    TurnEnded,
    TurnStarted,
)
from treadle.protocol.patterns import regex
from treadle.protocol.tools import CallResult
from treadle.store.sqlite import SessionRow

_TICKS = regex("`{3,}")


def session_lines(row: SessionRow, events: Iterable[Event], *, turn: int = 1) -> Iterator[str]:
    """Write a session, from a turn on, as Markdown."""
    yield f"# {row.title or row.id}"
    yield ""
    yield f"Session {row.id} in {row.workspace}, {row.model}, {counted(row.events, 'event')}"
    for notification in since_turn(notifications(events), turn):
        yield from _lines(notification)


def since_turn(past: Iterable[Notification], turn: int) -> Iterator[Notification]:
    """Leave out what was before a turn, counted from 1."""
    begun = 0
    for notification in past:
        begun += isinstance(notification, TurnStarted)
        if begun >= turn or turn <= 1:
            yield notification


def _lines(notification: Notification) -> Iterator[str]:  # noqa: C901 - one line for each notification
    match notification:
        case PromptDelivered(content=content, enclosed=enclosed, by=by):
            yield from ("", f"## {written_by(by)}" if by else "## User", "", _text(content))
            if enclosed:
                yield from ("", f"({enclosed_line(enclosed)})")
        case MessageDone(message=message):
            text = "".join(block.text for block in message.content if isinstance(block, Text)).strip()
            calls = [block.name for block in message.content if isinstance(block, ToolUse)]
            if text or calls:
                yield from ("", "## Treadle", "", text or f"({', '.join(calls)})")
        case CallChanged(status=CallStatus.FINISHED, result=CallResult() as result) as changed:
            yield from _call(changed, result)
        case RetryScheduled(error=error, seconds=seconds):
            yield f"- retry in {seconds:.1f} s: {error.kind}: {error.message}"
        case ContextCompacted(before=0, dropped=dropped):
            yield f"- {counted(dropped, 'older message')} removed from the prompt"
        case ContextCompacted(summary=summary) as made:
            yield f"- {room_made(made)}"
            if summary:
                yield from ("", *_fenced(summary))
        case ModeChanged(mode=mode):
            yield f"- mode {mode}"
        case ModelChanged(model=model, why=why):
            yield f"- model {model}" + (f": {why}" if why else "")
        case ChecklistChanged(text=text):
            yield from ("", "Checklist:", "", text)
        case TurnEnded(outcome=outcome):
            paid = money(outcome.cost, estimated=outcome.usage.estimated)
            why = f" ({outcome.why})" if outcome.why else ""
            yield from ("", f"**{outcome.stop}**{why} after {counted(outcome.steps, 'step')}, {paid}")
        case _:
            return


def _call(changed: CallChanged, result: CallResult) -> Iterator[str]:
    title = changed.preview.title if changed.preview is not None else changed.call.name
    verdict = changed.decision.verdict if changed.decision is not None else "not checked"
    yield from ("", f"### {changed.call.name}: {title} [{verdict}, {result.outcome}]", "")
    if changed.preview is not None and changed.preview.text:
        yield from _fenced(changed.preview.text.rstrip(), "diff" if changed.preview.is_diff else "")
    text = _text(result.content)
    if text.strip():
        yield from _fenced(text.rstrip())


def _fenced(text: str, language: str = "") -> Iterator[str]:
    """Put a text between fences that are longer than any in it."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", text, fence)


def _text(content: Sequence[UserContent]) -> str:
    return "\n".join(
        block.text if isinstance(block, Text) else f"[{type(block).__name__.lower()}]" for block in content
    )
