"""Figures that tests find out are printed at the end of the run, also when several processes ran it."""

from collections import Counter
from collections.abc import Iterator

import pytest

FIGURE = "figure"
COUNT = "count: "


def _properties(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, object]]:
    for reports in reporter.stats.values():
        for report in reports:
            yield from getattr(report, "user_properties", ())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded: a `figure` as it is, and the sums of each `count: NAME`."""
    counts: Counter[str] = Counter()
    figures: set[str] = set()
    for name, value in _properties(terminalreporter):
        if name == FIGURE:
            figures.add(str(value))
        elif name.startswith(COUNT) and isinstance(value, int):
            counts[name.removeprefix(COUNT)] += value
    if figures or counts:
        terminalreporter.section("figures")
    for figure in sorted(figures):
        terminalreporter.write_line(figure)
    for name, count in sorted(counts.items()):
        terminalreporter.write_line(f"{name}: {count:,}")
