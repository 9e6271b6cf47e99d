"""What is completed while a message is written: commands and what follows them, and names of files."""

import asyncio
from collections.abc import Iterator, Sequence

from msgspec import Struct

from treadle.door.commands import last_word, named_texts
from treadle.door.known_models import EFFORT_BUDGETS
from treadle.door.message_parts import MENTION_WORDS, mention_at, written_path
from treadle.door.open_session import ServersAccess
from treadle.door.trust import SessionTrust
from treadle.protocol.permissions import Mode
from treadle.web.entered import about_here, commands_here, texts_here
from treadle.web.folder_index import FolderIndex

MOST_TYPED = 1_000
"""Characters before the cursor that are looked at."""

_SHOWN = 12
_ABOUT = 160

_CHOICES = {"/mode ": tuple(Mode), "/effort ": tuple(EFFORT_BUDGETS)}


class Completion(Struct, frozen=True):
    """A row of the menu: what it is called, what it is, and what takes the place of the last characters."""

    name: str
    about: str
    text: str


class Completions(Struct, frozen=True):
    """What fits what is being written; `replaces` counts its last characters, as JavaScript does.

    `free`: what is written may be something else than any row.
    """

    rows: tuple[Completion, ...] = ()
    replaces: int = 0
    free: bool = False


async def completions(
    text: str, trust: SessionTrust, files: FolderIndex, servers: ServersAccess | None = None
) -> Completions:
    """Say what a text can go on with, as far as it is written; the `servers` of the session know their prompts."""
    mention = mention_at(text, len(text))
    if mention is not None:
        typed = text[mention.start : mention.end]
        found = await files.find(str(trust.workspace), mention.path, trusted=trust.trusted)
        return Completions(tuple(_mentions(mention.path, found)), _size(typed))
    if not text.startswith("/") or "\n" in text:
        return Completions()
    if " " in text:
        choices = _choices(text)
        return choices if choices.rows or servers is None else await asyncio.to_thread(_of_prompt, text, trust, servers)
    named = [(name, hint, about, bool(hint)) for name, hint, about in await texts_here(trust)]
    rows = [*((row.name, "", about_here(row), bool(row.arguments)) for row in commands_here()), *named]
    wanted = text[1:].lower()
    fits = [row for row in rows if row[0].lower().startswith(wanted)]
    fits += [row for row in rows if wanted in row[0].lower() and row not in fits]
    return Completions(
        tuple(
            Completion(f"/{name} {hint}".rstrip(), about[:_ABOUT], f"/{name}{' ' if goes_on else ''}")
            for name, hint, about, goes_on in fits[:_SHOWN]
        ),
        _size(text),
    )


def _choices(text: str) -> Completions:
    """Give what a command can be followed by."""
    for begin, words in _CHOICES.items():
        if text.startswith(begin):
            rows = [Completion(str(word), "", f"{begin}{word}") for word in words if text in f"{begin}{word}"]
            return Completions(tuple(rows), _size(text))
    return Completions()


def _of_prompt(text: str, trust: SessionTrust, servers: ServersAccess) -> Completions:
    """Ask a server what the last word after one of its prompts can be."""
    name, _, said = text[1:].partition(" ")
    found = next((one for one in named_texts(trust) if one.name == name and one.server and not one.unused), None)
    if found is None:
        return Completions()
    begin = text[: last_word(text)]
    words = servers.complete((found.server, found.prompt), said)
    return Completions(tuple(Completion(one, "", f"{begin}{one}") for one in words[:_SHOWN]), _size(text), free=True)


def _mentions(typed: str, found: Sequence[str]) -> Iterator[Completion]:
    for word, about in MENTION_WORDS.items():
        if word.startswith(typed):
            yield Completion(f"@{word}", about, f"@{word} ")
    for path in found:
        # A folder can be followed by what is in it.
        if path != typed:
            written = written_path(path)
            yield Completion(path, "", f"@{written.removesuffix(chr(34))}" if path.endswith("/") else f"@{written} ")


def _size(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
