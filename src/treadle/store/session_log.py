"""The log of one session."""

from collections.abc import Sequence

from treadle.protocol.events import Event
from treadle.store.sqlite import Store


class SessionLog:
    """The log of one session, as the engine's port wants it."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        """Commit the events in one transaction; `durable` also survives a power cut."""
        await self._store.append(self._session_id, events, durable=durable)
