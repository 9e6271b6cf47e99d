"""Turns of this process wait for the front of the service, which lets as many work as it has room for."""

import asyncio
from collections.abc import Callable

from treadle.web.service.service_words import FromPage, TurnGiven, TurnWanted
from treadle.web.signals import Signal


class _Place:
    """The place of a session: what of it works or waits, itself and its subagents."""

    def __init__(self) -> None:
        self.let_in = asyncio.Event()
        self.number = 0
        self.has: set[str] = set()


class TurnGate:
    """The `TurnRoom` of a page. `says` reaches the front; `moved` tells when a place is another one."""

    def __init__(self, says: Callable[[FromPage], None]) -> None:
        self.moved = Signal()
        self._says = says
        self._places: dict[str, _Place] = {}

    def place(self, session_id: str) -> int:
        """Give the place that a session has in the queue; 0 where it does not wait."""
        place = self._places.get(session_id)
        return 0 if place is None else place.number

    async def before_step(self, root: str, session_id: str) -> None:
        """Wait until the session may work; where the root or a subagent of it does, it may."""
        place = self._places.get(root)
        if place is None:
            place = self._places[root] = _Place()
            self._says(TurnWanted(turn=root))
        place.has.add(session_id)
        try:
            await place.let_in.wait()
        except asyncio.CancelledError:
            self.rests(root, session_id)
            raise

    def take(self, root: str, number: int) -> None:
        """Take what the front says of a session."""
        place = self._places.get(root)
        if place is None:
            return  # it ended meanwhile
        place.number = number
        if not number:
            place.let_in.set()
        self.moved.set()

    def rests(self, root: str, session_id: str) -> None:
        """Let another one have the place, unless a subagent or the session itself still works in it."""
        place = self._places.get(root)
        if place is None:
            return
        place.has.discard(session_id)
        if not place.has:
            del self._places[root]
            self._says(TurnGiven(turn=root))
            self.moved.set()
