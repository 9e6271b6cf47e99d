"""A place in the text of a shell line, with what is still open there."""

from collections.abc import Callable
from dataclasses import dataclass, field

from treadle.policy.shell.grammar.syntax import HereDocument, ShellScript, ShellSyntaxError, TooLongError

MAX_DEPTH = 40
MAX_READ = 6000
"""Words that are read of one line, a command counting as three; of more than that not all would be judged."""

MAX_TRIED = 50_000
"""Characters that may be read as arithmetic before they turn out to be something else."""


@dataclass(slots=True)
class _Spent:
    """How much of a line was read, and how much of that in vain; the texts inside it count too."""

    read: int = 0
    tried: int = 0


@dataclass(slots=True)
class Cursor:
    """A place in the text. `nested` parses a script up to a closing character; `pending` are open here-documents.

    `not_arithmetic` are places that turned out to be something else: tried once, or nesting would double the work.
    """

    text: str
    nested: "Callable[[Cursor, str], ShellScript]"
    pos: int = 0
    depth: int = 0
    joined: bool = False
    pending: list[HereDocument] = field(default_factory=list)
    not_arithmetic: set[int] = field(default_factory=set)
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
        """Count what is read; raises `TooLongError` beyond the budget."""
        self.spent.read += words
        if self.spent.read > MAX_READ:
            raise TooLongError

    def enter(self) -> None:
        """Go one level deeper; raises `ShellSyntaxError` beyond the depth budget."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ShellSyntaxError(f"nested deeper than {MAX_DEPTH} levels")

    def leave(self) -> None:
        """Come one level up."""
        self.depth -= 1

    def skip_joins(self) -> None:
        """Step over line continuations inside a word and remember that there were some."""
        while self.take("\\\n"):
            self.joined = True
