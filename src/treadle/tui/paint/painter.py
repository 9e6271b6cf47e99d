"""Items as text with colours, those that still change too. Loads Rich, so it is itself loaded after first paint."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.theme import Theme as RichTheme

from treadle.present.escape import printable
from treadle.present.items import CallItem, ProseItem, SaidItem, ThoughtItem, TurnItem, WritingItem
from treadle.present.words import clip_text, verb_of
from treadle.protocol.notifications import CallStatus
from treadle.tui.paint.diff_rows import live_edit_lines
from treadle.tui.paint.hyperlinks import FileLinks, linkable_names, linked, visible_width
from treadle.tui.paint.lines import Line, ansi, clip, line
from treadle.tui.paint.markdown import growing, prose
from treadle.tui.paint.printed_items import (
    CallLine,
    DiffItem,
    EnteredCommand,
    LivingItem,
    OwnDone,
    PrintedItem,
    ReadsLine,
)
from treadle.tui.paint.printed_lines import item_lines, open_call_lines
from treadle.tui.paint.theme import Palette, Theme

_THOUGHT_LINES = 2

_STREAMS = frozenset({"diff", "patch", "content"})
"""Parameters of a call that are shown as they are written."""

_CALLS = (CallLine, ReadsLine, ThoughtItem)
"""Items that stand together in a group, with a blank line before and after it."""

_APART = (SaidItem, EnteredCommand, ProseItem, DiffItem, OwnDone, TurnItem)
"""Items that stand apart from what is above them."""


class Painter:
    """Paints for a terminal of `columns` width in a theme. `last` is what was painted before, for the blank lines.

    With `links` addresses are links where items are painted, and names that it knows.
    """

    def __init__(
        self, columns: int, theme: Theme, last: PrintedItem | None = None, links: FileLinks | None = None
    ) -> None:
        self._links = links
        self._theme = theme
        self._width = max(20, columns - 1)
        self.last = last
        self._console = _console(self._width, theme)

    def items(self, items: Sequence[PrintedItem]) -> str:
        """Paint what goes to the scrollback; every line ends with a line feed."""
        painted: list[str] = []
        for item in items:
            lines = self._linked(item, self._paint(item))
            if lines:
                painted += ["", *lines] if _stands_apart(self.last, item) else lines
                self.last = item
        return self._theme.legible("".join(f"{row}\n" for row in painted))

    def _linked(self, item: PrintedItem, rows: list[str]) -> list[str]:
        if self._links is None:
            return rows
        links = self._links
        names = linkable_names(item.markdown) if isinstance(item, ProseItem) else None
        return [linked(row, links, full=visible_width(row) >= self._width - 1, names=names) for row in rows]

    def _paint(self, item: PrintedItem) -> list[str]:
        if isinstance(item, ProseItem):
            return _without_blank_ends(self._rendered(prose(item.markdown)))
        return ansi(item_lines(item, self._width, self._theme.signs), self._theme)

    def last_of(self, items: Sequence[PrintedItem], rows: int) -> Sequence[PrintedItem]:
        """Give the last of them that fill so many rows."""
        for position in range(len(items) - 1, -1, -1):
            rows -= len(self._paint(items[position])) + 1
            if rows < 0:
                return items[position + 1 :]
        return items

    def living(self, items: Iterable[LivingItem], rows: int, now: float, *, blinks: bool = False) -> str:
        """Paint what is not in the scrollback yet, at most `rows` lines of it, the end of it; `now` in seconds."""
        lines: list[str] = []
        last = self.last
        for item in items:
            match item:
                case ProseItem(markdown=markdown, growing=True):
                    lines += ["", *_grown(markdown, rows, self._width, self._theme)] if markdown.strip() else []
                case ThoughtItem(growing=True) | WritingItem() | CallItem():
                    lines += ansi(self._moving(item, now, blinks=blinks), self._theme)
                case _:
                    painted = self._paint(item)
                    lines += ["", *painted] if painted and _stands_apart(last, item) else painted
                    last = item
        return self._theme.legible("\n".join(lines[-rows:] if rows > 0 else []))

    def grown(self, markdown: str, rows: int) -> list[str]:
        """Paint a text that still grows."""
        return _without_blank_ends(self._rendered(growing(markdown, rows)))

    def _moving(self, item: ThoughtItem | WritingItem | CallItem, now: float, *, blinks: bool) -> list[Line]:
        signs = self._theme.signs
        match item:
            case ThoughtItem(text=text):
                lines = printable(text).strip().split("\n")[-_THOUGHT_LINES:]
                return [clip(line(("dim italic", f"  {one}")), self._width) for one in lines]
            case WritingItem():
                verb, about = verb_of(item.tool), printable(clip_text(item.argument, 60))
                row = clip(line(("dim", f"{signs.more} {verb} "), ("dim", about)), self._width, signs.more)
                shown = item.text if item.parameter in _STREAMS else ""
                return [row, *live_edit_lines(shown, self._width, item.argument)]
            case CallItem():
                # A call that is asked about is in the question.
                asked = item.changed.status is CallStatus.ASKING
                return [] if asked else open_call_lines(item, now, self._width, signs, blinks=blinks)

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
        theme=RichTheme({**roles, **{name: roles.get(role, role) for name, role in _MARKDOWN.items()}}),
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


def _stands_apart(last: PrintedItem | None, item: PrintedItem) -> bool:
    if last is None:
        return False
    if isinstance(item, _CALLS):
        return not isinstance(last, (*_CALLS, DiffItem))
    return isinstance(item, _APART) or isinstance(last, _CALLS)


def _without_blank_ends(lines: list[str]) -> list[str]:
    filled = [number for number, one in enumerate(lines) if one]
    return lines[filled[0] : filled[-1] + 1] if filled else []
