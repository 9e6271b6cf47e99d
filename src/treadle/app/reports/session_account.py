"""What became of one session: how its last turn ended, what it cost and how long it worked, from its log alone."""

from itertools import pairwise

from msgspec import Struct

from treadle.app.compose import open_store
from treadle.app.reports.usage_sums import UsageReader, sum_amounts
from treadle.engine.core.past_history import last_state
from treadle.protocol.events import (
    Event,
    Prompt,
    ReplyFailed,
    Resumed,
    SessionStarted,
    SetFallback,
    SetLimits,
    SetMode,
    SetModel,
)
from treadle.protocol.models import Spent
from treadle.protocol.notifications import TurnOutcome
from treadle.protocol.sealed import SideAnswered, TurnSettled
from treadle.store.spent import spent_in_run


class SessionAccount(Struct, frozen=True, kw_only=True):
    """What a log says. `outcome` is that of the last of the `turns` that ended; `active`: one is begun and not ended.

    `cost` is US dollars, None where a part is not known; `seconds` is the time in which the session was worked in.
    `prompted` says whether it ever had a task.
    """

    model: str
    cost: float | None
    tokens: int
    steps: int
    seconds: float
    turns: int
    outcome: TurnOutcome | None
    active: bool
    prompted: bool


def session_account(session_id: str) -> SessionAccount | None:
    """Read the log of a session; None where there is none. Raises `StoreError`."""
    store = open_store()
    try:
        if not store.query("SELECT 1 FROM sessions WHERE id = ?", (session_id,)):
            return None
        return account_of(list(store.read(session_id)))
    finally:
        store.close()


def account_of(events: list[Event]) -> SessionAccount:
    """Sum a log up."""
    reader = UsageReader()
    model = ""
    ended: list[TurnOutcome] = []
    for event in events:
        reader.take(event)
        if isinstance(event.data, SessionStarted):
            model = event.data.choice.model
        if isinstance(event.data, TurnSettled):
            ended.append(event.data.outcome)
    usage = reader.logged()
    turn = last_state(events).turn if events else None
    return SessionAccount(
        model=model,
        cost=None if usage.spending.unpriced else usage.spending.total,
        tokens=sum_amounts(one.amounts for one in usage.slots).usage.context_tokens,
        steps=sum(one.steps for one in ended) + (turn.steps if turn is not None else 0),
        seconds=_worked(events) / 1000,
        turns=len(ended),
        outcome=ended[-1] if ended else None,
        active=turn is not None,
        prompted=any(isinstance(event.data, Prompt) for event in events),
    )


_BEFORE_RESUMED = (SetLimits, SetMode, SetModel, SetFallback, ReplyFailed, SideAnswered)
"""What is logged before that a session is taken up: what a lost call has used, and new settings."""


def _worked(events: list[Event]) -> int:
    """Sum up the time between events (milliseconds), without that in which no program had the session open."""
    worked, taken_up = 0, False
    for before, event in reversed(list(pairwise(events))):
        taken_up = isinstance(event.data, Resumed) or (taken_up and isinstance(event.data, _BEFORE_RESUMED))
        if not taken_up or isinstance(before.data, _BEFORE_RESUMED):
            worked += max(0, event.at - before.at)
    return worked


def spent_by_run(run: str) -> Spent:
    """Give what all sessions of a run have spent and reserved by now. Raises `StoreError`."""
    store = open_store()
    try:
        return spent_in_run(store, run)
    finally:
        store.close()
