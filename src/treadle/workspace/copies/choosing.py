"""What of a copy's changes can be applied: what is held back and why, what is thrown away, and what goes with what."""

import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from treadle.workspace.copies.caches import git_ignores, hidden_by_themselves, in_inner_cache
from treadle.workspace.copies.git_index import Tracked
from treadle.workspace.copies.staging import Difference, EntryState, Manifest
from treadle.workspace.copies.upper import CACHE, INDEX, LARGE, MASKED, REPOSITORY

Hold = Callable[[str], str]
"""Says of an absolute path why it must not be changed; empty for what may be."""

_REASONS = {
    MASKED: "the command could not read it, so its change is not based on what it holds",
    REPOSITORY: "it also changed the repository; run it in git",
    INDEX: "it also changed the repository; run it in git",
    LARGE: "too large to keep",
}
_SPECIAL = "a pipe, socket or device is never applied"
_OUTSIDE = "the link leads out of the workspace"
_MOST_LINKS = 40
_IGNORE_FILE = b".gitignore"


def nothing_is_held(path: str) -> str:  # noqa: ARG001 - as it comes
    """Hold nothing back."""
    return ""


@dataclass(frozen=True, slots=True)
class ChangeSelection:
    """The changes that can be applied, those that go with them without being shown, and the held ones with why.

    `ignored` counts files that are thrown away. `digest` names all of it.
    """

    chosen: tuple[Difference, ...]
    beside: tuple[Difference, ...]
    held: tuple[tuple[Difference, str], ...]
    ignored: int
    digest: str


_Key = tuple[int, bytes]


class _Chooser:
    """Goes over all changes, each time with a further reason to leave one out."""

    def __init__(self, roots: Sequence[str], changes: Sequence[Difference], hold: Hold) -> None:
        self.roots = roots
        self.judge = hold
        self.tracked = Tracked(roots)
        self.all: Mapping[_Key, Difference] = {(change.root, change.path): change for change in changes}
        self.held: dict[_Key, str] = {}
        self.dropped: set[_Key] = set()
        self.beside: set[_Key] = set()
        self.ignored = 0

    def path_of(self, key: _Key) -> str:
        """Give the absolute path."""
        root, path = key
        return self.roots[root] if path == b"." else posixpath.join(self.roots[root], os.fsdecode(path))

    def ignore(self, new_rules: Mapping[_Key, bytes]) -> None:
        """Throw away what git ignores and what is in a cache, but for what goes with a removed folder."""
        for number, root in enumerate(self.roots):
            ignores = git_ignores(root)
            own = hidden_by_themselves({key[1]: data for key, data in new_rules.items() if key[0] == number})
            for key in sorted(key for key in self.all if key[0] == number):
                if self.is_ignored(key, ignores, own):
                    self.throw_away(key)

    def is_ignored(self, key: _Key, ignores: Callable[[bytes, bool], bool], own: frozenset[bytes]) -> bool:
        """Whether a change is of no interest; a file that git has is, whatever its rules say."""
        change, path = self.all[key], key[1]
        if change.note in (MASKED, REPOSITORY, INDEX) or path == b".":
            return False
        if change.note == CACHE or in_inner_cache(path) or any(folder in own for folder in _above(path, itself=True)):
            return True
        either = change.after or change.before
        hidden = ignores(path, either is not None and either.kind == "d")
        return hidden and not (change.before is not None and self.tracked.has(*key))

    def throw_away(self, key: _Key) -> None:
        """Leave a change out, unless the folder that it is in is removed: then it goes too."""
        change = self.all[key]
        parent = self.parent(key)
        if (
            change.after is None
            and parent is not None
            and parent not in self.dropped
            and _no_folder_now(self.all[parent])
        ):
            self.beside.add(key)
            return
        self.dropped.add(key)
        either = change.after or change.before
        self.ignored += either is not None and either.kind != "d"

    def parent(self, key: _Key) -> _Key | None:
        """Give the change of the folder that a path is in."""
        above = (key[0], key[1].rpartition(b"/")[0])
        return above if above in self.all else None

    def hold(self) -> None:
        """Hold back what must be, and whatever cannot be without it."""
        for key, change in self.all.items():
            if key not in self.dropped and (reason := self.reason(key, change)):
                self.held[key] = reason
        for key in sorted(self.all):
            above = next((up for up in self.ups(key) if up in self.held and not _is_same_folder(self.all[up])), None)
            if key not in self.held and key not in self.dropped and above is not None:
                self.held[key] = f"{self.name(above)} is held back"
        for key in sorted(self.held, reverse=True):
            self.keep_above(key)
        for key in sorted(self.dropped, reverse=True):
            self.keep_above(key)

    def reason(self, key: _Key, change: Difference) -> str:
        """Say why a change is held."""
        if change.note in _REASONS:
            return _REASONS[change.note]
        if change.after is not None and change.after.kind == "s":
            return _SPECIAL
        if change.before is not None and change.before.kind == "s":
            return _SPECIAL
        if change.after is not None and change.after.kind == "l" and not self.stays_inside(key, change.after):
            return _OUTSIDE
        return self.judge(self.path_of(key))

    def keep_above(self, key: _Key) -> None:
        """Keep the folders above something that stays where it is."""
        if self.all[key].before is None:
            return
        for above in self.ups(key):
            if _no_folder_now(self.all[above]) and above not in self.held and above not in self.dropped:
                self.held[above] = f"{self.name(key)} stays in it"

    def ups(self, key: _Key) -> list[_Key]:
        """Give the changed folders above a path, the innermost first."""
        return [(key[0], path) for path in _above(key[1]) if (key[0], path) in self.all]

    def name(self, key: _Key) -> str:
        """Name a path in its root."""
        return os.fsdecode(key[1])

    def drop_empty(self) -> None:
        """Leave out new folders of which nothing else than left out things would be made."""
        children: dict[_Key, list[_Key]] = {}
        for key in self.all:
            children.setdefault((key[0], key[1].rpartition(b"/")[0]), []).append(key)
        for key in sorted(self.all, reverse=True):
            change = self.all[key]
            if change.before is not None or change.after is None or change.after.kind != "d" or key in self.held:
                continue
            below = children.get(key, [])
            if below and all(other in self.dropped or other in self.held for other in below):
                self.dropped.add(key)

    def stays_inside(self, key: _Key, state: EntryState) -> bool:
        """Whether a new link leads into the workspace, by the links as they would be then."""
        at = self.path_of(key).encode(errors="surrogateescape")
        rest = posixpath.join(posixpath.dirname(at), bytes.fromhex(state.what)).split(b"/")
        done = b"/"
        links = 0
        while rest:
            part = rest.pop(0)
            if part in (b"", b"."):
                continue
            if part == b"..":
                done = posixpath.dirname(done)
                continue
            done = posixpath.join(done, part)
            target = self.link_at(done)
            if target is not None:
                links += 1
                if links > _MOST_LINKS:
                    return True  # in a circle: it leads nowhere
                rest = [*target.split(b"/"), *rest]
                done = b"/" if target.startswith(b"/") else posixpath.dirname(done)
        return any(done == os.fsencode(root) or done.startswith(os.fsencode(root) + b"/") for root in self.roots)

    def link_at(self, path: bytes) -> bytes | None:
        """Give the target of a link as it would be after the changes."""
        for number, root in enumerate(map(os.fsencode, self.roots)):
            if path.startswith(root + b"/") and (change := self.all.get((number, path[len(root) + 1 :]))) is not None:
                return (
                    bytes.fromhex(change.after.what) if change.after is not None and change.after.kind == "l" else None
                )
        try:
            return os.readlink(path)  # noqa: PTH115 - bytes
        except OSError:
            return None


def _above(path: bytes, *, itself: bool = False) -> list[bytes]:
    """Give the folders that a path is in, the innermost first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(len(parts) - (not itself), 0, -1)]


def _is_same_folder(change: Difference) -> bool:
    """Whether a folder is still there."""
    return all(state is not None and state.kind == "d" for state in (change.before, change.after))


def _no_folder_now(change: Difference) -> bool:
    """Whether a folder is gone."""
    was = change.before is not None and change.before.kind == "d"
    return was and (change.after is None or change.after.kind != "d")


def select_changes(
    roots: Sequence[str], manifest: Manifest, hold: Hold, new_rules: Mapping[_Key, bytes]
) -> ChangeSelection:
    """Sort the changes; `new_rules` are the ignore files among the new files, with what they say."""
    chooser = _Chooser(roots, manifest.changes, hold)
    chooser.ignore(new_rules)
    chooser.hold()
    chooser.drop_empty()
    kept = [key for key in chooser.all if key not in chooser.dropped and key not in chooser.held]
    held = [(chooser.all[key], reason) for key, reason in sorted(chooser.held.items())]
    return ChangeSelection(
        tuple(chooser.all[key] for key in kept if key not in chooser.beside),
        tuple(chooser.all[key] for key in kept if key in chooser.beside),
        tuple(pair for pair in held if (pair[0].root, pair[0].path) not in chooser.beside),
        manifest.skipped + chooser.ignored,
        _digest(roots, [chooser.all[key] for key in kept], held),
    )


def new_ignore_files(changes: Sequence[Difference]) -> list[Difference]:
    """Give the new files that say what git ignores."""
    return [change for change in changes if change.before is None and change.path.rpartition(b"/")[2] == _IGNORE_FILE]


def _digest(roots: Sequence[str], chosen: Sequence[Difference], held: Sequence[tuple[Difference, str]]) -> str:
    """Name a list of changes by a hash of all that it says."""
    digest = sha256()
    for root in roots:
        digest.update(os.fsencode(root) + b"\0")
    rows = [(change, "") for change in chosen] + list(held)
    for change, reason in sorted(rows, key=lambda row: (row[0].root, row[0].path)):
        digest.update(repr((change.root, change.name, change.before, change.after, change.note, reason)).encode())
    return digest.hexdigest()
