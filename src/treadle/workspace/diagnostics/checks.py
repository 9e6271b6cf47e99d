"""Checking files before and after an edit, within a time limit, by whatever sources are set up."""

import asyncio
import fnmatch
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from treadle.protocol.errors import ToolError
from treadle.workspace.diagnostics.problems import Problem, new_problems

SECONDS = 5.0
"""How long an edit may wait for all sources, before and after each."""


_MOST_FAILURES = 4
"""How often in a row a source may fail before it is no longer asked: each time may have cost the whole limit."""


class Source(Protocol):
    """A language server or a linter."""

    @property
    def name(self) -> str:
        """Its name, for the model and the user."""
        ...

    def covers(self, path: str) -> bool:
        """Whether it knows files of this kind."""
        ...

    async def check(self, paths: Sequence[str]) -> list[Problem]:
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
    """What an edit brought: new problems, and sources that did not work, each told once in a session."""

    problems: tuple[Problem, ...] = ()
    faults: tuple[str, ...] = ()


class Diagnostics:
    """Compares the problems before and after an edit; what does not work or is too slow costs no edit."""

    def __init__(self, sources: Sequence[Source], *, seconds: float = SECONDS) -> None:
        self._sources = tuple(sources)
        self._seconds = seconds
        self._before: dict[str, list[Problem]] = {}
        self._told: set[str] = set()
        self._failed: Counter[str] = Counter()

    def covers(self, path: str) -> bool:
        """Whether any source knows files of this kind."""
        return any(source.covers(path) for source in self._sources)

    async def before(self, paths: Sequence[str]) -> None:
        """Take stock before an edit of these files (absolute paths)."""
        self._before, _ = await self._check(paths)

    async def after(self, paths: Sequence[str]) -> Findings:
        """Find what is new since `before`; a source that could not take stock then says nothing now."""
        found, faults = await self._check(paths)
        problems = [
            problem
            for name, now in found.items()
            if name in self._before
            for problem in new_problems(self._before[name], now)
        ]
        untold = tuple(fault for name, fault in faults.items() if name not in self._told)
        self._told |= set(faults)
        self._before = {}
        return Findings(problems=tuple(problems), faults=untold)

    async def close(self) -> None:
        """End every source."""
        await asyncio.gather(*(source.close() for source in self._sources))

    async def _check(self, paths: Sequence[str]) -> tuple[dict[str, list[Problem]], dict[str, str]]:
        """Ask the sources side by side: the problems by source, and the faults."""
        working = [source for source in self._sources if self._failed[source.name] < _MOST_FAILURES]
        asked = [(source, [path for path in paths if source.covers(path)]) for source in working]
        asked = [(source, own) for source, own in asked if own]
        answers = await asyncio.gather(*(self._ask(source, own) for source, own in asked))
        found: dict[str, list[Problem]] = {}
        faults: dict[str, str] = {}
        for (source, _), answer in zip(asked, answers, strict=True):
            match answer:
                case str():
                    faults[source.name] = answer
                    self._failed[source.name] += 1
                case list():
                    found[source.name] = answer
                    self._failed[source.name] = 0
        return found, faults

    async def _ask(self, source: Source, paths: Sequence[str]) -> list[Problem] | str:
        try:
            async with asyncio.timeout(self._seconds):
                return await source.check(paths)
        except TimeoutError:
            return f"{source.name} did not answer within {self._seconds:g} s"
        except ToolError as error:
            return error.text
