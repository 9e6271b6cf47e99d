"""Another version of a tree, and of a file: some changes of it as they were before, or as somebody wrote them."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from treadle.workspace.checkpoints.merging import LineChange, split_lines
from treadle.workspace.checkpoints.objects import Objects
from treadle.workspace.checkpoints.trees import NO_TREE, TreeEntry, TreeKind


class RevisedFile(Struct, frozen=True, kw_only=True):
    """What a path is in the other version: with `content` a file of these bytes, else what the entry names."""

    entry: TreeEntry
    content: bytes | None = None


Revisions = Mapping[bytes, RevisedFile | None]
"""What paths become; None for what is not there."""


class RevisedTree(Struct, frozen=True, kw_only=True):
    """The other version of a tree; `blocked` are paths that keep their place, as something that stays is in the way."""

    tree: str
    blocked: tuple[bytes, ...] = ()


def revise_tree(tree: str, revisions: Revisions, objects: Objects, above: bytes = b"") -> RevisedTree:
    """Store a tree with other files at some paths."""
    listing = dict(objects.listing(tree))
    here = {path: wanted for path, wanted in revisions.items() if b"/" not in path}
    # What goes, goes first: a file may take the place of a folder, and a folder that of a file.
    for name, wanted in here.items():
        if wanted is None and not _is_folder_entry(listing.get(name)):
            listing.pop(name, None)
    blocked: list[bytes] = []
    for name, inside in _by_folder(revisions).items():
        known = listing.get(name)
        if known is not None and known.kind is not TreeKind.FOLDER:
            blocked += [above + name + b"/" + rest for rest, wanted in inside.items() if wanted is not None]
            continue
        revised = revise_tree(NO_TREE if known is None else known.what, inside, objects, above + name + b"/")
        blocked += revised.blocked
        listing.pop(name, None)
        if revised.tree != NO_TREE:
            listing[name] = TreeEntry(TreeKind.FOLDER, known.mode if known else 0, what=revised.tree)
    added = {name: wanted for name, wanted in here.items() if wanted is not None}
    blocked += [above + name for name in added if _is_folder_entry(listing.get(name))]
    listing |= {
        name: _stored(wanted, objects) for name, wanted in added.items() if not _is_folder_entry(listing.get(name))
    }
    return RevisedTree(tree=objects.add_listing(listing, like=tree), blocked=tuple(blocked))


def _by_folder(revisions: Revisions) -> dict[bytes, dict[bytes, RevisedFile | None]]:
    """Give what is below each folder, by the paths in it."""
    found: dict[bytes, dict[bytes, RevisedFile | None]] = {}
    for path, wanted in revisions.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            found.setdefault(name, {})[rest] = wanted
    return found


def _is_folder_entry(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.kind is TreeKind.FOLDER


def _stored(wanted: RevisedFile, objects: Objects) -> TreeEntry:
    if wanted.content is None:
        return wanted.entry
    like = wanted.entry.what
    return structs.replace(wanted.entry, size=len(wanted.content), what=objects.add(wanted.content, like=like))


def revise_lines(old: bytes, new: bytes, changes: Sequence[LineChange], wanted: Mapping[int, bytes | None]) -> bytes:
    """Give the newer version with some of the changes as in the older one, or with other bytes in their places.

    `wanted` names changes by their index; None is for the older lines.
    """
    before, after = split_lines(old), split_lines(new)
    made: list[bytes] = []
    at = 0
    for index, change in enumerate(changes):
        if index not in wanted:
            continue
        made += after[at : change.new_start]
        given = wanted[index]
        made += before[change.start : change.end] if given is None else [given]
        at = change.new_end
    return b"".join(made + after[at:])
