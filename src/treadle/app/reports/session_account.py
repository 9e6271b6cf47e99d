"""What became of one session: how its last turn ended, what it cost and how long it worked, from its log alone."""

from msgspec import Struct

from treadle.app.compose import open_store
from treadle.app.reports.usage_sums import UsageReader, sum_amounts
from treadle.engine.core.past_history import last_state
from treadle.protocol.events import Event, Prompt, Resumed, SessionStarted
from treadle.protocol.models import Spent
from treadle.protocol.notifications import TurnOutcome
from treadle.protocol.sealed import TurnSettled
from treadle.store.spent import spent_in_run


class SessionAccount(Struct, frozen=True, kw_only=True):
    """What a log says. `outcome` is that of the last turn that ended; `active`: one is begun and not ended.

    `cost` is US dollars, None where a part is not known; `seconds` is the time in which the session was worked in.
    `prompted` says whether it ever had a task.
    """

    model: str
    cost: float | None
    tokens: int
    steps: int
    seconds: float
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
    model, worked, before = "", 0, events[0].at if events else 0
    ended: list[TurnOutcome] = []
    for event in events:
        reader.take(event)
        if isinstance(event.data, SessionStarted):
            model = event.data.choice.model
        if isinstance(event.data, TurnSettled):
            ended.append(event.data.outcome)
        if not isinstance(event.data, Resumed):  # until then nobody worked in it
            worked += max(0, event.at - before)
        before = event.at
    usage = reader.logged()
    turn = last_state(events).turn if events else None
    return SessionAccount(
        model=model,
        cost=None if usage.spending.unpriced else usage.spending.total,
        tokens=sum_amounts(one.amounts for one in usage.slots).usage.context_tokens,
        steps=sum(one.steps for one in ended) + (turn.steps if turn is not None else 0),
        seconds=worked / 1000,
        outcome=ended[-1] if ended else None,
        active=turn is not None,
        prompted=any(isinstance(event.data, Prompt) for event in events),
    )


def spent_by_run(run: str) -> Spent:
    """Give what all sessions of a run have spent and reserved by now. Raises `StoreError`."""
    store = open_store()
    try:
        return spent_in_run(store, run)
    finally:
        store.close()
