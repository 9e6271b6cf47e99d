"""What stands below the sessions of the column: how far the batch is that works now, and what was spent today."""

import time
from collections.abc import Mapping

from treadle.door.reports import batch_at_work, spent_today
from treadle.protocol.errors import TreadleError
from treadle.protocol.models import money
from treadle.web.page_session import PageSession

_DAY = 86_400_000


def batch_reached() -> str:
    """Say how far the batch is that works now; empty without one."""
    counts = batch_at_work()
    return "" if counts is None else "{:,} of {:,}".format(*counts)


def today_words() -> str:
    """Say what was spent on this day, in UTC; empty where nothing was, or that is not known."""
    try:
        spent = spent_today(_now())
    except (TreadleError, OSError):
        return ""
    if not spent.tokens and not spent.cost:
        return ""
    return f"{money(spent.cost, estimated=spent.estimated)} today"


class SpendingSeen:
    """Whether anything was spent since the last look, by sessions that are open or a batch, or another day began."""

    def __init__(self) -> None:
        self._before: object = None
        self._again = False

    def is_new(self, opened: Mapping[str, PageSession], reached: str | None) -> bool:
        """Look again; once more after something new, whose sum may be written later than it is told."""
        spending = [(id_, page.content.view.spending) for id_, page in opened.items()]
        spent = _now() // _DAY, reached, spending
        was, self._again, self._before = self._again, spent != self._before, spent
        return was or self._again


def _now() -> int:
    return int(time.time() * 1_000)
