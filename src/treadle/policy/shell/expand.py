"""Expands words as far as can be told without running anything; what is not known is a mark in the text."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import Struct, field

from treadle.policy.marks import ANY, SPLIT, STAR, UNKNOWN, is_static
from treadle.policy.shell.syntax import (
    Arithmetic,
    BudgetError,
    Literal,
    Parameter,
    Pipeline,
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
# Marks of where quotes and values begin, and of what means something because it is not quoted; no field holds them.
_QUOTED, _EXPANDED, _SET, _LEFT, _RIGHT, _COMMA, _TILDE = "\5\7\6\x0e\x0f\x10\x11"
_IN_BRACES = str.maketrans({"{": _LEFT, "}": _RIGHT, ",": _COMMA})
_GLOBS = str.maketrans({"*": STAR, "?": ANY, "[": _SET})
_BARE = _IN_BRACES | _GLOBS | str.maketrans({"~": _TILDE})
_PLAIN = str.maketrans({_QUOTED: "", _EXPANDED: "", _LEFT: "{", _RIGHT: "}", _COMMA: ",", _TILDE: "~"})
_WITHOUT_GLOBS = _PLAIN | str.maketrans({STAR: "*", ANY: "?", _SET: "[", SPLIT: " "})
_MEANS_ITSELF = re.compile(r"[\w./,:=@%+-]{1,4096}")
_HOME = re.compile(rf"{_TILDE}([^/{_QUOTED}{_EXPANDED}]*)(?=/|\Z)")

_OPTION = re.compile(r"-[neE]+")
_WITH_DEFAULT = frozenset({":-", "-", ":=", "="})


class Variables(Struct, frozen=True):
    """What is known of the shell's variables; a name that is missing is unknown.

    Those that are `fixed` keep their value whatever sets them: bash refuses, and goes on.
    """

    home: str
    values: Mapping[str, str] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()

    def get(self, name: str) -> str:
        """Give the value, or `UNKNOWN`."""
        # The last child has some number, and is the line's own.
        given = {"HOME": self.home or UNKNOWN, "IFS": " \t\n", "!": "99999"}
        return self.values.get(name, given.get(name, UNKNOWN))

    def with_value(self, name: str, value: str) -> "Variables":
        """Set one variable; a value that grew very long, as `x=$x$x` makes it, is not followed further."""
        known = len(value) <= MAX_VALUE and name not in self.fixed
        return Variables(self.home, {**self.values, name: value if known else UNKNOWN}, self.fixed)

    def forgotten(self) -> "Variables":
        """Give them where no value is known any more."""
        return Variables(self.home, fixed=self.fixed)

    def fixing(self, names: Iterable[str]) -> "Variables":
        """Give them with these fixed."""
        return Variables(self.home, self.values, self.fixed.union(names))


def expand_words(words: Sequence[Word], variables: Variables, cwd: str) -> tuple[str, ...]:
    """Expand the words of a command into its fields. Raises `BudgetError`."""
    return tuple(text for word in words for text in expand_word(word, variables, cwd))


def expand_word(word: Word, variables: Variables, cwd: str) -> list[str]:
    """Expand one word: braces, tilde, variables, splitting; globs stay as marks. Raises `BudgetError`."""
    match word.segments:
        case (Literal(text=text),) if _MEANS_ITSELF.fullmatch(text):
            return [text]
        case _:
            pass
    fields: list[str] = []
    for text in _alternatives(_text(word.segments, variables)):
        fields.extend(_fields(_with_home(text, variables, cwd)))
        if len(fields) > MAX_FIELDS:
            raise BudgetError
    return fields


def expand_text(segments: Sequence[Segment], variables: Variables, cwd: str = UNKNOWN) -> str:
    """Expand to one text, without splitting or globs: an assigned value, a here-document, a redirection's text."""
    return _with_home(_text(segments, variables), variables, cwd).translate(_WITHOUT_GLOBS)


def in_braces(text: str) -> list[str]:
    """Write out the alternatives that stand in braces. Raises `BudgetError`."""
    return [one.translate(_PLAIN) for one in _alternatives(text.translate(_IN_BRACES))]


def _alternatives(text: str) -> Iterator[str]:
    """Expand the first brace group, then the rest."""
    if text.count(_LEFT) > MAX_BRACES:
        raise BudgetError
    for group in re.finditer(_LEFT, text):
        choices, end = _choices(text, group.start())
        if choices:
            for choice in choices:
                yield from _alternatives(text[: group.start()] + choice + text[end:])
            return
    yield text


def _choices(text: str, start: int) -> tuple[list[str], int]:
    """Give what a brace group at `start` stands for, and where it ends; nothing when it is none."""
    depth, begin = 0, start + 1
    parts: list[str] = []
    for mark in re.finditer(f"[{_LEFT}{_RIGHT}{_COMMA}]", text[start:]):
        place = start + mark.start()
        depth += {_LEFT: 1, _RIGHT: -1}.get(mark[0], 0)
        if depth == 0 or (depth == 1 and mark[0] == _COMMA):
            parts.append(text[begin:place])
            begin = place + 1
        if depth == 0:
            is_range = _RANGE.fullmatch(parts[0]) is not None
            return parts if len(parts) > 1 else [UNKNOWN] * is_range, begin
    return [], start


def _fields(text: str) -> list[str]:
    has_quotes = _QUOTED in text
    text = text.translate(_PLAIN)
    if len(text) > MAX_VALUE and any(mark in text for mark in (STAR, ANY, _SET)):
        raise BudgetError
    # Where a set ends is not looked at: it may stand for more than it does.
    text = re.sub(_SET + r"[^/]*\]", STAR, text).replace(_SET, "[")
    pieces = text.split(SPLIT)
    if len(pieces) > 1:
        return [piece for piece in pieces if piece]
    return [text] if text or has_quotes else []


def _with_home(text: str, variables: Variables, cwd: str) -> str:
    """Expand a tilde that a text begins with."""
    home = _HOME.match(text)
    return {"": variables.get("HOME"), "+": cwd}.get(home[1], UNKNOWN) + text[home.end() :] if home else text


def _text(segments: Sequence[Segment], variables: Variables) -> str:
    return "".join(_value(segment, variables) for segment in segments)


def _unquoted(text: str) -> str:
    """Mark in a value that is not quoted where the shell splits it and what it takes for a glob."""
    return re.sub(r"[ \t\n]+", SPLIT, text).translate(_GLOBS)


def _value(segment: Segment, variables: Variables) -> str:
    match segment:
        case Literal(text=text, quoted=True):
            return _QUOTED + _CONTROL.sub(UNKNOWN, text)
        case Literal(text=text):
            if len(text) > MAX_BARE:
                raise BudgetError
            return text.translate(_BARE)
        case Parameter():
            return _EXPANDED + _parameter(segment, variables)
        case Substitution(quoted=quoted):
            text = printed(segment, variables)
            return _EXPANDED + (text if quoted else _unquoted(text))
        case Arithmetic():
            return _EXPANDED + UNKNOWN
        case _:
            assert_never(segment)


def printed(substitution: Substitution, variables: Variables) -> str:
    """Give what a lone command prints as far as it is known, else `UNKNOWN`; what runs is judged elsewhere."""
    match substitution.script.pipelines:
        case (Pipeline(commands=(Simple(assignments=(), redirects=()) as command,)),) if not substitution.direction:
            words = expand_words(command.words, variables, UNKNOWN)
        case _:
            return UNKNOWN
    match words:
        case ["pwd"]:
            text = variables.get("PWD")
        case ["echo", *texts]:
            texts = texts[texts[:1] == ["-n"] :]
            text = UNKNOWN if _OPTION.fullmatch("".join(texts[:1])) else " ".join(texts)
        case ["printf", form, *values] if form.count("%") == form.count("%s"):
            # The shell begins again with the format while there are values left.
            rounds, more = divmod(len(values), form.count("%s") or 1)
            text = UNKNOWN if more or not rounds or "%" not in form else form * rounds % tuple(values)
        case _:
            text = UNKNOWN
    return text.rstrip("\n") if is_static(text) and "\\" not in text else UNKNOWN


def _parameter(parameter: Parameter, variables: Variables) -> str:
    value = variables.get(parameter.name)
    if parameter.operator in _WITH_DEFAULT and value == UNKNOWN:
        # Either the unknown value or the default: the default is what shows danger, UNKNOWN keeps it from being sure.
        value = expand_text(parameter.operand, variables) + UNKNOWN
    elif parameter.operator:
        operand = expand_text(parameter.operand, variables)
        value = trimmed(parameter.operator, value, operand) if is_static(value + operand) else UNKNOWN
    if parameter.quoted:
        return value
    return _unquoted(value)


SPELLED_OUT = re.compile(r"\\(?:x[2-7]|[uU]0*[2-7]|0?(?:[4-7][0-7]|1[0-7][0-7]))")
"""Letters and signs that are written as numbers, which has no other reason than to hide them."""

_PATTERN_CHARACTERS = frozenset("*?[]\\@+!(){}~&")
_PLACES = re.compile(r"\s*(\d{1,6})\s*(?::\s*(\d{1,6})\s*)?")


def trimmed(operator: str, value: str, operand: str) -> str:
    """Apply an operator of `${…}` to a value, where that is easily told."""
    match operator:
        case "^^" | ",," if value.isascii() and not operand:
            return value.upper() if operator == "^^" else value.lower()
        case ":" if places := _PLACES.fullmatch(operand):
            return value[int(places[1]) :][: int(places[2] or len(value))]
        case _ if not operand or not _PATTERN_CHARACTERS.isdisjoint(operand):
            return UNKNOWN
        case "#" | "##":
            return value.removeprefix(operand)
        case "%" | "%%":
            return value.removesuffix(operand)
        case "/" | "//" if operand[0] != "/":
            wanted, _, text = operand.partition("/")
            return value.replace(wanted, text, -1 if operator == "//" else 1)
        case _:
            return UNKNOWN
