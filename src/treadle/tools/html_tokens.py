"""HTML cut into tags and text in time linear in its length, whatever is wrong with it."""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_OPEN = re.compile(r"<([A-Za-z][^\s/>]*+)")
_CLOSE = re.compile(r"</([A-Za-z][^\s/>]*+)[^>]*+>?")
_ATTRIBUTE = re.compile(r"""[\s/]*+([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?""")
_OPEN_END = re.compile(r"[\s/]*+>?")
_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
_ESCAPABLE = frozenset({"textarea", "title"})
_MOST_ATTRIBUTES = 100


@dataclass(frozen=True, slots=True)
class HtmlText:
    """Text with its character references resolved."""

    text: str


@dataclass(frozen=True, slots=True)
class Start:
    """A start tag; names are in lower case."""

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class End:
    """An end tag; its name is in lower case."""

    name: str


HtmlToken: TypeAlias = HtmlText | Start | End


def html_tokens(source: str) -> Iterator[HtmlToken]:
    """Cut HTML into tokens; comments and declarations are left out, and nothing is ever an error."""
    at = 0
    while at < len(source):
        tag = _TAG.search(source, at)
        if tag is None or tag.start() != at:
            end = tag.start() if tag else len(source)
            yield HtmlText(html.unescape(source[at:end]))
            at = end
        elif found := _OPEN.match(source, at):
            start, at = _start(source, found)
            yield start
            if start.name in _RAW:
                content, at = _raw(source, at, start.name)
                yield HtmlText(html.unescape(content) if start.name in _ESCAPABLE else content)
        elif found := _CLOSE.match(source, at):
            yield End(found.group(1).lower())
            at = found.end()
        else:
            at = _skip(source, at)


def _start(source: str, found: re.Match[str]) -> tuple[Start, int]:
    attributes: dict[str, str] = {}
    at = found.end()
    while attribute := _ATTRIBUTE.match(source, at):
        name, *values = attribute.groups()
        if len(attributes) < _MOST_ATTRIBUTES:
            value = next((value for value in values if value is not None), "")
            attributes.setdefault(name.lower(), html.unescape(value))
        at = attribute.end()
    end = _OPEN_END.match(source, at)
    return Start(found.group(1).lower(), attributes), end.end() if end else at


def _raw(source: str, at: int, name: str) -> tuple[str, int]:
    """Take what stands before the end tag of an element whose content is no HTML."""
    end = re.compile(f"</{re.escape(name)}(?![^\\s/>])", re.IGNORECASE).search(source, at)
    return (source[at:], len(source)) if end is None else (source[at : end.start()], end.start())


def _skip(source: str, at: int) -> int:
    """Find the end of a comment or declaration; what is never closed takes the rest."""
    mark = "-->" if source.startswith("<!--", at) else ">"
    end = source.find(mark, at + 2)
    return len(source) if end < 0 else end + len(mark)
