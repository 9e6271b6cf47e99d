"""The model's Markdown for a terminal: everything starts at the left, code has no frame, links show their address."""

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from treadle.app.presentation.escape import printable

_RENDERED = 1_000


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Syntax(str(self.text).rstrip(), self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 2))


class _Table(TableElement):
    """Cells that do not fit are folded: nothing of an identifier is cut away."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "table_open": _Table,
        "code_block": _Code,
    }


def prose(markdown: str) -> RenderableType:
    """Render finished blocks."""
    return _Markdown(printable(markdown), code_theme="ansi_dark", inline_code_theme=None, hyperlinks=False)


def growing(markdown: str, rows: int) -> RenderableType:
    """Render what is still written: a long text plainly and only its end, as it is drawn many times."""
    if len(markdown) <= _RENDERED:
        return prose(markdown)
    return Text(printable("\n".join(markdown.split("\n")[-rows:])))
