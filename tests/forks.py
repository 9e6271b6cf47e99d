"""A plugin for pytest that runs the tests in processes forked after one collection: `-p tests.forks --forks N`.

A process that collects for itself takes a dozen seconds of a processor for that. Each process has a part of the tests
that follow each other, so that what a module sets up is used again; whoever has none left takes half of the longest
part. At most one test waits behind the one that runs.

With `AGAIN=N` in the environment, as in CI, up to N tests that failed are run again, alone, when all others have ended.
Those that pass then do not fail the run, and are shown with their first failure: each is a fault to be found, in the
product or in the test.
"""

import json
import os
import random
import selectors
import signal
import tempfile
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import IO, Any

import pytest

from tests.conftest import HOME

_ALONE = pytest.StashKey[list[pytest.TestReport]]()
"""How tests failed beside others that passed alone."""

_AHEAD = 2
"""Tests that a process is given: the one that runs, and the next one, which says what of its set-up is kept."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the number of processes."""
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run the tests in N processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests; of one process pytest's own loop is made."""
    config = session.config
    if config.option.forks < 2 or config.option.collectonly or session.testsfailed:
        return None
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    reporter.showfspath = False  # tests of several files end in turns
    _Forks(session, min(config.option.forks, len(session.items))).run()
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what failed once."""
    for report in config.stash.get(_ALONE, []):
        terminalreporter.section(f"failed beside others, passed alone: {report.nodeid}", yellow=True)
        terminalreporter.write_line(report.longreprtext)


class _Child:
    """A process that runs tests: the numbers of those that it will be given, and of those that it has been given."""

    def __init__(self, tests: Iterable[int]) -> None:
        self.tests = deque(tests)
        self.given: deque[int] = deque()
        self.pid = 0
        self.orders: IO[bytes]
        self.reports: IO[bytes]
        self.begun = b""
        self.said: list[pytest.TestReport] = []
        self.is_last_told = False


class _Forks:
    def __init__(self, session: pytest.Session, number: int) -> None:
        self._session = session
        self._hook = session.config.hook
        ends = [len(session.items) * at // number for at in range(number + 1)]
        self._waiting = [range(first, last) for first, last in pairwise(ends)]
        self._children: list[_Child] = []
        self._selector = selectors.DefaultSelector()
        self._again = int(os.environ.get("AGAIN", "0"))
        self._failed: dict[int, pytest.TestReport] = {}
        self._alone = False

    def run(self) -> None:
        """Run all tests; raises `Failed` and `Interrupted` as pytest's own loop does."""
        try:
            for tests in self._waiting:
                self._begin(tests)
            self._until_ended()
            self._alone = True
            if self._failed:
                self._begin(self._failed)
            self._until_ended()
        finally:
            for child in self._children:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)

    def _until_ended(self) -> None:
        while self._children:
            for key, _ in self._selector.select():
                self._read(key.data)
            if self._session.shouldfail:
                raise self._session.Failed(self._session.shouldfail)
            if self._session.shouldstop:
                raise self._session.Interrupted(self._session.shouldstop)

    def _begin(self, tests: Iterable[int]) -> None:
        child = _Child(tests)
        read_orders, write_orders = os.pipe()
        read_reports, write_reports = os.pipe()
        child.pid = os.fork()
        if child.pid == 0:
            os.close(write_orders)
            os.close(read_reports)
            for other in self._children:
                other.orders.close()
                other.reports.close()
            _work(self._session, os.fdopen(read_orders, "rb"), os.fdopen(write_reports, "wb"))
        os.close(read_orders)
        os.close(write_reports)
        child.orders, child.reports = os.fdopen(write_orders, "wb"), os.fdopen(read_reports, "rb", buffering=0)
        self._children.append(child)
        self._selector.register(child.reports, selectors.EVENT_READ, child)
        self._give(child)

    def _give(self, child: _Child) -> None:
        """Give tests until enough are ahead; the end, where there are none."""
        while len(child.given) < _AHEAD and not child.is_last_told:
            if not child.tests:
                longest = max(self._children, key=lambda one: len(one.tests)).tests
                child.tests.extendleft([longest.pop() for _ in range((len(longest) + 1) // 2)])
            number = child.tests.popleft() if child.tests else -1
            child.is_last_told = number < 0
            if number >= 0:
                child.given.append(number)
            try:
                child.orders.write(b"%d\n" % number)
                child.orders.flush()
            except BrokenPipeError:  # its end is read next
                return

    def _read(self, child: _Child) -> None:
        piece = child.reports.read(1 << 20)
        *lines, child.begun = (child.begun + piece).split(b"\n")
        for line in lines:
            self._take(child, json.loads(line))
        if not piece:
            self._ended(child)

    def _take(self, child: _Child, said: Any) -> None:
        """Take a report of a process, or that its test is over."""
        if said is not None:
            report = self._hook.pytest_report_from_serializable(config=self._session.config, data=said)
            if isinstance(report.longrepr, list):  # of a test that was skipped: where and why
                report.longrepr = tuple(report.longrepr)
            child.said.append(report)
            return
        number, said, child.said = child.given.popleft(), child.said, []
        self._tell(number, said)
        item = self._session.items[number]
        self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        self._give(child)

    def _tell(self, number: int, said: Sequence[pytest.TestReport]) -> None:
        """Report a test, unless it failed and is run again."""
        failed = next((report for report in said if report.failed), None)
        if failed is not None and not self._alone and len(self._failed) < self._again:
            self._failed[number] = failed
            return
        if failed is None and self._alone:
            self._session.config.stash.setdefault(_ALONE, []).append(self._failed[number])
        for report in said:
            self._hook.pytest_runtest_logreport(report=report)

    def _ended(self, child: _Child) -> None:
        """Take leave of a process; where it died, its test has failed, and another one goes on with its tests."""
        self._selector.unregister(child.reports)
        self._children.remove(child)
        child.orders.close()
        child.reports.close()
        _, status = os.waitpid(child.pid, 0)
        if child.given:
            number = child.given.popleft()
            item = self._session.items[number]
            why = f"The process of the tests died in this one: {os.waitstatus_to_exitcode(status)}."
            self._tell(number, [pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")])
        if rest := (*child.given, *child.tests):
            self._begin(rest)


class _Reports:
    """Gives the reports of tests to the process that began this one."""

    def __init__(self, config: pytest.Config, reports: IO[bytes]) -> None:
        self._config = config
        self._reports = reports

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Give one."""
        self.say(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def say(self, said: Any) -> None:
        """Write a line: a report, or that a test is over."""
        self._reports.write(json.dumps(said).encode() + b"\n")
        self._reports.flush()


def _work(session: pytest.Session, orders: IO[bytes], reports: IO[bytes]) -> None:
    """Run the tests that are ordered, in a process of its own, which ends then."""
    config = session.config
    code = 1
    try:
        _be_another(config)
        told = _Reports(config, reports)
        config.pluginmanager.register(told)
        given: deque[int] = deque()
        while line := orders.readline():
            number = int(line)
            if number >= 0:
                given.append(number)
            while given and (number < 0 or len(given) == _AHEAD):
                item = session.items[given.popleft()]
                following = session.items[given[0]] if given else None
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                told.say(None)
            if number < 0:
                code = 0
                break
        config._ensure_unconfigure()
    finally:
        os._exit(code)


def _be_another(config: Any) -> None:
    """Share no file, folder or chance with the process that this one was forked from."""
    manager: Any = config.pluginmanager
    capturing = manager.getplugin("capturemanager")._global_capturing
    for capture in filter(None, (capturing.out, capturing.err)):
        # The file stays the one that imported modules hold; its descriptor becomes one of this process.
        with tempfile.TemporaryFile(buffering=0) as own:
            os.dup2(own.fileno(), capture.tmpfile.fileno())
    manager.unregister(name="terminalreporter")
    factory = config._tmp_path_factory
    factory._basetemp = factory.getbasetemp() / f"p{os.getpid()}"  # short: paths of sockets are bounded
    factory._basetemp.mkdir()
    os.environ["TREADLE_HOME"] = config.stash[HOME] = tempfile.mkdtemp(prefix="treadle-tests-")
    random.seed()
