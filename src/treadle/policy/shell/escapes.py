"""Reads `$'…'`, where a backslash spells a character."""

import re

from treadle.policy.shell.cursor import Cursor
from treadle.policy.shell.syntax import ShellSyntaxError

_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_NUMBER_ESCAPES = (
    (re.compile(r"x([0-9A-Fa-f]{1,2})"), 16),
    (re.compile(r"u([0-9A-Fa-f]{1,4})"), 16),
    (re.compile(r"U([0-9A-Fa-f]{1,8})"), 16),
    (re.compile(r"([0-7]{1,3})"), 8),
)


def read_escaped(cursor: Cursor) -> str:
    """Read `'…'` behind a `$` and decode it. Raises `ShellSyntaxError`."""
    pos = cursor.pos + 1
    out: list[str] = []
    while pos < len(cursor.text):
        char = cursor.text[pos]
        if char == "'":
            cursor.pos = pos + 1
            return _as_utf8("".join(out))
        if char != "\\":
            out.append(char)
            pos += 1
            continue
        decoded, pos = _decode_escape(cursor.text, pos + 1)
        out.append(decoded)
    raise ShellSyntaxError("a $' quote is not closed")


def _decode_escape(text: str, pos: int) -> tuple[str, int]:
    if pos < len(text) and text[pos] in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[text[pos]], pos + 1
    for pattern, base in _NUMBER_ESCAPES:
        if match := pattern.match(text, pos):
            code = int(match.group(1), base)
            if code == 0 or code > 0x10FFFF:
                raise ShellSyntaxError("a $' quote holds a character that ends the word early")
            return chr(code & 0xFF if base == 8 else code), match.end()
    if text[pos : pos + 1] == "c":
        return chr(ord(text[pos + 1 : pos + 2] or "@") & 0x1F), pos + 2
    return "\\", pos


def _as_utf8(text: str) -> str:
    """Join bytes that were written as escapes into the characters they encode."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
