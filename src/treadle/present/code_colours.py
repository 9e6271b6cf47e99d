"""Which places of code have a colour, by its language or the name of its file."""

from collections.abc import Sequence
from functools import cache, lru_cache
from time import thread_time
from typing import Any, TypeAlias

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String
from pygments.util import ClassNotFound

_CLASSES = (
    (Comment, "c"),
    (Keyword.Type, "kt"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (String, "s"),
    (Number, "m"),
    (Generic.Inserted, "gi"),
    (Generic.Deleted, "gd"),
    *((name, "nf") for name in (Name.Function, Name.Builtin, Name.Attribute)),
    *((name, "nc") for name in (Name.Class, Name.Namespace, Name.Exception, Name.Tag, Name.Decorator)),
)
"""What is coloured: all else is as it is."""

ColouredPlaces: TypeAlias = tuple[tuple[int, int, str], ...]
"""The places of a line that have a colour, each with its class."""


_TOKENS_A_LOOK = 64
"""Pieces of code between two looks at the clock, which takes as long as finding one."""


@lru_cache(maxsize=64)
def lexer_of(language: str, name: str) -> Lexer | None:
    """Find what colours a language, or a file by its name; None where nothing does."""
    try:
        if language:
            return get_lexer_by_name(language, stripnl=False, ensurenl=False)
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False) if name else None
    except ClassNotFound:
        return None


def coloured_places(lexer: Lexer, lines: Sequence[str], seconds: float = 0.25) -> Sequence[ColouredPlaces]:
    """Give the coloured places of each line; what is behind a line feed in one is no part of it.

    What is left after so many seconds of the processor is plain: some lexers look at the rest of a text at each line.
    """
    found: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    texts = [line.partition("\n")[0] for line in lines]
    number = column = 0
    # Not get_tokens: it would drop and replace line ends.
    end = thread_time() + seconds
    for at_token, (_, kind, value) in enumerate(lexer.get_tokens_unprocessed("\n".join(texts) + "\n")):
        if at_token % _TOKENS_A_LOOK == 0 and thread_time() > end:
            break
        colour = _class_of(kind)
        first, *others = value.split("\n")
        for at, part in enumerate((first, *others)):
            if at:
                number, column = number + 1, 0
            if colour and part:
                found[number].append((column, column + len(part), colour))
            column += len(part)
    return [tuple(pieces) for pieces in found]


@cache
def _class_of(kind: Any) -> str:
    return next((name for known, name in _CLASSES if kind in known), "")
