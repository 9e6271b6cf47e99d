"""HTML as Markdown: headings, lists, tables, code, quotes and links; everything else as its plain text."""

import re
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from treadle.tools.html_tokens import End, HtmlText, Start, html_tokens

_HIDDEN = frozenset(
    {"script", "style", "noscript", "template", "iframe", "object", "svg", "canvas", "select", "button"}
)
_BLOCK_NAMES = """
    address article aside body caption center dd details dialog div dl dt fieldset figcaption figure footer form
    header hgroup html legend main menu nav p search section summary tbody tfoot thead
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`", "kbd": "`", "samp": "`", "del": "~~", "s": "~~"}
_SPACE = re.compile(r"[ \t\r\n\f]+")
_TICKS = re.compile(r"`+")
_MANY_BLANK = re.compile(r"\n{3,}")
_NO_BREAKS = dict.fromkeys(map(ord, "\t\r\n"))
_REFRESH = re.compile(r"\s*[\d.]+\s*[;,]\s*(?:url\s*=\s*)?['\"]?([^'\"]+)", re.IGNORECASE)
_DEEPEST = 20
_WIDEST_TABLE = 50


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """The title of a page, empty if it has none, its text as Markdown, and where it leads on by itself, if it does."""

    title: str
    text: str
    leads_to: str = ""


def to_markdown(source: str, base: str) -> MarkdownPage:
    """Write a page as Markdown; links become absolute by the URL `base`. Takes time linear in the page's length."""
    writer = _Writer(base)
    for token in html_tokens(source):
        match token:
            case HtmlText(text):
                writer.data(text)
            case Start(name, _):
                writer.start(token)
            case End(name):
                writer.end(name)
    return MarkdownPage(title=_flat(writer.title), text=writer.finish(), leads_to=writer.leads_to)


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


@dataclass(slots=True)
class _List:
    """A list that is open; `number` is the next one, None for bullets."""

    number: int | None


@dataclass(slots=True)
class _Table:
    """A table that is open: its rows so far, and the texts of the cell that is open."""

    rows: list[list[str]] = field(default_factory=list)
    cell: list[str] | None = None


@dataclass(slots=True)
class _Link:
    """A link that is open, and where its text began among the pieces of a line or cell."""

    target: str
    pieces: list[str]
    begin: int


class _Writer:
    """Takes tags and text in order and keeps the Markdown written so far."""

    def __init__(self, base: str) -> None:
        self.title = ""
        self.leads_to = ""
        self._base = base
        self._lines: list[str] = []
        self._line: list[str] = []
        self._bullet = ""
        self._hidden = ""
        self._in_title = False
        self._preformatted = 0
        self._quotes = 0
        self._lists: list[_List] = []
        self._tables: list[_Table] = []
        self._link: _Link | None = None

    def data(self, text: str) -> None:
        """Take text."""
        if self._hidden:
            return
        if self._in_title:
            self.title += text
        elif self._preformatted and not self._tables:
            self._line.append(text)
        else:
            self._inline(_SPACE.sub(" ", text))

    def start(self, tag: Start) -> None:
        """Take a start tag."""
        name = tag.name
        if self._hidden:
            return
        if name in _HIDDEN:
            self._hidden = name
        elif name == "title":
            self._in_title = not self.title
        elif name in _MARKS:
            self._mark(name)
        elif name == "a":
            self._open_link(tag.attributes.get("href", ""))
        elif name == "img":
            self._image(tag)
        elif name == "meta":
            self._meta(tag)
        elif name == "br":
            self._inline(" ") if self._tables else self._break()
        elif not self._table_start(name):
            self._block_start(tag)

    def end(self, name: str) -> None:
        """Take an end tag."""
        if self._hidden:
            self._hidden = "" if name == self._hidden else self._hidden
        elif name == "title":
            self._in_title = False
        elif name in _MARKS:
            self._mark(name)
        elif name == "a":
            self._close_link()
        elif not self._table_end(name):
            self._block_end(name)

    def finish(self) -> str:
        """End whatever is open and give the text."""
        while self._tables:
            self._close_table()
        if self._preformatted:
            self._preformatted = 1
            self._block_end("pre")
        self._paragraph()
        return _MANY_BLANK.sub("\n\n", "\n".join(self._lines)).strip("\n")

    # Inline

    def _inline(self, text: str) -> None:
        target = self._pieces()
        if target is None:
            return
        if text.startswith(" ") and (not target or target[-1].endswith((" ", "\n"))):
            text = text[1:]
        if text:
            target.append(text)

    def _pieces(self) -> list[str] | None:
        """Give what text is added to now; None between the cells of a table."""
        return self._tables[-1].cell if self._tables else self._line

    def _mark(self, name: str) -> None:
        if not self._preformatted:
            self._inline(_MARKS[name])

    def _open_link(self, target: str) -> None:
        self._close_link()
        url = self._absolute(target)
        pieces = self._pieces()
        if url and pieces is not None and not self._preformatted:
            self._link = _Link(url, pieces, len(pieces))

    def _close_link(self) -> None:
        link, self._link = self._link, None
        if link is None or link.pieces is not self._pieces() or link.begin > len(link.pieces):
            return
        text = _flat("".join(link.pieces[link.begin :]))
        del link.pieces[link.begin :]
        if text:
            self._inline(f"[{text}]({link.target})" if text != link.target else f"<{text}>")

    def _image(self, tag: Start) -> None:
        if text := _flat(tag.attributes.get("alt", "")):
            self._inline(f"[image: {text}]")

    def _meta(self, tag: Start) -> None:
        if tag.attributes.get("http-equiv", "").strip().lower() == "refresh":
            found = _REFRESH.match(tag.attributes.get("content", ""))
            self.leads_to = self.leads_to or (self._absolute(found.group(1)) if found else "")

    def _absolute(self, target: str) -> str:
        """Resolve a link; only those that can be fetched, and lead off this page, are of use."""
        try:
            url = urljoin(self._base, target.strip())
            fine = urlsplit(url).scheme in ("http", "https")
        except ValueError:
            return ""
        return _address(url) if fine and target.strip() and not target.strip().startswith("#") else ""

    # Blocks

    def _block_start(self, tag: Start) -> None:
        name = tag.name
        if name in _HEADINGS:
            self._paragraph()
            self._line.append(f"{_HEADINGS[name]} ")
        elif name in ("ul", "ol"):
            self._paragraph() if not self._lists else self._break()
            self._lists.append(_List(_first_number(tag) if name == "ol" else None))
        elif name == "li":
            self._item()
        elif name == "pre":
            self._paragraph()
            self._preformatted += 1
        elif name == "blockquote":
            self._paragraph()
            self._quotes += 1
        elif name == "hr":
            self._paragraph()
            self._line.append("---")
            self._paragraph()
        elif name in _BLOCKS:
            self._paragraph()

    def _block_end(self, name: str) -> None:
        if name == "pre" and self._preformatted:
            self._preformatted -= 1
            if not self._preformatted:
                self._code()
        elif name in ("ul", "ol"):
            self._break()
            if self._lists:
                self._lists.pop()
            if not self._lists:
                self._blank()
        elif name == "li":
            self._break()
        elif name == "blockquote":
            self._paragraph()
            self._quotes = max(0, self._quotes - 1)
        elif name in _BLOCKS or name in _HEADINGS:
            self._paragraph()

    def _item(self) -> None:
        self._break()
        current = self._lists[-1] if self._lists else _List(None)
        self._bullet = "- " if current.number is None else f"{current.number}. "
        if current.number is not None:
            current.number += 1

    def _prefix(self) -> str:
        """Indent for the lists and quotes that are open; the first line of an item has its bullet."""
        depth = min(len(self._lists), _DEEPEST)
        quotes = "> " * min(self._quotes, _DEEPEST)
        bullet, self._bullet = self._bullet, ""
        return quotes + ("  " * (depth - 1) + bullet if bullet else "  " * depth)

    def _break(self) -> None:
        """End the line that is being written."""
        self._link = None
        text = "".join(self._line).strip()
        self._line.clear()
        if text and not text.isspace():
            self._lines.append(self._prefix() + text)

    def _paragraph(self) -> None:
        """End the line, and leave a blank one unless a list item is open."""
        if self._preformatted:
            self._line.append("\n")
            return
        self._break()
        if not self._lists:
            self._blank()

    def _blank(self) -> None:
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def _code(self) -> None:
        code = "".join(self._line).strip("\r\n")
        self._line.clear()
        if not code.strip():
            return
        longest = max(map(len, _TICKS.findall(code)), default=0)
        fence = "`" * max(3, longest + 1)
        for line in (fence, *code.splitlines(), fence):
            self._lines.append(self._prefix() + line.rstrip())
        self._blank()

    # Tables

    def _table_start(self, name: str) -> bool:
        if name == "table":
            if not self._tables:
                self._paragraph()
            if len(self._tables) < _DEEPEST:
                self._tables.append(_Table())
            return True
        if not self._tables:
            return False
        table = self._tables[-1]
        if name == "tr":
            _close_cell(table)
            table.rows.append([])
        elif name in ("td", "th"):
            _close_cell(table)
            table.cell = []
        else:
            self._inline(" ")
        return True

    def _table_end(self, name: str) -> bool:
        if not self._tables:
            return False
        if name == "table":
            self._close_table()
        elif name in ("tr", "td", "th"):
            _close_cell(self._tables[-1])
        else:
            self._inline(" ")
        return True

    def _close_table(self) -> None:
        table = self._tables.pop()
        _close_cell(table)
        rows = [row for row in table.rows if any(row)]
        if self._tables:
            self._inline(" " + " ".join(" ".join(filter(None, row)) for row in rows) + " ")
            return
        if rows and max(map(len, rows)) == 1:
            for row in rows:
                self._line.append(row[0])
                self._paragraph()
            return
        width = max(map(len, rows), default=0)
        for number, row in enumerate(rows):
            self._lines.append(self._prefix() + _row(row, width))
            if number == 0:
                self._lines.append(self._prefix() + _row(["---"] * width, width))
        self._blank()


def _address(url: str) -> str:
    """Write an address as browsers do: line ends and tabs go, blanks are encoded."""
    return url.translate(_NO_BREAKS).replace(" ", "%20")


def _first_number(tag: Start) -> int:
    start = tag.attributes.get("start", "1")
    return int(start) if start.isdecimal() and len(start) < 10 else 1


def _close_cell(table: _Table) -> None:
    if table.cell is None:
        return
    if not table.rows:
        table.rows.append([])
    if len(table.rows[-1]) < _WIDEST_TABLE:
        table.rows[-1].append(_flat("".join(table.cell)).replace("|", "\\|"))
    table.cell = None


def _row(cells: list[str], width: int) -> str:
    return "| " + " | ".join([*cells, *[""] * (width - len(cells))]) + " |"
