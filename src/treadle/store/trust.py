"""Which folders the user trusts, and with which content: kept in the data directory, never in the folder."""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.base import Record
from treadle.protocol.codec import encode
from treadle.protocol.errors import StoreError
from treadle.store.activation import (
    CLAUDE_SETTINGS,
    RULE_FILES,
    RULE_FOLDERS,
    ActiveFile,
    ActiveKind,
    active_kind,
    changes,
    digest_of,
)
from treadle.workspace.paths import FolderEntry, Listed, NoFolder, Unlisted, first_closed, list_folder

_MOST_FILES = 2000
_DEEPEST_IMPORT = 5
_MOST_IMPORTS = 50
_LONGEST_RULES = 1024 * 1024
"""Bytes of a rules file in which imports are looked for."""

_IMPORTING = frozenset({"claude.md", "claude.local.md", "gemini.md"})
_HOLDERS = frozenset(folder.partition("/")[0] for folder in RULE_FOLDERS)
_LARGEST = 16 * 1024 * 1024
"""A file beyond this is told by its size and its time, and so is a change of it."""


class TrustState(StrEnum):
    """Whether a folder may act; `changed` is: was trusted, but not with what it holds now."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    CHANGED = "changed"


class Trust(Struct, frozen=True, kw_only=True):
    """How a folder (resolved) stands: what would act in it, and the paths that are not as they were trusted.

    `known` are the paths that were trusted before; `refused` says that the user answered no to exactly these items.
    `nested` are rules in folders below, which apply where those are worked in: as they were trusted, or as they are
    where they were looked for. `approved` are rules that a person read whole and said yes to, which need no trust.
    """

    workspace: Path
    state: TrustState
    items: tuple[ActiveFile, ...]
    changed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    refused: bool = False
    nested: tuple[ActiveFile, ...] = ()
    approved: tuple[ActiveFile, ...] = ()

    @property
    def waiting(self) -> tuple[ActiveFile, ...]:
        """What would act and that nobody approved by itself."""
        return tuple(item for item in self.items if item not in self.approved)

    @property
    def listed(self) -> tuple[ActiveFile, ...]:
        """Everything that a person is shown, and says yes or no to."""
        return (*self.items, *self.nested)


class _Answer(Record, frozen=True, kw_only=True):
    """What is written of a folder: the answer, and what it is about. `at` is milliseconds since 1970."""

    workspace: str
    at: int
    items: tuple[tuple[str, ActiveKind, str], ...]
    refused: bool = False
    nested: tuple[tuple[str, ActiveKind, str], ...] = ()

    def listed(self, *, nested: bool = False) -> tuple[ActiveFile, ...]:
        return tuple(ActiveFile(*item) for item in (self.nested if nested else self.items))


class TrustStore:
    """The user's decisions, one file for each folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, workspace: Path, nested: tuple[ActiveFile, ...] | None = None) -> Trust:
        """Say how a folder stands. Only files are read; a decision that cannot be read is none.

        `nested` are the rules in folders below where somebody looked for them: then the word is about these too.
        """
        resolved = workspace.resolve()
        items = find_items(resolved)
        approved = tuple(one for one in self._approved(resolved) if one in items)
        answer = self._answer(resolved)
        if answer is None or answer.refused:
            waiting = [item for item in items if item not in approved]
            return Trust(
                workspace=resolved,
                state=TrustState.UNTRUSTED,
                items=items,
                refused=answer is not None and not changes(answer.listed(), waiting),
                nested=nested or (),
                approved=approved,
            )
        below = answer.listed(nested=True)
        changed = changes((*answer.listed(), *below), (*items, *(below if nested is None else nested)))
        return Trust(
            workspace=resolved,
            state=TrustState.CHANGED if changed else TrustState.TRUSTED,
            items=items,
            changed=changed,
            known=tuple(item.path for item in (*answer.listed(), *below)),
            nested=below if nested is None else nested,
            approved=approved,
        )

    def folders(self) -> list[Path]:
        """List the folders that were trusted, by name; some may be gone."""
        answers = (_read_answer(self._directory / name) for name in _names(self._directory) if name.endswith(".json"))
        return sorted(Path(answer.workspace) for answer in answers if answer is not None and not answer.refused)

    def grant(self, trust: Trust) -> Trust:
        """Trust a folder with exactly the items that `trust` lists. Raises `StoreError`."""
        self._keep(self._file(trust.workspace), trust)
        return replace(trust, state=TrustState.TRUSTED, changed=(), known=(), refused=False)

    def refuse(self, trust: Trust) -> Trust:
        """Keep that the user does not trust a folder with exactly these items. Raises `StoreError`."""
        self._keep(self._file(trust.workspace), replace(trust, items=trust.waiting), refused=True)
        return replace(trust, state=TrustState.UNTRUSTED, refused=True)

    def approve(self, trust: Trust, item: ActiveFile) -> None:
        """Keep that the user approved one rules file with exactly this content. Raises `StoreError`."""
        others = [one for one in self._approved(trust.workspace) if one.path != item.path]
        self._keep(self._approvals(trust.workspace), replace(trust, items=(*others, item), nested=()))

    def is_approved(self, workspace: Path, path: str, digest: str) -> bool:
        """Whether the user approved a rules file with this content."""
        return any((one.path, one.digest) == (path, digest) for one in self._approved(workspace))

    def _keep(self, file: Path, trust: Trust, *, refused: bool = False) -> None:
        items, nested = (
            tuple((one.path, one.kind, one.digest) for one in some) for some in (trust.items, trust.nested)
        )
        at = time.time_ns() // 1_000_000
        record = _Answer(workspace=str(trust.workspace), at=at, items=items, nested=nested, refused=refused)
        from treadle.workspace.private_file import write_private

        try:
            write_private(file, encode(record), follow=False)
        except (OSError, UnicodeEncodeError) as error:
            raise _unwritable(file, error) from error

    def revoke(self, workspace: Path) -> bool:
        """Take trust back, also what was approved by itself; says whether there was any. Raises `StoreError`."""
        resolved = workspace.resolve()
        approved = _removed(self._approvals(resolved))
        return _removed(self._file(resolved)) or approved

    def _file(self, workspace: Path) -> Path:
        return self._directory / f"{sha256(os.fsencode(workspace)).hexdigest()[:32]}.json"

    def _approvals(self, workspace: Path) -> Path:
        return self._directory / "approved" / self._file(workspace).name

    def _approved(self, workspace: Path) -> tuple[ActiveFile, ...]:
        return answer.listed() if (answer := _read_answer(self._approvals(workspace), workspace)) else ()

    def _answer(self, workspace: Path) -> _Answer | None:
        return _read_answer(self._file(workspace), workspace)


def _removed(file: Path) -> bool:
    """Remove an answer; says whether there was one. Raises `StoreError`."""
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unwritable(file, error) from error
    return True


def _read_answer(file: Path, workspace: Path | None = None) -> _Answer | None:
    """Read an answer, about one folder; one that another user could have written is none."""
    try:
        with file.open("rb") as stream:
            found = os.fstat(stream.fileno())
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
                return None
            answer = msgspec.json.decode(stream.read(), type=_Answer)
    except (OSError, msgspec.MsgspecError):
        return None
    return answer if workspace is None or answer.workspace == str(workspace) else None


def find_items(workspace: Path) -> tuple[ActiveFile, ...]:
    """Find what would act in a resolved folder: in it, and the rules files above it up to the repository's top."""
    found = [_item(workspace / name, name, kind) for name in _candidates(workspace) if (kind := active_kind(name))]
    for folder in _above(workspace):
        names = [name for name in _rule_candidates(folder, _names(folder)) if active_kind(name) is ActiveKind.RULES]
        found += [_item(folder / name, str(folder / name), ActiveKind.RULES) for name in names]
    found += imported_items(workspace, found)
    return tuple(sorted({item for item in found if item.digest}))


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
    from treadle.workspace.access_lists import AccessLists

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
    names = _names(workspace)
    yield from _rule_candidates(workspace, names)
    for name in names:
        match name.casefold():
            case ".treadle":
                yield from _below(workspace / name, name)
            case ".agents" | ".claude":
                skills = _names(workspace / name / "skills")[:_MOST_FILES]
                yield from (
                    f"{name}/skills/{one}/{file}"
                    for one in skills
                    for file in _names(workspace / name / "skills" / one)
                )
                yield from _below(workspace / name / "commands", f"{name}/commands")
                yield from _hook_candidates(workspace, name)
            case ".git" if not (workspace / name).is_symlink() and _is_folder(workspace / name):
                known = ("config", "config.worktree", "info/attributes")
                yield from (f"{name}/{rest}" for rest in known if _is_there(workspace / name, rest))
                yield from (f"{name}/hooks/{hook}" for hook in _names(workspace / name / "hooks"))
            case folded if folded not in RULE_FILES:
                yield name
            case _:
                pass


def _hook_candidates(workspace: Path, folder: str) -> Iterator[str]:
    """Name Claude Code's settings, and where these have hooks also the scripts that are kept for them."""
    settings = [name for one in _names(workspace / folder) if (name := f"{folder}/{one}").casefold() in CLAUDE_SETTINGS]
    yield from settings
    if any(_digest(workspace / name, name) for name in settings):
        yield from _below(workspace / folder / "hooks", f"{folder}/hooks")


def _rule_candidates(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """Name what may be rules in a folder: files in it, and the folders that tools keep them in."""
    for name in names:
        folded = name.casefold()
        if folded == ".github":
            yield from (f"{name}/{file}" for file in _names(folder / name))
        elif folded in RULE_FILES and not (folded in RULE_FOLDERS and _is_folder(folder / name)):
            yield name
        elif folded in _HOLDERS:
            inside = "" if folded in RULE_FOLDERS else "/rules"
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


def _names(folder: Path) -> list[str]:
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
    """Find the top of the repository that a resolved folder is in, by its `.git`; None where there is none."""
    return next((folder for folder in (workspace, *workspace.parents) if (folder / ".git").exists()), None)


def listed_item(workspace: Path, name: str, kind: ActiveKind) -> ActiveFile:
    """List a file by its path from the workspace, or its absolute one, with its digest now."""
    return _item(workspace / name, name, kind)


def _item(file: Path, name: str, kind: ActiveKind) -> ActiveFile:
    written = name.encode(errors="backslashreplace").decode()
    return ActiveFile(written, kind, _digest(file, name))


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


def _unwritable(file: Path, error: Exception) -> StoreError:
    return StoreError(
        "trust-unwritable",
        f"The decision about trust cannot be saved to {file}.",
        why=str(error),
        fix="Check the folder's permissions and free space, or set TREADLE_HOME to another folder.",
    )
