"""Reads a program's arguments by its table of options.

A table is one line of text: `-abc` are flags, `-n:` takes a value, `-f<` a path that is read, `-o>` a path that is
written, `-g%` a pattern that picks the files to read, `--color?` takes a value only when glued with `=`. After the bar
stand the operands in order, the last one repeated when it ends in `*`: `TEXT`, `LIST` (names shown, contents not),
`READ`, `WRITE`, `SETS` (a format; anything else changes the system), or `RAW` for a program that prints its arguments.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import ANY, SPLIT, STAR, UNKNOWN, as_glob, is_glob, is_static, shown
from treadle.policy.names import picks_secret
from treadle.policy.operations import PathOp
from treadle.policy.shell.expand import in_braces
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk


class Role(StrEnum):
    """What an option does with its value, spelled as in the tables."""

    FLAG = ""
    VALUE = ":"
    GLUED = "?"
    READ = "<"
    WRITE = ">"
    PICK = "%"


_OPTION = re.compile(r"(--?)([^:?<>%]+)([:?<>%]?)")
_SET = re.compile(r"\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]")
_TAKES_VALUE = (Role.VALUE, Role.READ, Role.WRITE, Role.PICK)


@dataclass(frozen=True, slots=True)
class Table:
    """The options and operands of one program."""

    short: dict[str, Role]
    long: dict[str, Role]
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """One option of a command line as it was understood; `name` has its dashes."""

    name: str
    role: Role
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
    short: dict[str, Role] = {}
    long: dict[str, Role] = {}
    for word in options.split():
        match = _OPTION.fullmatch(word)
        if match is None:
            raise ValueError(f"not an option of a table: {word!r}")
        dashes, name, suffix = match.groups()
        if dashes == "--":
            long[name] = Role(suffix)
        else:
            short.update(dict.fromkeys(name, Role(suffix)))
    return Table(short, long, tuple(operands.split()))


def read_arguments(table: Table, words: Sequence[str], *, permute: bool = True) -> Arguments:
    """Read arguments; without `permute` the first operand ends the options, as wrappers do."""
    given: list[Given] = []
    operands: list[str] = []
    strange: list[str] = []
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if word == "--":
            operands.extend(pending)
            break
        if word.startswith("--"):
            given.extend(_long(table, word, pending, strange))
        elif word.startswith("-") and word != "-":
            given.extend(_short(table, word, pending, strange))
        else:
            if word[:1] in (UNKNOWN, STAR, ANY, SPLIT):
                strange.append(word)
            operands.append(word)
            if not permute:
                operands.extend(pending)
                break
    return Arguments(tuple(given), tuple(operands), tuple(strange))


def _long(table: Table, word: str, pending: list[str], strange: list[str]) -> Iterator[Given]:
    name, has_value, value = word[2:].partition("=")
    roles = {name: table.long[name]} if name in table.long else _by_prefix(table, name)
    if name not in table.long:
        strange.append(word)
    for full, role in roles.items():
        if has_value:
            yield Given(f"--{full}", role, value)
        elif role in _TAKES_VALUE and pending:
            yield Given(f"--{full}", role, pending.pop(0) if len(roles) == 1 else pending[0])
        else:
            yield Given(f"--{full}", role)


def _by_prefix(table: Table, name: str) -> dict[str, Role]:
    """An abbreviation may act, but it is never a reason to allow: the table need not know every option."""
    if not name:
        return {}
    return {full: role for full, role in table.long.items() if full.startswith(name)}


def _short(table: Table, word: str, pending: list[str], strange: list[str]) -> Iterator[Given]:
    for index, letter in enumerate(word[1:], start=2):
        role = table.short.get(letter)
        if role is None:
            if not (letter.isdigit() and "0" in table.short):
                strange.append(word)
            continue
        if role is Role.FLAG:
            yield Given(f"-{letter}", role)
            continue
        glued = word[index:]
        if role is Role.GLUED or glued:
            yield Given(f"-{letter}", role, glued or None)
        else:
            yield Given(f"-{letter}", role, pending.pop(0) if pending else None)
        return


def judge_arguments(name: str, table: Table, arguments: Arguments, scene: Scene) -> list[Finding]:
    """Judge a command by its table: options first, then each operand by its place."""
    findings = [Finding(Risk.READ, "reader", f"{name} only reads")]
    findings.extend(_judge_strange(name, word) for word in arguments.strange)
    for word in arguments.strange:
        findings.extend(scene.mentions(word))
    for option in arguments.given:
        findings.extend(judge_option(option, scene))
    for place, operand in enumerate(arguments.operands):
        findings.extend(_judge_operand(name, _place(table.operands, place), operand, scene))
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


def judge_option(option: Given, scene: Scene) -> list[Finding]:
    """Judge the path or the pattern that an option is given."""
    if option.value is None:
        return []
    match option.role:
        case Role.READ:
            return scene.path(option.value, PathOp.READ)
        case Role.WRITE:
            return scene.path(option.value, PathOp.WRITE)
        case Role.PICK:
            return _judge_picked(option.value)
        case _:
            return []


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


def _place(operands: tuple[str, ...], place: int) -> str:
    if place < len(operands):
        return operands[place].rstrip("*")
    return operands[-1].rstrip("*") if operands and operands[-1].endswith("*") else ""


def _judge_operand(name: str, kind: str, operand: str, scene: Scene) -> list[Finding]:
    match kind:
        case "TEXT":
            return scene.path(operand, PathOp.LIST) if is_glob(operand) else []
        case "LIST" | "READ" | "WRITE":
            return scene.path(operand, PathOp(kind.lower()))
        case "SETS":
            return [] if operand.startswith("+") else [dangerous("dangerous-operand", f"{name} changes the system")]
        case _:
            text = f"{name}: {shown(operand)!r} is one operand more than is known to be harmless"
            return [unclear("unknown-operand", text)]
