"""An interactive session in the terminal, from the first paint to the exit code."""

import asyncio
import errno
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from treadle.door.open_session import SessionAccess
from treadle.door.program import Exit
from treadle.door.settings import data_directory
from treadle.present.items import ProblemItem
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import TreadleError
from treadle.protocol.messages import UserContent
from treadle.tui.draft.prompt_history import open_history
from treadle.tui.ending import ends_on_signals
from treadle.tui.paint.look import Look
from treadle.tui.session.surface import Surface

if TYPE_CHECKING:
    from treadle.tui.paint.painter import Painter


async def run_interactive(
    live: SessionAccess,
    look: Look,
    *,
    first_prompt: tuple[UserContent, ...] = (),
    kept: bool = True,
    switch: Callable[[str], None] | None = None,
) -> int:
    """Work with a person in the terminal until they quit; `live` is entered. Returns the exit code.

    `kept` says that the session can be resumed later. `switch` takes the session that they want to be opened instead.
    """
    if look.plain:
        from treadle.tui.reader.reader_main import run_reader

        return await run_reader(live, first_prompt=first_prompt, kept=kept, switch=switch)
    surface = Surface(live, open_history(data_directory() / "history", live.workspace), look, switch)
    if first_prompt:
        surface.requests.send(first_prompt)
    try:
        async with live.follow() as feed:
            return await _run(live, feed.stamped(), surface, kept=kept)
    except* (EOFError, OSError) as group:
        if group.split(_is_terminal_gone)[1] is not None:
            raise
    return Exit.HANGUP


async def _run(live: SessionAccess, feed: AsyncIterator[Stamped], surface: Surface, *, kept: bool) -> int:
    async with asyncio.TaskGroup() as group:
        paint = group.create_task(_paint(surface), name="paint")
        work = [
            paint,
            group.create_task(_listen(live, feed, surface, paint), name="listen"),
            group.create_task(surface.outbox.run(), name="post"),
            group.create_task(_tick(surface), name="tick"),
            group.create_task(surface.own.run(), name="own commands"),
            group.create_task(surface.commands.go_on(), name="commands beside the work"),
            group.create_task(surface.status_line.run(), name="status line"),
        ]
        code = int(Exit.FAILED)
        try:
            with ends_on_signals(surface.screen.leave), _callbacks(surface):
                code = await surface.screen.run()
        finally:
            sys.stdout.write(surface.finish(kept=kept and code != Exit.FAILED))
            sys.stdout.flush()
        for task in work:
            task.cancel()
    return code


def _is_terminal_gone(error: BaseException) -> bool:
    return isinstance(error, EOFError) or (isinstance(error, OSError) and error.errno in (errno.EIO, errno.EPIPE))


async def _paint(surface: Surface) -> None:
    await surface.screen.painted.wait()
    surface.start_painting(await asyncio.to_thread(_load_painter))


async def _listen(
    live: SessionAccess, feed: AsyncIterator[Stamped], surface: Surface, paint: asyncio.Task[None]
) -> None:
    """Hear what happens from the beginning: what a key means depends on it, long before anything is painted."""
    async for stamped in feed:
        surface.hear(stamped)
    await paint
    surface.screen.leave(await _ended(live, surface))


def _load_painter() -> "type[Painter]":
    """Load the painter and Rich with it: a quarter of a second that the first paint need not wait for."""
    from treadle.tui.paint.painter import Painter

    return Painter


async def _ended(live: SessionAccess, surface: Surface) -> int:
    """Tell why the session ended by itself; gives the exit code."""
    try:
        await live.failure()
    except TreadleError as error:
        surface.show(ProblemItem(error.what, error.why, error.fix))
        return Exit.FAILED
    return Exit.DONE


async def _tick(surface: Surface) -> None:
    """Draw what moves, only while something does."""
    while True:
        await surface.ticking.wait()
        surface.screen.refresh()
        await asyncio.sleep(surface.tick_pause)


@contextmanager
def _callbacks(surface: Surface) -> Iterator[None]:
    """End with the error when a key or a timer fails: a surface that goes on half dead would hide it."""
    loop = asyncio.get_running_loop()

    def failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "handle" in context and error is not None:
            surface.screen.fail(error)
        else:
            loop.default_exception_handler(context)

    before = loop.get_exception_handler()
    loop.set_exception_handler(failed)
    try:
        yield
    finally:
        loop.set_exception_handler(before)
