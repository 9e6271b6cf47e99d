"""Which folders the user trusts, and with which content: kept in the data directory, never in the folder."""

import os
import stat
import time
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.base import Record
from treadle.protocol.codec import encode
from treadle.protocol.errors import StoreError
from treadle.store.activation import (
    ActiveFile,
    ActiveKind,
    changes,
)
from treadle.store.active_items import find_items, names_in

_COPIES = "copies"


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
    `copy_of` is the folder that it is a copy of: as long as nothing was said of the copy, it stands as that does.
    """

    workspace: Path
    state: TrustState
    items: tuple[ActiveFile, ...]
    changed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    refused: bool = False
    nested: tuple[ActiveFile, ...] = ()
    approved: tuple[ActiveFile, ...] = ()
    copy_of: Path | None = None

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


class _Copied(Record, frozen=True, kw_only=True):
    """What is written of a copy: the folder that it was made of. Another folder of its name is not the copy."""

    workspace: str
    of: str
    device: int
    inode: int

    def is_there(self) -> bool:
        try:
            found = Path(self.workspace).lstat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == (self.device, self.inode)


_Written = TypeVar("_Written", _Answer, _Copied)


class TrustStore:
    """The user's decisions, one file for each folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, workspace: Path, nested: tuple[ActiveFile, ...] | None = None) -> Trust:
        """Say how a folder stands. Only files are read; a decision that cannot be read is none.

        `nested` are the rules in folders below where somebody looked for them: then the word is about these too.
        """
        resolved = workspace.resolve()
        items, origin = find_items(resolved), self.origin(resolved)
        approved = tuple(one for one in self._approved(resolved, origin) if one in items)
        answer = self._answer(resolved)
        inherits = answer is None and origin is not None
        answer = self._answer(origin) if inherits and origin is not None else answer
        trust = Trust(workspace=resolved, state=TrustState.UNTRUSTED, items=items, approved=approved, copy_of=origin)
        below = () if answer is None else answer.listed(nested=True)

        def differing(said: tuple[ActiveFile, ...], found: tuple[ActiveFile, ...]) -> tuple[str, ...]:
            # What of the folder is not in its copy was not taken along.
            return changes([one for one in said if one.path in {it.path for it in found}] if inherits else said, found)

        if answer is None or answer.refused:
            refused = answer is not None and not differing(answer.listed(), trust.waiting)
            return replace(trust, refused=refused, nested=nested or ())
        changed = differing((*answer.listed(), *below), (*items, *(below if nested is None else nested)))
        return replace(
            trust,
            state=TrustState.CHANGED if changed else TrustState.TRUSTED,
            changed=changed,
            known=tuple(item.path for item in (*answer.listed(), *below)),
            nested=below if nested is None else nested,
        )

    def origin(self, folder: Path) -> Path | None:
        """Give the folder of which a resolved one is a copy, or the part of it that this is a copy of."""
        if not (self._directory / _COPIES).is_dir():
            return None
        for place in (folder, *folder.parents):
            copied = _read_answer(self._copies(place), _Copied)
            if copied is not None and copied.workspace == str(place) and copied.is_there():
                return Path(copied.of) / folder.relative_to(place)
        return None

    def note_copy(self, folder: Path, of: Path) -> None:
        """Keep that a folder is a copy of another one, both resolved. Raises `StoreError`."""
        if self.origin(folder) == of:
            return
        file = self._copies(folder)
        try:
            found = folder.lstat()
            self._write(file, _Copied(workspace=str(folder), of=str(of), device=found.st_dev, inode=found.st_ino))
        except OSError as error:
            raise _unwritable(file, error) from error

    def folders(self) -> list[Path]:
        """List the folders that were trusted, by name; some may be gone."""
        names = [name for name in names_in(self._directory) if name.endswith(".json")]
        answers = (_read_answer(self._directory / name, _Answer) for name in names)
        return sorted(Path(answer.workspace) for answer in answers if answer is not None and not answer.refused)

    def grant(self, trust: Trust) -> Trust:
        """Trust a folder with exactly the items that `trust` lists. Raises `StoreError`."""
        self._keep(self._file(trust.workspace), trust)
        return replace(trust, state=TrustState.TRUSTED, changed=(), known=(), refused=False)

    def refuse(self, trust: Trust) -> Trust:
        """Keep that the user does not trust a folder with exactly these items. Raises `StoreError`."""
        self._keep(self._file(trust.workspace), replace(trust, items=trust.waiting), refused=True)
        return replace(trust, state=TrustState.UNTRUSTED, changed=(), known=(), refused=True)

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
        self._write(file, _Answer(workspace=str(trust.workspace), at=at, items=items, nested=nested, refused=refused))

    def _write(self, file: Path, record: _Answer | _Copied) -> None:
        from treadle.workspace.files.private_file import write_private

        try:
            write_private(file, encode(record), follow=False)
        except (OSError, UnicodeEncodeError) as error:
            raise _unwritable(file, error) from error

    def revoke(self, workspace: Path) -> bool:
        """Take trust back, also what was approved by itself; says whether there was any. Raises `StoreError`."""
        resolved = workspace.resolve()
        approved = _removed(self._approvals(resolved))
        removed = _removed(self._file(resolved)) or approved
        if self.origin(resolved) in (None, resolved):
            return removed
        trusted = self.read(resolved).state is not TrustState.UNTRUSTED
        self.note_copy(resolved, resolved)  # it stands by itself from now on, and asks
        return removed or trusted

    def _file(self, workspace: Path) -> Path:
        return self._directory / f"{sha256(os.fsencode(workspace)).hexdigest()[:32]}.json"

    def _approvals(self, workspace: Path) -> Path:
        return self._directory / "approved" / self._file(workspace).name

    def _copies(self, workspace: Path) -> Path:
        return self._directory / _COPIES / self._file(workspace).name

    def _approved(self, *folders: Path | None) -> tuple[ActiveFile, ...]:
        answers = [self._said(self._approvals(folder), folder) for folder in folders if folder is not None]
        return tuple(one for answer in answers if answer is not None for one in answer.listed())

    def _answer(self, workspace: Path) -> _Answer | None:
        return self._said(self._file(workspace), workspace)

    def _said(self, file: Path, workspace: Path) -> _Answer | None:
        answer = _read_answer(file, _Answer)
        return answer if answer is not None and answer.workspace == str(workspace) else None


def _removed(file: Path) -> bool:
    """Remove an answer; says whether there was one. Raises `StoreError`."""
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unwritable(file, error) from error
    return True


def _read_answer(file: Path, kind: type[_Written]) -> _Written | None:
    """Read what was written of a folder; what another user could have written is nothing."""
    try:
        with file.open("rb") as stream:
            found = os.fstat(stream.fileno())
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
                return None
            return msgspec.json.decode(stream.read(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _unwritable(file: Path, error: Exception) -> StoreError:
    return StoreError(
        "trust-unwritable",
        f"The decision about trust cannot be saved to {file}.",
        why=str(error),
        fix="Check the folder's permissions and free space, or set TREADLE_HOME to another folder.",
    )
