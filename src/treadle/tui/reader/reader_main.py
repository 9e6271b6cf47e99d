"""An interactive session as plain lines, from the first line to the exit code."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable

from treadle.door.open_session import SessionAccess
from treadle.door.program import Exit
from treadle.present.items import ProblemItem
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import TreadleError
from treadle.protocol.messages import UserContent
from treadle.tui.ending import ends_on_signals
from treadle.tui.reader.keyboard import Keyboard
from treadle.tui.reader.reader_surface import Reader


async def run_reader(
    live: SessionAccess,
    *,
    first_prompt: tuple[UserContent, ...] = (),
    kept: bool = True,
    switch: Callable[[str], None] | None = None,
) -> int:
    """Work with a person through lines until they quit; `live` is entered. Returns the exit code.

    `kept` says that the session can be resumed later. `switch` takes the session that they want to be opened instead.
    """
    keyboards: list[Keyboard] = []
    gone = asyncio.Event()

    def write(text: str) -> None:
        encoding = sys.stdout.encoding or "ascii"
        try:
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
            sys.stdout.flush()
        except OSError:
            gone.set()

    reader = Reader(live, write=write, begun=lambda: keyboards[0].begun() if keyboards else "", switch=switch)
    keyboards.append(Keyboard(sys.stdin.fileno(), take=reader.entered, end=lambda: reader.leave(0)))
    if first_prompt:
        reader.requests.send(first_prompt)
    async with live.follow() as feed, asyncio.TaskGroup() as group:
        work = [
            group.create_task(_listen(live, feed.stamped(), reader), name="listen"),
            group.create_task(reader.outbox.run(), name="post"),
            group.create_task(reader.own.run(), name="own commands"),
            group.create_task(reader.commands.go_on(), name="commands beside the work"),
            group.create_task(_hang_up(gone, reader), name="hang up"),
        ]
        with ends_on_signals(reader.leave, reader.interrupt):
            code = await reader.code
        keyboards[0].close()
        reader.finish(kept=kept and code != Exit.FAILED)
        for task in work:
            task.cancel()
    return code


async def _listen(live: SessionAccess, feed: AsyncIterator[Stamped], reader: Reader) -> None:
    async for stamped in feed:
        reader.hear(stamped)
    try:
        await live.failure()
    except TreadleError as error:
        reader.show(ProblemItem(error.what, error.why, error.fix))
        reader.leave(Exit.FAILED)
    else:
        reader.leave(Exit.DONE)


async def _hang_up(gone: asyncio.Event, reader: Reader) -> None:
    await gone.wait()
    reader.leave(Exit.HANGUP)
