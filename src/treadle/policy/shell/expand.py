"""Expands words as far as can be told without running anything; what is not known is a mark in the text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import Struct, field

from treadle.policy.marks import ANY, SPLIT, STAR, UNKNOWN, is_static
from treadle.policy.shell.syntax import (
    Arithmetic,
    BudgetError,
    Literal,
    Parameter,
    Pipeline,
    ProcessSubstitution,
    Segment,
    Simple,
    Substitution,
    Word,
)

MAX_FIELDS = 256
MAX_BRACES = 32
MAX_VALUE = 4096
MAX_BARE = 8192
"""Characters of a word outside quotes; nobody writes more."""

_CONTROL = re.compile(r"[\0-\x08\x0b-\x1f\x7f]")
_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(\.\.-?\d+)?")
_OPEN = "\6"
"""A bracket that is not quoted and may begin a set of characters."""

_SET = re.compile(_OPEN + r"[^/]*\]")
_WITH_DEFAULT = frozenset({":-", "-", ":=", "="})


class Variables(Struct, frozen=True):
    """What is known of the shell's variables; a name that is missing is unknown."""

    home: str
    values: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        """Give the value, or `UNKNOWN`."""
        if name in self.values:
            return self.values[name]
        if name == "HOME" and self.home:
            return self.home
        return " \t\n" if name == "IFS" else UNKNOWN

    def with_value(self, name: str, value: str) -> "Variables":
        """Set one variable; a value that grew very long, as `x=$x$x` makes it, is not followed further."""
        return Variables(self.home, {**self.values, name: value if len(value) <= MAX_VALUE else UNKNOWN})


def expand_words(words: Sequence[Word], variables: Variables, cwd: str) -> tuple[str, ...]:
    """Expand the words of a command into its fields. Raises `BudgetError`."""
    return tuple(text for word in words for text in expand_word(word, variables, cwd))


def expand_word(word: Word, variables: Variables, cwd: str) -> list[str]:
    """Expand one word: braces, tilde, variables, splitting; globs stay as marks. Raises `BudgetError`."""
    fields: list[str] = []
    for atoms in _braces(_atoms(word.segments)):
        fields.extend(_fields(atoms, variables, cwd))
        if len(fields) > MAX_FIELDS:
            raise BudgetError
    return fields


def expand_text(segments: Sequence[Segment], variables: Variables, cwd: str = UNKNOWN, *, tilde: bool = False) -> str:
    """Expand to one text, without splitting or globs: an assigned value, a here-document, a redirection's text."""
    atoms = _atoms(tuple(segments))
    text = "".join(_value(atom, variables).replace(SPLIT, " ") for atom in _tilde(atoms, variables, cwd, tilde=tilde))
    return text.replace(STAR, "*").replace(ANY, "?").replace(_OPEN, "[")


_Atom = str | Segment
"""One unquoted character, or a segment."""


def _atoms(segments: Sequence[Segment]) -> list[_Atom]:
    atoms: list[_Atom] = []
    for segment in segments:
        if isinstance(segment, Literal) and not segment.quoted:
            if len(segment.text) > MAX_BARE:
                raise BudgetError
            atoms.extend(segment.text)
        else:
            atoms.append(segment)
    return atoms


def _braces(atoms: list[_Atom]) -> Iterator[list[_Atom]]:
    """Expand the first brace group, then the rest."""
    if atoms.count("{") > MAX_BRACES:
        raise BudgetError
    for start, atom in enumerate(atoms):
        if atom != "{" or (start and isinstance(atoms[start - 1], str) and atoms[start - 1] == "$"):
            continue
        choices, end = _choices(atoms, start)
        if not choices:
            continue
        for choice in choices:
            yield from _braces([*atoms[:start], *choice, *atoms[end + 1 :]])
        return
    yield atoms


def in_braces(text: str) -> list[str]:
    """Write out the alternatives that stand in braces. Raises `BudgetError`."""
    return ["".join(atom for atom in atoms if isinstance(atom, str)) for atoms in _braces(list(text))]


def _choices(atoms: list[_Atom], start: int) -> tuple[list[list[_Atom]], int]:
    """Give what a brace group at `start` stands for, and where it ends; nothing when it is none."""
    depth = 0
    parts: list[list[_Atom]] = [[]]
    for index in range(start, len(atoms)):
        atom = atoms[index]
        if atom == "{":
            depth += 1
        elif atom == "}":
            depth -= 1
        if atom == "}" and depth == 0:
            text = "".join(atom if isinstance(atom, str) else UNKNOWN for atom in parts[0])
            return (parts if len(parts) > 1 else [[UNKNOWN]] if _RANGE.fullmatch(text) else []), index
        if atom == "," and depth == 1:
            parts.append([])
        elif index > start:
            parts[-1].append(atom)
    return [], start


def _fields(atoms: list[_Atom], variables: Variables, cwd: str) -> list[str]:
    has_quotes = any(isinstance(atom, Literal) for atom in atoms)
    text = "".join(_value(atom, variables) for atom in _tilde(atoms, variables, cwd, tilde=True))
    if len(text) > MAX_VALUE and any(mark in text for mark in (STAR, ANY, _OPEN)):
        raise BudgetError
    # Where a set ends is not looked at: it may stand for more than it does.
    text = _SET.sub(STAR, text).replace(_OPEN, "[")
    pieces = text.split(SPLIT)
    if len(pieces) > 1:
        return [piece for piece in pieces if piece]
    return [text] if text or has_quotes else []


def _tilde(atoms: list[_Atom], variables: Variables, cwd: str, *, tilde: bool) -> list[_Atom]:
    if not tilde or not atoms or atoms[0] != "~":
        return atoms
    end = next((index for index, atom in enumerate(atoms) if atom == "/" or not isinstance(atom, str)), len(atoms))
    if end < len(atoms) and atoms[end] != "/":
        return atoms
    name = "".join(atom for atom in atoms[1:end] if isinstance(atom, str))
    known = {"": variables.get("HOME"), "+": cwd}
    value = known.get(name, UNKNOWN)
    return [Literal(value, quoted=True), *atoms[end:]]


def _unquoted(text: str) -> str:
    """Mark in a value that is not quoted where the shell splits it and what it takes for a glob."""
    return re.sub(r"[ \t\n]+", SPLIT, text).translate({ord("*"): STAR, ord("?"): ANY, ord("["): _OPEN})


def _value(atom: _Atom, variables: Variables) -> str:
    match atom:
        case str():
            return {"*": STAR, "?": ANY, "[": _OPEN}.get(atom, atom)
        case Literal(text=text):
            return _CONTROL.sub(UNKNOWN, text)
        case Parameter():
            return _parameter(atom, variables)
        case Substitution():
            return _printed(atom, variables)
        case Arithmetic() | ProcessSubstitution():
            return UNKNOWN
        case _:
            assert_never(atom)


def _printed(substitution: Substitution, variables: Variables) -> str:
    """Give the output of a lone pipeline as far as it is known, else `UNKNOWN`; what runs is judged elsewhere."""
    match substitution.script.pipelines:
        case (Pipeline(commands=commands),):
            plain = [one for one in commands if isinstance(one, Simple) and not one.assignments and not one.redirects]
        case _:
            return UNKNOWN
    if len(plain) != len(commands):
        return UNKNOWN
    run = [expand_words(one.words, variables, UNKNOWN) or ("",) for one in plain]
    told = printed(run[0]) if len(run) == 1 and all(map(is_static, run[0])) else None
    if told is None:
        return variables.get("PWD") if run == [("pwd",)] else UNKNOWN
    text = told.rstrip("\n")
    if _CONTROL.search(told):
        return UNKNOWN
    return text if substitution.quoted else _unquoted(text)


def _parameter(parameter: Parameter, variables: Variables) -> str:
    value = variables.get(parameter.name)
    if parameter.operator in _WITH_DEFAULT and value == UNKNOWN:
        # Either the unknown value or the default: the default is what shows danger, UNKNOWN keeps it from being sure.
        value = expand_text(parameter.operand, variables) + UNKNOWN
    elif parameter.operator:
        operand = expand_text(parameter.operand, variables)
        changed = trimmed(parameter.operator, value, operand) if is_static(value + operand) else None
        value = UNKNOWN if changed is None else changed
    if parameter.quoted:
        return value
    return _unquoted(value)


SPELLED_OUT = re.compile(r"\\(?:x[2-7]|[uU]0*[2-7]|0?(?:[4-7][0-7]|1[0-7][0-7]))")
"""Letters and signs that are written as numbers, which has no other reason than to hide them."""

_OTHER_FORMAT = re.compile(r"%(?![s%])")
_OPTION = re.compile(r"-[neE]+")
_PLAIN_ESCAPES = re.compile(r"(?:[^\\]|\\[nt\\\"'])*")


def printed(words: Sequence[str]) -> str | None:
    """Give what the command prints, or None where that is not certain: other programs, odd options, odd formats."""
    match words:
        case ["echo", option, *rest] if _OPTION.fullmatch(option):
            odd = any(map(_OPTION.fullmatch, rest[:1]))
            return None if odd else _decoded(" ".join(rest)) if "e" in option else " ".join(rest)
        case ["echo", *rest]:
            return " ".join(rest)
        case ["printf", form, *values] if not (form.startswith("-") or _OTHER_FORMAT.search(form)):
            # The shell begins again with the format while there are values left.
            plain, places = _decoded(form), form.replace("%%", "").count("%s")
            if plain is None or (places and len(values) % places):
                return None
            rounds = max(1, len(values) // places) if places else 1
            return plain * rounds % tuple((values or [""] * places) if places else ())
        case _:
            return None


def _decoded(text: str) -> str | None:
    """Read the escapes of a text; None where one is not plain."""
    plain = _PLAIN_ESCAPES.fullmatch(text) is not None
    return re.sub(r"\\(.)", lambda one: {"n": "\n", "t": "\t"}.get(one[1], one[1]), text) if plain else None


_PATTERN_CHARACTERS = frozenset("*?[]\\@+!(){}~&")
_PLACES = re.compile(r"\s*(\d{1,6})\s*(?::\s*(\d{1,6})\s*)?")


def trimmed(operator: str, value: str, operand: str) -> str | None:
    """Apply an operator of `${…}` to a value."""
    match operator:
        case "^^" | ",," | "^" | "," if not value.isascii():
            return None
        case "^^" | ",," if not operand:
            return value.upper() if operator == "^^" else value.lower()
        case "^" | "," if not operand:
            return (value[:1].upper() if operator == "^" else value[:1].lower()) + value[1:]
        case ":":
            return _cut(value, operand)
        case _ if not operand or not _PATTERN_CHARACTERS.isdisjoint(operand):
            return None
        case "#" | "##":
            return value.removeprefix(operand)
        case "%" | "%%":
            return value.removesuffix(operand)
        case "/" | "//":
            wanted, _, text = operand.partition("/")
            return value.replace(wanted, text, -1 if operator == "//" else 1) if wanted else None
        case _:
            return None


def _cut(value: str, operand: str) -> str | None:
    places = _PLACES.fullmatch(operand)
    if places is None:
        return None
    start, length = int(places[1]), places[2]
    return value[start : start + int(length)] if length is not None else value[start:]
