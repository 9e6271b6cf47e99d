"""What a person enters: a message, or a slash command, which is done."""

import asyncio

from treadle.app.slash import do_command, named_texts
from treadle.app.slash_commands import Surfaces, find_slash, nearest_slash, slash_word
from treadle.protocol.errors import RefusedError
from treadle.web.book import PageSession


async def do_entered(text: str, session: PageSession, browser: str) -> tuple[str, str]:
    """Give what is shown of what was entered, and the message to send; both can be empty. Raises `TreadleError`."""
    name = slash_word(text)
    if not name:
        return "", text
    row = find_slash(name)
    if row is None:
        named = {one.name: one for one in await asyncio.to_thread(named_texts, session.session.trust)}
        if name in named and not named[name].unused:
            return "", text
        unused = f"/{name} is not used: {named[name].unused}." if name in named else ""
        return unused or f"There is no command /{name}. {nearest_slash(name, named)}".strip(), ""
    if Surfaces.HEADLESS not in row.where:
        return f"/{row.name} does not work here. {row.instead}".strip(), ""
    argument = text.strip()[1 + len(name) :].strip()
    if row.takes_time:
        found = await asyncio.to_thread(do_command, name, argument, session.session)
    else:
        found = do_command(name, argument, session.session)
    try:
        for op in found.ops:
            await session.post(op, browser)
    except RefusedError as refused:
        return f"/{row.name} is not possible now: {refused.why}.", ""
    return found.text or ("" if found.send else "Done."), found.send
