"""An interactive session as plain lines, from the first line to the exit code."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from treadle.app.exits import Exit
from treadle.app.session.live import LiveSession
from treadle.protocol.errors import TreadleError
from treadle.protocol.messages import UserContent
from treadle.protocol.notifications import Notification
from treadle.tui.items import Problem
from treadle.tui.reader.keyboard import Keyboard
from treadle.tui.reader.surface import Reader


async def run_reader(live: LiveSession, *, first_prompt: tuple[UserContent, ...] = ()) -> int:
    """Work with a person through lines until they quit; `live` is entered. Returns the exit code."""
    feed = live.follow()
    keyboards: list[Keyboard] = []
    gone = asyncio.Event()

    def write(text: str) -> None:
        encoding = sys.stdout.encoding or "ascii"
        try:
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
            sys.stdout.flush()
        except OSError:
            gone.set()

    reader = Reader(live, write=write, begun=lambda: keyboards[0].begun() if keyboards else "")
    keyboards.append(Keyboard(sys.stdin.fileno(), take=reader.entered, end=lambda: reader.leave(0)))
    if first_prompt:
        reader.requests.send(first_prompt)
    async with asyncio.TaskGroup() as group:
        work = [
            group.create_task(_listen(live, feed, reader), name="listen"),
            group.create_task(reader.outbox.run(), name="post"),
            group.create_task(reader.own.run(), name="own commands"),
            group.create_task(_hang_up(gone, reader), name="hang up"),
        ]
        with _signals(reader):
            code = await reader.code
        keyboards[0].close()
        reader.finish()
        for task in work:
            task.cancel()
    return code


async def _listen(live: LiveSession, feed: AsyncIterator[Notification], reader: Reader) -> None:
    async for told in feed:
        reader.hear(told)
    try:
        await live.failure()
    except TreadleError as error:
        reader.show(Problem(error.what, error.why, error.fix))
        reader.leave(Exit.FAILED)
    else:
        reader.leave(Exit.DONE)


async def _hang_up(gone: asyncio.Event, reader: Reader) -> None:
    await gone.wait()
    reader.leave(Exit.HANGUP)


@contextmanager
def _signals(reader: Reader) -> Iterator[None]:
    """Stop with Ctrl-C, and end in order when the program is asked to end."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, reader.interrupt)
    codes = {signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.HANGUP}
    for number, code in codes.items():
        loop.add_signal_handler(number, reader.leave, code)
    try:
        yield
    finally:
        for number in (signal.SIGINT, *codes):
            loop.remove_signal_handler(number)
