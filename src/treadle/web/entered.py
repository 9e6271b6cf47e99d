"""What a person enters: a message, or a slash command, which is done."""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from treadle.app.security.trusting import SessionTrust
from treadle.app.slash import do_command, named_texts
from treadle.app.slash_commands import (
    SLASH_TABLE,
    SlashCommand,
    Surfaces,
    find_slash,
    nearest_slash,
    slash_word,
)
from treadle.protocol.errors import RefusedError
from treadle.web.book import PageSession

_STEER = "steer"
_HERE = frozenset({_STEER, "queue"})
"""Commands of the terminals that the page has too."""

_ON_PAGE: Mapping[str, str] = MappingProxyType(
    {
        "drop": "Each message that waits has a button for that, beside the conversation.",
        "edit": "Each message that waits has a button for that, beside the conversation.",
        "new": "Start one on the screen Sessions.",
        "clear": "Start one on the screen Sessions.",
        "resume": "Choose one on the screen Sessions.",
        "quit": "Close the page whenever you like: the session continues.",
    }
)
"""What does here what these commands do in a terminal."""


class EnteredText(Struct, frozen=True):
    """What comes of what was entered: `shown` to the person, and `send` as a message, at the next step if `steer`."""

    shown: str = ""
    send: str = ""
    steer: bool = False


def works_here(row: SlashCommand) -> bool:
    """Whether a command can be entered on the page."""
    return Surfaces.HEADLESS in row.where or row.name in _HERE


def commands_here() -> Sequence[SlashCommand]:
    """List the commands that can be entered on the page."""
    return [row for row in SLASH_TABLE if works_here(row)]


async def texts_here(trust: SessionTrust) -> Sequence[tuple[str, str, str]]:
    """List what else can be entered by a name, each with what follows it and what it does."""
    found = await asyncio.to_thread(named_texts, trust)
    return [(one.name, one.hint, one.about) for one in found if not one.unused]


async def _help(trust: SessionTrust) -> str:
    rows = [(row.usage, row.about) for row in commands_here()]
    rows += [(f"/{name} {hint}".rstrip(), about) for name, hint, about in await texts_here(trust)]
    return "\n".join(f"{usage}  {about}" for usage, about in rows)


async def do_entered(text: str, session: PageSession, browser: str) -> EnteredText:
    """Do what was entered. Raises `TreadleError`."""
    if text.lstrip().startswith("!"):
        return _own(text.strip()[1:].strip(), session)
    name = slash_word(text)
    if not name:
        return EnteredText(send=text)
    row = find_slash(name)
    if row is None:
        return await _named(name, text, session)
    if not works_here(row):
        return EnteredText(f"/{row.name} does not work here. {_ON_PAGE.get(row.name, row.instead)}".strip())
    argument = text.strip()[1 + len(name) :].strip()
    if row.name == "help" and not argument:
        return EnteredText(await _help(session.session.trust))
    if row.name == _STEER:
        return EnteredText(send=argument, steer=True) if argument else EnteredText("/steer needs a text: /steer TEXT.")
    if row.takes_time:
        found = await asyncio.to_thread(do_command, name, argument, session.session)
    else:
        found = do_command(name, argument, session.session)
    try:
        for op in found.ops:
            await session.post(op, browser)
    except RefusedError as refused:
        return EnteredText(f"/{row.name} is not possible now: {refused.why}.")
    return EnteredText(found.text or ("" if found.send else "Done."), found.send)


def _own(line: str, session: PageSession) -> EnteredText:
    """Run a command of the person's own."""
    if not line:
        return EnteredText("Write a command of your own behind the !, such as !git status.")
    session.commands.start(line)
    return EnteredText()


async def _named(name: str, text: str, session: PageSession) -> EnteredText:
    """Send a text that stands for another one by its name; the session reads it."""
    named = {one.name: one for one in await asyncio.to_thread(named_texts, session.session.trust)}
    if name not in named:
        return EnteredText(f"There is no command /{name}. {nearest_slash(name, named)}".strip())
    unused = named[name].unused
    return EnteredText(f"/{name} is not used: {unused}.") if unused else EnteredText(send=text)
