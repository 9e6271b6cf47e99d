"""Commands of the person's own: they run beside the session, and what they print goes along with the next message."""

import asyncio
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from treadle.door.open_session import Ended, OwnShell
from treadle.present.items import MOST_PRINTED, Item, OwnCommandItem, Placed, ProblemItem, with_output
from treadle.protocol.errors import ToolError


class PageCommands:
    """Runs what is entered with `!`; `show` puts an item on the page, or changes it there."""

    def __init__(self, shell: Callable[[], OwnShell], show: Callable[[Item, Placed | None], Placed]) -> None:
        self._shell = shell
        self._show = show
        self._running: dict[int, tuple[asyncio.Event, asyncio.Task[None]]] = {}
        self._done: list[Ended] = []
        self._count = 0

    def start(self, line: str) -> None:
        """Run a command."""
        self._count += 1
        stop = asyncio.Event()
        item = OwnCommandItem(self._count, line, since=time.time())
        task = asyncio.create_task(self._run(item, self._show(item, None), stop), name="own command")
        self._running[self._count] = stop, task

    def stop(self, number: int) -> bool:
        """Stop a command; gives whether it ran."""
        stop, _ = self._running.get(number, (None, None))
        if stop is not None:
            stop.set()
        return stop is not None

    @property
    def busy(self) -> bool:
        """Whether one runs, or what one printed is to go with the next message."""
        return bool(self._running or self._done)

    def take(self) -> tuple[Ended, ...]:
        """Give what ended since the last message, to go with the next one."""
        done, self._done = self._done, []
        return tuple(done)

    def take_back(self, ended: Sequence[Ended]) -> None:
        """Let these go with the next message after all."""
        self._done[:0] = ended

    async def close(self) -> None:
        """End all that run."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, item: OwnCommandItem, place: Placed, stop: asyncio.Event) -> None:
        def prints(text: str) -> None:
            nonlocal item
            item = with_output(item, text)
            self._show(item, place)

        try:
            ended = await self._shell().run(item.line, prints, stop)
        except ToolError as error:
            self._show(ProblemItem(error.text), place)
        else:
            self._done.append(ended)
            shown = replace(item, since=None, said=ended.said, good=ended.status == 0, seconds=ended.seconds)
            self._show(replace(shown, output=ended.output[-MOST_PRINTED:] or item.output), place)
        finally:
            del self._running[item.number]
