"""The tree of a shell line: words made of segments, commands made of words; and the place up to which it is read."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct, field


class ShellSyntaxError(Exception):
    """The text is not shell, or not the part of shell that is understood."""


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
    """`$(…)` or backticks."""

    script: "ShellScript"
    quoted: bool


class ProcessSubstitution(Struct, frozen=True):
    """`<(…)`, or `>(…)` whose script reads what is written."""

    script: "ShellScript"
    is_output: bool = False


class Arithmetic(Struct, frozen=True):
    """`$((…))`, `((…))` or `$[…]`; `inner` are the expansions within."""

    text: str
    inner: "tuple[Segment, ...]" = ()


Segment: TypeAlias = Literal | Parameter | Substitution | ProcessSubstitution | Arithmetic


class Word(Struct, frozen=True):
    """One word; `text` is its source."""

    text: str
    segments: tuple[Segment, ...]


class Assignment(Struct, frozen=True):
    """`name=value`, `name+=value`, `name[…]=value` or `name=(…)`; an array has several values."""

    name: str
    values: tuple[Word, ...]
    is_array: bool = False
    subscript: tuple[Segment, ...] = ()
    appends: bool = False


class HereDocument(Struct):
    """A here-document; its body is filled in when the line it starts on has ended."""

    delimiter: str
    expands: bool
    strips_tabs: bool
    body: tuple[Segment, ...] = ()


class Redirect(Struct, frozen=True):
    """One redirection; `fd` is the text before the operator."""

    operator: str
    target: Word
    fd: str = ""
    here: HereDocument | None = None


class Simple(Struct, frozen=True):
    """Assignments, words and redirections; `text` is the source."""

    text: str
    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


class Block(Struct, frozen=True):
    """A subshell, group, conditional, loop or function: scripts that run in order, perhaps repeatedly."""

    kind: str
    scripts: "tuple[ShellScript, ...]"
    words: tuple[Word, ...] = ()
    name: str = ""
    redirects: tuple[Redirect, ...] = ()


class Conditional(Struct, frozen=True):
    """`[[ … ]]`; operators are words too."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()


class Calculation(Struct, frozen=True):
    """`(( … ))`."""

    expression: Arithmetic
    redirects: tuple[Redirect, ...] = ()


Command: TypeAlias = Simple | Block | Conditional | Calculation


class Pipeline(Struct, frozen=True):
    """Commands joined by `|`; `after` is the separator behind it, `negated` that `!` stands before it."""

    commands: tuple[Command, ...]
    after: str = ""
    negated: bool = False


class ShellScript(Struct, frozen=True):
    """Pipelines in order."""

    pipelines: tuple[Pipeline, ...]


MAX_DEPTH = 40
MAX_READ = 6000
"""Words that are read of one line, a command counting as three; of more than that not all would be judged."""


class _Spent(Struct):
    """How much of a line was read; the texts inside it count too."""

    read: int = 0


class Cursor(Struct):
    """A place in the text. `nested` parses a script up to a closing character; `pending` are open here-documents."""

    text: str
    nested: "Callable[[Cursor, str], ShellScript]"
    pos: int = 0
    depth: int = 0
    pending: list[HereDocument] = []
    spent: _Spent = field(default_factory=_Spent)

    def peek(self, offset: int = 0) -> str:
        """Give the character ahead, or an empty string at the end."""
        index = self.pos + offset
        return self.text[index] if index < len(self.text) else ""

    def looking_at(self, text: str) -> bool:
        """Whether `text` stands at the cursor."""
        return self.text.startswith(text, self.pos)

    def take(self, text: str) -> bool:
        """Step over `text` if it stands here."""
        if not self.looking_at(text):
            return False
        self.pos += len(text)
        return True

    def expect(self, text: str) -> None:
        """Step over `text`; raises `ShellSyntaxError` when something else stands here."""
        if not self.take(text):
            raise ShellSyntaxError(f"{text!r} is missing at character {self.pos}")

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
