"""The rows around the input: what works, what waits, the rule above and the status below."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from treadle.present.checklist_items import todo_of
from treadle.present.child_words import child_line
from treadle.present.context_use import filled_words, percent_full
from treadle.present.escape import printable
from treadle.present.failure_words import waiting_words
from treadle.present.goal_words import CHECKING_GOAL, goal_label
from treadle.present.view import SessionView
from treadle.present.words import clip_text, describe_call, span, tokens, written_text
from treadle.protocol.goals import GoalState
from treadle.protocol.messages import UserContent
from treadle.protocol.notifications import CallStatus, Phase, QueuedPrompt
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import ToolKind
from treadle.tui.paint.lines import Line, apart, cells, clip, line, line_text
from treadle.tui.paint.printed_lines import todo_row
from treadle.tui.paint.theme import Signs

NARROW, WIDE = 60, 110

_SHOWN_QUEUE = 3
_SHOWN_TODO = 6
FRAMES_PER_SECOND = 8

_NEARLY_FULL, _FULL = 75, 90
"""Percent."""


_STOP = "esc to stop"


def _as_sent(prompt_id: str, content: tuple[UserContent, ...]) -> str:  # noqa: ARG001 - every message alike
    return written_text(content)


_WITH_CALLS = (Phase.JUDGING, Phase.AWAITING_USER_CONFIRMATION, Phase.EXECUTING_TOOL)
"""Phases in which the reply of a step is there, and its calls are worked on."""


class BottomState(Struct, frozen=True, kw_only=True):
    """What else the rows show.

    `now` is the time (seconds since 1970), `tokens` what the conversation takes of the model's `window`. `held` are
    prompts that are held back, `steered` the ids of those that go at the next step; `shown` gives a message that waits
    as it was written. `left` are the messages that the person just went back to before. `unfolded`: the to-do list is
    open. `frame` is the picture of the spinner, -1 where nothing moves. `hint` stands at the right end of the status,
    `flash` for a moment above the rule. `editing` is the state of keys that have one.
    """

    now: float = 0.0
    tokens: int = 0
    window: int | None = None
    branch: str = ""
    left: Sequence[str] = ()
    shown: Callable[[str, tuple[UserContent, ...]], str] = _as_sent
    held: Sequence[str] = ()
    unfolded: bool = False
    frame: int = -1
    editing: str = ""
    hint: str = ""
    flash: str = ""


def clock_runs(view: SessionView) -> bool:
    """Whether time passes visibly: something works, or a countdown runs."""
    waits = view.phase in (Phase.WAITING_FOR_EVENT, Phase.AWAITING_USER_CONFIRMATION)
    return view.works and (view.checks_goal or not waits)


def above_rule(view: SessionView, around: BottomState, width: int, signs: Signs) -> list[Line]:
    """Show the to-do list, what works, and what waits."""
    rows: list[Line] = []
    if around.unfolded:
        rows += _todo(view.checklist, width, signs)
    if view.works:
        rows.append(_working(view, around, width, signs))
    rows += _lanes(view, width, signs)
    rows += _left(around.left, width, signs)
    rows += _queue(view.queue, around, width, signs)
    if around.flash:
        rows.append(clip(line(("dim", f"  {around.flash}")), width, signs.more))
    return rows


def _lanes(view: SessionView, width: int, signs: Signs) -> Iterator[Line]:
    """Show the subagents that no call above waits for."""
    waiting = {one.changed.call.id for one in view.open_calls}
    for child in view.children:
        if child.call_id not in waiting:
            row = line(("accent", f"  {signs.running} "), ("dim", printable(child_line(child))))
            yield clip(row, width - 1, signs.more)


def _todo(markdown: str, width: int, signs: Signs) -> Iterator[Line]:
    """Show at most a few things to do: those that are done as a number, and how many there are more."""
    todos = todo_of(markdown)
    done, left = [todo for todo in todos if todo.done], [todo for todo in todos if not todo.done]
    if done:
        yield line(" ", ("add", signs.ok), ("dim", f" {len(done)} done"))
    room = _SHOWN_TODO - bool(done)
    shown = left[: room - 1] if len(left) > room else left
    for number, todo in enumerate(shown):
        yield clip(todo_row(todo, 10_000, signs, present=number == 0)[0], width, signs.more)
    if len(left) > len(shown):
        yield line(("dim", f"   and {len(left) - len(shown)} more"))


def _working(view: SessionView, around: BottomState, width: int, signs: Signs) -> Line:
    """Say what is done now; of what else there is to say the last is left out first, how to stop stays longest."""
    asked, retrying = bool(view.questions), view.retry is not None
    about, seconds = _activity(view, around.now, width)
    facts = [] if retrying else list(_facts(view, around, seconds, wide=width >= WIDE, signs=signs))
    if not asked:
        # On a narrow screen hints go first.
        facts.insert(0 if width >= NARROW else len(facts), _STOP)
    moving = signs.spinner[around.frame % len(signs.spinner)] if around.frame >= 0 else signs.running
    begin = line(("dim" if asked else "accent", signs.running if asked else moving), " ")
    dot, room = f" {signs.dot} ", width - 1 - cells(begin)
    state_line = clip(
        line(("warn" if retrying else "", about)), room - (len(dot) + len(_STOP) if width >= NARROW else 0), signs.more
    )
    while facts and cells(state_line) + sum(len(dot) + len(fact) for fact in facts) > room:
        facts.pop()
    stop = line(("dim", _STOP if _STOP in facts else ""))
    shown = (*begin, *state_line, ("dim", "".join(f"{dot}{fact}" for fact in facts if fact != _STOP)))
    if width >= WIDE:
        return apart(shown, stop, width - 1) or shown
    return (*shown, ("dim", dot), *stop) if _STOP in facts else clip(shown, width - 1, signs.more)


def _facts(view: SessionView, around: BottomState, seconds: float, *, wide: bool, signs: Signs) -> Iterator[str]:
    """Give the times and figures of the turn, the first ones first."""
    now = around.now
    turn = now - (view.started or now) - view.waited - (now - view.asking if view.asking is not None else 0.0)
    asked = bool(view.questions)
    if seconds >= 1 and not asked:
        yield span(seconds)
    if turn - seconds >= 2 and not asked:
        yield f"turn {span(turn)}"
    if not view.active:
        return
    if wide:
        with_calls = view.phase in _WITH_CALLS and view.step > 0
        yield f"step {view.step if with_calls else view.step + 1}"
    if received := view.received + view.reply.tokens:
        yield f"{signs.received}{tokens(received)} tokens"
    if wide and (speed := view.reply.speed(view.reply.tokens, now) or view.speed) >= 1:
        yield f"{speed:.0f} tokens/s"


def _activity(view: SessionView, now: float, width: int) -> tuple[str, float]:
    """Say what is done now, and for how many seconds."""
    since = now - (view.since if view.since is not None else now)
    if view.retry is not None:
        retry = view.retry
        left = span(max(0, round((retry.at or now) - now)))
        of = f" ({retry.attempt} of {retry.most})" if retry.most else ""
        again = f"Continuing in {left}" if retry.resets or retry.error.paced else f"Retrying in {left}{of}"
        words = waiting_words(retry.error, view.model, resets=retry.resets)
        return (f"{words} {again}" if width >= NARROW else again), 0.0
    if view.questions:
        return "Waiting for your answer", 0.0
    running = next((call for call in view.open_calls if call.changed.status is CallStatus.RUNNING), None)
    if running is not None:
        name = describe_call(running.changed)
        reads = running.changed.kind in (ToolKind.READ, ToolKind.SEARCH)
        text = "Reading" if reads else f"{_DOING.get(name.verb, name.verb)} {clip_text(name.about, 60)}".rstrip()
        return text, now - (running.since if running.since is not None else now)
    if view.phase is Phase.AWAITING_LLM_RESPONSE:
        return ("Writing" if view.reply.heard and view.reply.thought is None else "Thinking"), since
    return (CHECKING_GOAL if view.checks_goal else _IN_PHASE.get(view.phase, "Preparing")), since


_IN_PHASE = {
    Phase.COMPACTING: "Making room in the context",
    Phase.CANCELLING: "Stopping",
    Phase.JUDGING: "Checking",
    Phase.EXECUTING_TOOL: "Working",
}

_DOING = {
    "Run": "Running",
    "Edit": "Editing",
    "Create": "Creating",
    "Delete": "Deleting",
    "Fetch": "Fetching",
    "Browse": "Browsing",
    "Call": "Calling",
}


def _queue(queue: tuple[QueuedPrompt, ...], around: BottomState, width: int, signs: Signs) -> Iterator[Line]:
    waiting = [(prompt.steer, around.shown(prompt.id, prompt.content)) for prompt in queue]
    for number, (steered, text) in enumerate(waiting[:_SHOWN_QUEUE]):
        last = number == min(len(waiting), _SHOWN_QUEUE) - 1
        note = "at the next step" if steered else f"{signs.up} edit" if last else ""
        yield _waiting("next", "dim", text, note, width, signs)
    if len(waiting) > _SHOWN_QUEUE:
        yield line(("dim", f"  and {len(waiting) - _SHOWN_QUEUE} more"))
    for number, text in enumerate(around.held[:_SHOWN_QUEUE]):
        yield _waiting("held", "warn", text, "enter sends · backspace drops" if number == 0 else "", width, signs)
    if len(around.held) > _SHOWN_QUEUE:
        yield line(("dim", f"  and {len(around.held) - _SHOWN_QUEUE} more held"))


def _left(texts: Sequence[str], width: int, signs: Signs) -> Iterator[Line]:
    """Show in grey what left the conversation, until the next message is sent."""
    for text in texts[:_SHOWN_QUEUE]:
        yield clip(line(("dim", f"  left  {printable(clip_text(text, max(10, width - 9)))}")), width - 1, signs.more)
    if len(texts) > _SHOWN_QUEUE:
        yield line(("dim", f"  and {len(texts) - _SHOWN_QUEUE} more left the conversation"))


def _waiting(word: str, role: str, text: str, note: str, width: int, signs: Signs) -> Line:  # noqa: PLR0917 - parts of one row
    right = line(("dim", note if width >= NARROW else ""))
    room = width - 9 - (cells(right) + 2 if note else 0)
    left = line("  ", (role, word), "  ", printable(clip_text(text, max(10, room))))
    return apart(left, right, width - 1) or clip(left, width, signs.more)


_MODES = {Mode.PLAN: "accent", Mode.ASK: "accent", Mode.EDITS: "warn", Mode.AUTO: "warn", Mode.FULL: "danger"}


def rule(view: SessionView, width: int, signs: Signs) -> Line:
    """Draw the rule above the input; at its right end are the next thing to do, and the mode."""
    end = line(" ", (_MODES[view.mode], str(view.mode)), ("dim", f" {signs.rule * 2}"))
    todo = printable(_next_todo(view.checklist)) if view.active else ""
    room = width - cells(end) - 6
    if todo and room >= 12:
        end = (("dim", f" {line_text(clip(line(todo), min(room, 60), signs.more))} {signs.rule}"), *end)
    return (("dim", signs.rule * max(0, width - cells(end))), *end)


def _next_todo(markdown: str) -> str:
    """Say which thing of how many is next: `3/4 Fix the total`; nothing where all are done."""
    todos = todo_of(markdown) if markdown else ()
    text = next((todo.text for todo in todos if not todo.done), "")
    return f"{sum(todo.done for todo in todos) + 1}/{len(todos)} {text}" if text else ""


def status(view: SessionView, around: BottomState, width: int, signs: Signs) -> Line:
    """Show model, context, money, branch and queue; what does not fit is left out, the last first."""
    provider, _, name = view.model.partition("/")
    profile = provider.partition("@")[2]
    parts = [line(("dim", printable(f"{name or view.model}{f' ({profile})' if profile else ''}"))), _context(around)]
    if around.editing:
        parts.insert(0, line(("accent", around.editing)))
    parts.append(line(("dim", view.spending.words)))
    if view.goal is not None:
        parts.append(line(("warn" if view.goal.state is GoalState.BLOCKED else "dim", goal_label(view.goal.state))))
    if width >= WIDE and around.branch:
        changed = f" +{view.added} -{view.removed}" if view.added or view.removed else ""
        parts.append(line(("dim", f"{printable(around.branch)}{changed}")))
    if view.mode is Mode.FULL:
        # Where commands run without being asked about, and without a sandbox.
        parts.append(line(("warn", "sandbox off")))
    waiting = len(view.queue) + len(around.held)
    if width >= WIDE and waiting:
        parts.append(line(("dim", f"next: {waiting}")))
    hint = line(("dim", around.hint if width >= NARROW else ""))
    if width < NARROW and cells(_joined(parts[:3], signs)) > width - 1:
        parts.pop(0)
    kept = len(parts)
    while kept > 1 and cells(_joined(parts[:kept], signs)) + cells(hint) + 3 > width:
        kept -= 1
    left = _joined(parts[:kept], signs)
    return apart(left, hint, width - 1) or clip(left, width - 1, signs.more)


def _joined(parts: Sequence[Line], signs: Signs) -> Line:
    row: Line = (("", " "),)
    for number, part in enumerate(parts):
        row = (*row, *((("dim", f" {signs.dot} "),) if number else ()), *part)
    return row


def _context(around: BottomState) -> Line:
    percent = percent_full(around.tokens, around.window)
    if percent is None:
        return line(("dim", f"{tokens(around.tokens)} tokens"))
    role = "danger" if percent >= _FULL else "warn" if percent >= _NEARLY_FULL else "dim"
    return line((role, filled_words(around.tokens, around.window)))


def placeholder(view: SessionView, around: BottomState, width: int) -> str:
    """Say what the empty input is for, in the first half of a sentence where there is no room for both."""
    text = "Describe a task, or / for commands"
    if view.questions:
        text = "Tab to answer the question above"
    elif around.held:
        text = "Enter sends the next queued message"
    elif view.works:
        text = "Type to queue a message · ctrl-s to send it now"
    return text if len(text) + 3 <= width else text.partition(" · ")[0][: width - 3]
