"""The agent: what each method of the protocol does. Its sessions are live ones of this process."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Raw

from treadle.acp.editor_session import EditorSession
from treadle.acp.further_requests import (
    CheckpointRequest,
    InboxRequest,
    RestoreRequest,
    checkpoints_answer,
    inbox_answer,
    preview_answer,
    restored_answer,
)
from treadle.acp.offers import AS_SET
from treadle.acp.open_sessions import OpenSession, OpenSessions, absolute_folder
from treadle.acp.rpc import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    AnsweredRequest,
    RpcConnection,
    RpcError,
    read_params,
)
from treadle.acp.shapes import (
    AuthenticateRequest,
    ClientCapabilities,
    ListAnswer,
    ListRequest,
    LogoutRequest,
    ModeRequest,
    OpenRequest,
    OptionRequest,
    PromptAnswer,
    PromptRequest,
    SessionInfo,
    SessionRequest,
)
from treadle.door.known_models import EFFORT_BUDGETS, Models, remove_key, winning_origin
from treadle.door.open_session import clock, load_ahead
from treadle.door.opening import check_workspace, list_sessions, new_session_id, session_workspace
from treadle.door.past import copy_whole, delete_session, find_session
from treadle.door.program import write_log
from treadle.door.settings import load_settings
from treadle.present.escape import printable
from treadle.protocol.errors import ConfigError, SessionClosedError, SessionError, TreadleError
from treadle.protocol.events import Op, SetMode
from treadle.protocol.permissions import Mode

_PAGE = 50
_LONGEST_CURSOR = 9
_UNKNOWN = "session-unknown"
_NOT_CONFIGURED = frozenset({"no-provider", "key-missing"})


class EditorAgent:
    """Does what a client asks for; `flags` are the settings of the command line, which may say that all is trusted."""

    def __init__(self, connection: RpcConnection, flags: Mapping[str, Any], *, trusted: bool) -> None:
        self._flags = flags
        self._sessions = OpenSessions(connection, flags, trusted=trusted)
        self._tasks: set[asyncio.Task[None]] = set()
        self._methods: dict[str, tuple[type[Any], Callable[[Any], Awaitable[object]]]] = {
            "authenticate": (AuthenticateRequest, self._authenticate),
            "logout": (LogoutRequest, self._logout),
            "session/new": (OpenRequest, self._new),
            "session/load": (OpenRequest, self._load),
            "session/resume": (OpenRequest, self._resume),
            "session/fork": (OpenRequest, self._fork),
            "session/list": (ListRequest, self._list),
            "session/close": (SessionRequest, self._close),
            "session/delete": (SessionRequest, self._delete),
            "session/prompt": (PromptRequest, self._prompt),
            "session/set_mode": (ModeRequest, self._set_mode),
            "session/set_config_option": (OptionRequest, self._set_option),
            "_session/steering": (PromptRequest, self._steer),
            "_treadle/inbox": (InboxRequest, self._inbox),
            "_treadle/checkpoints": (CheckpointRequest, self._checkpoints),
            "_treadle/restore": (RestoreRequest, self._restore),
        }

    def know(self, capabilities: ClientCapabilities) -> None:
        """Take what the client can do."""
        self._sessions.capabilities = capabilities

    async def request(self, method: str, params: Raw) -> object:
        """Do what a request asks for, and give its result. Raises `RpcError`, and `TreadleError` of what it does."""
        if method not in self._methods:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {printable(method)}", {"method": method})
        kind, handler = self._methods[method]
        return await handler(read_params(kind, params))

    def notice(self, method: str, params: Raw) -> None:
        """Take a notification; what is wrong with one has no answer."""
        if method != "session/cancel":
            return
        try:
            opened = self._sessions.find(read_params(SessionRequest, params).session_id)
        except RpcError:
            return
        self._begin(opened.cancel())

    def describe(self, error: BaseException) -> RpcError:
        """Put what a request raised into its answer; what nobody expected goes to the program's log."""
        if isinstance(error, SessionClosedError):
            return RpcError(RESOURCE_NOT_FOUND, "The session was closed meanwhile. Send it again.")
        if isinstance(error, TreadleError):
            said = printable(" ".join(filter(None, (error.what, error.why, error.fix))))
            data = {"code": error.code, "why": error.why, "fix": error.fix}
            if error.code in _NOT_CONFIGURED:
                return RpcError(AUTH_REQUIRED, f"Authentication required: {said}", data)
            if error.code == _UNKNOWN:  # deleted since the request was looked at, as a session without a message
                return RpcError(RESOURCE_NOT_FOUND, said, data)
            return RpcError(INVALID_PARAMS if isinstance(error, ConfigError) else INTERNAL_ERROR, said, data)
        write_log("".join(traceback.format_exception(error)))
        return RpcError(INTERNAL_ERROR, f"Internal error: {type(error).__name__}: {printable(str(error))}")

    async def stop(self) -> None:
        """Stop what is going on."""
        await self._sessions.stop()

    async def close(self) -> None:
        """Close all sessions; each can be resumed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._sessions.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that no request waits for."""
        task = asyncio.create_task(work, name="acp work")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _authenticate(self, wanted: AuthenticateRequest) -> object:
        if wanted.method_id != "login":
            raise RpcError(INVALID_PARAMS, f"There is no way to sign in by the name {printable(wanted.method_id)}.")
        Models(load_settings(self._flags)).choose()  # says what is missing
        return {}

    async def _logout(self, _: LogoutRequest) -> object:
        """Forget the stored key of the provider that a session would begin with; open sessions go on with it."""
        settings = load_settings(self._flags)
        try:
            provider = Models(settings).choose().spec.ref.partition("/")[0]
        except ConfigError:
            return {}  # there is nobody to sign out
        await asyncio.to_thread(remove_key, settings, provider)
        if origin := winning_origin(settings, provider):
            raise RpcError(
                INVALID_PARAMS, f"The key of {provider} comes from {origin}, not from Treadle. Remove it there."
            )
        return {}

    async def _new(self, wanted: OpenRequest) -> AnsweredRequest:
        folder = check_workspace(absolute_folder(wanted.cwd))
        session = await self._sessions.enter(wanted, folder, new_id=new_session_id(clock()))
        load_ahead()
        return AnsweredRequest(session.offers.answer(session.live.id), session.greet)

    async def _load(self, wanted: OpenRequest) -> AnsweredRequest:
        answered = await self._resume(wanted)
        self._sessions.find(wanted.session_id).session.replay()
        return answered

    async def _resume(self, wanted: OpenRequest) -> AnsweredRequest:
        session_id = _known(wanted.session_id)
        session = await self._sessions.enter(wanted, session_workspace(session_id), resume=session_id)
        load_ahead()
        return AnsweredRequest(session.offers.answer(), session.greet)

    async def _fork(self, wanted: OpenRequest) -> AnsweredRequest:
        new = await asyncio.to_thread(lambda: copy_whole(_known(wanted.session_id)))
        session = await self._sessions.enter(wanted, session_workspace(new), resume=new)
        return AnsweredRequest(session.offers.answer(new), session.greet)

    async def _list(self, wanted: ListRequest) -> ListAnswer:
        folder = None if wanted.cwd is None else absolute_folder(wanted.cwd)
        listed = await asyncio.to_thread(_listed, folder)
        cursor = wanted.cursor or "0"
        if not (cursor.isdecimal() and cursor.isascii() and len(cursor) <= _LONGEST_CURSOR):
            raise RpcError(INVALID_PARAMS, "The cursor is none that was given.")
        end = int(cursor) + _PAGE
        return ListAnswer(sessions=listed[int(cursor) : end], next_cursor=str(end) if len(listed) > end else None)

    async def _close(self, wanted: SessionRequest) -> object:
        self._sessions.find(wanted.session_id)
        await self._sessions.leave(wanted.session_id)
        return {}

    async def _delete(self, wanted: SessionRequest) -> object:
        await self._sessions.leave(wanted.session_id)
        await asyncio.to_thread(lambda: delete_session(find_session(_known(wanted.session_id))))
        return {}

    async def _set_mode(self, wanted: ModeRequest) -> object:
        await self._sessions.find(wanted.session_id).session.change(_mode(wanted.mode_id))
        return {}

    async def _set_option(self, wanted: OptionRequest) -> object:
        session = self._sessions.find(wanted.session_id).session
        await session.change(_changed(session, wanted.config_id, str(wanted.value)))
        return {"configOptions": session.offers.options()}

    async def _prompt(self, wanted: PromptRequest) -> PromptAnswer:
        opened = self._sessions.find(wanted.session_id)
        if not await self._sessions.prepare(opened):
            return PromptAnswer(stop_reason="cancelled")
        return await opened.session.prompt(wanted.prompt, steer=bool((wanted.meta or {}).get("steering")))

    async def _steer(self, wanted: PromptRequest) -> object:
        """Bring a message into the turn that runs; without one it begins a turn, unless the client wants to do that."""
        opened = self._sessions.find(wanted.session_id)
        if await opened.session.steer(wanted.prompt):
            return {"outcome": "injected"}
        steering = (wanted.meta or {}).get("steering")
        if isinstance(steering, dict) and steering.get("idleBehavior") == "promptRequired":
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        self._begin(self._begin_turn(opened, wanted))
        return {"outcome": "startedNewTurn"}

    async def _inbox(self, _: InboxRequest) -> object:
        return await asyncio.to_thread(inbox_answer)

    async def _checkpoints(self, wanted: CheckpointRequest) -> object:
        number = _known(wanted.session_id)
        return await asyncio.to_thread(lambda: checkpoints_answer(number, wanted.since))

    async def _restore(self, wanted: RestoreRequest) -> object:
        """Say what restoring would do, or do it: in the process that has the session open, or here where none has."""
        number = _known(wanted.session_id)
        if wanted.preview:
            return await asyncio.to_thread(lambda: preview_answer(number, wanted))
        opened = self._sessions.opened(number)
        return await restored_answer(number, wanted, None if opened is None else opened.session.change)

    async def _begin_turn(self, opened: OpenSession, wanted: PromptRequest) -> None:
        """Work on a prompt that no request waits for; what goes wrong is shown as a message."""
        try:
            await self._prompt(wanted)
        except (RpcError, TreadleError) as error:
            opened.session.show_problem(str(error))


def _known(session_id: str) -> str:
    """Give the whole id of a session that is in the log; raises `RpcError` where there is none."""
    try:
        found = find_session(session_id).id
    except SessionError as error:
        raise RpcError(RESOURCE_NOT_FOUND, printable(f"{error.what} {error.fix}")) from error
    if found != session_id:
        raise RpcError(RESOURCE_NOT_FOUND, f"There is no session with the id {printable(session_id)}.")
    return found


def _listed(folder: Path | None) -> tuple[SessionInfo, ...]:
    rows = list_sessions(None if folder is None else folder.resolve())
    return tuple(
        SessionInfo(
            session_id=row.id,
            cwd=row.workspace,
            title=printable(row.title),
            updated_at=datetime.fromtimestamp(row.updated_at / 1000, UTC).isoformat(),
        )
        for row in rows
        if row.title and not row.archived
    )


def _mode(name: str) -> SetMode:
    if name not in list(Mode):
        raise RpcError(INVALID_PARAMS, f"There is no mode {printable(name)}. The modes are {', '.join(Mode)}.")
    return SetMode(mode=Mode(name))


def _changed(session: EditorSession, option: str, value: str) -> Op:
    """Give the op that sets an option to a value; raises `RpcError`, or `ConfigError` for a model."""
    live = session.live
    match option:
        case "mode":
            return _mode(value)
        case "model":
            return live.choose(value)
        case "thought_level" if value in EFFORT_BUDGETS or value == AS_SET:
            return live.choose(live.status.model, EFFORT_BUDGETS.get(value))
        case _:
            raise RpcError(INVALID_PARAMS, f"There is no option {printable(option)} with the value {printable(value)}.")
