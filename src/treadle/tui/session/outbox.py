"""Ops on their way to the session, in the order in which the user asked for them."""

import asyncio
from collections.abc import Callable, Sequence

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
        failed: Callable[[ConfigError, Op | None], None],
    ) -> None:
        self._live = live
        self._refused = refused
        self._failed = failed
        self._waiting: asyncio.Queue[tuple[Callable[[], Op], Sequence[Op]]] = asyncio.Queue()
        self._prompts = 0

    @property
    def has_prompts(self) -> bool:
        """Whether a prompt is on its way, so that work begins before anything more is asked for."""
        return self._prompts > 0

    def put(self, op: Op, first: Sequence[Op] = ()) -> None:
        """Ask the session for something, after what was asked before; not where one of `first` cannot be done."""
        self._prompts += isinstance(op, Prompt)
        self._waiting.put_nowait((lambda: op, first))

    def put_made(self, make: Callable[[], Op]) -> None:
        """Ask for something that has to be found out first; `make` may raise `ConfigError`."""
        self._waiting.put_nowait((make, ()))

    async def run(self) -> None:
        """Post until cancelled."""
        while True:
            make, first = await self._waiting.get()
            try:
                op = make()
            except ConfigError as error:
                self._failed(error, None)
            else:
                await self._post(op, first)

    async def _post(self, op: Op, first: Sequence[Op]) -> None:
        try:
            for one in (*first, op):
                await self._live.post(one, self._live.source)
        except RefusedError as refusal:
            self._refused(op, refusal)
        except ConfigError as error:
            self._failed(error, op)
        finally:
            self._prompts -= isinstance(op, Prompt)
