"""Reads a program's arguments by its table of options.

A table is one line of text: `-abc` are flags, `-n:` takes a value, `-g%` a pattern that picks the files to read,
`--color?` takes a value only when glued with `=`. After the bar stand the operands in order, the last one repeated when
it ends in `*`: `TEXT`, `LIST` (names shown, contents not), `READ`, `SETS` (a format; anything else changes the system),
or `RAW` for a program that prints its arguments.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import ANY, SPLIT, STAR, UNKNOWN, as_glob, is_glob, is_static, shown
from treadle.policy.names import picks_secret
from treadle.policy.operations import PathOp
from treadle.policy.shell.expand import in_braces
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk

_OPTION = re.compile(r"(--?)([^:?%]+)([:?%]?)")
_SET = re.compile(r"\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]")
_TAKES_VALUE = (":", "%")


@dataclass(frozen=True, slots=True)
class Table:
    """The options of one program, each with what marks its kind, and its operands."""

    kinds: dict[str, str]
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """One option of a command line as it was understood; `name` has its dashes."""

    name: str
    kind: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Arguments:
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


def judge_arguments(name: str, table: Table, arguments: Arguments, scene: Scene) -> list[Finding]:
    """Judge a command by its table: options first, then each operand by its place."""
    findings = [Finding(Risk.READ, "reader", f"{name} only reads")]
    findings.extend(_judge_strange(name, word) for word in arguments.strange)
    for option in arguments.given:
        findings.extend(_judge_picked(option.value) if option.kind == "%" and option.value is not None else [])
    kinds = table.operands
    for place, operand in enumerate(arguments.operands):
        last = kinds[-1] if kinds and kinds[-1].endswith("*") else ""
        findings.extend(
            _judge_operand(name, (kinds[place] if place < len(kinds) else last).rstrip("*"), operand, scene)
        )
    return findings


def _judge_strange(name: str, word: str) -> Finding:
    """Say why a word asks: an option that is not known, or something that may turn out to be one."""
    if name == "tail" and word.startswith(("-f", "-F", "--f")):
        return unclear("unknown-option", f"tail {word} never ends; put timeout 5 before it")
    if word.startswith("-") and is_static(word):
        return unclear("unknown-option", f"{name}: {word!r} is not an option known to be harmless")
    text = f"{name}: {shown(word)!r} is unknown until it runs and could be an option; spell it out, or put -- before it"
    if is_glob(word):
        text = f"{name}: {shown(word)!r} could match a file whose name is an option; write {'./' + shown(word)!r}"
    return unclear("unknown-option", text)


def _judge_picked(text: str) -> list[Finding]:
    """Judge a pattern that says which files are read."""
    if text.startswith("!"):
        return []
    for piece in in_braces(_SET.sub("*", text.replace("\\", ""))):
        name = picks_secret(as_glob(piece))
        if name is not None:
            return [dangerous("secret-read", f"reads {name}, which is protected")]
    if UNKNOWN in text:
        return [unclear("unknown-pattern", "the pattern that picks the files is unknown until it runs")]
    return []


def _judge_operand(name: str, kind: str, operand: str, scene: Scene) -> list[Finding]:
    match kind:
        case "TEXT":
            return scene.path(operand, PathOp.LIST) if is_glob(operand) else []
        case "LIST" | "READ":
            return scene.path(operand, PathOp(kind.lower()))
        case "SETS":
            return [] if operand.startswith("+") else [dangerous("dangerous-operand", f"{name} changes the system")]
        case _:
            text = f"{name}: {shown(operand)!r} is one operand more than is known to be harmless"
            return [unclear("unknown-operand", text)]
