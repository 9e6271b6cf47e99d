"""How a line with a slash command is told from a prompt, and what a mistyped one was probably meant to be."""

from collections.abc import Collection

from treadle.app.session.own_commands.slash_commands import slash_names
from treadle.protocol.patterns import regex

_WORD = regex(r"/[A-Za-z?][\w.:-]*")
_SHELL = regex(r"![A-Za-z./~]")


def slash_word(text: str) -> str:
    """Give the slash command that a text begins with, without the slash; empty for a path and any other text."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return first[1:] if _WORD.fullmatch(first) else ""


def last_word(text: str) -> int:
    """Say where the last word begins that follows a command, or the value of `name=value`."""
    begin = text.rindex(" ") + 1
    return begin + len(text[begin:].partition("=")[0]) + 1 if "=" in text[begin:] else begin


def is_shell_line(text: str) -> bool:
    """Whether a text begins as other programs take a command of the user's own: `!ls`."""
    return _SHELL.match(text.lstrip()) is not None


def nearest_slash(name: str, others: Collection[str] = ()) -> str:
    """Say what is meant by a slash command that there is not, as a sentence; empty when nothing is like it.

    `others` are the names of commands that are in no table.
    """
    from difflib import get_close_matches

    from treadle.app.session.own_commands.commands_elsewhere import INSTEAD

    if name in INSTEAD:
        return INSTEAD[name]
    near = get_close_matches(name.lower(), [*slash_names(), *others, *INSTEAD], n=1)
    if not near:
        return ""
    return INSTEAD.get(near[0], f"Did you mean /{near[0]}?")
