"""Which folders the user trusts, and with which content: kept in the data directory, never in the folder."""

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

import msgspec

from treadle.protocol.base import Record
from treadle.protocol.codec import encode
from treadle.protocol.errors import StoreError
from treadle.store.activation import Item, ItemKind, changes, digest_of, kind_of

_MOST_FILES = 2000
_LARGEST = 16 * 1024 * 1024
"""A file beyond this is told by its size and its time, and so is a change of it."""


class TrustState(StrEnum):
    """Whether a folder may act; `changed` is: was trusted, but not with what it holds now."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How a folder (resolved) stands: what would act in it, and the paths that are not as they were trusted."""

    workspace: Path
    state: TrustState
    items: tuple[Item, ...]
    changed: tuple[str, ...] = ()


class _Grant(Record, frozen=True, kw_only=True):
    """What is written of a trusted folder: the digests by path, with the kind. `at` is milliseconds since 1970."""

    workspace: str
    at: int
    items: tuple[tuple[str, ItemKind, str], ...]


class TrustStore:
    """The user's decisions, one file for each folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, workspace: Path) -> Trust:
        """Say how a folder stands. Only files are read; a decision that cannot be read is none."""
        resolved = workspace.resolve()
        items = find_items(resolved)
        granted = self._granted(resolved)
        if granted is None:
            return Trust(workspace=resolved, state=TrustState.UNTRUSTED, items=items)
        changed = changes(granted, items)
        state = TrustState.CHANGED if changed else TrustState.TRUSTED
        return Trust(workspace=resolved, state=state, items=items, changed=changed)

    def grant(self, trust: Trust) -> Trust:
        """Trust a folder with exactly the items that `trust` lists. Raises `StoreError`."""
        items = tuple((item.path, item.kind, item.digest) for item in trust.items)
        record = _Grant(workspace=str(trust.workspace), at=time.time_ns() // 1_000_000, items=items)
        file = self._file(trust.workspace)
        draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(encode(record))
                os.fsync(stream.fileno())
            draft.replace(file)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise _unwritable(file, error) from error
        return Trust(workspace=trust.workspace, state=TrustState.TRUSTED, items=trust.items)

    def revoke(self, workspace: Path) -> bool:
        """Take trust back; says whether there was any. Raises `StoreError`."""
        file = self._file(workspace.resolve())
        try:
            file.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unwritable(file, error) from error
        return True

    def _file(self, workspace: Path) -> Path:
        return self._directory / f"{sha256(os.fsencode(workspace)).hexdigest()[:32]}.json"

    def _granted(self, workspace: Path) -> tuple[Item, ...] | None:
        file = self._file(workspace)
        try:
            with file.open("rb") as stream:
                found = os.fstat(stream.fileno())
                if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
                    return None
                grant = msgspec.json.decode(stream.read(), type=_Grant)
        except (OSError, msgspec.MsgspecError):
            return None
        if grant.workspace != str(workspace):
            return None
        return tuple(Item(*item) for item in grant.items)


def find_items(workspace: Path) -> tuple[Item, ...]:
    """Find what would act in a resolved folder: in it, and the rules files above it up to the repository's top."""
    found = [_item(workspace / name, name, kind) for name in _candidates(workspace) if (kind := kind_of(name))]
    for folder in _above(workspace):
        rules = (folder / name for name in _names(folder) if kind_of(name) is ItemKind.RULES)
        found += [_item(file, str(file), ItemKind.RULES) for file in rules]
    return tuple(sorted(item for item in found if item.digest))


def _candidates(workspace: Path) -> Iterator[str]:
    for name in _names(workspace):
        match name.casefold():
            case ".treadle":
                yield from _below(workspace / name, name)
            case ".git" if not (workspace / name).is_symlink() and (workspace / name).is_dir():
                known = ("config", "config.worktree", "info/attributes")
                yield from (f"{name}/{rest}" for rest in known if os.path.lexists(workspace / name / rest))
                yield from (f"{name}/hooks/{hook}" for hook in _names(workspace / name / "hooks"))
            case _:
                yield name


def _below(folder: Path, prefix: str) -> Iterator[str]:
    """Name the files of a folder at any depth; links to folders are not followed, but told."""
    count = 0
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in sorted([*files, *links]):
            count += 1
            if count > _MOST_FILES:
                raise StoreError(
                    "trust-too-much", f"{folder} holds more than {_MOST_FILES} files; it cannot be looked through."
                )
            yield f"{prefix}/{(Path(place) / name).relative_to(folder)}"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def _above(workspace: Path) -> list[Path]:
    """Give the folders above a folder up to the top of its repository."""
    if (workspace / ".git").exists():
        return []
    parents = list(workspace.parents)
    top = next((index for index, folder in enumerate(parents) if (folder / ".git").exists()), -1)
    return parents[: top + 1]


def _item(file: Path, name: str, kind: ItemKind) -> Item:
    return Item(name, kind, _digest(file, name))


def _digest(file: Path, name: str) -> str:
    """Digest a file without waiting at what is none, such as a pipe."""
    target = ""
    with suppress(OSError):
        target = str(file.readlink())
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
            found = os.fstat(stream.fileno())
            content = stream.read() if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST else None
    except OSError as error:
        return f"unreadable: {error.strerror}"
    if content is None:
        content = f"{found.st_mode} {found.st_size} {found.st_mtime_ns} {found.st_ino}".encode()
    digest = digest_of(name, content)
    return sha256(f"{target}\0{digest}".encode(errors="surrogateescape")).hexdigest() if target else digest


def _unwritable(file: Path, error: OSError) -> StoreError:
    return StoreError(
        "trust-unwritable",
        f"The decision about trust cannot be written to {file}.",
        why=str(error),
        fix="Check the folder's permissions and free space, or set TREADLE_HOME to another folder.",
    )
