"""What the scrollback shows folded, whole: messages, reasoning, calls with all of their output, and diffs."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from treadle.present.escape import output_of_command, printable
from treadle.present.words import describe_call, plain, result_for_person
from treadle.protocol.messages import Text, Thinking
from treadle.protocol.notifications import CallChanged, CallStatus, MessageDone, Notification, PromptDelivered
from treadle.protocol.tools import CallResult, Outcome, ToolKind
from treadle.tui.calls import OpenCall
from treadle.tui.cards import mark_of
from treadle.tui.diffs import diff_lines
from treadle.tui.lines import Line, line, wrap
from treadle.tui.theme import Signs

_KEPT = 400
"""How many messages and calls are kept."""

_MOST_OUTPUT = 1_000_000
"""Characters of an output that are shown; of a longer one the end."""

Kept: TypeAlias = PromptDelivered | MessageDone | CallChanged


class RecentWork:
    """What was said and done last in a session."""

    def __init__(self, past: Iterable[Notification] = ()) -> None:
        self._kept: deque[Kept] = deque(maxlen=_KEPT)
        for notification in past:
            self.hear(notification)

    def hear(self, notification: Notification) -> None:
        """Keep what can be shown whole later."""
        match notification:
            case PromptDelivered() | MessageDone() | CallChanged(status=CallStatus.FINISHED):
                self._kept.append(notification)
            case _:
                pass

    def rows(self, open_calls: Sequence[OpenCall], width: int, signs: Signs) -> list[Line]:
        """Lay out all of it, and what the calls that still run have printed so far."""
        rows: list[Line] = []
        for notification in self._kept:
            rows += [*_rows_of(notification, width, signs), ()]
        for call in open_calls:
            rows += _call_rows(call.changed, width, signs, sign=line(("accent", signs.running)))
            rows += [*text_rows(output_of_command(call.output), width), ()]
        return rows or [line(("dim", "There is nothing to show yet."))]


def text_rows(text: str, width: int, role: str = "") -> Iterator[Line]:
    """Wrap a text that is harmless to show, two cells in."""
    for part in text.rstrip("\n").split("\n") if text.strip("\n") else ():
        yield from wrap(line("  ", (role, part.expandtabs(4))), width, indent=line("  "))


def _rows_of(notification: Kept, width: int, signs: Signs) -> Iterator[Line]:
    match notification:
        case PromptDelivered(content=content):
            for number, part in enumerate(printable(plain(content)).split("\n")):
                begin = ("user accent", f"{signs.prompt} ") if not number else ("user", "  ")
                yield from wrap(line(begin, ("user", part.expandtabs(4))), width, indent=line(("user", "  ")))
        case MessageDone(message=message):
            for block in message.content:
                if isinstance(block, Thinking) and block.text.strip():
                    yield line(("dim", f"{signs.thought} Thought"))
                    yield from text_rows(printable(block.text), width, "dim italic")
                elif isinstance(block, Text):
                    yield from text_rows(printable(block.text), width)
        case CallChanged():
            yield from _done_rows(notification, width, signs)


def _done_rows(notification: CallChanged, width: int, signs: Signs) -> Iterator[Line]:
    result = notification.result
    if result is None:
        return
    sign, role = mark_of(result.outcome, signs)
    yield from _call_rows(notification, width, signs, sign=line((role, sign)))
    text = _output_of(notification, result)
    yield from text_rows(
        output_of_command(text) if notification.kind is ToolKind.EXECUTE else printable(text), width, "dim"
    )


def _call_rows(notification: CallChanged, width: int, signs: Signs, *, sign: Line) -> Iterator[Line]:
    name = describe_call(notification)
    first, _, rest = name.about.strip().partition("\n")
    yield from wrap((*sign, *line(f" {name.verb} ", ("bold", first.expandtabs(4)))), width, indent=line("  "))
    yield from text_rows(rest, width, "bold")
    if notification.preview is None:
        for key, value in notification.call.arguments.items():
            yield from text_rows(printable(f"{key}: {value}"), width)
    elif notification.preview.is_diff:
        yield from diff_lines(notification.preview.text, width, signs, whole=True)


def _output_of(notification: CallChanged, result: CallResult) -> str:
    """Give all that a call printed, from its file where the model was given a part of it."""
    text = result_for_person(result, notification.decision)
    if result.full_output and result.outcome is not Outcome.REJECTED:
        try:
            with Path(result.full_output).open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - _MOST_OUTPUT))
                text = file.read().decode("utf-8", "replace") or text
        except OSError:
            pass
    return text if len(text) <= _MOST_OUTPUT else text[-_MOST_OUTPUT:]
