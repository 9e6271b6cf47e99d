"""Sessions that a person names, archives or deletes, with what lies beside the log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from treadle.app.checkpoints.opening_checkpoints import forget_checkpoints, forget_review
from treadle.app.compose import open_store
from treadle.app.config.places import outputs
from treadle.app.session.files.checklist_file import remove_checklist
from treadle.app.session.left_calls import settle_left_calls
from treadle.app.session.parts import clock
from treadle.app.session.shared.session_wire import Address
from treadle.protocol.errors import SessionError
from treadle.store import keeping
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.commands.background_jobs import end_job, read_jobs
from treadle.workspace.files.whole_folders import try_remove_tree

_DAY = 24 * 3600 * 1000


def find_session(prefix: str) -> SessionRow:
    """Find a session by its id or the beginning of it; raises `SessionError`."""
    with _opened() as store:
        return store.find(prefix)


def old_sessions(days: float) -> list[SessionRow]:
    """List the sessions that were not used for so many days and are not archived. One that is open is none of them.

    A session whose last use is in the future, by a clock that was wrong, is not old.
    """
    before = clock() - int(days * _DAY)
    with _opened() as store:
        live = store.leased()
        return [
            row
            for row in store.sessions(subagents=True)
            if row.title and not row.archived and row.id not in live and row.updated_at < before
        ]


def rename_session(prefix: str, name: str) -> SessionRow:
    """Give a session a name, or with an empty one its first title again; raises `SessionError`, `StoreError`."""
    with _opened() as store:
        row = store.find(prefix)
        keeping.rename(store, row.id, name)
        return store.find(row.id)


def archive_sessions(rows: list[SessionRow]) -> None:
    """Archive these sessions, all or none; raises `SessionError`, `StoreError`."""
    with _opened() as store:
        keeping.archive(store, [row.id for row in rows], clock())


def unarchive_session(prefix: str) -> SessionRow:
    """List an archived session with the others again; raises `SessionError`, `StoreError`."""
    with _opened() as store:
        keeping.unarchive(store, store.find(prefix).id)
        return store.find(prefix)


def delete_session(row: SessionRow) -> None:
    """Delete a session with everything of it; raises `SessionError` for one that is open, `StoreError`."""
    with _opened() as store:
        keeping.require_free(store, row.id)
        _end_jobs(row.id)
        settle_left_calls(store)
        keeping.delete(store, row.id)
    for forget in KEPT_BESIDE:
        forget(row.id)


def _remove_outputs(session_id: str) -> None:
    try_remove_tree(outputs() / session_id)


def _remove_socket(session_id: str) -> None:
    Address(session_id).remove()


KEPT_BESIDE: tuple[Callable[[str], None], ...] = (
    _remove_outputs,
    remove_checklist,
    _remove_socket,
    forget_checkpoints,
    forget_review,
)
"""What forgets a session, given its id, wherever something of it is kept beside the log. None of them raises."""


def _end_jobs(session_id: str) -> None:
    """End what the session left running in the background: nobody could find it afterwards. Raises `SessionError`."""
    for job in read_jobs(outputs() / session_id):
        if job.runs and not end_job(job):
            raise SessionError(
                "session-running",
                f"Session {session_id} cannot be deleted.",
                why=f"Its command in the background does not end: {job.command}",
                fix="`treadle jobs` lists it. Stop its processes, then delete the session.",
            )


@contextmanager
def _opened() -> Iterator[Store]:
    store = open_store()
    try:
        yield store
    finally:
        store.close()
