"""What of a copy's changes is shown, what goes with it, what is thrown away, and what stands against applying it."""

import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Protocol

from treadle.workspace.checkpoints.trees import folders_above
from treadle.workspace.copies.caches import git_ignores, hidden_by_themselves, in_inner_cache, in_output
from treadle.workspace.copies.new_repositories import RUNS_LATER
from treadle.workspace.copies.staging import Difference, EntryState, Manifest, place_in
from treadle.workspace.copies.upper import CACHE, LARGE, MASKED, REPOSITORY
from treadle.workspace.ignore.git_index import Tracked


class Hold(Protocol):
    """Says of an absolute path why it must not be changed; empty for what may be.

    `made` says that it is new, in a folder that the command made.
    """

    def __call__(self, path: str, /, *, made: bool = False) -> str:
        """Say why."""
        ...


_REASONS = {
    MASKED: "the command could not read it, so its change is not based on what it holds",
    REPOSITORY: "the command also changed the repository",
    LARGE: "too large to keep",
}
_SPECIAL = "a pipe, socket or device is never applied"
_IGNORE_FILE = b".gitignore"


def nothing_is_held(path: str, /, *, made: bool = False) -> str:  # noqa: ARG001 - as it comes
    """Hold nothing back."""
    return ""


@dataclass(frozen=True, slots=True)
class Shown:
    """One change as it is shown: why it cannot be applied, whether git ignores it, and where a link leads out to.

    `inner` are the changes that went with it: all that git ignored in a folder that is gone.
    """

    change: Difference
    held: str = ""
    ignored: bool = False
    leads_out: bool = False
    inner: tuple[Difference, ...] = ()

    @property
    def by_rule(self) -> bool:
        """Whether a rule holds it: then a right lets a command do it in the workspace itself."""
        return bool(self.held) and not self.change.note and self.held != _SPECIAL


@dataclass(frozen=True, slots=True)
class ChangeSelection:
    """All that a command changed, sorted: `shown` is asked about, `outputs` and `beside` go with it.

    `outputs` are files that git ignores and that are new, moved, or in a folder of builds; `beside` are caches in
    folders that are gone. `thrown_away` counts the other files of caches. `digest` names all of it. Nothing may be
    applied where something is held.
    """

    shown: tuple[Shown, ...]
    outputs: tuple[Difference, ...]
    beside: tuple[Difference, ...]
    thrown_away: int
    digest: str

    @property
    def all(self) -> tuple[Difference, ...]:
        """What is applied, if it is."""
        listed = (change for one in self.shown for change in (one.change, *one.inner))
        return (*listed, *self.outputs, *self.beside)

    @property
    def is_held(self) -> bool:
        """Whether something stands against applying it."""
        return any(one.held for one in self.shown)


_Key = tuple[int, bytes]


class _Chooser:
    """Goes over all changes of a command."""

    def __init__(
        self, roots: Sequence[str], changes: Sequence[Difference], hold: Hold, acting: AbstractSet[_Key]
    ) -> None:
        self.roots = roots
        self.acting = acting
        self.judge = hold
        self.tracked = Tracked(roots)
        self.all: Mapping[_Key, Difference] = {(change.root, change.path): change for change in changes}
        self.ignored: set[_Key] = set()
        self.dropped: set[_Key] = set()
        self.beside: set[_Key] = set()
        self.thrown_away = 0
        self.arrived = frozenset(change.after.what for change in changes if change.after and change.kinds == ("", "f"))

    def path_of(self, key: _Key) -> str:
        """Give the absolute path."""
        return place_in(self.roots[key[0]], key[1])

    def sort(self, new_rules: Mapping[_Key, bytes]) -> None:
        """Find what git ignores, and throw away what is in a cache, but for what goes with a removed folder."""
        for number, root in enumerate(self.roots):
            ignores = git_ignores(root)
            own = hidden_by_themselves({key[1]: data for key, data in new_rules.items() if key[0] == number})
            for key in sorted(key for key in self.all if key[0] == number):
                if self.is_cache(key):
                    self.throw_away(key)
                elif self.is_ignored(key, ignores, own):
                    self.ignored.add(key)

    def is_cache(self, key: _Key) -> bool:
        """Whether a change is one of a tool's cache; a file that git has is none."""
        change, path = self.all[key], key[1]
        return (change.note == CACHE or in_inner_cache(path)) and not self.is_tracked(key)

    def is_tracked(self, key: _Key) -> bool:
        """Whether git has the file: then it is of interest, whatever the rules say."""
        return self.all[key].before is not None and self.tracked.has(*key)

    def is_ignored(self, key: _Key, ignores: Callable[[bytes, bool], bool], own: frozenset[bytes]) -> bool:
        """Whether git ignores what was changed."""
        change, path = self.all[key], key[1]
        if change.note in (MASKED, REPOSITORY) or path == b".":
            return False
        is_folder = (change.kinds[1] or change.kinds[0]) == "d"
        hidden = any(folder in own for folder in (path, *folders_above(path))) or ignores(path, is_folder)
        return hidden and not self.is_tracked(key)

    def throw_away(self, key: _Key) -> None:
        """Leave a change out, unless the folder that it is in is removed: then it goes too."""
        change = self.all[key]
        parent = self.parent(key)
        goes = parent is not None and parent not in self.dropped and _no_folder_now(self.all[parent])
        if change.after is None and goes:
            self.beside.add(key)
            return
        self.dropped.add(key)
        self.thrown_away += (change.kinds[1] or change.kinds[0]) != "d"

    def parent(self, key: _Key) -> _Key | None:
        """Give the change of the folder that a path is in."""
        above = (key[0], key[1].rpartition(b"/")[0])
        return above if above in self.all else None

    def select(self) -> Iterator[tuple[_Key, Shown | None]]:
        """Say of each change how it is shown; None for one that goes with the others as an output."""
        for key, change in self.all.items():
            if key in self.dropped or key in self.beside:
                continue
            ignored = key in self.ignored
            after = change.after
            leads_out = after is not None and after.kind == "l" and self.leads_out(key, after)
            held = self.reason(key, change)
            output = ignored and not held and not leads_out and self.is_output(key, change)
            yield key, None if output else Shown(change, held, ignored, leads_out)

    def reason(self, key: _Key, change: Difference) -> str:
        """Say why a change cannot be applied."""
        if change.note in _REASONS:
            return _REASONS[change.note]
        if "s" in change.kinds:
            return _SPECIAL
        if key in self.acting:
            return RUNS_LATER
        made = change.before is None and any(self.all[above].kinds == ("", "d") for above in self.ups(key))
        return self.judge(self.path_of(key), made=made or change.kinds == ("", "d"))

    def is_output(self, key: _Key, change: Difference) -> bool:
        """Whether something that git ignores is kept without a question: nothing that cannot be made again is lost."""
        if change.before is None:
            return True
        if change.after is not None:
            return in_output(key[1])
        if change.before.kind == "f" and change.before.what in self.arrived:
            return True
        return in_output(key[1]) and not any(_no_folder_now(self.all[above]) for above in self.ups(key))

    def ups(self, key: _Key) -> list[_Key]:
        """Give the changed folders above a path, the innermost first."""
        return [(key[0], path) for path in folders_above(key[1]) if (key[0], path) in self.all]

    def leads_out(self, key: _Key, state: EntryState) -> bool:
        """Whether a new link may lead out of the workspace: its target does, or goes through another link."""
        at = os.fsencode(self.path_of(key))
        target = posixpath.normpath(posixpath.join(posixpath.dirname(at), bytes.fromhex(state.what)))
        for root, top in enumerate(map(os.fsencode, self.roots)):
            if target.startswith(top + b"/"):
                path = target[len(top) + 1 :]
                return any(self.is_link((root, one)) for one in (path, *folders_above(path)))
        return os.fsdecode(target) not in self.roots

    def is_link(self, key: _Key) -> bool:
        """Whether a path is a link as it would be after the changes."""
        change = self.all.get(key)
        if change is None:
            return os.path.islink(self.path_of(key))  # noqa: PTH114 - a text
        return change.after is not None and change.after.kind == "l"


def _no_folder_now(change: Difference) -> bool:
    """Whether a folder is gone."""
    return change.kinds[0] == "d" != change.kinds[1]


def select_changes(
    roots: Sequence[str],
    manifest: Manifest,
    hold: Hold,
    new_rules: Mapping[_Key, bytes],
    *,
    acting: AbstractSet[_Key] = frozenset(),
) -> ChangeSelection:
    """Sort the changes; `new_rules` are the ignore files among the new files, with what they say.

    `acting` are those by which git would run something in a folder.
    """
    chooser = _Chooser(roots, manifest.changes, hold, acting)
    chooser.sort(new_rules)
    shown: dict[_Key, Shown] = {}
    outputs: list[Difference] = []
    for key, one in chooser.select():
        if one is None:
            outputs.append(chooser.all[key])
        else:
            shown[key] = one
    rows = _gathered(chooser, shown)
    beside = tuple(chooser.all[key] for key in chooser.beside)
    return ChangeSelection(
        rows, tuple(outputs), beside, manifest.skipped + chooser.thrown_away, _digest(roots, rows, (*outputs, *beside))
    )


def _gathered(chooser: _Chooser, shown: Mapping[_Key, Shown]) -> tuple[Shown, ...]:
    """Show a folder that is gone with all that git ignored in it as one."""
    inner: dict[_Key, list[Difference]] = {}
    for key, one in shown.items():
        outermost = None
        for above in chooser.ups(key):
            if above not in shown or not _goes_with(shown[above], one):
                break
            outermost = above
        if outermost is not None:
            inner.setdefault(outermost, []).append(one.change)
    gone = {(change.root, change.path) for changes in inner.values() for change in changes}
    return tuple(replace(one, inner=tuple(inner.get(key, ()))) for key, one in shown.items() if key not in gone)


def _goes_with(folder: Shown, one: Shown) -> bool:
    """Whether a change needs no words beside those about the folder that it was in."""
    return all(each.ignored and each.change.after is None and not each.held for each in (folder, one))


def new_ignore_files(changes: Sequence[Difference]) -> list[Difference]:
    """Give the new files that say what git ignores."""
    return [change for change in changes if change.before is None and change.path.rpartition(b"/")[2] == _IGNORE_FILE]


def _digest(roots: Sequence[str], shown: Sequence[Shown], others: Sequence[Difference]) -> str:
    """Name a list of changes by a hash of all that it says."""
    digest = sha256()
    for root in roots:
        digest.update(os.fsencode(root) + b"\0")
    rows = [(change, one.held) for one in shown for change in (one.change, *one.inner)]
    rows += [(change, "") for change in others]
    for change, reason in sorted(rows, key=lambda row: (row[0].root, row[0].path)):
        digest.update(repr((change.root, change.name, change.before, change.after, change.note, reason)).encode())
    return digest.hexdigest()
