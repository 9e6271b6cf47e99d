"""Problems as values: read from a linter's output, compared before and after, and told to the model."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import PurePosixPath

from treadle.workspace.files.text import visible

_MESSAGE = 300
_WIDEST = 4_000
PATTERN = re.compile(
    r"(?!\d+:)(?P<path>[^\s:](?:(?!\(\d+,\d+\))[^:\n])*?)"
    r"(?::(?P<line>\d+)(?::(?P<column>\d+))?|\((?P<line2>\d+),(?P<column2>\d+)\))\s*:?\s+"
    r"(?P<message>\S.*)"
)
"""Lines such as `path:line:column: message` and `path(line,column): message`."""

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
class Diagnostic:
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


def read_output(output: str, root: str, source: str, pattern: re.Pattern[str] = PATTERN) -> list[Diagnostic]:
    """Read the lines that `pattern` matches whole; others are left out.

    Its groups are `path` (taken relative to `root`), `line`, `message`, and perhaps `column` and `severity`. Without
    the last the message may begin with it. Notes belong to another problem and are left out too.
    """
    problems = []
    for line in output.splitlines():
        found = pattern.fullmatch(_STYLE.sub("", line[:_WIDEST]).rstrip())
        if found is None:
            continue
        groups = {name: text for name, text in found.groupdict().items() if text}
        level = groups.get("severity", "")
        severity, message = _read_level(f"{level} {groups['message']}" if level else groups["message"])
        if severity is Severity.INFORMATION:
            continue
        problems.append(
            Diagnostic(
                path=str(PurePosixPath(root) / groups["path"].strip()),
                line=_number(groups.get("line") or groups.get("line2")),
                column=_number(groups.get("column") or groups.get("column2")),
                severity=severity,
                message=message,
                source=source,
            )
        )
    return problems


def _number(text: str | None) -> int:
    return int(text[:9]) if text and text.isdecimal() else 0


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


def new_problems(before: Iterable[Diagnostic], after: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Give the problems that were not there before, the worst first; one that only moved is not new."""
    known = Counter(problem.identity for problem in before)
    found = []
    for problem in after:
        if known[problem.identity]:
            known[problem.identity] -= 1
        elif problem.severity <= Severity.WARNING:
            found.append(problem)
    return sorted(found, key=lambda problem: (problem.severity, problem.path, problem.line, problem.column))


def report(problems: Sequence[Diagnostic], display: Callable[[str], str], *, most: int = 20) -> str:
    """List problems for the model, one to a line; `display` shortens a path."""
    lines = [_show(problem, display) for problem in problems[:most]]
    if len(problems) > most:
        lines.append(f"[{len(problems) - most} more]")
    return "\n".join(lines)


def _show(problem: Diagnostic, display: Callable[[str], str]) -> str:
    message = visible(" ".join(problem.message.split()))
    message = message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]}..."
    column = f":{problem.column}" if problem.column else ""
    source = f" ({visible(problem.source)})" if problem.source else ""
    return f"{display(problem.path)}:{problem.line}{column}: {problem.severity.name.lower()}: {message}{source}"
