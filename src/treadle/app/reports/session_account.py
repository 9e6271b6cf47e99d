"""What became of one session: how its last turn ended, how long it worked and what all of it cost, from the logs."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from treadle.app.compose import open_store
from treadle.app.reports.usage_sums import LoggedUsage, UsageReader, sum_amounts
from treadle.engine.core.goal import is_wanted
from treadle.engine.core.learning import awaits_subagents
from treadle.engine.core.past_history import last_state
from treadle.engine.core.state import State
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
    """What logs say. `outcomes` are those of the turns that ended; `active`: one is begun and not ended.

    `goes_on`: none is, and another one comes by itself: a message waits, a goal is to be checked, a subagent works.

    `cost` (US dollars, None where a part is not known) and `tokens` are those of its subagents, too; the rest is its
    own. `seconds` is the time in which it was worked in, `prompted` whether it ever had a task.
    """

    model: str
    cost: float | None
    tokens: int
    steps: int
    seconds: float
    outcomes: tuple[TurnOutcome, ...]
    active: bool
    goes_on: bool
    prompted: bool

    @property
    def turns(self) -> int:
        """How many have ended."""
        return len(self.outcomes)

    @property
    def outcome(self) -> TurnOutcome | None:
        """How the last one ended; None where none has."""
        return self.outcomes[-1] if self.outcomes else None


def session_account(session_id: str) -> SessionAccount | None:
    """Read the logs of a session and its subagents; None where there is none. Raises `StoreError`."""
    store = open_store()
    try:
        if not store.query("SELECT 1 FROM sessions WHERE id = ?", (session_id,)):
            return None
        below = store.query("SELECT id FROM sessions WHERE root = ?", (session_id,))
        return account_of(list(store.read(session_id)), [_usage_of(store.read(one)) for (one,) in below])
    finally:
        store.close()


def _usage_of(events: Iterable[Event]) -> LoggedUsage:
    reader = UsageReader()
    for event in events:
        reader.take(event)
    return reader.logged()


def account_of(events: list[Event], below: Sequence[LoggedUsage] = ()) -> SessionAccount:
    """Sum a log up, with what the subagents below it used."""
    model = ""
    ended: list[TurnOutcome] = []
    for event in events:
        if isinstance(event.data, SessionStarted):
            model = event.data.choice.model
        if isinstance(event.data, TurnSettled):
            ended.append(event.data.outcome)
    used = sum_amounts(slot.amounts for usage in (_usage_of(events), *below) for slot in usage.slots)
    state = last_state(events) if events else State()
    turn = state.turn
    return SessionAccount(
        model=model,
        cost=None if used.unpriced else used.cost,
        tokens=used.usage.context_tokens,
        steps=sum(one.steps for one in ended) + (turn.steps if turn is not None else 0),
        seconds=_worked(events) / 1000,
        outcomes=tuple(ended),
        active=turn is not None,
        goes_on=turn is None and (bool(state.queue) or awaits_subagents(state) or is_wanted(state)),
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
