"""Reads a program's arguments by its table of options.

A table is one line of text: `-abc` are flags, `-n:` takes a value, `-g%` a pattern that picks the files to read,
`--color?` takes a value only when glued with `=`. After the bar stand the operands in order, the last one repeated when
it ends in `*`: `TEXT`, `LIST` (names shown, contents not), `READ`, `SETS` (a format; anything else changes the system),
or `RAW` for a program that prints its arguments.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from treadle.policy.marks import ANY, SPLIT, STAR, UNKNOWN

_OPTION = re.compile(r"(--?)([^:?%]+)([:?%]?)")
_TAKES_VALUE = (":", "%")


class Table(Struct, frozen=True):
    """The options of one program, each with what marks its kind, and its operands."""

    kinds: dict[str, str]
    operands: tuple[str, ...]


class Given(Struct, frozen=True):
    """One option of a command line as it was understood; `name` has its dashes."""

    name: str
    kind: str
    value: str | None = None


class Arguments(Struct, frozen=True):
    """A command line read by a table: options, operands, and the words that the table does not know."""

    given: tuple[Given, ...]
    operands: tuple[str, ...]
    strange: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Whether one of the options was given."""
        return any(option.name in names for option in self.given)

    def values(self, *names: str) -> list[str]:
        """Give the values of the options in order."""
        return [option.value for option in self.given if option.name in names and option.value is not None]


@lru_cache(maxsize=1024)
def read_table(text: str) -> Table:
    """Read one table."""
    options, _, operands = text.partition("|")
    kinds: dict[str, str] = {}
    for word in options.split():
        match = _OPTION.fullmatch(word)
        if match is None:
            raise ValueError(f"not an option of a table: {word!r}")
        dashes, names, kind = match.groups()
        for name in (names,) if dashes == "--" else names:
            kinds[dashes + name] = kind
    return Table(kinds, tuple(operands.split()))


def read_arguments(table: Table, words: Sequence[str], *, permute: bool = True) -> Arguments:
    """Read arguments; without `permute` the first operand ends the options, as wrappers do."""
    given: list[Given] = []
    operands: list[str] = []
    strange: list[str] = []
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if word == "--" or not (permute or word.startswith("-")):
            operands.extend(pending if word == "--" else [word, *pending])
            break
        if word.startswith("-") and word != "-":
            read = _long(table, word, pending) if word.startswith("--") else _short(table, word, pending)
            given.extend(one for one in read if one is not None)
            strange.extend([word] if None in read else [])
        else:
            operands.append(word)
    strange.extend(word for word in operands[: None if permute else 1] if word[:1] in (UNKNOWN, STAR, ANY, SPLIT))
    return Arguments(tuple(given), tuple(operands), tuple(strange))


def _long(table: Table, word: str, pending: list[str]) -> list[Given | None]:
    """Read a long option; None stands for one that is not known, which is never a reason to allow."""
    name, has_value, value = word.partition("=")
    kind = table.kinds.get(name)
    if kind is None:
        return [None]
    takes = kind in _TAKES_VALUE and not has_value and pending
    return [Given(name, kind, value if has_value else pending.pop(0) if takes else None)]


def _short(table: Table, word: str, pending: list[str]) -> list[Given | None]:
    """Read a cluster of short options, the last of which may have its value glued to it or behind it."""
    read: list[Given | None] = []
    for index, letter in enumerate(word[1:], start=2):
        kind = table.kinds.get(f"-{letter}")
        if kind:
            glued = word[index:] or None
            return [*read, Given(f"-{letter}", kind, glued or (pending.pop(0) if kind != "?" and pending else None))]
        if kind is not None:
            read.append(Given(f"-{letter}", kind))
        elif not (letter.isdigit() and "-0" in table.kinds):
            read.append(None)
    return read
