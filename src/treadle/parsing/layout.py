"""Where in a Markdown text a tag stands: at the start of a line, in a code fence, in inline code."""

import io
import re

from msgspec import Struct

from treadle.protocol.patterns import regex

_FENCE = regex(r"^[ \t]*(`{3,}|~{3,})([^\n]*)", re.MULTILINE)
_TICKS = regex(r"`+")


class TagContext(Struct, frozen=True):
    """What stands before a tag: nothing at all, nothing on its line, an open fence, open inline code."""

    reply_start: bool
    line_start: bool
    fenced: bool
    inline_code: bool


class Layout:
    """Follows the text of a reply; reads it only when somebody asks, and each character once."""

    __slots__ = ("_blank_line", "_blank_reply", "_fence", "_odd_ticks", "_unread")

    def __init__(self) -> None:
        self._unread = io.StringIO()
        self._fence = ""
        self._blank_reply = True
        self._blank_line = True
        self._odd_ticks = False

    def write(self, text: str) -> None:
        """Add text. Between two questions pieces may be split anywhere."""
        self._unread.write(text)

    def place(self) -> TagContext:
        """Say where the next character would stand."""
        text = self._unread.getvalue()
        if text:
            self._unread = io.StringIO()
            self._read(text)
        fenced = bool(self._fence)
        return TagContext(self._blank_reply, self._blank_line, fenced, self._odd_ticks and not fenced)

    def end_block(self) -> None:
        """Note that a block (a call, reasoning) ended here: what follows stands as on a new line."""
        self.place()
        self._blank_line = True
        self._blank_reply = False
        self._odd_ticks = False

    def _read(self, text: str) -> None:
        for line in _FENCE.finditer(text):
            if line.start() > 0 or self._blank_line:
                self._read_fence(line[1], line[2])
        last = text.rfind("\n") + 1
        if last:
            self._blank_line = True
            self._odd_ticks = False
        if self._blank_line and not text[last:].isspace() and last < len(text):
            self._blank_line = False
        if self._blank_reply and not text.isspace():
            self._blank_reply = False
        if "`" in text[last:]:
            self._odd_ticks ^= sum(1 for _ in _TICKS.finditer(text, last)) % 2 == 1

    def _read_fence(self, run: str, rest: str) -> None:
        if not self._fence:
            if run[0] == "~" or "`" not in rest:
                self._fence = run
        elif run.startswith(self._fence) and not rest.strip():
            self._fence = ""
