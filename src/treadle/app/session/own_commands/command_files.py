"""Commands of the user's own and of the folder: Markdown files whose text is sent when their name is entered."""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from msgspec import Struct

from treadle.app.config.places import config_file, data_directory, read_regular
from treadle.app.prompts import command_prompt
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.own_commands.slash_commands import slash_names
from treadle.app.session.rules.skills import SkillBook, find_skills
from treadle.context.frontmatter import Header, read_header
from treadle.protocol.messages import EnclosureKind
from treadle.protocol.patterns import regex
from treadle.store.activation import COMMAND_FOLDERS
from treadle.store.active_items import read_item
from treadle.workspace.files.names import shown_name

_MOST_FILES = 500
_LONGEST = 65_536
_DEEPEST = 5
_NAME = regex(r"[A-Za-z0-9_][\w.-]*")
_NOT_IN_NAMES = regex(r"[^\w.-]+")
_ARGUMENT = regex(r"\$ARGUMENTS(?:\[(\d{1,2})\])?|\$(\d{1,2})(?!\d)")
_OF_CLAUDE = (".claude", "commands")


class NamedText(Struct, frozen=True, kw_only=True):
    """A text that is sent when `/name` is entered. `origin` is where it comes from, `hint` says what follows the name.

    `body` gives the text for what follows the name. `runs` says that shell lines in it may run, if the policy allows
    them. `unused` says why it is not to be used, `counting` how the words that follow are counted in it. With a
    `server` it is the `prompt` of that MCP server, which writes it out.
    """

    name: str
    about: str
    origin: str
    kind: EnclosureKind = EnclosureKind.COMMAND
    hint: str = ""
    body: Callable[[str], str]
    runs: bool = False
    unused: str = ""
    model: str = ""
    counting: str = ""
    server: str = ""
    prompt: str = ""


NamedTexts = Callable[[SessionTrust], Iterable[NamedText]]
"""Gives the texts of one kind that there are for a folder; reads files."""


def command_files(trust: SessionTrust) -> Iterator[NamedText]:
    """Find the commands: the user's, then the folder's, which are to be used only as they were trusted."""
    for place in (config_file().parent / "commands", Path.home().joinpath(*_OF_CLAUDE)):
        yield from _in_place(place, f"{_short(place)}/")
    for folder in COMMAND_FOLDERS:
        yield from _in_place(trust.workspace / folder, f"{folder}/", trust)


WRITTEN_HERE = frozenset({"init", "newrule"})
"""Commands of the table whose text ships with Treadle."""


def skill_texts(trust: SessionTrust) -> Iterator[NamedText]:
    """Give the skills that a person may begin."""
    found = find_skills(trust)
    book = SkillBook(found)
    for skill in found:
        if skill.for_user:
            yield NamedText(
                name=skill.name,
                about=skill.description,
                origin=shown_name(str(skill.folder / skill.item.path.rpartition("/")[2])),
                kind=EnclosureKind.SKILL,
                hint=skill.hint,
                body=partial(book.text, skill.name),
                unused=skill.unused,
            )


def server_prompts(trust: SessionTrust) -> Iterator[NamedText]:
    """Give the prompts of MCP servers, as they were last listed."""
    if not (data_directory() / "mcp" / "prompts").is_dir():
        return
    from treadle.app.servers.server_prompts import kept_prompts

    for server, prompt in kept_prompts(trust):
        named = [f"{'' if needed else '['}{name.upper()}{'' if needed else ']'}" for name, needed in prompt.arguments]
        name = f"{_NOT_IN_NAMES.sub('_', server)}:{_NOT_IN_NAMES.sub('_', prompt.name)}"
        yield NamedText(
            name=name,
            about=prompt.description,
            origin=f"MCP server {server}",
            hint=" ".join(named),
            body=lambda argument: argument,
            server=server,
            prompt=prompt.name,
        )


PROVIDERS: tuple[NamedTexts, ...] = (command_files, skill_texts, server_prompts)
"""What gives texts that are entered by a name; of two with one name the first is used."""


def find_texts(trust: SessionTrust) -> tuple[NamedText, ...]:
    """List what can be entered by a name besides the commands of Treadle, which no file replaces."""
    found: dict[str, NamedText] = {}
    for provider in PROVIDERS:
        for one in provider(trust):
            before = found.get(one.name)
            if one.name not in slash_names() and (before is None or (before.unused and not one.unused)):
                found[one.name] = one
    return tuple(found.values())


def find_text(name: str, trust: SessionTrust) -> NamedText | None:
    """Find what is entered by a name."""
    if name in WRITTEN_HERE:
        text = command_prompt(name)
        return NamedText(name=name, about="", origin="Treadle", body=lambda argument: f"{text}\n\n{argument}".strip())
    return next((one for one in find_texts(trust) if one.name == name), None)


def fill_arguments(text: str, argument: str, *, first: int) -> str:
    """Put what follows a command's name into its text: `$ARGUMENTS` is all of it, `$N` a word, counted from `first`.

    Words are cut as a shell does it. `$ARGUMENTS[N]` counts from 0. What nothing was given for stays as it is written.
    """
    words = _words(argument)

    def filled(number: int, written: str) -> str:
        return words[number] if 0 <= number < len(words) else written

    def replaced(index: str | None, number: str | None, written: str) -> str:
        if number is not None:
            return filled(int(number) - first, written)
        return argument if index is None else filled(int(index), written)

    return _ARGUMENT.sub(lambda found: replaced(found[1], found[2], found[0]), text)


def _words(argument: str) -> Sequence[str]:
    try:
        return shlex.split(argument)
    except ValueError:  # a quote that is not closed, such as an apostrophe
        return argument.split()


def _in_place(place: Path, origin: str, trust: SessionTrust | None = None) -> Iterator[NamedText]:
    first = 0 if place.parent.name == _OF_CLAUDE[0] else 1
    for file in islice(_markdown_files(place), _MOST_FILES):
        below = file.relative_to(place)
        parts = [*below.parts[:-1], below.stem]
        header, unused = _read_trusted(file, trust)
        if header is None or not all(map(_NAME.fullmatch, parts)):
            continue
        yield NamedText(
            name=":".join(parts),
            about=header.text("description") or _first_line(header.body),
            origin=f"{origin}{shown_name(below.as_posix())}",
            hint=header.text("argument-hint"),
            body=_body(header.body, first),
            runs=True,
            unused=unused,
            model=header.text("model"),
            counting=f"In its text ${first} is the first word after the name, and $ARGUMENTS all of them.",
        )


def _body(text: str, first: int) -> Callable[[str], str]:
    return lambda argument: fill_arguments(text, argument, first=first)


def _markdown_files(place: Path) -> Iterator[Path]:
    """Find the files, in the order of their names; links to folders are not followed."""
    for folder, folders, files in os.walk(place):
        depth = len(Path(folder).relative_to(place).parts)
        folders[:] = sorted(folders)[:_MOST_FILES] if depth < _DEEPEST else []
        yield from (Path(folder, name) for name in sorted(files)[:_MOST_FILES] if name.lower().endswith(".md"))


def _read_trusted(file: Path, trust: SessionTrust | None) -> tuple[Header | None, str]:
    """Read a file, and say why it is not to be used; what is to be used is exactly what was trusted."""
    header = _read(file, None if trust is None else trust.workspace)
    if header is None or trust is None:
        return header, ""
    if not trust.trusted:
        return header, "you do not trust this folder (/trust says how)"
    path = str(file.relative_to(trust.workspace))
    item = next((item for item in trust.items if item.path == path), None)
    content = None if item is None else read_item(trust.workspace, item)
    if content is None:
        return header, "it is new or changed since you trusted this folder (/trust says how)"
    return read_header(content.decode(errors="replace")), ""


def _read(file: Path, inside: Path | None) -> Header | None:
    """Read a file; None for one that is no text, no regular file, or not in the folder `inside` of which it must be."""
    try:
        if inside is not None and not file.resolve().is_relative_to(inside):
            return None
        content = read_regular(file, _LONGEST)
    except (OSError, RuntimeError):
        return None
    if content is None or b"\0" in content or len(content) > _LONGEST:
        return None
    return read_header(content.decode(errors="replace"))


def _first_line(body: str) -> str:
    return next((line.strip("# ").strip() for line in body.splitlines() if line.strip("# ").strip()), "")


def _short(place: Path) -> str:
    return f"~/{place.relative_to(Path.home())}" if place.is_relative_to(Path.home()) else str(place)
