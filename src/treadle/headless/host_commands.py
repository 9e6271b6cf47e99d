"""Slash commands that a host sends as messages, done instead of sent."""

import asyncio
import uuid
from typing import TYPE_CHECKING

from treadle.app.slash import do_command
from treadle.app.slash_commands import Surfaces, find_slash, slash_word
from treadle.headless.channel import Frame
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import Prompt
from treadle.protocol.messages import Text

if TYPE_CHECKING:
    from treadle.app.session.live import LiveSession
    from treadle.headless.hosting import HostedSession


async def do_host_command(host: "HostedSession", live: "LiveSession", text: str, frame: Frame) -> str:
    """Do what a message that begins with `/` says; gives what is to be sent to the model, empty for nothing."""
    name = slash_word(text)
    row = find_slash(name) if name else None
    if row is None or Surfaces.HEADLESS not in row.where:
        return text
    await host.messages.until_idle()
    argument = text[1 + len(name) :].strip()
    said, failed = "", False
    try:
        if row.takes_time:
            answer = await asyncio.to_thread(do_command, row.name, argument, live)
        else:
            answer = do_command(row.name, argument, live)
        if answer.send and row.name != "btw":
            return answer.send
        said, failed = answer.text, answer.warning
        for op in answer.ops:
            await live.post(op, host.source)
        if answer.send:
            content = (Text(text=answer.send),)
            await live.post(Prompt(id=uuid.uuid4().hex, content=content), host.source)
            answered = (await live.asides())[-1]
            said, failed = answered.text or f"No answer: {answered.error}.", bool(answered.error)
        await host.until_quiet(live)
    except TreadleError as error:
        said, failed = f"{error.what} {error.why}".strip(), True
    host.answer_alone(live, said, frame, failed=failed)
    return ""
