"""Problems as values: read from a linter's output, compared before and after, and told to the model."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import PurePosixPath

from treadle.workspace.text import visible

_MESSAGE = 300
_LINE = re.compile(
    r"(?!\d+:)(?P<path>[^\s:(][^:(\n]*?)(?::(?P<line>\d+)(?::(?P<column>\d+))?|\((?P<tsline>\d+),(?P<tscolumn>\d+)\))\s*:?\s+"
    r"(?P<message>\S.*)"
)
_STYLE = re.compile(r"\x1b\[[0-9;]*m|\\x1b\[[0-9;]*m")
_LEVEL = re.compile(
    r"(fatal error|error|warning|note|info|information|hint|style|convention|refactor)\b:?\s*", re.IGNORECASE
)


class Severity(IntEnum):
    """How bad a problem is; the numbers of the Language Server Protocol."""

    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem. `path` is absolute; `line` and `column` count from 1, a column of 0 is unknown."""

    path: str
    line: int
    column: int = 0
    severity: Severity = Severity.ERROR
    message: str
    source: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What stays the same when lines above come or go."""
        return (self.path, self.source, self.message)


def read_output(output: str, root: str, source: str) -> list[Problem]:
    """Read lines such as `path:line:column: message` or `path(line,column): message`; others are left out.

    Paths are taken relative to `root`. Notes belong to another problem and are left out too.
    """
    problems = []
    for line in output.splitlines():
        found = _LINE.fullmatch(_STYLE.sub("", line).rstrip())
        if found is None:
            continue
        severity, message = _read_level(found["message"])
        if severity is Severity.INFORMATION:
            continue
        problems.append(
            Problem(
                path=str(PurePosixPath(root) / found["path"].strip()),
                line=int((found["line"] or found["tsline"])[:9]),
                column=int((found["column"] or found["tscolumn"] or "0")[:9]),
                severity=severity,
                message=message,
                source=source,
            )
        )
    return problems


def _read_level(message: str) -> tuple[Severity, str]:
    found = _LEVEL.match(message)
    if found is None:
        return Severity.ERROR, message
    rest = message[found.end() :] or message
    match found.group(1).lower():
        case "error" | "fatal error":
            return Severity.ERROR, rest
        case "note" | "info" | "information" | "hint":
            return Severity.INFORMATION, rest
        case _:
            return Severity.WARNING, rest


def new_problems(before: Iterable[Problem], after: Iterable[Problem]) -> list[Problem]:
    """Give the problems that were not there before, the worst first; one that only moved is not new."""
    known = Counter(problem.identity for problem in before)
    found = []
    for problem in after:
        if known[problem.identity]:
            known[problem.identity] -= 1
        elif problem.severity <= Severity.WARNING:
            found.append(problem)
    return sorted(found, key=lambda problem: (problem.severity, problem.path, problem.line, problem.column))


def report(problems: Sequence[Problem], display: Callable[[str], str], *, most: int = 20) -> str:
    """List problems for the model, one to a line; `display` shortens a path."""
    lines = [_show(problem, display) for problem in problems[:most]]
    if len(problems) > most:
        lines.append(f"[{len(problems) - most} more]")
    return "\n".join(lines)


def _show(problem: Problem, display: Callable[[str], str]) -> str:
    message = visible(" ".join(problem.message.split()))
    message = message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]}..."
    column = f":{problem.column}" if problem.column else ""
    source = f" ({visible(problem.source)})" if problem.source else ""
    return f"{display(problem.path)}:{problem.line}{column}: {problem.severity.name.lower()}: {message}{source}"
