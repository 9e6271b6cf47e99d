"""One slash command without a person: what it shows goes to standard output."""

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator

from treadle.app.exits import Exit
from treadle.app.session.live import LiveSession
from treadle.app.slash import do_command
from treadle.app.slash_commands import find_slash
from treadle.headless.main import (
    HEADLESS,
    HeadlessConsole,
    HeadlessSignals,
    OutputFormat,
    TextWriter,
    finish_task,
)
from treadle.headless.records import CommandRecord
from treadle.protocol.events import Prompt
from treadle.protocol.messages import Text
from treadle.protocol.notifications import Notification


async def run_slash_command(
    live: LiveSession,
    command: tuple[str, str],
    output: OutputFormat,
    *,
    out: TextWriter = sys.stdout,
    err: TextWriter = sys.stderr,
) -> int:
    """Start the session and do a command, its name and what follows it; returns the exit code."""
    console = HeadlessConsole(live, output, out, err)
    feed = live.follow()
    async with live:
        try:
            console.begin()
            return await _run(live, command, feed, console)
        finally:
            console.end()


async def _run(
    live: LiveSession, command: tuple[str, str], feed: AsyncIterator[Notification], console: HeadlessConsole
) -> int:
    name, argument = command
    row = find_slash(name)
    if row is not None and row.takes_time:
        answer = await asyncio.to_thread(do_command, name, argument, live)
    else:
        answer = do_command(name, argument, live)
    if name == "btw" and answer.send:
        return await _aside(live, answer.send, console)
    if answer.send:
        return await finish_task(live, (Text(text=answer.send),), feed, console)
    with HeadlessSignals(live) as signals:
        try:
            for op in answer.ops:
                await live.post(op, HEADLESS)
            await _until_quiet(live, feed, console)
        except asyncio.CancelledError:
            if signals.code is None:
                raise
            return signals.code
    code = Exit.USAGE if answer.warning else Exit.DONE
    record = CommandRecord(session_id=live.id, name=name, text=answer.text, exit_code=code)
    return console.answer(record, warning=answer.warning)


async def _aside(live: LiveSession, message: str, console: HeadlessConsole) -> int:
    """Ask beside the work, and write the answer."""
    await live.post(Prompt(id=uuid.uuid4().hex, content=(Text(text=message),)), HEADLESS)
    answered = (await live.asides())[-1]
    code = Exit.FAILED if answered.error else Exit.DONE
    text = answered.text or f"No answer: {answered.error}."
    return console.answer(
        CommandRecord(session_id=live.id, name="btw", text=text, exit_code=code), warning=bool(answered.error)
    )


async def _until_quiet(live: LiveSession, feed: AsyncIterator[Notification], console: HeadlessConsole) -> None:
    """Wait until what a command began is done, such as a summary that frees space in the model's window."""
    while not live.quiet:
        notification = await anext(feed, None)
        if notification is None:
            await live.failure()
            return
        console.show(notification)
