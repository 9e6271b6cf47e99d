"""The product runs as it is, and the figures that tests find out are printed at the end, whatever process ran them."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from asyncio.base_subprocess import BaseSubprocessTransport
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.needed import require
from treadle.__main__ import LOOK_FOR_CYCLES

REST = Path(__file__).with_name("rest.txt")
FIGURE = "figure"
HOME = pytest.StashKey[str]()
"""Where a test keeps what it does not put elsewhere: never among the sessions of whoever runs it."""
COUNT = "count: "
_SETTINGS = "_hypothesis_internal_use_settings"


WHOLE = "ANEW" in os.environ
"""Whether all examples are tried, others each time, as `make soak` does; `make test` tries a fixed part of them."""

SHARE, LEAST = 4, 10
"""The part of the examples, one of so many, and how many there are at least where a test wants as many."""

# One profile for all: no test measures the machine, and without `WHOLE` each run sees the same examples. A failure
# prints them.
settings.register_profile(
    "treadle",
    deadline=None,
    derandomize=not WHOLE,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("treadle")


def _send_signal(self: Any, number: int) -> None:
    """Send a signal as Python 3.13 does.

    Before, a process that has just ended was collected here, and whoever waits for it read status 255 (gh-87744).
    """
    self._check_proc()
    with suppress(ProcessLookupError):
        os.kill(self._proc.pid, number)


def pytest_configure(config: pytest.Config) -> None:
    """Run the product as it is: pytest rewrites the package of a plugin, which takes seconds in each process.

    It is wrong there, too: product modules are loaded by threads, and Python 3.11 parses in one thread at a time only.
    """
    rewriting: Any = config.pluginmanager.rewrite_hook
    rewriting._must_rewrite.discard("treadle")  # there is no option for it
    gc.set_threshold(*LOOK_FOR_CYCLES)
    if sys.version_info < (3, 13):
        transport: Any = BaseSubprocessTransport
        transport.send_signal = _send_signal
        transport.terminate = lambda self: _send_signal(self, signal.SIGTERM)
        transport.kill = lambda self: _send_signal(self, signal.SIGKILL)
    if (found := shutil.which("python3")) and not Path(found).samefile(sys.executable):
        # A version manager's stand-in starts twenty programs before the one that a test means.
        os.environ["PATH"] = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["TREADLE_HOME"] = config.stash[HOME] = tempfile.mkdtemp(prefix="treadle-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what tests kept."""
    shutil.rmtree(config.stash[HOME], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine lacks something for; in CI that is a failure."""
    for mark in item.iter_markers("needs"):
        require(*mark.args)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make no tests of rows that are dropped at once: without it each process makes ten thousand more."""
    if not metafunc.config.option.markexpr.startswith("not soak"):
        return
    make = metafunc.parametrize

    def some(names: Any, values: Iterable[Any], *rest: Any, ids: Any = None, **more: Any) -> None:
        rows = [*values]
        kept = [row for row in rows if not any(mark.name == "soak" for mark in getattr(row, "marks", ()))]
        make(names, kept if kept and (ids is None or callable(ids)) else rows, *rest, ids=ids, **more)

    setattr(metafunc, "parametrize", some)  # noqa: B010 - its type has it as a method


def part_of(wanted: int) -> int:
    """Say how many of the examples that a test wants are tried here."""
    return wanted if WHOLE else max(min(wanted, LEAST), wanted // SHARE)


def _sampled(test: Any) -> None:
    """Let a test with examples try its part of them, whatever number it names; rows of one test are one function."""
    own = getattr(test, _SETTINGS, None)
    if own is not None and not hasattr(test, "all_examples"):
        test.all_examples = own.max_examples
        setattr(test, _SETTINGS, settings(own, max_examples=part_of(own.max_examples)))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Scale the examples in one place."""
    if is_hypothesis_test(test := getattr(item, "obj", None)):
        _sampled(getattr(test, "__func__", test))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make soak` the rows that a test's `sample` leaves out, and to `make rest` those of its list."""
    rows: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        rows[item.nodeid.partition("[")[0]].append(item)
    left = rest_of()
    for name, several in rows.items():
        mark = several[0].get_closest_marker("sample")
        if mark is not None:
            _leave_out(several, mark.args[0], "soak")
        if name in left:
            _leave_out([one for one in several if one.get_closest_marker("soak") is None], left[name], "rest")


def _leave_out(several: Sequence[pytest.Item], number: int, mark: str) -> None:
    """Mark all rows of a test but for a number of them, which lie evenly among the others."""
    kept = {at * len(several) // number for at in range(number)}
    for at, item in enumerate(several):
        if at not in kept and len(several) > number:
            item.add_marker(mark)


def rest_of() -> dict[str, int]:
    """Read what `make test` leaves to `make rest`: tests by their names, with the number of rows that it runs."""
    lines = (line.split() for line in REST.read_text().splitlines() if not line.startswith("#"))
    return {name: int(number) for name, number in lines}


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
