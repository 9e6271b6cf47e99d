"""What `${name%end}` and its like make of a known value; None where patterns or numbers are not plain."""

import re

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
