"""Items and the living part of the view as text with colours. Loads Rich, so it is itself loaded after first paint."""

from collections.abc import Sequence
from functools import lru_cache

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.theme import Theme as RichTheme

from treadle.present.escape import printable
from treadle.present.words import clip_text, verb_of
from treadle.protocol.notifications import CallStatus
from treadle.tui.cards import item_lines, open_call_lines
from treadle.tui.diffs import live_edit_lines
from treadle.tui.items import CallDone, DiffItem, OwnDone, Prose, Reads, Said, ScreenItem, Thought, TurnDone
from treadle.tui.lines import Line, ansi, clip, line
from treadle.tui.markdown import growing, prose
from treadle.tui.reply import Reply
from treadle.tui.theme import Palette, Theme
from treadle.tui.view import View

_THOUGHT_LINES = 2

_CALLS = (CallDone, Reads, Thought)
"""Items that stand together in a group, with a blank line before and after it."""

_APART = (Said, Prose, DiffItem, OwnDone, TurnDone)
"""Items that stand apart from what is above them."""


class Painter:
    """Paints for a terminal of `columns` width in a theme. `last` is what was painted before, for the blank lines."""

    def __init__(self, columns: int, theme: Theme, last: ScreenItem | None = None) -> None:
        self._theme = theme
        self._width = max(20, columns - 1)
        self.last = last
        self._light = theme.palette is Palette.LIGHT
        self._console = _console(self._width, theme)

    def items(self, items: Sequence[ScreenItem]) -> str:
        """Paint what goes to the scrollback; every line ends with a line feed."""
        painted: list[str] = []
        for item in items:
            lines = self._paint(item)
            if lines:
                painted += ["", *lines] if _stands_apart(self.last, item) else lines
                self.last = item
        return self._theme.legible("".join(f"{row}\n" for row in painted))

    def _paint(self, item: ScreenItem) -> list[str]:
        if isinstance(item, Prose):
            return _without_blank_ends(self._rendered(prose(item.markdown, light=self._light)))
        return ansi(item_lines(item, self._width, self._theme.signs), self._theme)

    def living(self, view: View, rows: int, now: float, *, blinks: bool = False) -> str:
        """Paint what still changes, at most `rows` lines of it, the end of it."""
        lines = self._answer(view.reply, rows)
        lines += ansi(self._working(view, now, blinks=blinks), self._theme)
        return self._theme.legible("\n".join(lines[-rows:] if rows > 0 else []))

    def _answer(self, reply: Reply, rows: int) -> list[str]:
        if not reply.text.strip():
            return []
        return ["", *_grown(reply.text, rows, self._width, self._theme)]

    def grown(self, markdown: str, rows: int) -> list[str]:
        """Paint a text that still grows."""
        return _without_blank_ends(self._rendered(growing(markdown, rows, light=self._light)))

    def _working(self, view: View, now: float, *, blinks: bool) -> list[Line]:
        rows, signs = list[Line](), self._theme.signs
        if view.reads:
            rows += item_lines(Reads(view.reads), self._width, signs)
        if view.reply.thinking.size:
            lines = printable(view.reply.thinking.end).strip().split("\n")[-_THOUGHT_LINES:]
            rows += [clip(line(("dim italic", f"  {one}")), self._width) for one in lines]
        if view.reply.writing is not None:
            written = view.reply.writing
            verb, about = verb_of(written.name), printable(clip_text(written.argument, 60))
            rows.append(clip(line(("dim", f"{signs.more} {verb} "), ("dim", about)), self._width, signs.more))
            rows += live_edit_lines(view.reply.writing.body, self._width)
        for call in view.calls:
            # A call that is asked about is in the question.
            if call.changed.status is not CallStatus.ASKING:
                rows += open_call_lines(call, now, self._width, signs, blinks=blinks)
        return rows

    def _rendered(self, renderable: RenderableType) -> list[str]:
        return [self._line(row) for row in self._console.render_lines(renderable, pad=False)]

    def _line(self, segments: list[Segment]) -> str:
        while segments and not segments[-1].text.strip():
            segments = segments[:-1]
        if not segments:
            return ""
        *before, last = segments
        return "".join(map(self._segment, [*before, Segment(last.text.rstrip(), last.style)]))

    def _segment(self, segment: Segment) -> str:
        style = segment.style
        if style is None or self._theme.palette is Palette.DUMB:
            return segment.text
        if self._theme.palette is Palette.PLAIN:
            style = style.without_color
        system = ColorSystem.TRUECOLOR if self._theme.true_colour else ColorSystem.EIGHT_BIT
        return style.render(segment.text, color_system=system)


@lru_cache(maxsize=1)
def _grown(markdown: str, rows: int, width: int, theme: Theme) -> list[str]:
    """Paint a text once, as long as only what is around it moves."""
    return Painter(width + 1, theme).grown(markdown, rows)


@lru_cache(maxsize=4)
def _console(width: int, theme: Theme) -> Console:
    roles = theme.for_rich()
    return Console(
        width=width,
        force_terminal=True,
        color_system="truecolor" if theme.true_colour else "256",
        theme=RichTheme({name: roles.get(role, role) for name, role in _MARKDOWN.items()}),
        highlight=False,
    )


_MARKDOWN = {
    "markdown.code": "code",
    "markdown.code_block": "none",
    "markdown.h1": "bold",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.h5": "bold",
    "markdown.h6": "bold",
    "markdown.block_quote": "dim",
    "markdown.item.bullet": "none",
    "markdown.item.number": "none",
    "markdown.link": "none",
    "markdown.link_url": "dim",
    "markdown.hr": "dim",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}
"""Which role each part of Markdown has."""


def _stands_apart(last: ScreenItem | None, item: ScreenItem) -> bool:
    if last is None:
        return False
    if isinstance(item, _CALLS):
        return not isinstance(last, (*_CALLS, DiffItem))
    return isinstance(item, _APART) or isinstance(last, _CALLS)


def _without_blank_ends(lines: list[str]) -> list[str]:
    filled = [number for number, one in enumerate(lines) if one]
    return lines[filled[0] : filled[-1] + 1] if filled else []
