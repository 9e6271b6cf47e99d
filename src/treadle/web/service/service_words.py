"""What the front and the process of a user say to each other, a line of JSON each."""

from collections.abc import Mapping
from typing import Any

import msgspec

from treadle.protocol.base import Tagged


class Began(Tagged, frozen=True, kw_only=True, tag="began"):
    """The front says first how the page is to be served: for whom, where, with which settings, under which names.

    `traces` is where spans are sent to; empty is nowhere.
    """

    user: str
    folder: str
    flags: Mapping[str, Any]
    hosts: tuple[str, ...]
    scheme: str
    trust: bool = False
    traces: str = ""


class NewBudget(Tagged, frozen=True, kw_only=True, tag="new_budget"):
    """The front says which limits of cost apply to the sessions that are opened from now on."""

    budget: Mapping[str, Any]


class TurnPlace(Tagged, frozen=True, kw_only=True, tag="turn_place"):
    """The front says which place a turn has in the queue; with 0 it may work."""

    turn: str
    place: int


class PageReady(Tagged, frozen=True, kw_only=True, tag="page_ready"):
    """The page is there: the token that lets browsers in, and the path below which it is."""

    token: str
    base: str


class TurnWanted(Tagged, frozen=True, kw_only=True, tag="turn_wanted"):
    """A turn wants to work."""

    turn: str


class TurnGiven(Tagged, frozen=True, kw_only=True, tag="turn_given"):
    """A turn does not work any more, or does not wait any more."""

    turn: str


class PageUse(Tagged, frozen=True, kw_only=True, tag="page_use"):
    """How many sessions are open, and what they have cost since the process began (US dollars)."""

    sessions: int
    cost: float


class NextDue(Tagged, frozen=True, kw_only=True, tag="next_due"):
    """When a schedule of the user is due next (seconds since 1970); None is never."""

    due: float | None


class RunWanted(Tagged, frozen=True, kw_only=True, tag="run_wanted"):
    """A scheduled run wants to begin its session."""

    run: str


class RunAnswered(Tagged, frozen=True, kw_only=True, tag="run_answered"):
    """The front says whether a scheduled run may begin; `problem` says why not."""

    run: str
    problem: str = ""


FromFront = Began | NewBudget | TurnPlace | RunAnswered
FromPage = PageReady | TurnWanted | TurnGiven | PageUse | NextDue | RunWanted

_ENCODER = msgspec.json.Encoder()


def wire_line(said: FromFront | FromPage) -> bytes:
    """Write a line."""
    return _ENCODER.encode(said) + b"\n"
