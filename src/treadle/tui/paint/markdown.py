"""The model's Markdown for a terminal: everything starts at the left, code has no frame, links show their address."""

from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import BlockQuote, CodeBlock, Heading, HorizontalRule, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from treadle.present.escape import printable
from treadle.tui.paint.code_lines import code_lines

_RENDERED = 1_000


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = str(self.text).rstrip()
        rows = [piece for row in code_lines(text, language=self.lexer_name) for piece in (*row, ("", "\n"))]
        shown = Text.assemble(*((part, roles) for roles, part in rows[:-1]), overflow="fold")
        yield Padding(shown, (0, 2))


class _Quote(BlockQuote):
    """A bar at the left that can be copied away, and no colour of its own."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(
            self.elements, options.update(width=max(1, options.max_width - 2)), style=self.style
        )
        for row in lines:
            yield Segment("│ ", self.style)
            yield from row
            yield Segment.line()


class _Rule(HorizontalRule):
    """As short as it can be: what is as wide as the screen breaks when it gets narrower."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("───", console.get_style("markdown.hr", default="none"))


class _Table(TableElement):
    """Cells that do not fit are folded: nothing of an identifier is cut away."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class _Markdown(Markdown):
    parser: ClassVar = MarkdownIt().enable("strikethrough").enable("table")

    def __init__(self, text: str) -> None:  # without that of the base: it makes a parser every time
        self.markup, self.parsed = text, self.parser.parse(text)
        self.code_theme = self.inline_code_theme = ""  # code has the roles of the theme
        self.justify, self.style, self.inline_code_lexer = None, "none", None
        self.hyperlinks = False

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "blockquote_open": _Quote,
        "hr": _Rule,
        "fence": _Code,
        "table_open": _Table,
        "code_block": _Code,
    }


def prose(markdown: str) -> RenderableType:
    """Render finished blocks."""
    return _Markdown(printable(markdown))


def growing(markdown: str, rows: int) -> RenderableType:
    """Render what is still written: a long text plainly and only its end, as it is drawn many times."""
    if len(markdown) <= _RENDERED:
        return prose(markdown)
    return Text(printable("\n".join(markdown.split("\n")[-rows:])))
