"""Why a call failed, for a person: what the model reads of it says what the model should do, too."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.protocol.patterns import regex
from treadle.protocol.tools import CallResult

_MARK = regex(r"</?untrusted_content\b.*>$")

WHY_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "no_marker": "the edit names no lines",
        "malformed": "the edit cannot be read",
        "truncated": "the edit is cut off",
        "empty_search": "the edit names no lines",
        "not_found": "no such lines",
        "ambiguous": "its lines are there more than once",
        "overlapping": "two of its changes overlap",
        "already_applied": "already there",
        "no_change": "it would change nothing",
        "elision": "the edit leaves lines out",
        "changed_since": "the file has other lines there",
        "indentation": "the indentation differs",
        "escaped": "its text looks escaped by mistake",
        "wrong_file": "it is an edit of another file",
    }
)
"""The words of each code, as `EditReport` has it."""


def refused_edit(result: CallResult) -> str:
    """Say why a result is a refused edit; empty for any other."""
    return next((words for one in result.edits if (words := WHY_REFUSED.get(one.code, ""))), "")


def first_reason(text: str) -> str:
    """Give the first line of a reason, with the next one where it ends in a colon; marks of others' words are none."""
    lines = (line for line in text.split("\n") if line.strip() and not _MARK.match(line))
    first = next(lines, "")
    return f"{first} {next(lines, '')}".rstrip() if first.rstrip().endswith(":") else first
