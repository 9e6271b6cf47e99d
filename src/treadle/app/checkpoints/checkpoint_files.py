"""The checkpoints of a session: where its files are kept, and how they and the conversation are brought back."""

import asyncio
import os
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from treadle.app.checkpoints.own_files import KeptRoot, OwnFiles
from treadle.app.checkpoints.points import Points
from treadle.app.checkpoints.typed_files import TypedFile, with_typed, would_revert
from treadle.app.config.places import data_directory, outputs
from treadle.engine.core.past_history import last_state
from treadle.engine.core.sealing import written
from treadle.engine.ports import KnownChanges
from treadle.protocol.checkpoints import CheckpointTaken, Moment, Restore, Restored, Rewound, UnrestoredPath
from treadle.protocol.errors import SessionError, StoreError
from treadle.protocol.events import CallFinished, CallJudged
from treadle.protocol.tools import WritePath
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import Store
from treadle.workspace.checkpoints.comparing import TreeChange
from treadle.workspace.checkpoints.planning import Interval, RestoreConflict, RestorePlan
from treadle.workspace.checkpoints.restoring import HowFar, unheard
from treadle.workspace.checkpoints.revising import Revisions
from treadle.workspace.checkpoints.scanning import NotCovered
from treadle.workspace.checkpoints.store import open_checkpoints
from treadle.workspace.commands.background_jobs import ran_since
from treadle.workspace.files.names import logged_path
from treadle.workspace.files.temporary_files import TemporaryFiles

_NAMED = 50
"""Paths that are not covered which a checkpoint names."""


_Stamp = tuple[int, int, int]


def _stamp(root: KeptRoot, one: NotCovered) -> _Stamp | None:
    """Give the size of a file that is not held, when it or its mode changed, and its inode; None for other things."""
    try:
        status = os.lstat(os.path.join(os.fsencode(root.path), one.path))  # noqa: PTH118 - of bytes there is no Path
    except OSError:
        return None
    return (status.st_size, status.st_ctime_ns, status.st_ino) if stat.S_ISREG(status.st_mode) else None


class FileCheckpoints:
    """Keeps the files of one session, and brings them and its conversation back."""

    def __init__(self, store: Store, session_id: str, folder: Path, roots: Sequence[str], *, ignored: bool) -> None:
        self._store = store
        self._id = session_id
        self._roots = [
            KeptRoot(
                root,
                open_checkpoints(_folder_of(folder, root), root, covers_ignored=ignored),
            )
            for root in map(logged_path, roots)
        ]
        self._own: OwnFiles | None = None
        self._looked = 0
        self._uncovered: dict[str, _Stamp | None] | None = None

    async def take(self, n: int, last: Sequence[str], /) -> CheckpointTaken:
        """Keep the files as number `n`, and say what changed since the `last` trees."""
        return await asyncio.to_thread(self.take_now, n, last)

    def take_now(self, n: int, last: Sequence[str], typed: tuple[str, bytes] | None = None) -> CheckpointTaken:
        """Do what `take` does, of a file with the text that was `typed`; to be called in a thread."""
        background, self._looked = self.background_ran(), time.time_ns() // 1_000_000
        taken = [root.kept.take(f"{self._id}/{n}") for root in self._roots]
        trees = tuple(one.tree for one in taken)
        trees = with_typed(self._roots, trees, TypedFile(*typed) if typed else None, f"{self._id}/{n}")
        changes = list(self.changes(last, trees)) if len(last) == len(trees) else []
        uncovered = [(root, one) for root, each in zip(self._roots, taken, strict=True) for one in each.not_covered]
        missing = [f"{root.shown(one.path)}: {one.why}" for root, one in uncovered]
        return CheckpointTaken(
            n=n,
            step=0,
            moment=Moment.FOUND if background else Moment.BEFORE,
            trees=trees,
            files=len(changes),
            added=sum(change.added or 0 for _, change in changes),
            removed=sum(change.removed or 0 for _, change in changes),
            not_covered=tuple(missing[:_NAMED]),
            more=max(0, len(missing) - _NAMED),
            notice=" ".join(filter(None, (one.notice for one in taken))),
            ignored=True,
            unseen=self._unseen({root.logged(one.path): _stamp(root, one) for root, one in uncovered}, missing),
        )

    def _unseen(self, uncovered: "dict[str, _Stamp | None]", missing: Collection[str]) -> tuple[str, ...]:
        """Name the files that are not held, or were not, and that changed since the last checkpoint, if there is one.

        That of another program, as before a kill, knows only which were `missing` in it, and when it was taken.
        """
        before, self._uncovered = self._uncovered, uncovered
        if before is not None:
            names = [name for name in {**before, **uncovered} if before.get(name) != uncovered.get(name)]
        elif taken := Points(self._store, self._id).checkpoints:
            last = taken[-1]
            gone = (line.rpartition(": ")[0] for line in last.data.not_covered if line not in missing)
            late = (name for name, stamp in uncovered.items() if stamp and stamp[1] // 1_000_000 >= last.at)
            names = [*gone, *late]
        else:
            return ()
        return tuple(sorted(names))[:_NAMED]

    def background_ran(self) -> bool:
        """Whether a command of the session ran in the background since the last checkpoint, or runs now."""
        folder = outputs() / self._id
        if not folder.is_dir():
            return False
        taken = () if self._looked else Points(self._store, self._id).checkpoints
        return ran_since(folder, taken[-1].at if taken else self._looked)

    async def own(self, taken: CheckpointTaken, known: KnownChanges, /) -> CheckpointTaken:
        """Have a checkpoint that was just taken say what is the session's own work now, where that is not `known`."""
        return await asyncio.to_thread(self._with_own_work, taken, known)

    def _with_own_work(self, taken: CheckpointTaken, known: KnownChanges) -> CheckpointTaken:
        try:
            if self._own is None or self._own.n != taken.n - 1:
                self._own = OwnFiles(self._roots, (one.data for one in Points(self._store, self._id).checkpoints))
            return self._own.with_own_work(taken, known)
        except StoreError:  # an earlier checkpoint was pruned
            self._own = None
            return taken

    def would_revert(self, path: str, text: bytes) -> bool:
        """Whether a text takes back what a command of the session did to a file."""
        taken = [one.data for one in Points(self._store, self._id).checkpoints]
        try:
            return would_revert(self._roots, taken, TypedFile(path, text), cache(self._edited))
        except StoreError:  # an earlier checkpoint was pruned
            return False

    def changes(self, old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[KeptRoot, TreeChange]]:
        """Say what is different between two checkpoints, with the root that each path is in."""
        for root, before, after in zip(self._roots, old, new, strict=True):
            if before != after:
                yield from ((root, change) for change in root.kept.compare(before, after))

    def diff(self, old: Sequence[str], new: Sequence[str]) -> str:
        """Give a unified diff between two checkpoints."""
        pairs = zip(self._roots, old, new, strict=True)
        return "".join(root.kept.diff(before, after) for root, before, after in pairs if before != after)

    @property
    def roots(self) -> Sequence[KeptRoot]:
        """The folders of the workspace, in the order of the trees."""
        return self._roots

    async def restore(self, checkpoint: int, how_far: HowFar = unheard, /) -> Restored:
        """Bring files back that the session changed since; what others changed since stays.

        Where the session's last wish to restore is about a part of the changes, that part is brought back alone.
        """
        if part := self._wanted_part():
            return await asyncio.to_thread(self._restore_part, checkpoint, part, how_far)
        since = self._since(checkpoint)
        return await asyncio.to_thread(self._restore, since, self._written(since), how_far)

    def _restore(self, since: Sequence[CheckpointTaken], own: frozenset[str], how_far: HowFar) -> Restored:
        return self._carried_out(since[0].n, self._plans(since, since[-1].trees, own), how_far)

    def keep_part(self, trees: Sequence[str], revisions: Sequence[Revisions]) -> tuple[Restore, tuple[str, ...]]:
        """Keep what a part of the files is to become; `trees` is what that was seen to be, one of each root.

        Gives the wish to post, and the paths for which something that stays is in the way. Raises `StoreError`, and
        `SessionError` where the session has no checkpoint.
        """
        number = time.time_ns() // 1000
        blocked: list[str] = []
        for root, tree, wanted in zip(self._roots, trees, revisions, strict=True):
            if wanted:
                root.kept.keep(self._part(number, "from"), tree)
                revised = root.kept.revise(self._part(number, "to"), tree, wanted)
                blocked += map(root.shown, map(os.fsdecode, revised.blocked))
        # The checkpoint is the last one, so that `/undo` still finds what the last turn did.
        return Restore(checkpoint=Points(self._store, self._id).last().n, part=number), tuple(blocked)

    def _part(self, number: int, side: str) -> str:
        return f"{self._id}/part-{number}/{side}"

    def _wanted_part(self) -> int:
        """Give the number of the part that is to be brought back; 0 where it is all."""
        wishes = self._store.of_types(self._id, (tag_of(Restore),))
        wanted = event_data(*wishes[-1][2:]) if wishes else None
        return wanted.part if isinstance(wanted, Restore) else 0

    def _restore_part(self, checkpoint: int, number: int, how_far: HowFar) -> Restored:
        last = Points(self._store, self._id).last()
        now = last.trees
        plans: list[tuple[KeptRoot, RestorePlan]] = []
        for root, tree in zip(self._roots, now, strict=True):
            seen, wanted = (root.kept.tree_of(self._part(number, side)) for side in ("from", "to"))
            if seen is None or wanted is None:
                continue
            history = [Interval(before=wanted, after=seen, by_session=True)]
            plan = root.kept.plan_restore(wanted, tree, history, held_ignored=last.ignored)
            meant = root.kept.paths(wanted, seen)
            # What a restore of everything would leave out in silence was asked for here.
            left = [RestoreConflict(path=one.path, why=one.why) for one in plan.kept if one.path in meant]
            plans.append((root, replace(plan, conflicts=(*plan.conflicts, *left))))
        if not plans:
            error = "What was to be changed is not known any more. Nothing was changed."
            return Restored(checkpoint=checkpoint, error=error)
        done = self._carried_out(checkpoint, plans, how_far)
        for root, _ in plans:
            root.kept.forget(f"{self._id}/part-{number}/")
        return done

    def _carried_out(self, checkpoint: int, plans: Sequence[tuple[KeptRoot, RestorePlan]], how_far: HowFar) -> Restored:
        written_: list[str] = []
        removed: list[str] = []
        conflicts: list[UnrestoredPath] = []
        troubles: list[str] = []
        total, before = sum(len(plan.removals) + len(plan.writes) for _, plan in plans), 0
        noted = TemporaryFiles(str(data_directory() / "saving"))
        for root, plan in plans:

            def of_all(number: int, _: int, *, before: int = before) -> None:
                how_far(before + number, total)

            done = root.kept.apply(plan, temporary_files=noted, how_far=of_all)
            before += len(plan.removals) + len(plan.writes)
            written_ += map(root.shown, done.written)
            removed += map(root.shown, done.removed)
            unrestored = (*plan.conflicts, *done.conflicts)
            conflicts += [UnrestoredPath(path=root.shown(one.path), why=one.why) for one in unrestored]
            troubles += [f"{root.shown(one.path)}: {one.why}" for one in done.failed]
        error = "Not restored: " + "; ".join(troubles) if troubles else ""
        return Restored(
            checkpoint=checkpoint,
            written=tuple(written_),
            removed=tuple(removed),
            conflicts=tuple(conflicts),
            error=error,
        )

    def numbers(self) -> frozenset[int]:
        """Give the numbers of the checkpoints whose files are kept still; raises `StoreError`."""
        names = [root.kept.names(f"{self._id}/") for root in self._roots]
        return frozenset(int(name) for name in frozenset.intersection(*names) if name.isdecimal())

    def look(self) -> tuple[str, ...]:
        """Keep the files as they are now, under no number; only the last look is kept."""
        return tuple(root.kept.take(f"{self._id}/now").tree for root in self._roots)

    def plans(self, checkpoint: int, now: Sequence[str]) -> list[tuple[KeptRoot, RestorePlan]]:
        """Say for each root what restoring a checkpoint would do to the files as they are `now`."""
        since = self._since(checkpoint)
        if self._is_unclear():
            # Who restores keeps the files first, as found: nobody knows who changed them since the last checkpoint.
            since.append(replace(since[-1], n=since[-1].n + 1, moment=Moment.FOUND, trees=tuple(now)))
        return self._plans(since, now, self._written(since))

    def _is_unclear(self) -> bool:
        """Whether a step of the session that may change files has not ended, or a command ran in the background."""
        if self.background_ran():
            return True
        ended = self._id not in self._store.leased()
        return ended and last_state(self._store.read(self._id, whole=False)).files.changing != 0

    def _since(self, checkpoint: int) -> list[CheckpointTaken]:
        """Give a checkpoint and all after it; raises `SessionError` where there is none of that number."""
        points = Points(self._store, self._id)
        points.checkpoint(checkpoint)
        since = [one.data for one in points.checkpoints if one.data.n >= checkpoint]
        if any(len(one.trees) != len(self._roots) for one in since):
            raise SessionError(
                "checkpoint-folders",
                f"The files of checkpoint {checkpoint} cannot be restored in this session.",
                why="The session had other folders then.",
                fix="Restore them in the session that it is a copy of: `treadle sessions` lists it.",
            )
        return since

    def _plans(
        self, since: Sequence[CheckpointTaken], now: Sequence[str], own: frozenset[str]
    ) -> list[tuple[KeptRoot, RestorePlan]]:
        target = since[0].trees
        plans = []
        for index, root in enumerate(self._roots):
            history = [
                Interval(
                    before=one.trees[index],
                    after=other.trees[index],
                    by_session=other.moment.may_end_work,
                    unclear=own if other.moment is Moment.FOUND else None,
                )
                for one, other in pairwise(since)
            ]
            plans.append(
                (root, root.kept.plan_restore(target[index], now[index], history, held_ignored=since[0].ignored))
            )
        return plans

    def _written(self, since: Sequence[CheckpointTaken]) -> frozenset[str]:
        """Give the hashes of all that the session's edits wrote, where that is what tells them from others'."""
        return frozenset() if all(one.moment is not Moment.FOUND for one in since) else self._edited()

    def _edited(self) -> frozenset[str]:
        written_: set[str] = set()
        for event in self._store.read(self._id):
            match event.data:
                case CallJudged(accesses=accesses):
                    written_.update(access.after for access in accesses if isinstance(access, WritePath))
                case CallFinished(result=result):
                    written_.update(change.after for change in result.changes)
                case _:
                    pass
        return frozenset(written_ - {""})

    async def rewind(self, wanted: Restore, /) -> Rewound:
        """Find the place in the log at which the conversation was."""
        to = wanted.to or Points(self._store, self._id).conversation_at(wanted.checkpoint)
        return rewound_to(self._store, self._id, to, files=wanted.files)

    def extract(self, trees: Sequence[str], folder: Path) -> None:
        """Write the files of the first root, as a checkpoint has them, into an empty folder; raises `TreadleError`."""
        self._roots[0].kept.extract(trees[0], folder)

    def copy_to(self, other: str, last: int) -> None:
        """Keep the checkpoints up to that number for another session, too."""
        for root in self._roots:
            root.kept.copy_refs(f"{self._id}/", f"{other}/", lambda name: name.isdecimal() and int(name) <= last)

    def close(self) -> None:
        """Close the files of the checkpoints; they are opened again when they are needed."""
        for root in self._roots:
            root.kept.close()

    def tidy(self, most_bytes: int) -> None:
        """Prune where the checkpoints take more than this, and close their files."""
        for root in self._roots:
            if root.kept.size() > most_bytes:
                root.kept.prune(most_bytes)
            root.kept.close()

    def prune(self, most_bytes: int) -> None:
        """Let go of the oldest checkpoints of the workspace, of all sessions, and compact what stays."""
        for root in self._roots:
            root.kept.prune(most_bytes)

    def size(self) -> int:
        """Bytes that the checkpoints of the workspace take, of all sessions."""
        return sum(root.kept.size() for root in self._roots)


def _folder_of(folder: Path, root: str) -> Path:
    return folder / sha256(os.fsencode(root)).hexdigest()[:24]


def rewound_to(store: Store, session_id: str, to: int, *, files: bool = False) -> Rewound:
    """Make the event with which a conversation goes on from after another one."""
    state = last_state(store.read(session_id, before=to + 1, whole=False))
    return Rewound(to=to, state=written(replace(state, session_id=session_id)), files=files)
