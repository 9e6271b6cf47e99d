"""Why an edit was refused, for a person: what the model reads of it says what the model should do."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.protocol.tools import CallResult

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
