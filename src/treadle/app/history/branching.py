"""Playing a session up to a step, and going on from there in a copy of the files as they were."""

import os
from contextlib import closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.points import Points
from treadle.app.compose import session_log, session_workspace
from treadle.app.history.forking import copy_session
from treadle.app.security.trusting import note_copy, session_trust
from treadle.engine.core import texts
from treadle.engine.core.state import FilesState, State, with_note
from treadle.protocol.checkpoints import CheckpointTaken, Moment
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import ContextReady
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import SessionRow, Store


class Branch(Struct, frozen=True, kw_only=True):
    """A copy of a session that goes on with a step in a folder of its own.

    `exact` says that the files in it are those of that step; else no checkpoint knows them, and they are as now.
    """

    id: str
    folder: Path
    exact: bool


def branch_at_step(prefix: str, step: int, folder: Path) -> Branch:
    """Copy a session up to a step, and the files of its folder as they were then into an empty or new `folder`.

    Raises `SessionError` where there is no such step, `ConfigError` for a folder that holds something, `StoreError`.
    """
    with session_log(prefix) as (row, store):
        to = before_step(store, row, step)
        exact = copied_files(store, row, step, folder)
        new, _ = copy_session(
            store, row, to, lambda state: with_moved_note(state, row.workspace, str(folder)), workspace=str(folder)
        )
    return Branch(id=new, folder=folder, exact=exact)


def copied_files(store: Store, row: SessionRow, step: int, folder: Path) -> bool:
    """Copy the files of a session as they were at a step into an empty or new folder; gives whether they are known.

    Raises `ConfigError` for a folder that holds something, `StoreError`.
    """
    trees, exact = files_at(store, row, step)
    with closing(opened_checkpoints(store, row)) as kept:
        kept.extract(trees or kept.look(), folder)
    note_copy(session_trust(Path(row.workspace)), folder)
    return exact


def replay_folder(session_id: str, into: Path | None) -> Path:
    """Give the folder that was named for a replay, or one beside the session's workspace that is not there yet.

    Resolved, as a session is looked for in its folder. Raises `ConfigError`, `SessionError`.
    """
    if into is not None:
        return Path(os.path.realpath(into.expanduser()))
    base = session_workspace(session_id)
    for number in range(1, 1000):
        folder = base.with_name(f"{base.name}-replay-{number}")
        if not os.path.lexists(folder):
            return folder
    raise ConfigError(
        "replay-folder", "There are too many folders of replays.", fix="Name one with --into, or remove some."
    )


def before_step(store: Store, row: SessionRow, step: int) -> int:
    """Give the number of the event before the user message of a step."""
    steps: dict[int, int] = {}
    cuts = store.left_behind(row.id)
    for seq, _, raw, version in store.of_types(row.id, (tag_of(ContextReady),)):
        data = event_data(raw, version)
        if isinstance(data, ContextReady) and not any(seq in cut for cut in cuts):
            steps[data.step] = seq
    if step in steps:
        return steps[step] - 1
    raise SessionError(
        "step-unknown",
        f"Session {row.id} has no step {step}.",
        why=f"Its steps are {min(steps)} to {max(steps)}." if steps else "It has no steps.",
        fix=f"`treadle show {row.id}` shows the session.",
    )


def files_at(store: Store, row: SessionRow, step: int) -> tuple[tuple[str, ...], bool]:
    """Give the trees of the files at the beginning of a step, as far as a checkpoint knows them."""
    taken, exact = checkpoint_at(store, row, step)
    return () if taken is None else taken.trees, exact


def checkpoint_at(store: Store, row: SessionRow, step: int) -> tuple[CheckpointTaken | None, bool]:
    """Find the checkpoint that has the files of the beginning of a step, and say whether there is one."""
    taken = [one.data for one in Points(store, row.id).checkpoints]
    since = next((index for index, one in enumerate(taken) if one.step >= step), len(taken))
    # One before changes is kept only where the files are not those of the checkpoint before it.
    if since < len(taken) and taken[since].moment in (Moment.BEFORE, Moment.RESTORING):
        return taken[since], True
    if since == 0 or taken[since - 1].moment in (Moment.BEFORE, Moment.RESTORING):
        return None, False
    return taken[since - 1], True


def with_moved_note(state: State, old: str, new: str) -> State:
    """Tell the model that the workspace is another folder now."""
    # The checkpoints are those of the other folder; numbers go on.
    state = replace(state, files=FilesState(taken=state.files.taken))
    return with_note(state, texts.moved_to(old, new))
