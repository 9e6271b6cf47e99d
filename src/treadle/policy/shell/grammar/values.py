"""What a lone `echo` or `printf` prints, and what `${name%end}` makes of a value, without running anything."""

import re
from collections.abc import Sequence

_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|([1-7][0-7]{0,2})|(.?))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
_CONVERSION = re.compile(r"%([sb%])")


def printed(words: Sequence[str]) -> str | None:
    """Give what the command prints, or None where that is not certain: other programs, odd options, odd formats."""
    match words:
        case ["echo", option, *rest] if re.fullmatch(r"-[neE]+", option):
            text = " ".join(rest)
            odd = rest[:1] and re.fullmatch(r"-[neE]+", rest[0])
            decodes = "e" in option
            return None if odd or (decodes and re.search(r"\\[0-7]", text)) else _decoded(text) if decodes else text
        case ["echo", *rest]:
            return " ".join(rest)
        case ["printf", form, *values] if form[:1] != "-":
            return _printf(form, values)
        case _:
            return None


def _printf(form: str, values: list[str]) -> str | None:
    """Fill a format of strings once, as the shell does when it has as many places as there are values."""
    decoded, kinds = _decoded(form), _CONVERSION.findall(form)
    places = len(kinds) - kinds.count("%")
    if decoded is None or "%" in _CONVERSION.sub("", form) or (places and len(values) % places) or "b" in kinds:
        return None
    pending = iter(values)
    rounds = max(1, len(values) // places) if places else 1
    fill = re.compile(_CONVERSION)
    return "".join(fill.sub(lambda one: "%" if one[1] == "%" else next(pending, ""), decoded) for _ in range(rounds))


def _decoded(text: str) -> str | None:
    """Read the escapes of a text; None where one is not plain."""
    plain = all(letter is None or letter in _LETTERS for *_, letter in (one.groups() for one in _ESCAPE.finditer(text)))
    codes = [int(one[1], 16) if one[1] else int(one[2], 8) for one in _ESCAPE.finditer(text) if one[3] is None]
    if not plain or not all(32 <= code < 127 for code in codes):
        return None
    characters = iter(codes)
    return _ESCAPE.sub(lambda one: chr(next(characters)) if one[3] is None else _LETTERS[one[3]], text)


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
            return _replaced(value, operand, -1 if operator == "//" else 1)
        case _:
            return None


def _cut(value: str, operand: str) -> str | None:
    places = _PLACES.fullmatch(operand)
    if places is None:
        return None
    start, length = int(places[1]), places[2]
    return value[start : start + int(length)] if length is not None else value[start:]


def _replaced(value: str, operand: str, count: int) -> str | None:
    wanted, _, text = operand.partition("/")
    return value.replace(wanted, text, count) if wanted else None
