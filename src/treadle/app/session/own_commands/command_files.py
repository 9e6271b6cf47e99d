"""Commands of the user's own and of the folder: Markdown files whose text is sent when their name is entered."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.places import config_file, data_directory, read_regular
from treadle.app.prompts import command_prompt
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.command_forms import OWN_FOLDERS, command_name, program_of, read_command
from treadle.app.session.own_commands.slash_commands import slash_names
from treadle.app.session.rules.skills import SkillBook, find_skills
from treadle.protocol.messages import EnclosureKind
from treadle.protocol.patterns import regex
from treadle.store.activation import COMMAND_FOLDERS
from treadle.store.active_items import read_item
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.walking import walk

_MOST_FILES = 500
_LONGEST = 65_536
_DEEPEST = 5
_NOT_IN_NAMES = regex(r"[^\w.-]+")


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
    own = config_file().parent / "commands"
    yield from _in_place(own, f"{_short(own)}/", ".md")
    for folder, ending in OWN_FOLDERS.items():
        yield from _in_place(Path.home() / folder, f"~/{folder}/", ending)
    for folder, ending in COMMAND_FOLDERS.items():
        yield from _in_place(trust.workspace / folder, f"{folder}/", ending, trust)


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
                origin=skill.origin,
                kind=EnclosureKind.SKILL,
                hint=skill.hint,
                body=partial(book.entered, skill.name),
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
    """List what can be entered by a name besides the commands of Treadle, which no file replaces.

    Of two with one name the second has that of its program before it, `claude:review`, unless both say the same.
    """
    found: dict[str, NamedText] = {}
    for provider in PROVIDERS:
        for one in provider(trust):
            before = found.get(one.name)
            if one.name not in slash_names() and (before is None or (before.unused and not one.unused)):
                found[one.name] = one
            elif one.kind is EnclosureKind.COMMAND and not (before and _say_the_same(before, one)):
                name = f"{program_of(one.origin.removeprefix('~/'))}:{one.name}"
                found.setdefault(name, replace(one, name=name))
    return tuple(found.values())


def _say_the_same(one: NamedText, other: NamedText) -> bool:
    return bool(one.unused or other.unused) or one.body("") == other.body("")


def find_text(name: str, trust: SessionTrust) -> NamedText | None:
    """Find what is entered by a name."""
    if name in WRITTEN_HERE:
        text = command_prompt(name)
        return NamedText(name=name, about="", origin="Treadle", body=lambda argument: f"{text}\n\n{argument}".strip())
    return next((one for one in find_texts(trust) if one.name == name), None)


def _in_place(place: Path, origin: str, ending: str, trust: SessionTrust | None = None) -> Iterator[NamedText]:
    for file in islice(_files_in(place, ending), _MOST_FILES):
        below = PurePosixPath(file.relative_to(place).as_posix())
        text, unused = _read_trusted(file, trust)
        form = read_command(f"{origin}{below}", text)
        yield NamedText(
            name=command_name(below, ending),
            about=form.about,
            origin=f"{origin}{shown_name(str(below))}",
            hint=form.hint,
            body=form.filled,
            runs=True,
            unused=unused or form.problem,
            model=form.model,
            counting=form.counting,
        )


def _files_in(place: Path, ending: str) -> Iterator[Path]:
    """Find the files, in the order of their names; links to folders are not followed."""
    for folder, folders, files in walk(place):
        depth = len(Path(folder).relative_to(place).parts)
        folders[:] = sorted(folders)[:_MOST_FILES] if depth < _DEEPEST else []
        yield from (Path(folder, name) for name in sorted(files)[:_MOST_FILES] if name.lower().endswith(ending))


def _read_trusted(file: Path, trust: SessionTrust | None) -> tuple[str, str]:
    """Read a file, and say why it is not to be used; what is to be used is exactly what was trusted."""
    text, unused = _read(file, None if trust is None else trust.workspace)
    if unused or trust is None:
        return text, unused
    if not trust.trusted:
        return text, "you do not trust this folder (/trust says how)"
    path = str(file.relative_to(trust.workspace))
    item = next((item for item in trust.items if item.path == path), None)
    content = None if item is None else read_item(trust.workspace, item)
    if content is None:
        return text, "it is new or changed since you trusted this folder (/trust says how)"
    return content.decode("utf-8-sig", errors="replace"), ""


def _read(file: Path, inside: Path | None) -> tuple[str, str]:
    """Read a file, and say why it cannot be used: it is no text, no regular file, or not in the folder `inside`."""
    try:
        if inside is not None and not file.resolve().is_relative_to(inside):
            return "", "it leads out of the folder"
        content = read_regular(file, _LONGEST)
    except (OSError, RuntimeError):
        return "", "it cannot be read"
    if content is None or b"\0" in content:
        return "", "it is not text"
    if len(content) > _LONGEST:
        return "", f"it has more than {_LONGEST:,} bytes"
    return content.decode("utf-8-sig", errors="replace"), ""


def _short(place: Path) -> str:
    return f"~/{place.relative_to(Path.home())}" if place.is_relative_to(Path.home()) else str(place)
