"""Items and the living part of the view as text with colours. Loads Rich, so it is itself loaded after first paint."""

from collections.abc import Sequence
from typing import assert_never

from rich.color import ColorSystem
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from treadle.app.presentation.escape import output_of_command, printable
from treadle.app.presentation.words import changed_lines, clip, ended, money, shorten, span, title_of, tokens
from treadle.protocol.notifications import CallStatus, TurnStop
from treadle.protocol.tools import Outcome
from treadle.tui.diffs import diff_text
from treadle.tui.items import (
    CallDone,
    Diff,
    Item,
    Notice,
    Problem,
    Prose,
    Said,
    Thought,
    Tone,
    TurnDone,
)
from treadle.tui.markdown import growing, prose
from treadle.tui.view import OpenCall, Reply, View

_OUTPUT_LINES = 6
_SAID_LINES = 100
_SAID_CHARACTERS = 16_000
_EDIT_LINES = 8
_THOUGHT_LINES = 3
_DIFF_LINES = 14
_APART = (Said, Prose, Diff, TurnDone)
"""Items that stand apart from what is above them."""

_TONES = {Tone.QUIET: "dim", Tone.GOOD: "green", Tone.WARNING: "yellow", Tone.ERROR: "bold red"}


class Painter:
    """Paints for a terminal of `columns` width; without `colour` only weight and position tell things apart."""

    def __init__(self, columns: int, *, colour: bool) -> None:
        self._colour = colour
        self._console = Console(
            width=max(20, columns - 1),
            force_terminal=True,
            color_system="standard",
            no_color=not colour,
            highlight=False,
        )

    def items(self, items: Sequence[Item]) -> str:
        """Paint what goes to the scrollback; every line ends with a line feed."""
        return "".join(f"{line}\n" for item in items for line in self._paint(item))

    def _paint(self, item: Item) -> list[str]:
        lines = self._lines(_item(item))
        return ["", *_without_blank_ends(lines)] if isinstance(item, _APART) else lines

    def living(self, view: View, rows: int) -> str:
        """Paint what still changes, at most `rows` lines of it, the end of it."""
        lines = self._answer(view.reply, rows)
        lines += [line for part in _working(view) for line in self._lines(part)]
        return "\n".join(lines[-rows:] if rows > 0 else [])

    def _answer(self, reply: Reply, rows: int) -> list[str]:
        if not reply.text.strip():
            return []
        return ["", *_without_blank_ends(self._lines(growing(reply.text, rows)))]

    def _lines(self, renderable: RenderableType) -> list[str]:
        rows = self._console.render_lines(renderable, pad=False)
        return [self._line(row) for row in rows]

    def _line(self, segments: list[Segment]) -> str:
        while segments and not segments[-1].text.strip():
            segments = segments[:-1]
        if not segments:
            return ""
        *before, last = segments
        return "".join(map(self._segment, [*before, Segment(last.text.rstrip(), last.style)]))

    def _segment(self, segment: Segment) -> str:
        if segment.style is None:
            return segment.text
        style = segment.style if self._colour else segment.style.without_color
        return style.render(segment.text, color_system=ColorSystem.STANDARD)


def _without_blank_ends(lines: list[str]) -> list[str]:
    filled = [number for number, line in enumerate(lines) if line]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _item(item: Item) -> RenderableType:
    match item:
        case Said(text=text):
            return _said(printable(shorten(text, lines=_SAID_LINES, characters=_SAID_CHARACTERS)))
        case Prose(markdown=markdown):
            return prose(markdown)
        case Thought(beginning=beginning, size=size):
            return Text(f"∴ thought, {size:,} characters: {printable(clip(beginning, 80))}", style="dim italic")
        case CallDone():
            return _call_done(item)
        case Diff(text=text):
            return diff_text(text, _DIFF_LINES)
        case Notice(text=text, tone=tone):
            return Text(printable(text), style=_TONES[tone])
        case Problem():
            return _problem(item)
        case TurnDone():
            return _turn_done(item)
        case _:
            assert_never(item)


def _said(text: str) -> Text:
    return Text.assemble(("› ", "bold cyan"), (text.replace("\n", "\n  "), "bold"))


_MARKS: dict[Outcome, tuple[str, str]] = {
    Outcome.OK: ("✓", "green"),
    Outcome.FAILED: ("✗", "red"),
    Outcome.INVALID: ("✗", "red"),
    Outcome.DENIED: ("⊘", "red"),
    Outcome.REJECTED: ("⊘", "yellow"),
    Outcome.SKIPPED: ("-", "dim"),
    Outcome.INTERRUPTED: ("■", "yellow"),
    Outcome.UNKNOWN: ("?", "yellow"),
}


def _call_done(done: CallDone) -> RenderableType:
    mark, style = _MARKS[done.outcome]
    line = Text.assemble((f"{mark} ", style), done.title)
    if done.outcome is Outcome.OK:
        line.no_wrap, line.overflow = True, "ellipsis"
    if done.outcome is not Outcome.OK:
        line.append(f"  {done.outcome}", style=style)
    if done.note:
        line.append(f"  {done.note}", style="dim")
    parts: list[RenderableType] = [line]
    if done.output.strip():
        parts.append(_tail(done.output, _OUTPUT_LINES))
    if done.diff and done.outcome is Outcome.OK:
        parts.append(Padding(diff_text(done.diff, _DIFF_LINES), (0, 0, 0, 2)))
    return Group(*parts)


def _tail(output: str, count: int) -> RenderableType:
    lines = output_of_command(output).rstrip().split("\n")
    text = Text(no_wrap=True, overflow="ellipsis", style="dim")
    if len(lines) > count:
        text.append("…\n")
    text.append("\n".join(line.expandtabs(4) for line in lines[-count:]))
    return Padding(text, (0, 0, 0, 2))


def _problem(problem: Problem) -> RenderableType:
    text = Text.assemble(("✗ ", "bold red"), (printable(problem.what), "bold red"))
    if problem.why:
        text.append(f"\n  why: {printable(problem.why)}", style="red")
    if problem.fix:
        text.append(f"\n  fix: {printable(problem.fix)}")
    return text


def _turn_done(done: TurnDone) -> RenderableType:
    outcome = done.outcome
    usage = outcome.usage
    facts = [
        ended(outcome.stop),
        changed_lines(outcome.changes),
        "1 step" if outcome.steps == 1 else f"{outcome.steps} steps",
        f"{tokens(usage.context_tokens)} tokens" if usage.context_tokens else "",
        money(outcome.cost or 0.0, unpriced=outcome.cost is None),
        "" if done.seconds is None else span(done.seconds),
    ]
    good = outcome.stop is TurnStop.END_TURN
    line = Text(f"■ {' · '.join(fact for fact in facts if fact)}", style="dim" if good else "yellow")
    files = [
        Text(f"  {printable(one.path)}  +{one.added} -{one.removed}", style="dim", overflow="ellipsis", no_wrap=True)
        for one in done.files
    ]
    return Group(*files, line)


def _working(view: View) -> list[RenderableType]:
    reply = view.reply
    parts: list[RenderableType] = []
    if reply.thinking.size:
        lines = printable(reply.thinking.end).strip().split("\n")[-_THOUGHT_LINES:]
        parts.append(Text("∴ " + "\n".join(lines), style="dim italic"))
    if reply.writing is not None:
        about = printable(clip(reply.writing.argument, 60))
        parts.append(Text(f"… {reply.writing.name} {about}  {reply.writing.size:,} characters", style="dim"))
        parts += _streaming(reply.writing.body)
    # A call that is asked about is in the question.
    open_calls = [call for call in view.calls if call.changed.status is not CallStatus.ASKING]
    return parts + [part for call in open_calls for part in _open_call(call)]


def _streaming(body: str) -> list[RenderableType]:
    """Show the last lines of an edit while it is written: what goes in red, what comes in green."""
    sides = {"-": "red", "+": "green"}
    style = "red" if "SEARCH" in body and "=======" not in body.rpartition("SEARCH")[2] else "green"
    shown = [line for line in printable(body).split("\n")[-_EDIT_LINES:] if line.strip()]
    return [Text(f"  {line}", style=sides.get(line[:1], style), overflow="ellipsis", no_wrap=True) for line in shown]


def _open_call(call: OpenCall) -> list[RenderableType]:
    status = call.changed.status
    style = "cyan" if status in (CallStatus.RUNNING, CallStatus.STARTING) else "dim"
    line = Text.assemble(
        ("● ", style), (f"{status}  ", "dim"), title_of(call.changed), no_wrap=True, overflow="ellipsis"
    )
    return [line, _tail(call.output, _OUTPUT_LINES)] if call.output.strip() else [line]
