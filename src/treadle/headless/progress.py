"""What happens, as lines for a person who reads along."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from treadle.protocol.messages import Text, text_of
from treadle.protocol.notifications import (
    AllowancesChanged,
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    ChecklistChanged,
    ContextCompacted,
    ConversationRewound,
    FilesRestored,
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notice,
    Notification,
    OwnWorkChanged,
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
)
from treadle.protocol.tools import CallResult, Preview, ToolKind

_SHOWN = 100


class Progress:
    """Says in lines what happens, without the answer: what may be it is held back until something comes after it."""

    def __init__(self) -> None:
        self._held = ""
        self._lines: Sequence[str] = ()
        self.last = ""

    def take(self, notification: Notification) -> list[str]:
        """Give the lines that can be shown by now."""
        lines = tuple(progress_lines(notification))
        if not lines:
            return []
        before = [*self._lines]
        self.last = self._held or self.last
        self._held = _may_be_the_answer(notification)
        self._lines = lines if self._held else ()
        return [*before, *(() if self._held else lines)]

    def finish(self, answer: str = "") -> list[str]:
        """Give what is still held back, unless it is the answer."""
        held, lines = self._held, self._lines
        self._held, self._lines = "", ()
        if held == answer.strip():
            return []
        self.last = held or self.last
        return [*lines]


def _may_be_the_answer(notification: Notification) -> str:
    """Give the text that may turn out to be the answer: the model's message, or what a call that ends the turn says."""
    match notification:
        case MessageDone(message=message):
            return text_of(message.content).strip()
        case CallChanged(status=CallStatus.RUNNING, kind=ToolKind.OTHER, preview=Preview(text=text)):
            return text.strip()
        case _:
            return ""


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
        case ContextCompacted() as made:
            from treadle.present.words import room_made

            yield f"~ {room_made(made)}"
        case ModelChanged(model=model, why=why) if why:
            yield f"~ model: {model} ({why})"
        case ChecklistChanged(text=text):
            from treadle.present.checklist import summary_of

            yield f"~ checklist: {summary_of(text) or 'empty'}"
        case PromptDelivered(content=content, by=by) if by:
            from treadle.present.words import clip_text, written_by

            yield f"~ {written_by(by)} {clip_text(' '.join(text_of(content).split()), 200)}"
        case PromptDelivered(enclosed=enclosed) if enclosed:
            from treadle.present.words import enclosed_line

            yield f"~ {enclosed_line(enclosed)}"
        case Notice(text=text):
            yield f"~ {text}"
        case FilesRestored(restored=restored, conversation=conversation):
            from treadle.present.words import restored_words

            yield f"~ {restored_words(restored, conversation=conversation)}"
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
            | ConversationRewound()
            | ModeChanged()
            | ModelChanged()
            | AllowancesChanged()
            | OwnWorkChanged()
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


def summary_lines(outcome: TurnOutcome) -> Iterator[str]:
    """Sum up a turn: the files, the tokens, the money, what stopped it."""
    from treadle.present.words import spent

    for change in outcome.changes:
        yield f"  {change.path} (+{change.added} -{change.removed})"
    if outcome.changes and not outcome.exact:
        yield "# at least these files changed: no checkpoint shows what else commands changed"
    usage = outcome.usage
    cached = f", {usage.cache_read_tokens} from cache" if usage.cache_read_tokens else ""
    about = "about " if usage.estimated else ""
    paid = spent(usage, outcome.cost)
    tokens = f"{about}{usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens} tokens in{cached}"
    steps = "1 step" if outcome.steps == 1 else f"{outcome.steps} steps"
    yield f"# {outcome.stop}: {steps}, {tokens}, {usage.output_tokens} out, {paid}"
    if outcome.denied:
        one = outcome.denied == 1
        calls, them = ("1 call was", "it") if one else (f"{outcome.denied} calls were", "them")
        yield f"# {calls} denied because nobody was there to approve {them}; see --mode"
    if outcome.why:
        yield f"# stopped by {outcome.why}"
