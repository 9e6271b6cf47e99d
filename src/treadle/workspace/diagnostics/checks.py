"""Checking files before and after an edit, each source within its time limit, by whatever sources are set up."""

import asyncio
import fnmatch
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Protocol

from treadle.protocol.errors import ToolError
from treadle.workspace.diagnostics.problems import Diagnostic, new_problems

CHECK_SECONDS = 5.0
"""How long an edit waits for a source, before and again after it, unless the settings say otherwise."""

_MOST_FAILURES = 3
"""How often in a row a source may fail before it is ended and no longer asked: each time may have cost its limit."""


class NotReadyError(ToolError):
    """A source is still starting: there is nothing to wait for yet, and nothing wrong with it."""


class DiagnosticSource(Protocol):
    """A language server or a linter."""

    @property
    def name(self) -> str:
        """Its name, for the model and the user."""
        ...

    @property
    def seconds(self) -> float:
        """How long an edit waits for it."""
        ...

    def covers(self, path: str) -> bool:
        """Whether it knows files of this kind."""
        ...

    async def check(self, paths: Sequence[str]) -> list[Diagnostic]:
        """Find the problems of files as they are now. Raises `ToolError` when it does not work."""
        ...

    async def close(self) -> None:
        """End what runs."""
        ...


def covered(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path's name matches one of the globs."""
    name = PurePath(path).name
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Problems, such as those that an edit brought, and why sources did not work."""

    problems: tuple[Diagnostic, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stock:
    """What the sources say of files at one time: the problems by source, and the faults of those that do not work."""

    problems: Mapping[str, list[Diagnostic]]
    faults: Mapping[str, str]


_NOTHING = _Stock(problems={}, faults={})


class Diagnostics:
    """Compares the problems before and after an edit; what does not work or is too slow costs no edit.

    Files in the folders `elsewhere` (resolved) are not looked at: a checker would obey the settings that lie there.
    """

    def __init__(self, sources: Sequence[DiagnosticSource], elsewhere: Sequence[str] = ()) -> None:
        self._elsewhere = tuple(elsewhere)
        self._sources = tuple(sources)
        self._before = _NOTHING
        self._reported: set[str] = set()
        self._failed: Counter[str] = Counter()

    def covers(self, path: str) -> bool:
        """Whether any source that still works knows files of this kind."""
        if any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in self._elsewhere):
            return False
        return any(source.covers(path) for source in self._working())

    async def before(self, paths: Sequence[str]) -> None:
        """Take stock before an edit of these files (absolute paths)."""
        self._before = await self._check(self._working(), paths)

    async def after(self, paths: Sequence[str]) -> Findings:
        """Find what is new since `before`; a source that could not take stock then is not asked now."""
        before, self._before = self._before, _NOTHING
        now = await self._check([source for source in self._sources if source.name in before.problems], paths)
        problems = [
            problem for name, found in now.problems.items() for problem in new_problems(before.problems[name], found)
        ]
        faults = {**before.faults, **now.faults}
        unreported = tuple(fault for name, fault in faults.items() if name not in self._reported)
        self._reported |= set(faults)
        await asyncio.gather(*(source.close() for source in self._sources if self._given_up(source)))
        return Findings(problems=tuple(problems), faults=unreported)

    async def now(self, paths: Sequence[str]) -> Findings:
        """Find the problems of these files as they are, and the sources that do not work."""
        stock = await self._check(self._working(), [path for path in paths if self.covers(path)])
        problems = [problem for found in stock.problems.values() for problem in new_problems((), found)]
        return Findings(problems=tuple(problems), faults=tuple(stock.faults.values()))

    async def close(self) -> None:
        """End every source."""
        await asyncio.gather(*(source.close() for source in self._sources))

    def _working(self) -> list[DiagnosticSource]:
        return [source for source in self._sources if not self._given_up(source)]

    def _given_up(self, source: DiagnosticSource) -> bool:
        return self._failed[source.name] >= _MOST_FAILURES

    async def _check(self, sources: Sequence[DiagnosticSource], paths: Sequence[str]) -> _Stock:
        """Ask the sources side by side."""
        asked = [(source, [path for path in paths if source.covers(path)]) for source in sources]
        asked = [(source, own) for source, own in asked if own]
        answers = await asyncio.gather(*(_ask(source, own) for source, own in asked))
        problems: dict[str, list[Diagnostic]] = {}
        faults: dict[str, str] = {}
        for (source, _), answer in zip(asked, answers, strict=True):
            match answer:
                case NotReadyError():
                    faults[source.name] = answer.text
                case ToolError():
                    faults[source.name] = answer.text
                    self._failed[source.name] += 1
                case list():
                    problems[source.name] = answer
                    self._failed[source.name] = 0
        return _Stock(problems=problems, faults=faults)


async def _ask(source: DiagnosticSource, paths: Sequence[str]) -> list[Diagnostic] | ToolError:
    try:
        async with asyncio.timeout(source.seconds):
            return await source.check(paths)
    except TimeoutError:
        return ToolError(f"{source.name} did not answer within {source.seconds:g} s")
    except ToolError as error:
        return error
