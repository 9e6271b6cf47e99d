"""The words for how a listed session is, and why it stopped."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.app.reports.known_sessions import ListedSession, SessionState
from treadle.present.goal_words import goal_label

_ENDED: Mapping[str, str] = MappingProxyType(
    {
        "max_turn_requests": "step limit",
        "cancelled": "interrupted",
        "hook": "a hook ended it",
        "time": "time limit",
        "refusal": "refused",
    }
)
"""Plainer words for why a session stopped."""


def end_words(ended: str) -> str:
    """Say why a session stopped."""
    return _ENDED.get(ended, ended)


def state_words(state: SessionState, ended: str | None) -> str:
    """Say how a session is, and why it stopped if it did."""
    if ended is not None:
        return f"{state.value}: {end_words(ended)}"
    return "waiting for you" if state is SessionState.WAITING else state.value


def listed_words(row: ListedSession) -> str:
    """Say how a session is, and whether a program has it open."""
    words = ", ".join(filter(None, (state_words(row.state, row.ended), goal_label(row.goal))))
    if row.background:
        return f"{words} (background)"
    return f"{words} (open)" if row.open and row.state in (SessionState.DONE, SessionState.STOPPED) else words
