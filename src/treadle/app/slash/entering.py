"""What is entered where no list of commands stands beside it: is it a command, and what does it come to."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.app.session.own_commands.command_answers import CommandAnswer, wrong
from treadle.app.session.own_commands.slash_commands import SlashCommand, find_slash
from treadle.app.session.own_commands.slash_lines import nearest_slash, slash_word
from treadle.app.slash import do_command, named_texts
from treadle.present.restored_words import restored_words
from treadle.protocol.checkpoints import Restore
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Op, Prompt
from treadle.protocol.messages import Text
from treadle.protocol.notifications import FilesRestored, Notice, Notification

if TYPE_CHECKING:
    from treadle.app.security.trusting import SessionTrust
    from treadle.app.session.live import LiveSession
    from treadle.app.session.shared.access import SessionAccess


DONE = "Done."
"""What is shown of a command that has nothing to say."""


async def entered_command(text: str, trust: "SessionTrust") -> "tuple[SlashCommand, str] | str | None":
    """Read a text: a command of the table with its argument, what is wrong with it, or None: the model reads it."""
    name = slash_word(text)
    if not name:
        return None
    if (row := find_slash(name)) is not None:
        return row, text.strip()[1 + len(name) :].strip()
    named = {one.name: one for one in await asyncio.to_thread(named_texts, trust)}
    if name not in named:
        return f"There is no command /{name}. {nearest_slash(name, named)}".strip()
    unused = named[name].unused
    return f"/{name} is not used: {unused}." if unused else None


def not_here(row: SlashCommand) -> str:
    """Say that a command does not work here, and what does."""
    return f"/{row.name} does not work here. {row.instead}".strip()


async def run_entered(
    row: SlashCommand,
    argument: str,
    session: "SessionAccess",
    post: Callable[[Op], Awaitable[None]],
    *,
    done: str = DONE,
) -> "CommandAnswer":
    """Do a command of the table, and post what it asks for; what restores files comes back when they are restored.

    `done` is shown of one that has nothing to say. Raises `TreadleError`.
    """
    if row.takes_time:
        answer = await asyncio.to_thread(do_command, row.name, argument, session)
    else:
        answer = do_command(row.name, argument, session)
    if answer.later is not None:
        answer = await answer.later()
    try:
        for op in answer.ops:
            if isinstance(op, Restore) and op.files:
                answer = await _restored(op, answer, session, post)
            else:
                await post(op)
    except RefusedError as refused:
        return wrong(f"/{row.name} is not possible now: {refused.why}.")
    shown = answer.text or ("" if answer.send else done)
    return replace(answer, text=shown)


def with_outcome(answer: "CommandAnswer", notifications: Iterable[Notification]) -> "CommandAnswer":
    """Say of a command that has nothing to say what the session warned of meanwhile, or that it is done."""
    warned = (one.text for one in notifications if isinstance(one, Notice) and not one.quiet)
    return replace(answer, text=answer.text or "\n".join(warned) or DONE)


async def _restored(
    op: Restore, answer: "CommandAnswer", session: "SessionAccess", post: Callable[[Op], Awaitable[None]]
) -> "CommandAnswer":
    """Restore, and say what was restored. Raises `RefusedError`."""
    async with session.follow() as feed:
        await post(op)
        async for one in feed:
            if isinstance(one, FilesRestored):
                left = bool(one.restored.error or one.restored.conflicts or answer.text)
                words = restored_words(one.restored, conversation=one.conversation)
                return replace(answer, text="\n".join(filter(None, (words, answer.text))), warning=left)
    return replace(answer, text="The session was closed. What was restored is not known.", warning=True)


async def answered_aside(text: str, session: "LiveSession", post: Callable[[Op], Awaitable[None]]) -> "CommandAnswer":
    """Ask beside the work, and wait for the answer; a warning says why there is none. Raises `TreadleError`."""
    await post(Prompt(id=uuid.uuid4().hex, content=(Text(text=text),)))
    answered = (await session.asides())[-1]
    return CommandAnswer(text=answered.text or f"No answer: {answered.error}.", warning=bool(answered.error))
