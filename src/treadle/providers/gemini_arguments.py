"""The arguments of a Gemini call that come as pieces, each with the path to the value it belongs to."""

import re
from itertools import pairwise
from typing import Any

import msgspec

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]")
MAX_ITEMS = 10_000


class PartialArgument(msgspec.Struct, rename="camel"):
    """One piece: a whole value (none is null), or the next part of the string at its path."""

    json_path: str
    string_value: str | None = None
    number_value: float | None = None
    bool_value: bool | None = None


def add_argument(arguments: dict[str, Any], piece: PartialArgument) -> None:
    """Put a piece into the arguments; pieces with a path that cannot be are left out."""
    steps = _steps(piece.json_path)
    if not steps or not isinstance(steps[0], str):
        return
    place: Any = arguments
    for step, following in pairwise(steps):
        inner = _child(place, step)
        if inner is None:
            inner = [] if isinstance(following, int) else {}
            _put(place, step, inner)
        place = inner
    last = steps[-1]
    known = _child(place, last)
    value = _value(piece)
    _put(place, last, known + value if isinstance(known, str) and isinstance(value, str) else value)


def _steps(path: str) -> list[str | int]:
    found = _STEP.findall(path)
    return [int(index) if index else name or quoted for name, index, quoted in found]


def _child(place: object, step: str | int) -> Any:
    if isinstance(place, dict) and isinstance(step, str):
        return place.get(step)
    if isinstance(place, list) and isinstance(step, int) and step < len(place):
        return place[step]
    return None


def _put(place: object, step: str | int, value: object) -> None:
    if isinstance(place, dict) and isinstance(step, str):
        place[step] = value
    elif isinstance(place, list) and isinstance(step, int) and step < MAX_ITEMS:
        place.extend([None] * (step + 1 - len(place)))
        place[step] = value


def _value(piece: PartialArgument) -> object:
    if piece.string_value is not None:
        return piece.string_value
    if piece.number_value is not None:
        return int(piece.number_value) if piece.number_value.is_integer() else piece.number_value
    return piece.bool_value
