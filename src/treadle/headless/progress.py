"""What happens, as lines for a person who reads along."""

from collections.abc import Iterator
from typing import assert_never

from treadle.app.session.checklist_file import summary_of
from treadle.protocol.messages import Text, text_of
from treadle.protocol.notifications import (
    AllowancesChanged,
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    ChecklistChanged,
    ContextCompacted,
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notice,
    Notification,
    PhaseChanged,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    QueueChanged,
    ReplyDropped,
    ResultPresented,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.tools import CallResult

_SHOWN = 100


def progress_lines(notification: Notification) -> Iterator[str]:  # noqa: C901 - one line for each notification
    """Say in lines what happened; most notifications need none."""
    match notification:
        case MessageDone(message=message):
            text = text_of(message.content).strip()
            if text:
                yield text
        case CallChanged(status=CallStatus.RUNNING) as changed:
            yield f"> {title(changed)}"
        case CallChanged(status=CallStatus.FINISHED, result=CallResult() as result) as changed if result.is_error:
            yield f"! {title(changed)}: {result.outcome}: {first_line(result)}"
        case RetryScheduled(attempt=attempt, seconds=seconds, error=error):
            yield f"~ {error.kind}: {error.message} (attempt {attempt + 1} in {seconds:.1f} s)"
        case ContextCompacted(dropped=dropped):
            yield f"~ {dropped} older messages left the prompt to make room"
        case ModelChanged(model=model, why=why) if why:
            yield f"~ model: {model} ({why})"
        case ChecklistChanged(text=text):
            yield f"~ checklist: {summary_of(text) or 'empty'}"
        case Notice(text=text):
            yield f"~ {text}"
        case (
            PhaseChanged()
            | TurnStarted()
            | PromptDelivered()
            | QueueChanged()
            | TextDelta()
            | ThinkingDelta()
            | CallDelta()
            | CallChanged()
            | CallOutput()
            | ReplyDropped()
            | QuestionAsked()
            | QuestionClosed()
            | ResultPresented()
            | ModeChanged()
            | ModelChanged()
            | AllowancesChanged()
            | TurnEnded()
        ):
            return
        case _:
            assert_never(notification)


def title(changed: CallChanged) -> str:
    """Name a call on one line."""
    preview = changed.preview
    text = preview.title if preview is not None else changed.call.name
    if preview is not None and preview.text and not preview.is_diff:
        text = f"{text}: {preview.text}"
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def first_line(result: CallResult) -> str:
    """Give the beginning of what the model reads."""
    text = "".join(block.text for block in result.content if isinstance(block, Text)).strip()
    line = text.partition("\n")[0]
    return line if len(line) <= 2 * _SHOWN else f"{line[: 2 * _SHOWN - 1]}…"


def summary_lines(outcome: TurnOutcome, session_id: str) -> Iterator[str]:
    """Sum up a turn: the files, the tokens, the money, how to go on."""
    for change in outcome.changes:
        yield f"  {change.path} (+{change.added} -{change.removed})"
    usage = outcome.usage
    cached = f", {usage.cache_read_tokens} from cache" if usage.cache_read_tokens else ""
    money = "cost unknown" if outcome.cost is None else f"${outcome.cost:.4f}"
    tokens = f"{usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens} tokens in{cached}"
    yield f"# {outcome.stop}: {outcome.steps} steps, {tokens}, {usage.output_tokens} out, {money}"
    if outcome.denied:
        yield f"# {outcome.denied} calls were denied because nobody was there to approve them; see --mode"
    if outcome.why:
        yield f"# stopped by {outcome.why}"
    if outcome.stop is not TurnStop.END_TURN:
        yield f"# go on with: treadle --resume {session_id}"
