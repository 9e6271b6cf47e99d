"""The tree of a shell line: words made of segments, commands made of words."""

from dataclasses import dataclass
from typing import TypeAlias


class ShellSyntaxError(Exception):
    """The text is not shell, or not the part of shell that is understood."""


class TooLongError(Exception):
    """The text is shell, perhaps, but reading all of it would take too long."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that stands for itself. `quoted` text is never split, globbed or brace-expanded."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name` or `${name…}`; `operator` is empty for the plain form, `operand` holds what follows the operator."""

    name: str
    quoted: bool
    operator: str = ""
    operand: "tuple[Segment, ...]" = ()


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(…)` or backticks."""

    script: "ShellScript"
    quoted: bool


@dataclass(frozen=True, slots=True)
class ProcessSubstitution:
    """`<(…)`, or `>(…)` whose script reads what is written."""

    script: "ShellScript"
    is_output: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((…))`, `((…))` or `$[…]`; `inner` are the expansions within."""

    text: str
    inner: "tuple[Segment, ...]" = ()


Segment: TypeAlias = Literal | Parameter | Substitution | ProcessSubstitution | Arithmetic


@dataclass(frozen=True, slots=True)
class Word:
    """One word; `text` is its source."""

    text: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=value`, `name+=value`, `name[…]=value` or `name=(…)`; an array has several values."""

    name: str
    values: tuple[Word, ...]
    is_array: bool = False
    subscript: tuple[Segment, ...] = ()
    appends: bool = False


@dataclass(slots=True)
class HereDocument:
    """A here-document; its body is filled in when the line it starts on has ended."""

    delimiter: str
    expands: bool
    strips_tabs: bool
    body: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirection; `fd` is the text before the operator."""

    operator: str
    target: Word
    fd: str = ""
    here: HereDocument | None = None


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments, words and redirections; `text` is the source."""

    text: str
    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A subshell, group, conditional, loop, function or coprocess: scripts that run in order, perhaps repeatedly."""

    kind: str
    scripts: "tuple[ShellScript, ...]"
    words: tuple[Word, ...] = ()
    name: str = ""
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditional:
    """`[[ … ]]`; operators are words too."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Calculation:
    """`(( … ))`."""

    expression: Arithmetic
    redirects: tuple[Redirect, ...] = ()


Command: TypeAlias = Simple | Block | Conditional | Calculation


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by `|`; `after` is the separator behind it, `negated` that `!` stands before it."""

    commands: tuple[Command, ...]
    after: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class ShellScript:
    """Pipelines in order."""

    pipelines: tuple[Pipeline, ...]
