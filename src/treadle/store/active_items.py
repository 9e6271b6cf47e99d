"""Finds what would act in a folder: rules, skills, agents, settings and hooks, each with the digest of what acts."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import assert_never

from treadle.protocol.errors import StoreError
from treadle.store.activation import (
    AGENT_FOLDERS,
    CLAUDE_SETTINGS,
    COMMAND_FOLDERS,
    RULE_FILES,
    RULE_FOLDERS,
    SERVER_FILES,
    SKILL_FOLDERS,
    ActiveFile,
    ActiveKind,
    active_kind,
    digest_of,
)
from treadle.workspace.files.paths import FolderEntry, Listed, NoFolder, Unlisted, first_closed, list_folder

_MOST_FILES = 2000
_DEEPEST_IMPORT = 5
_MOST_IMPORTS = 50
_LONGEST_RULES = 1024 * 1024
"""Bytes of a rules file in which imports are looked for."""

_IMPORTING = frozenset({"claude.md", "claude.local.md", "gemini.md"})
_OFFERED: tuple[Collection[str], ...] = (COMMAND_FOLDERS, SKILL_FOLDERS, AGENT_FOLDERS)
_HOLDERS = frozenset(folder.partition("/")[0] for folder in RULE_FOLDERS)
_GIT_SETTINGS = ("config", "config.worktree", "info/attributes")
_LONGEST_POINTER = 4096
"""Bytes of a file that names another folder."""

_LARGEST = 16 * 1024 * 1024
"""A file beyond this is told by its size and its time, and so is a change of it."""


def find_items(workspace: Path) -> tuple[ActiveFile, ...]:
    """Find what would act in a resolved folder: in it, and the rules files above it up to the repository's top."""
    found = [_item(workspace / name, name, kind) for name in _candidates(workspace) if (kind := active_kind(name))]
    for folder in _above(workspace):
        names = [name for name in _rule_candidates(folder, names_in(folder)) if active_kind(name) is ActiveKind.RULES]
        found += [_item(folder / name, str(folder / name), ActiveKind.RULES) for name in names]
    found += imported_items(workspace, found)
    found += _scripts(workspace, found)
    found += git_items(workspace, workspace)
    return tuple(sorted({item for item in found if item.digest}))


def git_items(workspace: Path, folder: Path) -> Iterator[ActiveFile]:
    """List by what git runs something in the repository at the top of a folder. Raises `StoreError`."""
    for file, kind in _git_files(folder):
        if not _is_there(file.parent, file.name):
            continue
        inside = [file] if kind is ActiveKind.GIT else [file / hook for hook in names_in(file)]
        for one in inside:
            if kind is ActiveKind.GIT or not one.name.endswith(".sample"):
                digest = _digest(one, ".git/config" if one.name == "config" else "")
                if digest:
                    yield ActiveFile(_written(named_from(workspace, one)), kind, digest)


def imported_items(workspace: Path, items: Iterable[ActiveFile]) -> list[ActiveFile]:
    """Find the files that rules name with `@path`, and those that these name: they are read along with them."""
    importing = [item for item in items if item.kind is ActiveKind.RULES and may_import(item.path)]
    if not importing:
        return []
    from treadle.context.imports import import_paths

    found: dict[Path, ActiveFile] = {}
    for _ in range(_DEEPEST_IMPORT):
        named = [
            file
            for item in importing
            for path in import_paths((read_item(workspace, item) or b"")[:_LONGEST_RULES].decode(errors="replace"))
            if (file := import_target(workspace, item, path)) is not None and file not in found
        ]
        named = list(dict.fromkeys(named))[: _MOST_IMPORTS - len(found)]
        importing = [_item(file, named_from(workspace, file), ActiveKind.RULES) for file in named]
        found.update(zip(named, importing, strict=True))
    return list(found.values())


def _scripts(workspace: Path, items: Sequence[ActiveFile]) -> list[ActiveFile]:
    """Find the files that the hooks of settings name: they run with them."""
    found: dict[Path, ActiveKind] = {}
    for item in items:
        if not item.digest or not has_hooks(item) or b"hooks" not in (read := read_item(workspace, item) or b""):
            continue
        from treadle.store.named_scripts import named_scripts

        for file in named_scripts(workspace, repository_of(workspace) or workspace, item.path, read):
            if found.get(file) is not ActiveKind.SETTINGS:
                found[file] = item.kind
    known = {(item.path, item.kind) for item in items}
    named = ((file, named_from(workspace, file), kind) for file, kind in found.items())
    return [_item(file, name, kind) for file, name, kind in named if (name, kind) not in known]


def has_hooks(item: ActiveFile) -> bool:
    """Whether a file is of a kind that has hooks of sessions."""
    if item.kind is ActiveKind.SETTINGS:
        return item.path.casefold().endswith(".toml")
    return item.path.casefold() in CLAUDE_SETTINGS


def may_import(path: str) -> bool:
    """Whether a rules file is of a kind that imports others."""
    return path.casefold().rpartition("/")[2] in _IMPORTING


def import_target(workspace: Path, item: ActiveFile, path: str) -> Path | None:
    """Find the file that a rules file imports as `path`; None where there is none that it may.

    It is in the repository, no secret, and no ignore file for agents lists it.
    """
    if path.startswith(("/", "~")) or "\0" in path:
        return None
    top = repository_of(workspace) or workspace
    try:
        asked = (workspace / item.path).parent / path
        file = asked.resolve()
        if not (file.is_relative_to(top) and file.is_file()):
            return None
    except (OSError, RuntimeError):
        return None
    from treadle.protocol.protected_names import secret_name
    from treadle.workspace.ignore.access_lists import AccessLists

    protected = secret_name(str(asked)) or secret_name(str(file)) or AccessLists((str(top),)).reason(str(file))
    return None if protected else file


def named_from(workspace: Path, file: Path) -> str:
    """Name a file by its path from the workspace, or by its absolute one outside."""
    return str(file.relative_to(workspace)) if file.is_relative_to(workspace) else str(file)


def read_item(workspace: Path, item: ActiveFile) -> bytes | None:
    """Read a file that was listed; None when it is not what was listed any more, or too large to be read."""
    file = workspace / item.path
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None
            content = stream.read(_LARGEST + 1)
    except OSError:
        return None
    return content if _of_content(file, item.path, content) == item.digest else None


def _candidates(workspace: Path) -> Iterator[str]:
    names = names_in(workspace)
    yield from _rule_candidates(workspace, names)
    yield from _server_candidates(workspace, names)
    yield from _offered_candidates(workspace, names)
    for name in names:
        match name.casefold():
            case ".treadle":
                yield from _below(workspace / name, name)
            case ".claude":
                yield from _hook_candidates(workspace, name)
            case folded if folded not in RULE_FILES and folded != ".git":
                yield name
            case _:
                pass


def _server_candidates(workspace: Path, names: Iterable[str]) -> Iterator[str]:
    """Name the files with servers that lie in folders of programs."""
    for name in names:
        inside = [file.partition("/")[2] for file in SERVER_FILES if file.startswith(f"{name.casefold()}/")]
        for below in inside:
            *folders, wanted = below.split("/")
            place = "/".join((name, *folders))
            yield from (f"{place}/{one}" for one in names_in(workspace / place) if one.casefold() == wanted)


def _offered_candidates(workspace: Path, names: Iterable[str]) -> Iterator[str]:
    """Name commands, skills and agents in the folders that programs keep them in; those of Treadle are named anyway."""
    for name in names:
        if name.casefold() == ".treadle":
            continue
        inside = [(kind, folder.split("/")[1]) for kind in _OFFERED for folder in kind if _is_in(folder, name)]
        for kind, below in inside:
            place = f"{name}/{below}"
            if kind is not SKILL_FOLDERS:
                yield from _below(workspace / place, place)
                continue
            for one in names_in(workspace / place)[:_MOST_FILES]:
                yield from (f"{place}/{one}/{file}" for file in names_in(workspace / place / one))


def _is_in(folder: str, name: str) -> bool:
    return folder.startswith(f"{name.casefold()}/")


def _hook_candidates(workspace: Path, folder: str) -> Iterator[str]:
    """Name Claude Code's settings, and where these have hooks also the scripts that are kept for them."""
    settings = [
        name for one in names_in(workspace / folder) if (name := f"{folder}/{one}").casefold() in CLAUDE_SETTINGS
    ]
    yield from settings
    if any(_digest(workspace / name, name) for name in settings):
        yield from _below(workspace / folder / "hooks", f"{folder}/hooks")


def _rule_candidates(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """Name what may be rules in a folder: files in it, and the folders that tools keep them in."""
    for name in names:
        folded = name.casefold()
        if folded in (".github", ".claude"):
            yield from (f"{name}/{file}" for file in names_in(folder / name))
        if folded in RULE_FILES and not (folded in RULE_FOLDERS and _is_folder(folder / name)):
            yield name
        elif folded in _HOLDERS:
            inside = "" if folded in RULE_FOLDERS else "/instructions" if folded == ".github" else "/rules"
            yield from _below(folder / f"{name}{inside}", f"{name}{inside}")


def _below(folder: Path, prefix: str) -> Iterator[str]:
    """Name the files of a folder at any depth; links to folders are not followed, but told."""
    found: list[str] = []
    below = [(folder, prefix, True)]
    for place, name, follow in below:  # grows meanwhile
        entries = _entries(place, follow=follow)
        below += [(place / one.name, f"{name}/{one.name}", False) for one in entries if one.is_folder]
        found += [f"{name}/{one.name}" for one in entries if not one.is_folder]
        if len(found) > _MOST_FILES or len(below) > _MOST_FILES:
            raise StoreError("trust-too-much", f"{folder} has more than {_MOST_FILES} files, too many to check.")
    yield from sorted(found)


def names_in(folder: Path) -> list[str]:
    """Name what a folder holds; what cannot be listed is not empty. Raises `StoreError`."""
    return [entry.name for entry in _entries(folder, follow=True)]


def _entries(folder: Path, *, follow: bool) -> Sequence[FolderEntry]:
    """List a folder; what cannot be listed is not empty. Raises `StoreError`."""
    match list_folder(folder, follow=follow):
        case Listed(entries=entries):
            return entries
        case NoFolder():
            return ()
        case Unlisted(why=why):
            raise _unlisted(folder, why)
        case unknown:
            assert_never(unknown)


def _is_folder(path: Path) -> bool:
    """Whether a folder is there, or a link to one, whether it can be listed or not."""
    return not isinstance(list_folder(path, follow=True), NoFolder)


def _is_there(folder: Path, name: str) -> bool:
    """Whether something is at a path below a folder. Raises `StoreError` where that cannot be seen."""
    if closed := first_closed(str(folder), name):
        raise _unlisted(Path(closed), "Nothing can be looked at in it.")
    return os.path.lexists(folder / name)


def _unlisted(folder: Path, why: str) -> StoreError:
    return StoreError(
        "trust-unlisted",
        f"{folder} cannot be listed, so it is not known what in it would act.",
        why=why,
        fix="Let it be listed with `chmod u+rx`, or remove it.",
    )


def _above(workspace: Path) -> list[Path]:
    """Give the folders above a folder up to the top of its repository."""
    parents = list(workspace.parents)
    top = repository_of(workspace)
    return [] if top in (None, workspace) else parents[: parents.index(top) + 1]


def repository_of(workspace: Path) -> Path | None:
    """Find the top of the repository that a resolved folder is in, as git does; None where there is none."""
    return next(filter(_has_repository, (workspace, *workspace.parents)), None)


def _has_repository(folder: Path) -> bool:
    """Whether git takes a folder for the top of a repository: by a `.git` in it, or by its form."""
    if (folder / ".git").exists() or not os.path.lexists(folder / "HEAD"):
        return (folder / ".git").exists()
    from treadle.protocol.protected_names import GIT_DATA_NAMES, is_git_data

    return is_git_data(name for name in GIT_DATA_NAMES if os.path.lexists(folder / name))


def _git_files(folder: Path) -> Iterator[tuple[Path, ActiveKind]]:
    """Name what git obeys of the repository at the top of a folder; some of it may not be there.

    A `.git` that is a file or a link is itself named, and followed. Raises `StoreError` where it cannot be seen.
    """
    at = folder / ".git"
    if not (_is_there(folder, ".git") or _is_there(folder, "HEAD")) or not _has_repository(folder):
        return
    if not os.path.lexists(at):
        at = folder
    elif at.is_symlink() or not at.is_dir():
        yield at, ActiveKind.GIT
        at = _followed(at, "gitdir: ")
    is_linked = _is_there(at, "commondir") and (at / "commondir").is_file()
    shared = _followed(at / "commondir", "") if is_linked else at
    for own in dict.fromkeys((at, shared)):
        yield from ((own / name, ActiveKind.GIT) for name in _GIT_SETTINGS)
    yield shared / "hooks", ActiveKind.HOOK


def _followed(file: Path, before: str) -> Path:
    """Give the folder that a file names, or that a link leads to."""
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as stream:
            named = stream.read(_LONGEST_POINTER)
        return Path(os.path.realpath(file.parent / named.removeprefix(before).rstrip("\r\n")))
    except (OSError, ValueError):
        return Path(os.path.realpath(file))


def listed_item(workspace: Path, name: str, kind: ActiveKind) -> ActiveFile:
    """List a file by its path from the workspace, or its absolute one, with its digest now."""
    return _item(workspace / name, name, kind)


def _item(file: Path, name: str, kind: ActiveKind) -> ActiveFile:
    return ActiveFile(_written(name), kind, _digest(file, name))


def _written(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()


def _digest(file: Path, name: str) -> str:
    """Digest a file without waiting at what is none, such as a pipe."""
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
            found = os.fstat(stream.fileno())
            content = stream.read() if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST else None
    except OSError as error:
        return f"unreadable: {error.strerror}"
    if content is None:
        content = f"{found.st_mode} {found.st_size} {found.st_mtime_ns} {found.st_ino}".encode()
    return _of_content(file, name, content)


def _of_content(file: Path, name: str, content: bytes) -> str:
    """Digest what acts of a content; of a link also where it leads."""
    target = ""
    with suppress(OSError):
        target = str(file.readlink())
    digest = digest_of(name, content)
    return sha256(f"{target}\0{digest}".encode(errors="surrogateescape")).hexdigest() if target else digest
