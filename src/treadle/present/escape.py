"""Making text harmless for a terminal: what would steer it, or hide in it, is shown as an escape."""

import unicodedata

from treadle.protocol.patterns import regex
from treadle.workspace.files.text import escaped, visible

_COLOURS = regex(r"\x1b\[[0-9;:]*m")
_HIDDEN = frozenset({"Cc", "Cs", "Cf", "Co", "Cn", "Zl", "Zp", "Zs"})


def printable(text: str) -> str:
    """Escape what can steer a terminal or turn the reading direction; for prose and output.

    Line feeds and tabs stay; CR LF is a line feed.
    """
    if text.isascii() and text.isprintable():
        return text
    # A terminal breaks the line at a separator; in a file that a model reads one is text.
    text = visible(text.replace("\r\n", "\n"))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def exact(text: str) -> str:
    """Escape everything that is not seen as what it is, blanks included; for what a person approves."""
    return "".join(escaped(char) if _is_hidden(char) else char for char in text)


def exact_line(text: str) -> str:
    """Escape like `exact`, and line feeds and tabs too: a name cannot look like a line of its own."""
    return exact(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def output_of_command(text: str) -> str:
    """Prepare output of a command: colours are dropped, a line that was overwritten shows its last state."""
    lines = _COLOURS.sub("", text).replace("\r\n", "\n").split("\n")
    return printable("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


def _is_hidden(char: str) -> bool:
    return char not in "\n\t " and unicodedata.category(char) in _HIDDEN
