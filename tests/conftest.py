"""The product runs as it is, and the figures that tests find out are printed at the end, whatever process ran them."""

import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.needed import IN_CI, require
from treadle.__main__ import LOOK_FOR_CYCLES

FIGURE = "figure"
HOME = pytest.StashKey[str]()
"""Where a test keeps what it does not put elsewhere: never among the sessions of whoever runs it."""
COUNT = "count: "


# One profile for all: no test measures the machine, and in CI each run sees the same examples. A failure prints them.
settings.register_profile(
    "treadle",
    deadline=None,
    derandomize=IN_CI,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("treadle")


def pytest_configure(config: pytest.Config) -> None:
    """Run the product as it is: pytest rewrites the package of a plugin, which takes seconds in each process.

    It is wrong there, too: product modules are loaded by threads, and Python 3.11 parses in one thread at a time only.
    """
    rewriting: Any = config.pluginmanager.rewrite_hook
    rewriting._must_rewrite.discard("treadle")  # there is no option for it
    gc.set_threshold(*LOOK_FOR_CYCLES)
    os.environ["TREADLE_HOME"] = config.stash[HOME] = tempfile.mkdtemp(prefix="treadle-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what tests kept."""
    shutil.rmtree(config.stash[HOME], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine lacks something for; in CI that is a failure."""
    for mark in item.iter_markers("needs"):
        require(*mark.args)


def pytest_collection_finish() -> None:
    """Look for cycles in what tests make, not in thousands of tests."""
    gc.freeze()


def _properties(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, object]]:
    for reports in reporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":  # the report of the teardown has them again
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
