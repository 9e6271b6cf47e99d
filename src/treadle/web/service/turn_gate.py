"""Turns of this process wait for the front of the service, which lets as many work as it has room for."""

import asyncio
from collections.abc import Callable

from treadle.protocol.models import Spent
from treadle.web.service.service_words import FromPage, TurnGiven, TurnWanted
from treadle.web.signals import Signal


class TurnGate:
    """The `RunShare` of all sessions of a page. `says` reaches the front; `moved` tells when a place is another one."""

    def __init__(self, says: Callable[[FromPage], None]) -> None:
        self.moved = Signal()
        self._says = says
        self._places: dict[str, int] = {}
        self._let_in: dict[str, asyncio.Event] = {}

    def place(self, session_id: str) -> int:
        """Give the place that the turn of a session has in the queue; 0 where it does not wait."""
        return self._places.get(session_id, 0)

    async def reserve(self, session_id: str, spent: float, worst: float, *, aside: bool) -> Spent:  # noqa: ARG002
        """Reserve nothing: each user has money of their own."""
        return Spent()

    async def before_step(self, session_id: str) -> None:
        """Wait until the turn may work; one that works does."""
        let_in = self._let_in.get(session_id)
        if let_in is None:
            let_in = self._let_in[session_id] = asyncio.Event()
            self._says(TurnWanted(turn=session_id))
        try:
            await let_in.wait()
        except asyncio.CancelledError:
            self.gives(session_id)
            raise

    def take(self, session_id: str, place: int) -> None:
        """Take what the front says of a turn."""
        let_in = self._let_in.get(session_id)
        if let_in is None:
            return  # it ended meanwhile
        if place:
            self._places[session_id] = place
        else:
            self._places.pop(session_id, None)
            let_in.set()
        self.moved.set()

    def gives(self, session_id: str) -> None:
        """Let another turn work in the place of this one, which ended or waits for a person."""
        if self._let_in.pop(session_id, None) is not None:
            self._places.pop(session_id, None)
            self._says(TurnGiven(turn=session_id))
            self.moved.set()
