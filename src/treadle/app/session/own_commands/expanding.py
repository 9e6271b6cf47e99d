"""A command by its name becomes its text: with its arguments, and the output of its shell lines that may run."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from treadle.app.session.mentions.enclosing import NotEnclosedError, head_and_tail
from treadle.app.session.own_commands.command_files import NamedText
from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.workspace.files.text import visible

_LINE = regex(r"(?:(?<=\s)|(?<!.))!`([^`\n]+)`")
"""Only after a blank, or at the beginning of a line."""

_MOST_LINES = 20
_MOST_OF_ONE = 16_000
_LONGEST_TEXT = 100_000
_SHOWN = 120

RunLine = Callable[[str], Awaitable[str]]
"""Runs a shell line as a call of the model that needs no approval; raises `ToolError` with the reason where it does."""


class ExpandedText(Struct, frozen=True):
    """The text of a command as the model reads it, what a person should know of it, and the text alone."""

    text: str
    notices: tuple[str, ...]
    body: str


async def written_out(named: NamedText, argument: str, run: RunLine) -> ExpandedText:
    """Write out a command."""
    body = head_and_tail(named.body(argument), _LONGEST_TEXT)
    pieces: list[str] = []
    notices: list[str] = []
    at = 0
    for count, found in enumerate(_LINE.finditer(body) if named.runs else (), start=1):
        pieces += [body[at : found.start()], await _output(found[1], count, run, notices)]
        at = found.end()
    if named.model:
        notices.append(f"/{named.name} suggests the model {visible(named.model)}. /model changes the model.")
    text = "".join([*pieces, body[at:]])
    origin = visible(named.origin).replace('"', "%22").replace("\n", " ")
    framed = f'<command name="/{named.name}" from="{origin}">\n{text.strip()}\n</command>'
    return ExpandedText(f"The user entered a command. This is its text:\n{framed}", tuple(notices), body)


async def _output(line: str, number: int, run: RunLine, notices: list[str]) -> str:
    shown = visible(line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…")
    try:
        if number > _MOST_LINES:
            raise NotEnclosedError(f"a command may have {_MOST_LINES} shell lines.")
        return head_and_tail(await run(line), _MOST_OF_ONE).rstrip("\n")
    except ToolError as error:
        notices.append(f"Not run: `{shown}`: {error.text}")
        return f"[not run: `{line}`: {error.text}]"
