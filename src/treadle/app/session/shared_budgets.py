"""Budgets that sessions share, in the file of the log; those of a run on many computers elsewhere, too."""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from treadle.engine.ports import SharedSpent
from treadle.protocol.models import Spent
from treadle.store.spent import Purpose, spent_by_session
from treadle.store.sqlite import Store

if TYPE_CHECKING:
    from treadle.app.session.parts import Brought


class RunShare(Protocol):
    """What the sessions of a run have in common with those on other computers."""

    async def reserve(self, session_id: str, spent: float, worst: float, *, aside: bool) -> Spent:
        """Reserve `worst` for a session's next call, of which `spent` is all that it has spent here (US dollars).

        Gives what all sessions of the run have spent and reserved besides. Comes back only where this process may go
        on with the session.
        """
        ...

    async def before_step(self, session_id: str) -> None:
        """Take note that a session begins a step: what was before it is done, and in the log."""
        ...


class LoggedBudgets(Struct, frozen=True):
    """The `SharedBudgets` port of a session."""

    store: Store
    session_id: str
    brought: "Brought"

    async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
        """Reserve in the log's file, which all sessions of the user share, and where a run has a share elsewhere."""
        purpose, at = Purpose.ASIDE if aside else Purpose.STEP, self.brought.clock()
        others = await self.store.reserve(self.session_id, purpose, at, worst, run=self.brought.run)
        of_run, share = others.run, self.brought.share
        if share is not None:
            spent = spent_by_session(self.store, self.session_id)
            of_run = await share.reserve(self.session_id, spent, worst.cost, aside=aside)
        return SharedSpent(day=others.day, tree=others.tree, run=of_run)
