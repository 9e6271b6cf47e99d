"""The tree of a shell line: words made of segments, commands made of words; and the place up to which it is read."""

import re
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct, field


class ShellSyntaxError(Exception):
    """The text is not shell, or not the part of shell that is understood."""


class BrokenShellError(ShellSyntaxError):
    """The text is not shell: no shell would take it."""


class BudgetError(Exception):
    """A line holds more commands or words, or a word stands for more of them, than can be looked at."""


class Literal(Struct, frozen=True):
    """Text that stands for itself. `quoted` text is never split, globbed or brace-expanded."""

    text: str
    quoted: bool


class Parameter(Struct, frozen=True):
    """`$name` or `${name…}`; `operator` is empty for the plain form, `operand` holds what follows the operator."""

    name: str
    quoted: bool
    operator: str = ""
    operand: "tuple[Segment, ...]" = ()


class Substitution(Struct, frozen=True):
    """`$(…)` or backticks; `direction` is the sign of `<(…)`, or of `>(…)` whose script reads what is written."""

    script: "ShellScript"
    quoted: bool
    direction: str = ""


class Arithmetic(Struct, frozen=True):
    """`$((…))` or `((…))`; `inner` are the expansions within."""

    text: str
    inner: "tuple[Segment, ...]" = ()


Segment: TypeAlias = Literal | Parameter | Substitution | Arithmetic


class Word(Struct, frozen=True):
    """One word; `text` is its source."""

    text: str
    segments: tuple[Segment, ...]


class Assignment(Struct, frozen=True):
    """`name=value`, `name+=value`, or what sets an array: `name=(…)`, or `name[…]=value` with the subscript first."""

    name: str
    values: tuple[Word, ...]
    is_array: bool = False
    appends: bool = False


class Redirect(Struct, frozen=True):
    """One redirection; the target of `<<` is the body of the here-document."""

    operator: str
    target: Word


class Simple(Struct, frozen=True):
    """Assignments, words and redirections; `text` is the source."""

    text: str
    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


class Block(Struct, frozen=True):
    """A subshell, group, conditional, loop, function: scripts that run in order, perhaps repeatedly; or a test.

    Of `[[ … ]]` there are only words, in which operators are words too.
    """

    kind: str
    scripts: "tuple[ShellScript, ...]" = ()
    words: tuple[Word, ...] = ()
    name: str = ""
    redirects: tuple[Redirect, ...] = ()


Command: TypeAlias = Simple | Block


class Pipeline(Struct, frozen=True):
    """Commands joined by `|`; `after` is the separator behind it, `negated` that `!` stands before it."""

    commands: tuple[Command, ...]
    after: str = ""
    negated: bool = False


class ShellScript(Struct, frozen=True):
    """Pipelines in order."""

    pipelines: tuple[Pipeline, ...]


MAX_DEPTH = 20
MAX_READ = 6000
"""Words that are read of one line, a command counting as three; of more than that not all would be judged."""


class _Spent(Struct):
    """How much of a line was read; the texts inside it count too."""

    read: int = 0


class Cursor(Struct):
    """A place in the text. `nested` parses a script up to a closing character.

    `bodies` says of a newline behind which here-documents stand where they end.
    """

    text: str
    nested: "Callable[[Cursor, str], ShellScript]"
    pos: int = 0
    depth: int = 0
    bodies: dict[int, int] = {}
    spent: _Spent = field(default_factory=_Spent)

    def inside(self, text: str) -> "Cursor":
        """Begin with a text that stands within this one."""
        return Cursor(text, self.nested, depth=self.depth, spent=self.spent)

    def peek(self) -> str:
        """Give the character ahead, or an empty string at the end."""
        return self.text[self.pos : self.pos + 1]

    def unexpected(self, kind: type[ShellSyntaxError] = ShellSyntaxError) -> ShellSyntaxError:
        """Say that what stands here does not belong here."""
        what = repr(self.peek()) if self.peek() else "the end"
        return kind(f"{what} is not expected at character {self.pos}")

    def find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Step over what the pattern matches here, if it does."""
        found = pattern.match(self.text, self.pos)
        if found:
            self.pos = found.end()
        return found

    def read(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Step over what the pattern matches; raises `ShellSyntaxError` when something else stands here."""
        found = self.find(pattern)
        if not found:
            raise self.unexpected()
        return found

    def take(self, text: str) -> bool:
        """Step over `text` if it stands here."""
        found = self.text.startswith(text, self.pos)
        self.pos += len(text) if found else 0
        return found

    def count(self, words: int) -> None:
        """Count what is read; raises `BudgetError` beyond the budget."""
        self.spent.read += words
        if self.spent.read > MAX_READ:
            raise BudgetError

    def enter(self) -> None:
        """Go one level deeper; raises `ShellSyntaxError` beyond the depth budget."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ShellSyntaxError(f"nested deeper than {MAX_DEPTH} levels")

    def leave(self) -> None:
        """Come one level up."""
        self.depth -= 1
