"""What a writer changed in its copy and what of that is not applied yet."""

import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from treadle.app.subagents.writer_merging import WriterChange
from treadle.app.subagents.writer_record import (
    CopiedRoot,
    WriterCopy,
    base_of,
    copy_store,
    large_digests,
    repository_digest,
    writer_place,
    writer_record,
)
from treadle.workspace.checkpoints.scanning import NotCovered
from treadle.workspace.checkpoints.store import CheckpointStore
from treadle.workspace.checkpoints.trees import TreeEntry, TreeKind
from treadle.workspace.copies.whole_copy import retargeted
from treadle.workspace.files.names import shown_name

_SEEN = "seen"


class ChangeSet(Struct, frozen=True, kw_only=True):
    """What is changed in a copy and not applied yet, as it was when it was read.

    `repositories` are those whose branches, settings or hooks changed, `left_out` what changed and is not handed back,
    with the reason. `made` are bytes by their SHA-256 that are in no store: targets of links, parts of files.
    """

    copy: WriterCopy
    files: tuple[WriterChange, ...]
    repositories: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    made: dict[str, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self.files or self.repositories or self.left_out)


def writer_changes(copy: WriterCopy) -> ChangeSet:
    """Read what is changed in a copy and not applied. For a thread. Raises `StoreError`, `SessionError`."""
    record = writer_record(copy)
    files: list[WriterChange] = []
    left_out: list[str] = []
    repositories: list[str] = []
    links: dict[str, bytes] = {}
    back = {str(target): str(source) for source, target in copy.roots}
    for number, ((source, target), row) in enumerate(zip(copy.roots, record.roots, strict=True)):
        with copy_store(writer_place(copy.child_id), number, target, covers_ignored=row.covers_ignored) as store:
            base = base_of(store, copy)
            taken = store.take(_SEEN)
            for one in store.compare(base, taken.tree):
                sides = [_with_links(entry, store, back, links) for entry in (one.before, one.after)]
                if sides[0] != sides[1]:
                    path = os.fsencode(one.path)
                    change = WriterChange(root=number, path=path, before=sides[0], after=sides[1], kept=one.after)
                    files.append(change)
        left_out += _left_out(target, row, taken.not_covered)
        repositories += (
            str(source / name)
            for encoded, digest in row.repositories.items()
            if repository_digest(target / (name := os.fsdecode(bytes.fromhex(encoded)))) != digest
        )
    return ChangeSet(
        copy=copy,
        files=tuple(files),
        repositories=tuple(repositories),
        left_out=tuple(left_out),
        made=links,
    )


def _with_links(
    entry: TreeEntry | None, store: CheckpointStore, back: dict[str, str], links: dict[str, bytes]
) -> TreeEntry | None:
    """Give an entry as it would be in the workspace: a link into the copy leads into the workspace there."""
    if entry is None or entry.kind is not TreeKind.LINK:
        return entry
    link = os.fsdecode(store.read(entry.what))
    target = os.fsencode(retargeted(link, back))
    digest = sha256(target).hexdigest()
    links[digest] = target
    return TreeEntry(TreeKind.LINK, 0, len(target), digest)


def _left_out(target: Path, row: CopiedRoot, now: Sequence[NotCovered]) -> Iterator[str]:
    """Name what changed and is not compared, as far as that can be told."""
    known = {bytes.fromhex(path) for path in row.uncovered}
    for one in now:
        if one.path not in known:
            yield f"{shown_name(os.fsdecode(one.path))}: {one.why}"
    large = large_digests(target, [bytes.fromhex(path) for path in row.large])
    for path, digest in row.large.items():
        if large.get(path) != digest:
            yield f"{shown_name(os.fsdecode(bytes.fromhex(path)))}: it changed, and it is too large to be handed back"
