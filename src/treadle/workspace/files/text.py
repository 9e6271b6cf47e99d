"""Text from programs and files made harmless to show: no control byte reaches a surface or a model as itself."""

import codecs
from functools import cache

from treadle.protocol.patterns import regex

_CSI = r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}"
_TITLE = r"\x1b\][^\x07\x1b\x9c]{0,4096}"
_STRING = r"\x1b[PX^_][^\x1b\x9c]{0,4096}"
_SEQUENCE = regex(
    rf"{_CSI}[@-~]|{_TITLE}(?:\x07|\x1b\\|\x9c)|{_STRING}(?:\x1b\\|\x9c)|\x1b[ -/]{{1,2}}[0-~]|\x1b[0-OQ-WYZ\\`-~]"
)
"""What tells a terminal to do something and shows nothing: colours, moves of the cursor, titles, links, pictures."""

_LONGEST = 4200
_UNFINISHED = regex(rf"(?:{_CSI}|{_TITLE}\x1b?|{_STRING}\x1b?|\x1b[ -/]{{0,2}}|\r)\Z")
_CONTROL = regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)

_OVERWRITING = ("\r", "\b")
_OVERWRITES = regex("([\r\b])")
_ERASING = regex("(\b)")
_PLAIN = bytes([*range(0x20, 0x7F), 0x09, 0x0A])


def visible(text: str) -> str:
    """Show control and direction-changing characters, except tab and line feed, as escapes such as `\\x1b`.

    So are halves of characters, which no encoding takes.
    """
    if text.isprintable():  # most often, and none of these is
        return text
    return _CONTROL.sub(lambda found: escaped(found[0]), text)


def first_escape(text: str) -> str:
    """Give the first escape that `visible` writes; empty where it writes none."""
    found = _CONTROL.search(text)
    return "" if found is None else escaped(found[0])


def visible_name(name: str) -> str:
    """Show a file's name on one line, so that it cannot be taken for two or for something else."""
    return visible(name).replace("\n", "\\n").replace("\t", "\\t")


def size_of(text: str) -> int:
    """Count the bytes that a text has in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


@cache
def escaped(character: str) -> str:
    """Write a character as its escape; half of one that stands for a byte as that byte."""
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"  # a byte that is no UTF-8
    return character.encode("unicode_escape").decode("ascii")


def as_displayed(text: str) -> str:
    """Keep of each line what a terminal would still show after its carriage returns and backspaces."""
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return erased(text)


def flowing(text: str) -> str:
    """Show what carriage returns write over on a line of its own; backspaces take away what is there."""
    return erased(text).replace("\r", "\n")


def erased(text: str) -> str:
    """Let each backspace take the character before it; one at the beginning of a line goes too."""
    if "\b" not in text:
        return text
    kept: list[str] = []
    for part in _ERASING.split(text):
        if part != "\b":
            kept.extend(part)
        elif kept and kept[-1] not in "\r\n":
            kept.pop()
    return "".join(kept)


class Decoder:
    """Turns output bytes, however they are cut, into harmless text.

    Invalid UTF-8 becomes replacement characters, what only a terminal understands is dropped, other control characters
    are escaped; carriage returns and backspaces are for `as_displayed` or `flowing`.
    """

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Take the next bytes and give the text that is certain by now."""
        if not self._held and not self._utf8.getstate()[0] and not data.translate(None, _PLAIN):
            return data.decode("ascii")  # nearly all output, and many times as fast
        text = self._held + self._utf8.decode(data, final)
        self._held = ""
        if not final and (tail := _UNFINISHED.search(text, max(0, len(text) - _LONGEST))):
            self._held = tail.group()
            text = text[: tail.start()]
        text = text.replace("\r\n", "\n")
        if "\x1b" in text or "\x9b" in text:
            text = _SEQUENCE.sub("", text)
        return "".join(part if part in _OVERWRITING else visible(part) for part in _OVERWRITES.split(text))


class ShortLines:
    """Gives of each line what a terminal would still show of it, at most `width` characters; memory is bounded.

    `cut` says whether something of a line was left out since it was last set to False.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._line = ""
        self._left_out = 0
        self.cut = False

    @property
    def empty(self) -> bool:
        """Whether no line is unfinished."""
        return not self._line

    def feed(self, text: str) -> str:
        """Take the next piece, and give the lines that it ends."""
        first, ended, rest = text.partition("\n")
        self._add(first)
        if not ended:
            return ""
        done = self._end()
        body, ended, last = rest.rpartition("\n")
        if ended:
            done += "\n" + (body if self._is_plain(body) else "\n".join(map(self._short, body.split("\n"))))
        self._add(last)
        return done + "\n"

    def _is_plain(self, lines: str) -> bool:
        """Whether these lines are short and nothing in them was overwritten: nearly always, and told fast."""
        begin = 0
        while begin + self._width < len(lines):
            begin = lines.rfind("\n", begin, begin + self._width + 1) + 1
            if not begin:
                return False
        return "\r" not in lines and "\b" not in lines

    def _short(self, line: str) -> str:
        self._add(line)
        return self._end()

    def finish(self) -> str:
        """Give what there is of the last line; what comes next begins another one."""
        return self._end()

    def _add(self, text: str) -> None:
        """Go on with a line: a carriage return begins it anew once something follows, a backspace takes a character."""
        line = self._line + text
        shown = line.rstrip("\r")
        _, returned, shown = shown.rpartition("\r")
        left_out = 0 if returned else self._left_out
        if left_out:
            shown, left_out = self._line.rstrip("\r"), left_out + len(text.rstrip("\r"))
        else:
            shown = erased(shown)
        excess = max(0, len(shown) - self._width)
        self._left_out = left_out + excess
        self._line = shown[: self._width] + ("\r" if line.endswith("\r") else "")

    def _end(self) -> str:
        line, left_out = self._line.rstrip("\r"), self._left_out
        self._line, self._left_out = "", 0
        self.cut = self.cut or left_out > 0
        return f"{line} [... {left_out:,} more characters in this line]" if left_out else line


class HeadTail:
    """Keeps the beginning and the end of a text and counts the rest; memory stays within twice `limit` characters."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = ""
        self._tail = ""
        self._left_out = 0

    @property
    def empty(self) -> bool:
        """Whether nothing was added since the last `take`."""
        return not self._head

    @property
    def overflowed(self) -> bool:
        """Whether something was left out."""
        return self._left_out > 0

    def add(self, text: str) -> None:
        """Append to the text."""
        if room := self._half - len(self._head):
            self._head += text[:room]
            text = text[room:]
        if len(text) > self._half:
            self._left_out += len(self._tail) + len(text) - self._half
            self._tail = text[-self._half :]
            return
        self._tail += text
        if len(self._tail) > 2 * self._half:
            self._trim()

    def _trim(self) -> None:
        excess = len(self._tail) - self._half
        if excess > 0:
            self._left_out += excess
            self._tail = self._tail[excess:]

    def exceeds(self, size: int) -> bool:
        """Whether what was kept has more bytes of UTF-8 than `size`."""
        return size_of(self._head) + size_of(self._tail) > size

    def take(self, hint: str = "", size: int = 2**40) -> str:
        """Give what was kept, with a notice (and `hint`) where something is missing, and begin anew.

        No more than about `size` bytes of UTF-8 are given.
        """
        self._trim()
        head, tail, left_out = self._head, self._tail, self._left_out
        if self.exceeds(size):
            whole = len(head) + len(tail) + left_out
            half = max(size // 2, 1)
            head = (head if left_out else head + tail).encode(errors="replace")[:half].decode(errors="ignore")
            tail = (tail if left_out else self._head + tail).encode(errors="replace")[-half:].decode(errors="ignore")
            left_out = whole - len(head) - len(tail)
        self._head = self._tail = ""
        self._left_out = 0
        if not left_out:
            return as_displayed(head + tail)
        return f"{as_displayed(head)}\n[... {left_out:,} characters left out{hint} ...]\n{as_displayed(tail)}"
