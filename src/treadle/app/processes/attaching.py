"""Joins a session that is open in another process: which one, and what this terminal needs of its own for it."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.app.compose import open_store
from treadle.app.config.places import outputs
from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models
from treadle.app.security.trusting import session_trust
from treadle.app.session.model_finder import model_finder
from treadle.app.session.own_commands.own_shell import OwnShell
from treadle.app.session.shared.remote import RemoteSession
from treadle.app.session.shared.session_connection import SessionConnection
from treadle.protocol.errors import SessionError
from treadle.providers.breaker import process_circuits
from treadle.store.sqlite import Store
from treadle.workspace.workspace import open_workspace

if TYPE_CHECKING:
    from treadle.policy.secrets import Redactor


async def attach_session(
    prefix: str,
    folder: Path,
    settings: Settings,
    *,
    kind: str = "tui",
    name: str = "",
    anew: bool = False,
    wait: bool = True,
) -> RemoteSession:
    """Attach to the session of this id, or beginning of one; without, to the open one of the folder.

    `kind` and `name` say what attaches, for the log; `anew` is that of `RemoteSession`; `wait` for a session that was
    opened a moment ago. Enter the result to listen. Raises `SessionError` or `StoreError`.
    """
    store = open_store()
    try:
        session_id = store.find(prefix).id if prefix else _open_in(folder, store)
        line = SessionConnection(session_id, kind, name)
        attached = await line.reach(lambda: wait and session_id in store.leased())
    except BaseException:
        store.close()
        raise
    workspace = Path(attached.workspace)

    @cache
    def redactor() -> "Redactor":
        from treadle.app.session.known_values import session_redactor

        return session_redactor(str(workspace), settings, roots=attached.roots)

    return RemoteSession(
        line=line,
        attached=attached,
        trust=session_trust(workspace),
        store=store,
        models=model_finder(Models(settings, circuits=process_circuits()), settings),
        shell=OwnShell(
            shell=open_workspace(workspace).shell,
            directory=str(workspace),
            spool=outputs() / session_id,
            hide=lambda: redactor().stream(),
        ),
        anew=anew,
    )


def is_session_open(session_id: str) -> bool:
    """Whether a process has this session open now; raises `StoreError`."""
    store = open_store()
    try:
        return session_id in store.leased()
    finally:
        store.close()


def _open_in(folder: Path, store: Store) -> str:
    """Find the one session of a folder that a process works in now; raises `SessionError`."""
    leased = store.leased()
    found = [row for row in store.sessions(str(folder)) if row.id in leased]
    if len(found) == 1:
        return found[0].id
    if found:
        raise SessionError(
            "session-unclear",
            f"{len(found)} sessions of {folder} are open.",
            why=", ".join(row.id for row in found),
            fix="Name one of them: `treadle --attach ID`.",
        )
    raise SessionError(
        "session-none",
        f"No session of {folder} is open.",
        why="`treadle sessions --all` marks those that are.",
        fix="Start one with `treadle` or `treadle --bg TASK`, or name one of another folder: `treadle --attach ID`.",
    )
