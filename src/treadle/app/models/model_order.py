"""The order in which a provider's models are listed: the newest first, and names without a date before dated ones."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

from treadle.protocol.models import ModelSpec
from treadle.protocol.patterns import regex

_DATE = regex(r"[-@](?:20\d\d-?\d\d-?\d\d|\d\d-20\d\d|20\d\d-\d\d|\d\d-\d\d|\d{4})(?=$|[-:])")
_NUMBER = regex(r"\d+")
_LINE = regex(r"(?:.*/)?[^\W\d_]*")
_PARTS = 6


def newest_first(specs: Iterable[ModelSpec]) -> Sequence[ModelSpec]:
    """Order the models of each provider; providers stay in their order.

    Where the catalogue has no day of release, a model is taken as newer than all of its line (names that begin with the
    same word) with no higher version; where that says nothing either, it comes after those whose day is known.
    """
    return [spec for _, some in groupby(specs, key=lambda spec: spec.provider) for spec in _ordered(list(some))]


def _ordered(specs: Sequence[ModelSpec]) -> Sequence[ModelSpec]:
    known: dict[str, list[tuple[tuple[int, ...], str]]] = {}
    for spec in specs:
        if spec.released:
            known.setdefault(_line(spec.name), []).append((_version(spec.name), spec.released))
    for versions in known.values():
        versions.sort()
    newest = {line: list(accumulate((day for _, day in versions), max)) for line, versions in known.items()}

    def day(spec: ModelSpec) -> str:
        if spec.released:
            return spec.released
        line = _line(spec.name)
        lower = bisect_right(known.get(line, []), (_version(spec.name), _AFTER_ANY_DAY))
        return newest[line][lower - 1] if lower else ""

    by_name = sorted(specs, key=lambda spec: spec.name)
    by_age = sorted(by_name, key=lambda spec: (day(spec), _version(spec.name)), reverse=True)
    return sorted(by_age, key=lambda spec: _DATE.search(spec.name) is not None)


_AFTER_ANY_DAY = "~"


def _line(name: str) -> str:
    found = _LINE.match(name)
    return found[0] if found is not None else ""


def _version(name: str) -> tuple[int, ...]:
    numbers = [int(found) for found in _NUMBER.findall(_DATE.sub("", name))][:_PARTS]
    return (*numbers, *[0] * (_PARTS - len(numbers)))
