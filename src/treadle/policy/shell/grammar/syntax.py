"""The tree of a shell line: words made of segments, commands made of words."""

from typing import TypeAlias

from msgspec import Struct


class ShellSyntaxError(Exception):
    """The text is not shell, or not the part of shell that is understood."""


class TooLongError(Exception):
    """The text is shell, perhaps, but reading all of it would take too long."""


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
    """A subshell, group, conditional, loop, function or coprocess: scripts that run in order, perhaps repeatedly."""

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
