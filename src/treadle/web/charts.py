"""Charts as plain shapes: where each bar begins and how long it is. Templates draw them as SVG."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

WIDTH = 1_000
"""Units from one end of a chart to the other; it is as wide as the page lets it be."""

_COLOURS = 10


class ChartBar(Struct, frozen=True, kw_only=True):
    """One bar: where it begins and how long it is, in units of the chart; `said` is what it stands for, in words."""

    name: str
    said: str
    start: float
    length: float
    colour: int = 0


def stacked_bars(parts: Iterable[tuple[str, str, float]], whole: float) -> tuple[ChartBar, ...]:
    """Put parts (name, words, amount) one behind the other; `whole` is the amount that fills the chart."""
    bars: list[ChartBar] = []
    at = 0.0
    for number, (name, said, amount) in enumerate(parts):
        length = 0.0 if whole <= 0 else max(0.0, min(WIDTH - at, WIDTH * amount / whole))
        bars.append(
            ChartBar(name=name, said=said, start=round(at, 2), length=round(length, 2), colour=number % _COLOURS)
        )
        at += length
    return tuple(bars)


def column_bars(values: Sequence[tuple[str, str, float]], height: float) -> tuple[ChartBar, ...]:
    """Give each value (name, words, amount) a column; `start` is from the left, `length` up to `height`."""
    most = max((amount for _, _, amount in values), default=0.0)
    step = WIDTH / max(1, len(values))
    return tuple(
        ChartBar(
            name=name,
            said=said,
            start=round(number * step, 2),
            length=0.0 if most <= 0 else round(height * amount / most, 2),
        )
        for number, (name, said, amount) in enumerate(values)
    )


def length_of(amount: float, whole: float) -> float:
    """Give a part in units of the chart."""
    return 0.0 if whole <= 0 else round(max(0.0, min(WIDTH, WIDTH * amount / whole)), 2)
