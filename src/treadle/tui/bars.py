"""The lines around the input: the bar at the bottom, what waits, the keys of a question."""

from prompt_toolkit.formatted_text import StyleAndTextTuples, fragment_list_to_text
from prompt_toolkit.utils import get_cwidth

from treadle.app.presentation.escape import printable
from treadle.app.presentation.words import clip, doing, money, plain, span, tokens
from treadle.protocol.notifications import Phase, QueuedPrompt
from treadle.tui.view import View

_SHOWN_QUEUE = 5


def clock_runs(view: View) -> bool:
    """Whether time passes visibly: something works, or a countdown runs."""
    return view.busy and view.phase not in (Phase.WAITING_FOR_EVENT, Phase.AWAITING_USER_CONFIRMATION)


def toolbar(view: View, now: float, columns: int) -> StyleAndTextTuples:
    """Show mode, state, model, context, cost and queue; what does not fit is left out, the last first."""
    state = doing(view.phase)
    if view.started is not None and clock_runs(view):
        state = f"{state} {span(now - view.started)}"
    parts = [
        ("class:toolbar.mode", str(view.mode)),
        (_state_style(view), state),
        ("class:toolbar", printable(clip(view.progress, 40))),
        ("class:toolbar", f"{len(view.queue)} queued" if view.queue else ""),
        ("class:toolbar", printable(view.model)),
        ("class:toolbar", _context(view)),
        ("class:toolbar", money(view.spending.total, unpriced=view.spending.unpriced)),
        ("class:toolbar", "/help"),
    ]
    shown: StyleAndTextTuples = []
    room = columns - 1
    for style, text in parts:
        width = len(text) + 3
        if text and width <= room + 3:
            room -= width
            shown += [("class:toolbar", " · "), (style, text)] if shown else [(style, text)]
    return shown


def _state_style(view: View) -> str:
    if view.phase is Phase.AWAITING_USER_CONFIRMATION:
        return "class:toolbar.waiting"
    return "class:toolbar.busy" if view.busy else "class:toolbar"


def _context(view: View) -> str:
    if view.window is None:
        return f"{tokens(view.tokens)} tokens"
    return f"{tokens(view.tokens)} of {tokens(view.window)} ({100 * view.tokens // max(1, view.window)} %)"


def panel(view: View, now: float, hint: str) -> StyleAndTextTuples:
    """Show the countdown of a retry, the prompts that wait, and a hint."""
    lines: StyleAndTextTuples = []
    if view.retry is not None and view.retry.at is not None:
        left = max(0, round(view.retry.at - now))
        lines.append(("class:hint", f"Trying again in {left}s. Esc stops.\n"))
    lines += [("class:queued", line) for line in _queue_lines(view.queue)]
    if hint:
        lines.append(("class:hint", f"{hint}\n"))
    return _without_last_line_feed(lines)


def rows_of(fragments: StyleAndTextTuples, columns: int) -> int:
    """Count the rows that fragments take when they are wrapped."""
    text = fragment_list_to_text(fragments)
    return sum(1 + get_cwidth(line) // columns for line in text.split("\n")) if text else 0


def _queue_lines(queue: tuple[QueuedPrompt, ...]) -> list[str]:
    lines = [
        f"  waits {number}: {printable(clip(plain(prompt.content), 100))}\n"
        for number, prompt in enumerate(queue[:_SHOWN_QUEUE], start=1)
    ]
    if len(queue) > _SHOWN_QUEUE:
        lines.append(f"  and {len(queue) - _SHOWN_QUEUE} more: /queue\n")
    return lines


def _without_last_line_feed(lines: StyleAndTextTuples) -> StyleAndTextTuples:
    if not lines:
        return lines
    return [*lines[:-1], (lines[-1][0], lines[-1][1].rstrip("\n"))]
