"""Checkpoints over any sequence of edits: what is restored, and what stays."""

import os
import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workspace.checkpoints.folders import Edit, change, edits, opened, state

from treadle.workspace.checkpoints.planning import Interval
from treadle.workspace.checkpoints.store import CheckpointStore

steps = st.lists(st.lists(edits, min_size=1, max_size=5), min_size=1, max_size=4)


def _chain(trees: list[str]) -> list[Interval]:
    return [Interval(before=old, after=new, by_session=True) for old, new in pairwise(trees)]


def restore(store: CheckpointStore, trees: list[str]) -> None:
    """Restore the first of trees between which the session alone changed files, and see that all of it was done."""
    done = store.apply(store.plan_restore(trees[0], trees[-1], _chain(trees)))
    assert (done.conflicts, done.failed) == ((), ())


def _pipes(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_fifo() and not path.is_symlink()}


@settings(max_examples=150)
@given(steps, st.data())
def test_a_restore_gives_the_files_of_that_time_and_its_undo_those_of_now(
    rounds: list[list[Edit]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, store = opened(Path(folder), covers_ignored=True)
        trees, states, lost = [store.take("s/0").tree], [state(root)], False
        for number, each in enumerate(rounds):
            for edit in each:
                change(root, edit)
            taken = store.take(f"s/{number + 1}")
            lost = lost or bool(taken.not_covered)
            trees.append(taken.tree)
            states.append(state(root))
        at = data.draw(st.integers(0, len(trees) - 1))
        try:
            if lost:  # what is not covered may be in the way, and stays; all else is as it was then, or as it is now
                pipes = _pipes(root)
                store.apply(store.plan_restore(trees[at], trees[-1], _chain(trees[at:])))
                assert _pipes(root) == pipes
                assert all(each in (states[at].get(path), states[-1].get(path)) for path, each in state(root).items())
                return
            restore(store, trees[at:])
            assert state(root) == states[at]
            after = store.take("s/restored").tree
            assert after == trees[at]
            done = store.plan_restore(trees[-1], after, [Interval(before=trees[-1], after=after, by_session=True)])
            store.apply(done)
            assert state(root) == states[-1]
            assert store.take("s/undone").tree == trees[-1]
        finally:
            store.close()


@settings(max_examples=150)
@given(st.lists(st.tuples(st.booleans(), edits), min_size=1, max_size=12))
def test_what_others_wrote_survives_a_restore_or_is_a_conflict(changes: list[tuple[bool, Edit]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, store = opened(Path(folder), covers_ignored=True)
        trees = [store.take("s/0").tree]
        history: list[Interval] = []
        by_others: dict[bytes, object] = {}
        for number, (by_session, edit) in enumerate(changes):
            before = state(root)
            change(root, edit)
            now = state(root)
            touched = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
            for path in touched:
                by_others.pop(path, None)
            if not by_session:
                by_others |= {path: now[path] for path in touched if path in now}
            trees.append(store.take(f"s/{number + 1}").tree)
            history.append(Interval(before=trees[-2], after=trees[-1], by_session=by_session))
        present = state(root)
        plan = store.plan_restore(trees[0], trees[-1], history)
        merged = {write.path for write in plan.writes if write.content is not None}
        told: list[tuple[int, int]] = []
        done = store.apply(plan, how_far=lambda number, total: told.append((number, total)))
        paths = len(plan.removals) + len(plan.writes)
        assert told == [(number + 1, paths) for number in range(paths)]
        restored = state(root)
        conflicts = {each.path for each in (*plan.conflicts, *done.conflicts)}
        undone = {interval for interval in history if interval.by_session}
        for path, theirs in by_others.items():
            # Where others wrote the last version it stays, or the session's part of it alone was taken out.
            only_theirs = not any(path in _paths(store, each) for each in undone)
            assert restored.get(path) == theirs or path in merged or not only_theirs
        for path in conflicts:
            assert restored.get(path) == present.get(path)
        store.close()


def _paths(store: CheckpointStore, interval: Interval) -> set[bytes]:
    return {os.fsencode(change.path) for change in store.compare(interval.before, interval.after)}
