"""Slash commands that a host sends as messages, done instead of sent."""

from functools import partial
from typing import TYPE_CHECKING

from treadle.door.commands import (
    NOT_SENT,
    CommandAnswer,
    SlashCommand,
    Surfaces,
    answered_aside,
    entered_command,
    not_here,
    run_entered,
    with_outcome,
    wrong,
)
from treadle.door.program import Exit
from treadle.headless.channel import Frame
from treadle.protocol.errors import TreadleError

if TYPE_CHECKING:
    from treadle.door.open_session import LiveSession
    from treadle.headless.hosting import HostedSession


async def do_host_command(
    host: "HostedSession", live: "LiveSession", text: str, frame: Frame, *, more: bool = False
) -> str:
    """Do what a message that begins with `/` says; gives what is to be sent to the model, empty for nothing.

    `more`: something besides the text is in the message, which a command that sends nothing leaves out.
    """
    command = await entered_command(text, live.trust)
    if command is None:
        return text
    await host.messages.until_idle()
    try:
        answer = wrong(command) if isinstance(command, str) else await _done(*command, host, live)
    except TreadleError as error:
        answer = wrong(f"{error.what} {error.why}".strip())
    if not answer.send:
        left_out = NOT_SENT if more and not answer.warning else ""
        host.answer_alone(
            live, "\n".join(filter(None, (answer.text, left_out))), frame, Exit.USAGE if answer.warning else Exit.DONE
        )
    return answer.send


async def _done(row: SlashCommand, argument: str, host: "HostedSession", live: "LiveSession") -> CommandAnswer:
    if Surfaces.HEADLESS not in row.where:
        return wrong(not_here(row))
    post = partial(live.post, source=host.source)
    async with live.follow() as feed:
        answer = await run_entered(row, argument, live, post, done="")
        if answer.send and row.name == "btw":
            return await answered_aside(answer.send, live, post)
        if answer.send:
            return answer
        await host.until_quiet(live)
        return with_outcome(answer, feed.taken())
