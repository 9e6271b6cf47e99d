"""What a person enters: a message, or a slash command, which is done."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from msgspec import Struct
from starlette.exceptions import HTTPException

from treadle.door.commands import SLASH_TABLE, SlashCommand, Surfaces, entered_command, named_texts, run_entered
from treadle.door.open_session import Reach
from treadle.door.trust import SessionTrust
from treadle.web.command_words import COMMANDS_ABOUT
from treadle.web.markup import without_commands
from treadle.web.page_keys import Visitor
from treadle.web.page_session import PageSession
from treadle.web.rights import require

_STEER = "steer"
_HERE = frozenset({_STEER, "queue"})
"""Commands of the terminals that the page has too."""

_ON_PAGE: Mapping[str, str] = MappingProxyType(
    {
        "drop": "Each message that waits has a button for that, beside the conversation.",
        "edit": "Each message that waits has a button for that, beside the conversation.",
        "new": "New session, in the column, begins one.",
        "clear": "New session, in the column, begins one.",
        "resume": "Choose a session of the column, or of All sessions.",
        "login": "Settings, Providers takes keys.",
        "theme": "Settings, General has the themes.",
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


def about_here(row: SlashCommand) -> str:
    """Say what a command does, in the words of the page."""
    return COMMANDS_ABOUT.get(row.name, row.about)


async def _help(trust: SessionTrust, only: str) -> str:
    rows = [(f"/{row.name}", about_here(row)) for row in commands_here() if only in ("", row.name)]
    rows += [] if only else [(f"/{name} {hint}".rstrip(), about) for name, hint, about in await texts_here(trust)]
    return "\n".join(f"{usage}  {about}" for usage, about in rows)


async def do_entered(text: str, session: PageSession, who: Visitor) -> EnteredText:
    """Do what was entered. Raises `TreadleError`, and `HTTPException` for what `who` may not do."""
    if text.lstrip().startswith("!"):
        require(who, Reach.OWN_COMMANDS)
        return _own(text.strip()[1:].strip(), session)
    command = await entered_command(text, session.session.trust)
    if command is None:
        return EnteredText(send=text)
    if isinstance(command, str):
        raise _refused(command)
    row, argument = command
    if not works_here(row):
        raise _refused(
            f"/{row.name} does not work here. {_ON_PAGE.get(row.name) or without_commands(row.instead)}".strip()
        )
    if refusal := row.refusal(argument):
        raise _refused(refusal)
    require(who, row.effect_of(argument))
    asked = argument.removeprefix("/")
    if row.name == "help" and asked in ("", *(one.name for one in commands_here())):
        return EnteredText(await _help(session.session.trust, asked))
    if row.name == _STEER:
        if not argument:
            raise _refused("Write the message after /steer.")
        return EnteredText(send=argument, steer=True)
    # What a command did stands in the conversation: an item says it.
    found = await run_entered(row, argument, session.session, partial(session.post, who=who), done="")
    return EnteredText(found.text, found.send)


def _refused(why: str) -> HTTPException:
    """Refuse what was entered: it stays in the field, with the reason beneath it."""
    return HTTPException(422, why)


def _own(line: str, session: PageSession) -> EnteredText:
    """Run a command of the person's own."""
    if not line:
        raise _refused("Write a command of your own behind the !, such as !git status.")
    session.commands.start(line)
    return EnteredText()
