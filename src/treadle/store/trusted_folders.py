"""Which folders the user trusts, and with which content: kept in the data directory, never in the folder."""

import os
import stat
import time
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

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
        answers = (_read_answer(self._directory / name) for name in names_in(self._directory) if name.endswith(".json"))
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
        record = _Answer(workspace=str(trust.workspace), at=at, items=items, nested=nested, refused=refused)
        from treadle.workspace.files.private_file import write_private

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


def _unwritable(file: Path, error: Exception) -> StoreError:
    return StoreError(
        "trust-unwritable",
        f"The decision about trust cannot be saved to {file}.",
        why=str(error),
        fix="Check the folder's permissions and free space, or set TREADLE_HOME to another folder.",
    )
