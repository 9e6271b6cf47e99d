"""What is written of a writer's copy, and where its parts are: files, the state they began with, and the record."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from treadle.app.config.places import data_directory
from treadle.app.subagents.writer_merging import LARGEST
from treadle.protocol.errors import SessionError
from treadle.protocol.patterns import regex
from treadle.workspace.checkpoints.store import CheckpointStore, open_checkpoints
from treadle.workspace.copies.whole_copy import repository_state
from treadle.workspace.files.names import shown_name

CHILD_ID = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
RECORD = "copy.json"
BASE = "base"
_PATIENCE = 5.0
_CHUNK = 1024 * 1024


class WriterCopy(Struct, frozen=True, kw_only=True):
    """A copy of a workspace; all paths are absolute and resolved.

    `folder` is the copy of `workspace`; `roots` are all folders with their copies, the workspace first. `notes` name
    what is not in it as it is in the workspace, and what of it is never handed back.
    """

    child_id: str
    workspace: Path
    folder: Path
    roots: tuple[tuple[Path, Path], ...]
    notes: tuple[str, ...] = ()


class CopiedRoot(Struct, frozen=True, kw_only=True):
    """One folder as it is recorded, paths in hex; `repositories` and `large` are digests by path."""

    source: str
    target: str
    covers_ignored: bool
    repositories: dict[str, str]
    uncovered: tuple[str, ...]
    large: dict[str, str]


class CopyRecord(Struct, frozen=True, kw_only=True):
    """What is written of a copy once it is whole."""

    roots: tuple[CopiedRoot, ...]
    notes: tuple[str, ...]


def open_copy(child_id: str) -> WriterCopy | None:
    """Find the copy of a child again; None where there is none, or only the beginning of one."""
    record = read_record(child_id)
    return None if record is None else opened_copy(child_id, record)


def large_digests(folder: Path, paths: Sequence[bytes]) -> dict[str, str]:
    """Digest the large files among what is not covered."""
    found: dict[str, str] = {}
    for path in paths:
        file = folder / os.fsdecode(path)
        if file.is_symlink() or not file.is_file():
            continue
        with contextlib.suppress(OSError), file.open("rb") as stream:
            digest = sha256()
            while data := stream.read(_CHUNK):
                digest.update(data)
            found[path.hex()] = digest.hexdigest()
    return found


def base_of(store: CheckpointStore, copy: WriterCopy) -> str:
    base = store.tree_of(BASE)
    if base is None:
        raise SessionError(
            "writer-copy",
            f"How the copy in {copy.folder} was in the beginning is not known any more.",
            why="Its store is damaged.",
            fix=f"Compare it with {shown_name(str(copy.workspace))} yourself; both are as they were.",
        )
    return base


def repository_digest(git: Path) -> str:
    return sha256(msgspec.msgpack.encode(sorted(repository_state(git).items()))).hexdigest()


@contextlib.contextmanager
def copy_store(place: Path, number: int, target: Path, *, covers_ignored: bool) -> Iterator[CheckpointStore]:
    store = open_checkpoints(
        place / "store" / str(number),
        str(target),
        covers_ignored=covers_ignored,
        largest=LARGEST,
        patience=_PATIENCE,
        packs=False,  # it lives as long as its copy, which a subagent waits for
    )
    try:
        yield store
    finally:
        store.close()


def writers_folder() -> Path:
    """Give the folder of all copies: beside Treadle's own data, which no session may touch."""
    data = data_directory()
    return data.with_name(f"{data.name}-writers")


def writer_place(child_id: str) -> Path:
    if not CHILD_ID.fullmatch(child_id):
        raise SessionError("writer-copy", f"{shown_name(child_id)!r} is not the id of a subagent.")
    return writers_folder() / child_id


def read_record(child_id: str) -> CopyRecord | None:
    """Read what is known of a copy; None where there is none. Raises `SessionError` where it cannot be read."""
    file = writer_place(child_id) / RECORD
    try:
        return msgspec.json.decode(file.read_bytes(), type=CopyRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise SessionError(
            "writer-copy",
            f"What is known of the copy in {file.parent} cannot be read.",
            why=f"{file}: {getattr(error, 'strerror', None) or error}.",
            fix="Make the file readable, or take what you need out of that folder and remove it.",
        ) from error


def writer_record(copy: WriterCopy) -> CopyRecord:
    record = read_record(copy.child_id)
    if record is None:
        raise SessionError(
            "writer-copy",
            f"There is no copy in {copy.folder} any more.",
            fix="`treadle doctor` lists them.",
        )
    return record


def opened_copy(child_id: str, record: CopyRecord) -> WriterCopy:
    place = writer_place(child_id)
    roots = tuple((_path(row.source), place / _path(row.target)) for row in record.roots)
    return WriterCopy(child_id=child_id, workspace=roots[0][0], folder=roots[0][1], roots=roots, notes=record.notes)


def hex_of(path: Path) -> str:
    return os.fsencode(path).hex()


def _path(encoded: str) -> Path:
    return Path(os.fsdecode(bytes.fromhex(encoded)))
