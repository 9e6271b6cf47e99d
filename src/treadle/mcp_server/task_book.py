"""The tasks of one server: in which folders they may be, and who opened them."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.open_session import LiveSession, RemoteSession, SessionClient
from treadle.door.opening import (
    Opening,
    attach_session,
    check_workspace,
    list_sessions,
    open_session,
    session_log,
    session_workspace,
)
from treadle.door.reports import session_redactor
from treadle.door.review import changed_since, listed_checkpoints
from treadle.door.settings import load_settings
from treadle.door.trust import SessionTrust, session_trust, trusted_by_variable
from treadle.mcp_server.running_task import ServedTask
from treadle.present.escape import printable
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import Source
from treadle.protocol.messages import Text
from treadle.protocol.permissions import Mode

_T = TypeVar("_T")

_MOST_TASKS = 20
_MOST_LISTED = 20


class TaskRequest(Struct, frozen=True, kw_only=True):
    """What a client wants to be done, where, and in which mode and by which model (empty: as the settings say)."""

    task: str
    mode: str = ""
    model: str = ""


class TaskBook:
    """The tasks that are open; an async context manager that closes their sessions at its end.

    `folders` are those that it works in, with what is below them; the first one where a client names none. `flags` are
    settings of the command line, `trust` is its yes for the folders.
    """

    def __init__(self, folders: Sequence[Path], flags: Mapping[str, Any], *, trust: bool = False) -> None:
        """Raise `ConfigError` for a folder that is none, or too wide to be worked in."""
        self._folders = tuple(check_workspace(folder) for folder in folders)
        self._flags = dict(flags)
        self._once = trust or trusted_by_variable()
        self._tasks: dict[str, ServedTask] = {}
        self._opening = 0
        self._joining = asyncio.Lock()
        self._working: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for work in self._working:
            work.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        tasks, self._tasks = list(self._tasks.values()), {}
        await asyncio.gather(*(task.close() for task in tasks), return_exceptions=True)

    async def whole(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something to its end, also where the request for it is cancelled in the middle."""
        task = asyncio.create_task(work, name="request")
        self._working.add(task)
        task.add_done_callback(self._worked)
        return await asyncio.shield(task)

    def _worked(self, task: asyncio.Task[Any]) -> None:
        self._working.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits has it; where nobody does any more, it is of no interest

    @property
    def tasks(self) -> tuple[ServedTask, ...]:
        """Those that are open, the oldest first."""
        return tuple(self._tasks.values())

    def trust(self, folder: str) -> SessionTrust:
        """Find a folder, by default the first one, and how it stands. Raises `ConfigError` for one outside."""
        wanted = Path(folder) if folder else self._folders[0]
        return self._trust(check_workspace(wanted if wanted.is_absolute() else self._folders[0] / wanted))

    def _trust(self, workspace: Path) -> SessionTrust:
        if not any(workspace.is_relative_to(allowed) for allowed in self._folders):
            raise ConfigError(
                "mcp-folder",
                f"This server does not work in {workspace}.",
                why=f"It was started for {', '.join(map(str, self._folders))}.",
                fix="Use one of these, or add the folder to the server's command: --add-dir DIR.",
            )
        return session_trust(workspace, once=self._once)

    def find(self, task_id: str) -> ServedTask:
        """Find an open task by its id; raises `SessionError`."""
        found = self._tasks.get(task_id)
        if found is None:
            raise SessionError(
                "mcp-task",
                f"No task {task_id!r} is open here.",
                why=f"Open are: {', '.join(self._tasks) or 'none'}.",
                fix="Use list_tasks to see the ids; join_task opens the session of an earlier task.",
            )
        return found

    async def start(self, wanted: TaskRequest, trust: SessionTrust, client: str) -> ServedTask:
        """Open a session and give it the task. Raises `TreadleError`.

        What a client says may narrow the mode that the user set, and never widen it.
        """
        flags = {**self._flags, **({"model": wanted.model} if wanted.model else {})}
        settings = load_settings(flags, workspace=trust.workspace, trusted=trust.trusted)
        if wanted.mode:
            settings = replace(settings, mode=_narrowed(settings.mode, Mode(wanted.mode)))
        opening = Opening(
            workspace=trust.workspace, settings=settings, user_present=True, given=frozenset(flags), trust=trust
        )
        with self._room():
            task = await self._enter(await open_session(opening), client)
        try:
            await task.ask((Text(text=wanted.task),), client)
        except BaseException:
            await self.close(task)
            raise
        return task

    def trust_to_join(self, session_id: str) -> SessionTrust | None:
        """Find out how the folder of a session stands that ended; None for one that is open: it has its own word.

        Raises `ConfigError` for a folder outside, `SessionError`.
        """
        with session_log(session_id) as (row, store):
            if row.id in store.leased():
                return None
        return self._trust(session_workspace(row.id))

    async def join(self, session_id: str, trust: SessionTrust | None, client: str) -> ServedTask:
        """Join a session: one that is open in a terminal, or one that ended. Raises `TreadleError`."""
        async with self._joining:
            return await self._join(session_id, trust, client)

    async def _join(self, session_id: str, trust: SessionTrust | None, client: str) -> ServedTask:
        now = self._trust(session_workspace(session_id))
        found = [row for row in list_sessions(now.workspace) if row.id.startswith(session_id)]
        task = self._tasks.get(found[0].id) if len(found) == 1 else None
        if task is not None:
            if not task.over:
                return task
            await self.close(task)
        session: LiveSession | RemoteSession
        with self._room():
            try:
                settings = load_settings(self._flags)
                session = await attach_session(session_id, now.workspace, settings, kind="mcp", name=client)
            except SessionError as error:
                if error.code != "session-not-live":
                    raise
                session = await self._resumed(session_id, trust if trust is not None else now)
            task = await self._enter(session, client)
            task.join()
            return task

    async def close(self, task: ServedTask) -> None:
        """Close a task: its session can be continued later, and one of a terminal continues there."""
        await task.close()
        if self._tasks.get(task.id) is task:
            del self._tasks[task.id]

    def diff(self, task: ServedTask) -> tuple[list[str], str]:
        """Compare the files with those at the beginning of a task's session: paths, and a diff without secrets.

        Takes its time: it reads files. Raises `TreadleError`.
        """
        session = task.client.session
        with session_log(session.id) as (row, store):
            taken = listed_checkpoints(store, row.id)
            if not taken:
                return [], ""
            found = changed_since(store, row, taken[0].n)
        redactor = session_redactor(str(session.workspace), load_settings(self._flags), roots=session.roots)
        return [f"{one.change} {printable(one.path)}" for one in found.changes], redactor.redact(found.diff)

    def others(self) -> list[tuple[str, str, str]]:
        """List sessions of the folders that are not open here, the newest first: id, folder, title."""
        rows = [row for row in list_sessions(None) if row.title and not row.archived and row.id not in self._tasks]
        within = [row for row in rows if any(Path(row.workspace).is_relative_to(folder) for folder in self._folders)]
        return [(row.id, row.workspace, row.title) for row in within[:_MOST_LISTED]]

    async def _resumed(self, session_id: str, trust: SessionTrust) -> LiveSession:
        """Open a session that ended, in the mode of this server whatever its own was."""
        settings = load_settings(self._flags, workspace=trust.workspace, trusted=trust.trusted)
        if "mode" not in self._flags:
            settings = replace(settings, mode=trust.begin(settings.mode, said=False)[0])
        opening = Opening(
            workspace=trust.workspace,
            settings=settings,
            user_present=True,
            given=frozenset({"mode"}),
            resume=session_id,
            trust=trust,
        )
        return await open_session(opening)

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Take up the room of a task while its session is opened; raises `ConfigError` where there is none."""
        if len(self._tasks) + self._opening >= _MOST_TASKS:
            raise ConfigError(
                "mcp-tasks", f"{_MOST_TASKS} tasks are open here, which is the most.", fix="Close one with close_task."
            )
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    async def _enter(self, session: LiveSession | RemoteSession, client: str) -> ServedTask:
        task = ServedTask()
        task.client = SessionClient(session, Source(kind="mcp", id=client), task.hear)
        await task.client.__aenter__()
        self._tasks[task.id] = task
        return task


def _narrowed(mode: Mode, wanted: Mode) -> Mode:
    """Take the mode that a client wants; raises `ConfigError` where it lets more run than the user's own."""
    modes = list(Mode)
    if modes.index(wanted) <= modes.index(mode):
        return wanted
    raise ConfigError(
        "mcp-mode",
        f"A client may not widen the mode: {wanted} lets more run without asking than {mode}.",
        fix=f"The user can set it in the server's command: treadle mcp serve --mode {wanted}.",
    )
