"""Stops sessions that other processes have open: each is asked over its socket, and answers for itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from pathlib import Path

from treadle.app.compose import open_store
from treadle.app.reports.known_sessions import ListedSession, SessionState, listed_in
from treadle.app.session.shared.session_connection import SessionConnection
from treadle.app.session.shared.session_wire import background_sessions
from treadle.protocol.attach import Attached, Behind, Closed, Notified, Refused, ServersSaid, StopSession, Taken
from treadle.protocol.base import Record
from treadle.protocol.errors import SessionError
from treadle.store.leases import number_here, process_of
from treadle.store.sqlite import SessionRow, Store

_STOPS_WITHIN = 20.0
"""Seconds."""

_CLOSES_WITHIN = 10.0
"""Seconds from its last word to the end of its process."""

_PAUSE = 0.05


class StopResult(StrEnum):
    """Closed, interrupted and still open in the program that has it, not open before, or neither."""

    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    NOT_OPEN = "not_open"
    FAILED = "failed"


class StoppedSession(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What became of one session, `state` and `ended` as in a list of sessions.

    `process` is the number of the process that has it open, on this computer. Where it failed `problem` says why and
    `fix` what to do.
    """

    id: str
    title: str
    result: StopResult
    state: SessionState | None
    ended: str | None
    process: int | None = None
    problem: str = ""
    fix: str = ""


class _FailedError(Exception):
    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix


async def stop_sessions(prefixes: Sequence[str]) -> list[StoppedSession]:
    """Stop the sessions of these ids, or beginnings of them; one that there is not is a failure like any other."""
    return await _with_store(lambda store: asyncio.gather(*(_stop_named(store, prefix) for prefix in prefixes)))


async def stop_background(folder: Path | None) -> list[StoppedSession]:
    """Stop all sessions in the background, of one folder if given."""

    def stop(store: Store) -> Awaitable[list[StoppedSession]]:
        wanted = background_sessions() & store.leased()
        rows = [row for row in store.sessions(None if folder is None else str(folder)) if row.id in wanted]
        return asyncio.gather(*(_stop(store, row) for row in rows))

    return await _with_store(stop)


async def _with_store(work: Callable[[Store], Awaitable[list[StoppedSession]]]) -> list[StoppedSession]:
    store = open_store()
    try:
        return await work(store)
    finally:
        store.close()


async def _stop_named(store: Store, prefix: str) -> StoppedSession:
    try:
        row = store.find(prefix)
    except SessionError as error:
        return StoppedSession(
            id=prefix,
            title="",
            result=StopResult.FAILED,
            state=None,
            ended=None,
            problem=f"{error.what} {error.why}",
            fix=error.fix,
        )
    return await _stop(store, row)


async def _stop(store: Store, row: SessionRow) -> StoppedSession:
    owner = _owner(store, row.id)
    process = None if owner is None else number_here(owner)
    try:
        result = StopResult.NOT_OPEN if owner is None else await _stopped(store, row.id)
    except _FailedError as error:
        where = "" if owner is None else _about_process(owner)
        return _report(store, row, StopResult.FAILED, process, problem=error.problem, fix=f"{error.fix}{where}")
    return _report(store, row, result, process if result is StopResult.INTERRUPTED else None)


def _report(
    store: Store, row: SessionRow, result: StopResult, process: int | None, *, problem: str = "", fix: str = ""
) -> StoppedSession:
    listed: ListedSession = listed_in(store, [store.find(row.id)])[0]
    return StoppedSession(
        id=row.id,
        title=row.title,
        result=result,
        state=listed.state,
        ended=listed.ended,
        process=process,
        problem=problem,
        fix=fix,
    )


def _owner(store: Store, session_id: str) -> str | None:
    """Give the process that has a session open, if any has."""
    if session_id not in store.leased():
        return None
    rows = store.query("SELECT owner FROM leases WHERE session_id = ?", (session_id,))
    return str(rows[0][0]) if rows else None


async def _stopped(store: Store, session_id: str) -> StopResult:
    line = SessionConnection(session_id, "headless", "stop")
    try:
        try:
            await line.reach(lambda: session_id in store.leased())
        except SessionError:
            if session_id in store.leased():
                raise
            return StopResult.NOT_OPEN
        async with asyncio.timeout(_STOPS_WITHIN):
            await line.say(StopSession(number=1))
            if not await _closes(line):
                return StopResult.INTERRUPTED
        return await _closed(store, session_id)
    except SessionError as error:
        raise _FailedError(f"{error.what} {error.why}".strip(), error.fix) from error
    except TimeoutError as error:
        raise _FailedError(f"Session {session_id} was interrupted, but does not end.", "") from error
    except OSError as error:
        raise _FailedError(f"The connection to session {session_id} was lost: {error}", "Try again.") from error
    finally:
        await line.close()


async def _closes(line: SessionConnection) -> bool:
    """Hear what the session answers: whether it closes, or stays open. Raises `_FailedError` where it cannot stop."""
    while True:
        match await line.hear():
            case Taken():
                return False
            case Refused() as refused:
                raise _FailedError(f"{refused.what} {refused.why}".strip(), refused.fix)
            case Closed() | Behind() | None:
                return True
            case Notified() | ServersSaid() | Attached():
                pass


async def _closed(store: Store, session_id: str) -> StopResult:
    """Wait for the end of the process. One of an older version ends the connection, and stays."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _CLOSES_WITHIN
    while session_id in store.leased():
        if loop.time() > end:
            raise _FailedError(f"Session {session_id} is still open.", "")
        await asyncio.sleep(_PAUSE)
    return StopResult.STOPPED


def _about_process(owner: str) -> str:
    number = number_here(owner)
    if number is None:
        return f" It is open on another computer: {process_of(owner)}."
    return (
        f" Its process is {number}: `kill -CONT {number}` continues it where it is suspended, `kill {number}` closes "
        f"it, `kill -9 {number}` ends it where nothing else helps. The session can be resumed in each case."
    )
