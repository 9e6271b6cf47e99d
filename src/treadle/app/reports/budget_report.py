"""What may be spent, and how much of it is left."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from treadle.app.compose import open_store
from treadle.app.config.layers import load_settings
from treadle.app.session.left_calls import settle_left_calls
from treadle.protocol.base import Record
from treadle.protocol.models import Spent
from treadle.store.spent import day_of, spent_on

_NO_FLAGS: Mapping[str, Any] = MappingProxyType({})


class BudgetLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One budget of a turn, a session or a day (UTC). `money`: in US dollars, else tokens of every kind.

    `used` is known of the day alone: it is what all sessions spent together. `estimated`: a part of it is our own
    estimate.
    """

    key: str
    span: str
    money: bool
    limit: float
    used: float | None
    estimated: bool = False

    @property
    def left(self) -> float | None:
        """What is left of it."""
        return None if self.used is None else max(0.0, self.limit - self.used)


class BudgetReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The budgets of the settings, and what was spent today (`day`, UTC): US dollars, and tokens of every kind."""

    lines: tuple[BudgetLine, ...]
    day: str
    cost: float
    tokens: int
    estimated: bool
    ask_at: float


def spent_today(now: int) -> Spent:
    """Give what was spent on the day (UTC) of a time (ms since 1970)."""
    store = open_store()
    try:
        settle_left_calls(store)
        return spent_on(store, day_of(now))
    finally:
        store.close()


def budget_report(now: int, flags: Mapping[str, Any] = _NO_FLAGS) -> BudgetReport:
    """Say what the user's settings allow, and what is used of it at a time (ms since 1970). Raises `ConfigError`.

    What the command line says of budgets is in `flags`, which may say more.
    """
    said = load_settings({name: flags[name] for name in ("budget",) if name in flags}).budget
    day, spent = day_of(now), spent_today(now)

    def lines() -> Iterator[BudgetLine]:
        for span in ("turn", "session", "day"):
            for unit, used in (("cost", spent.cost), ("tokens", float(spent.tokens))):
                limit = getattr(said, f"{span}_{unit}")
                if limit is not None:
                    known = used if span == "day" else None
                    yield BudgetLine(
                        key=f"budget.{span}_{unit}",
                        span=span,
                        money=unit == "cost",
                        limit=limit,
                        used=known,
                        estimated=known is not None and spent.estimated,
                    )

    return BudgetReport(
        lines=tuple(lines()),
        day=day,
        cost=spent.cost,
        tokens=spent.tokens,
        estimated=spent.estimated,
        ask_at=said.ask_at,
    )
