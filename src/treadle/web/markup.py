"""Markdown, code and diffs as HTML that can do nothing: no raw HTML, no images, no links but to web addresses."""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from treadle.present.changed_words import Spans
from treadle.present.code_colours import ColouredPlaces, coloured_places, lexer_of
from treadle.present.escape import printable
from treadle.present.words import shorten_middle

MOST_LINES, MOST_CHARACTERS = 2_000, 200_000
"""Of one text on the page; the middle of a longer one is left out, and that is said."""

_LONGEST_LINE, _LONGEST_LANGUAGE = 4_000, 40
_MOST_COLOURED = 20_000
"""Characters of code that is coloured; more of it is plain."""

_LINES_A_COLOURING = 4
"""Lines of code that come, at least, before code that still grows is coloured again."""

_MOST_NESTED = 100
_MARK = r"(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])"
_DEEP = re.compile(rf"^(?:[ \t]*{_MARK}){{20}}|^[ \t]{{80,}}{_MARK}", re.MULTILINE)
"""Lists and quotes so deep in one another that no reader follows, so the text is shown as it was written: the parser
leaves out what is nested deeper than `_MOST_NESTED`, and a list counts twice."""

_TERMINAL = re.compile(r"\btreadle [a-z-]|(?<!\w)--?[a-z]|\bTREADLE_")
"""What only somebody at a terminal can write."""

_FENCE = "```"
_INLINE_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")

_LINKS = ("http://", "https://", "mailto:")


def page_text(text: str) -> str:
    """Show what would steer or hide in a text, and leave out what no reader goes through."""
    lines = (
        line
        if len(line) <= _LONGEST_LINE
        else f"{line[:_LONGEST_LINE]} … {len(line) - _LONGEST_LINE:,} more characters"
        for line in text[: 20 * MOST_CHARACTERS].split("\n")
    )
    return printable(shorten_middle("\n".join(lines), lines=MOST_LINES, characters=MOST_CHARACTERS))


def markdown(text: str, growing: bool = False) -> Markup:  # noqa: FBT001, FBT002 - as a filter takes it
    """Render a model's Markdown; what is still `growing` is rendered again and again."""
    text = page_text(text)
    if _DEEP.search(text):
        return Markup("<pre><code>{}</code></pre>\n").format(text)
    return Markup(_markdown().render(text, {"growing": growing}))  # noqa: S704 - everything in it was escaped by the renderer


def without_commands(advice: str) -> str:
    """Leave out of what a person can do what is done in a terminal, and the marks around names."""
    sentences = (one for one in re.split(r"(?<=[.?!])\s+|;\s+", advice) if one and not _TERMINAL.search(one))
    return " ".join(one if one[-1] in ".?!:" else f"{one}." for one in sentences).replace("`", "")


def ticked(text: str) -> Markup:
    """Show what stands between backticks in a sentence as code."""
    pieces = printable(text).split("`")
    if len(pieces) % 2 == 0:
        return escape("`".join(pieces))
    shown = (Markup("<code>{}</code>").format(piece) if at % 2 else escape(piece) for at, piece in enumerate(pieces))
    return Markup("").join(shown)


def inline_code(text: str) -> Markup:
    """Show what a line of a person's own text has between single backticks as code; the rest is as it was written."""
    pieces = _INLINE_CODE.split(printable(text)) if _FENCE not in text else [printable(text)]
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if at % 2 else piece for at, piece in enumerate(pieces)
    )


def code(text: str, *, language: str = "", name: str = "") -> Markup:
    """Colour code by its language, or by the name of its file, unless it is long."""
    text = page_text(text)
    lexer = lexer_of(language, name) if len(text) <= _MOST_COLOURED else None
    if lexer is None:
        return escape(text)
    lines = text.split("\n")
    return Markup("\n").join(map(coloured_line, lines, coloured_places(lexer, lines)))


def _growing_code(text: str, language: str) -> Markup:
    """Colour code that is still written up to its last lines: the longer it is, the more lines come between."""
    lines = text.split("\n")
    step = max(_LINES_A_COLOURING, (1 << len(lines).bit_length()) >> 4)
    cut = (len(lines) - 1) // step * step
    return (
        _coloured_before("\n".join(lines[:cut]), language) + ("\n" if cut else "") + page_text("\n".join(lines[cut:]))
    )


@lru_cache(maxsize=32)
def _coloured_before(text: str, language: str) -> Markup:
    return code(text, language=language)


def coloured_line(text: str, pieces: ColouredPlaces, marks: Spans = (), tag: str = "") -> Markup:
    """Write a line with its colours, and the marked places in elements of the tag; what hides in it is shown."""
    colours, marked = _at_each(pieces), _at_each([(start, end, tag) for start, end in marks])
    places = [*((start, end) for start, end, _ in pieces), *marks]
    cuts = sorted({0, len(text), *(at for place in places for at in place)})
    made: list[str] = []
    inside = ""
    for start, end in pairwise(cuts):
        if (now := marked(start)) != inside:
            made.append(f"</{inside}>" if inside else f"<{now}>")
            inside = now
        shown, colour = escape(printable(text[start:end])), colours(start)
        made.append(f'<span class="c-{colour}">{shown}</span>' if colour else shown)
    if inside:
        made.append(f"</{inside}>")
    return Markup("".join(made))  # noqa: S704 - every piece of the text was escaped


def _at_each(places: Sequence[tuple[int, int, str]]) -> Callable[[int], str]:
    """Give what says the word of the place that a character is in; asked from left to right."""
    waiting = iter(places)
    now = next(waiting, None)

    def at(character: int) -> str:
        nonlocal now
        while now is not None and now[1] <= character:
            now = next(waiting, None)
        return now[2] if now is not None and now[0] <= character else ""

    return at


class _Renderer(RendererHTML):
    """Renders what is safe: links to web addresses, images as the words that stand for them."""

    def link_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG002
        """Open a link, whose target is shown on hovering as it is."""
        target = str(tokens[index].attrGet("href") or "")
        if not target.lower().startswith(_LINKS):
            return '<span class="link">'
        shown = escape(target)
        return f'<a href="{shown}" title="{shown}" target="_blank" rel="noopener noreferrer nofollow">'

    def link_close(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG002
        """Close a link."""
        opened = _opening(tokens, index)
        return "</a>" if opened.lower().startswith(_LINKS) else "</span>"

    def image(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG002
        """Name an image: none is loaded."""
        token = tokens[index]
        return str(escape(f"[image: {token.content or token.attrGet('src') or ''}]"))

    def fence(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG002
        """Colour a block of code."""
        token = tokens[index]
        language = token.info.strip().split(" ", 1)[0]
        text = token.content
        shown = _growing_code(text, language) if env["growing"] else code(text, language=language)
        copies = '<button type="button" class="plain" data-copy="">Copy</button>'
        about = f"<div><span>{escape(language[:_LONGEST_LANGUAGE])}</span>{copies}</div>"
        return f'<div class="code">{about}<pre tabindex="0">{shown}</pre></div>\n'

    def code_block(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG002
        """Show an indented block of code."""
        return f'<pre class="code" tabindex="0">{escape(tokens[index].content)}</pre>\n'


def _opening(tokens: Sequence[Token], close: int) -> str:
    depth = 0
    for token in reversed(tokens[: close + 1]):
        if token.type == "link_close":
            depth += 1
        elif token.type == "link_open":
            depth -= 1
            if depth == 0:
                return str(token.attrGet("href") or "")
    return ""


@cache
def _markdown() -> MarkdownIt:
    options = {"html": False, "linkify": False, "maxNesting": _MOST_NESTED}
    made = MarkdownIt("commonmark", options, renderer_cls=_Renderer)
    return made.enable(["table", "strikethrough"])
