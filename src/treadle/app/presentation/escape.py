"""Making text harmless for a terminal: what would steer it, or hide in it, is shown as an escape."""

import unicodedata

from treadle.protocol.patterns import regex

_COLOURS = regex(r"\x1b\[[0-9;:]*m")
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HARMFUL = frozenset({"Cc", "Cs", "Zl", "Zp"})
_HIDDEN = _HARMFUL | {"Cf", "Co", "Cn"}


def printable(text: str) -> str:
    """Escape what can steer a terminal or turn the reading direction; for prose and output.

    Line feeds and tabs stay; CR LF is a line feed.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return "".join(_escape(char) if _is_harmful(char) else char for char in text)


def exact(text: str) -> str:
    """Escape everything that is not seen as what it is, blanks included; for what a person approves."""
    return "".join(_escape(char) if _is_hidden(char) else char for char in text)


def exact_line(text: str) -> str:
    """Escape like `exact`, and line feeds and tabs too: a name cannot look like a line of its own."""
    return exact(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def output_of_command(text: str) -> str:
    """Prepare output of a command: colours are dropped, a line that was overwritten shows its last state."""
    lines = _COLOURS.sub("", text).replace("\r\n", "\n").split("\n")
    return printable("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


def _is_harmful(char: str) -> bool:
    return char not in "\n\t" and (char in _DIRECTIONS or unicodedata.category(char) in _HARMFUL)


def _is_hidden(char: str) -> bool:
    if char in "\n\t ":
        return False
    category = unicodedata.category(char)
    return category in _HIDDEN or category == "Zs"


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
