"""A text that a person typed into an editor, and what checkpoints hold of its file."""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from treadle.app.checkpoints.own_files import KeptRoot
from treadle.protocol.checkpoints import CheckpointTaken
from treadle.workspace.checkpoints.merging import line_edits, merge_lines, split_lines
from treadle.workspace.checkpoints.revising import RevisedFile
from treadle.workspace.checkpoints.trees import TreeEntry, TreeKind
from treadle.workspace.files.paths import may_be_there


class TypedFile(Struct, frozen=True):
    """The whole path of a file, and its text as a person has it in an editor."""

    path: str
    text: bytes

    def place(self, roots: Sequence[KeptRoot]) -> tuple[int, bytes] | None:
        """Find the number of its root, and its path in there; None for one in no root."""
        for number, root in enumerate(roots):
            if self.path.startswith(f"{root.path}/"):
                return number, os.fsencode(self.path.removeprefix(f"{root.path}/"))
        return None


def with_typed(
    roots: Sequence[KeptRoot], trees: tuple[str, ...], typed: TypedFile | None, name: str
) -> tuple[str, ...]:
    """Keep trees under a name, with what was typed in the place of what the disk has; gives them."""
    place = None if typed is None else typed.place(roots)
    if typed is None or place is None:
        return trees
    number, below = place
    kept, tree = roots[number].kept, trees[number]
    entry = kept.entry(tree, below)
    if entry is None and may_be_there(typed.path):
        return trees  # checkpoints do not cover it
    file = entry or TreeEntry(TreeKind.FILE, 0o644)
    if file.kind is not TreeKind.FILE:
        return trees
    revised = kept.revise(name, tree, {below: RevisedFile(entry=file, content=typed.text)})
    return (*trees[:number], revised.tree, *trees[number + 1 :])


def would_revert(
    roots: Sequence[KeptRoot], taken: Iterable[CheckpointTaken], typed: TypedFile, edited: Callable[[], Collection[str]]
) -> bool:
    """Whether saving the text would take back what the session did to the file on the disk by other means than edits.

    `edited` gives the hashes of all that its edits wrote: these the editor has saved.
    """
    place = typed.place(roots)
    history = [one for one in taken if len(one.trees) == len(roots)]
    if place is None or not history:
        return False
    number, below = place
    kept = roots[number].kept
    now = _bytes(roots[number], kept.entry(history[-1].trees[number], below))
    for before, after in pairwise(history):
        if not after.moment.may_end_work or before.trees[number] == after.trees[number]:
            continue
        old, new = kept.entry(before.trees[number], below), kept.entry(after.trees[number], below)
        if old == new or new is None or new.what in edited():
            continue
        without = merge_lines(_bytes(roots[number], new), now, _bytes(roots[number], old))
        if without is not None and _loses(without, now, typed.text):
            return True
    return False


def _bytes(root: KeptRoot, entry: TreeEntry | None) -> bytes:
    return root.kept.read(entry.what) if entry is not None and entry.kind is TreeKind.FILE else b""


def _loses(without: bytes, now: bytes, text: bytes) -> bool:
    """Whether a text has other lines in one of the places in which what is there now differs from what was without."""
    lines = split_lines(now)
    done = [(one.new_start, one.new_end) for one in line_edits(split_lines(without), lines)]
    typed = [(one.start, one.end) for one in line_edits(lines, split_lines(text))]
    return any(
        (start < to and first < end) or (first == to and start <= first <= end)
        for first, to in done
        for start, end in typed
    )
