"""Ops on their way to the session, in the order in which the user asked for them."""

import asyncio
from collections.abc import Callable

from treadle.door.open_session import SessionAccess
from treadle.protocol.errors import ConfigError, RefusedError
from treadle.protocol.events import Op, Prompt


class Outbox:
    """Keys cannot wait for the log, so ops queue up here."""

    def __init__(
        self,
        live: SessionAccess,
        *,
        refused: Callable[[Op, RefusedError], None],
        failed: Callable[[ConfigError], None],
    ) -> None:
        self._live = live
        self._refused = refused
        self._failed = failed
        self._waiting: asyncio.Queue[Callable[[], Op]] = asyncio.Queue()
        self._prompts = 0

    @property
    def has_prompts(self) -> bool:
        """Whether a prompt is on its way, so that work begins before anything more is asked for."""
        return self._prompts > 0

    def put(self, op: Op) -> None:
        """Ask the session for something, after what was asked before."""
        self._prompts += isinstance(op, Prompt)
        self.put_made(lambda: op)

    def put_made(self, make: Callable[[], Op]) -> None:
        """Ask for something that has to be found out first; `make` may raise `ConfigError`."""
        self._waiting.put_nowait(make)

    async def run(self) -> None:
        """Post until cancelled."""
        while True:
            make = await self._waiting.get()
            try:
                await self._post(make())
            except ConfigError as error:
                self._failed(error)

    async def _post(self, op: Op) -> None:
        try:
            await self._live.post(op, self._live.source)
        except RefusedError as refusal:
            self._refused(op, refusal)
        finally:
            self._prompts -= isinstance(op, Prompt)
