"""Trees of files as values: what they hold, how they are stored, and where two of them differ."""

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct

NO_TREE = ""
"""The tree of a folder in which nothing is."""


class TreeKind(StrEnum):
    """What a path is. A folder is there when something in it is; one that is not covered is never touched."""

    FILE = "f"
    LINK = "l"
    FOLDER = "d"
    NOT_COVERED = "n"


class TreeEntry(Struct, frozen=True, array_like=True):
    """One name of a tree: `what` is the SHA-256 (hex) of a file's bytes, of a link's target or of a folder's tree.

    `mode` are the nine bits of rights of a file, or of a folder that has others than usual, 0 for all else; `size` the
    bytes of a file. What is not covered has in `what` the reason.
    """

    kind: TreeKind
    mode: int = 0
    size: int = 0
    what: str = ""


LARGEST_KEPT = 50_000_000
"""Bytes of a file beyond which no checkpoint holds it."""

USUAL_RIGHTS = 0o755
"""Those of a folder of which a tree says nothing else."""


def folder_entry(tree: str, mode: int) -> TreeEntry:
    """Give the entry of a folder with this tree and these rights."""
    return TreeEntry(TreeKind.FOLDER, 0 if mode == USUAL_RIGHTS else mode, what=tree)


TreeListing = Mapping[bytes, TreeEntry]
"""What is directly in a folder, by name."""

TreeReader = Callable[[str], TreeListing]
BlobReader = Callable[[str], bytes]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[bytes, str, int, int, bytes, str]]).decode


def pack_listing(listing: TreeListing) -> bytes:
    """Give the bytes that a listing is stored as; the same listing gives the same bytes."""
    rows = []
    for name, entry in sorted(listing.items()):
        gone = entry.kind is TreeKind.NOT_COVERED
        digest, why = (b"", entry.what) if gone else (bytes.fromhex(entry.what), "")
        rows.append((name, entry.kind.value, entry.mode, entry.size, digest, why))
    return _encode(rows)


def unpack_listing(data: bytes) -> dict[bytes, TreeEntry]:
    """Read a listing. Raises `msgspec.MsgspecError` for other bytes."""
    return {
        name: TreeEntry(TreeKind(kind), mode, size, why or digest.hex())
        for name, kind, mode, size, digest, why in _decode(data)
    }


def flat_tree(tree: str, read: TreeReader) -> dict[bytes, TreeEntry]:
    """Give everything in a tree but its folders, by path."""
    return {path: new for path, _, new in tree_differences(NO_TREE, tree, read) if new is not None}


def folder_rights(
    tree: str, folders: Collection[bytes], read: TreeReader, above: bytes = b""
) -> Iterator[tuple[bytes, int]]:
    """Give those of these folders that have other rights than usual in a tree, with the rights."""
    for name, entry in (read(tree) if tree else {}).items():
        path = above + name
        if path in folders and _is_folder(entry):
            if entry.mode:
                yield path, entry.mode
            yield from folder_rights(entry.what, folders, read, path + b"/")


def tree_differences(
    old: str, new: str, read: TreeReader, above: bytes = b""
) -> Iterator[tuple[bytes, TreeEntry | None, TreeEntry | None]]:
    """Give each path that differs, with what it was and is; a folder that takes a file's place is the files in it."""
    if old == new:
        return
    before: TreeListing = read(old) if old else {}
    after: TreeListing = read(new) if new else {}
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        path = above + name
        if _is_folder(was) or _is_folder(now):
            inside = path + b"/"
            yield from tree_differences(_tree_of(was), _tree_of(now), read, inside)
        was, now = _not_folder(was), _not_folder(now)
        if was != now:
            yield path, was, now


def _is_folder(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.kind is TreeKind.FOLDER


def _tree_of(entry: TreeEntry | None) -> str:
    return entry.what if entry is not None and entry.kind is TreeKind.FOLDER else NO_TREE


def _not_folder(entry: TreeEntry | None) -> TreeEntry | None:
    return None if _is_folder(entry) else entry


def folders_above(path: bytes) -> Iterator[bytes]:
    """Give the folders that a path lies in, the innermost first; not the root."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path
