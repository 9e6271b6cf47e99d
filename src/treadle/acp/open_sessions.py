"""The sessions that a client has open: how each is opened, asked about, opened again and closed."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from treadle.acp.client import EditorClient
from treadle.acp.client_servers import server_of
from treadle.acp.editor_session import EditorSession
from treadle.acp.offers import Offers
from treadle.acp.rpc import INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcConnection, RpcError
from treadle.acp.shapes import ClientCapabilities, OpenRequest
from treadle.acp.trust_asking import ask_trust
from treadle.door.opening import MODEL_FLAGS, Opening, attach_session, is_session_open, list_sessions, open_session
from treadle.door.settings import load_settings
from treadle.door.trust import SessionTrust, session_trust, trusted_by_variable
from treadle.present.escape import printable
from treadle.protocol.errors import ConfigError, SessionError

_T = TypeVar("_T")


class OpenSession(Struct):
    """A session, and how its client wants it opened; `asked` says that the user was asked about its folder."""

    session: EditorSession
    wanted: OpenRequest
    asked: bool = False
    preparing: "asyncio.Task[None] | None" = None
    opening_again: "asyncio.Task[None] | None" = None

    async def cancel(self) -> None:
        """Stop what is going on, the question about the folder too."""
        self.stop_preparing()
        await self.session.cancel()

    async def leave(self) -> None:
        """Stop what nobody waits for any more."""
        self.stop_preparing()
        await self.session.leave()

    def stop_preparing(self) -> None:
        """Take the question about the folder back."""
        if self.preparing is not None:
            self.preparing.cancel()


class OpenSessions:
    """Opens sessions one after the other, by their ids; `flags` are the settings of the command line.

    With `trusted` the folders are trusted for this run.
    """

    def __init__(self, connection: RpcConnection, flags: Mapping[str, Any], *, trusted: bool) -> None:
        self._connection = connection
        self._flags = flags
        self._trusted = trusted
        self._open: dict[str, OpenSession] = {}
        self._opening = asyncio.Lock()
        self.capabilities = ClientCapabilities()

    def find(self, session_id: str) -> OpenSession:
        """Find an open session; raises `RpcError`."""
        opened = self._open.get(session_id)
        if opened is None:
            raise RpcError(RESOURCE_NOT_FOUND, f"Session {printable(session_id)} is not open.")
        return opened

    def opened(self, session_id: str) -> OpenSession | None:
        """Give a session if it is open."""
        return self._open.get(session_id)

    async def enter(self, wanted: OpenRequest, folder: Path, *, resume: str = "", new_id: str = "") -> EditorSession:
        """Open a session: a new one, or one of the log that is resumed. Raises `TreadleError`.

        A request that is taken back meanwhile does not stop that half-way.
        """
        return await _whole(self._enter(wanted, folder, resume=resume, new_id=new_id))

    async def _enter(self, wanted: OpenRequest, folder: Path, *, resume: str, new_id: str) -> EditorSession:
        session_id = resume or new_id
        async with self._opening:
            opened = self._open.get(session_id)
            if opened is not None and opened.session.works:
                raise RpcError(
                    INVALID_PARAMS,
                    f"Session {session_id} is open here and works on a message. Wait for the end of its turn, or stop "
                    "it, and open it again then.",
                )
            await self._left(session_id)
            client = EditorClient(self._connection, self.capabilities, session_id)
            session = await self._begin(wanted, folder, client, resume=resume, new_id=new_id)
            self._open[session_id] = OpenSession(session, wanted)
        return session

    async def _begin(
        self, wanted: OpenRequest, folder: Path, client: EditorClient, *, resume: str, new_id: str
    ) -> EditorSession:
        """Attach to a session that another process has open, or open it here."""
        if resume and (attached := await self._attached(resume, folder, client)) is not None:
            return attached
        trust = session_trust(folder, once=self._trusted or trusted_by_variable())
        try:
            return await _start(self._opening_of(wanted, trust, resume=resume, new_id=new_id), client)
        except SessionError as error:
            if error.code != "session-busy" or (attached := await self._attached(resume, folder, client)) is None:
                raise
            return attached  # another process was quicker

    async def _attached(self, session_id: str, folder: Path, client: EditorClient) -> EditorSession | None:
        """Attach to a session of another process; None where none has it open."""
        settings = load_settings(self._flags)
        if not await asyncio.to_thread(is_session_open, session_id):
            return None
        try:
            remote = await attach_session(session_id, folder, settings, kind="acp", name="editor")
        except SessionError as error:
            if error.code not in ("session-not-live", "session-closed"):
                raise
            return None  # it was closed meanwhile
        return await _started(EditorSession(remote, client, Offers(remote, settings)))

    async def leave(self, session_id: str) -> None:
        """Close a session if it is open; it can be resumed. Taking the request back does not stop that half-way."""
        await _whole(self._leave(session_id))

    async def _leave(self, session_id: str) -> None:
        async with self._opening:
            await self._left(session_id)

    async def _left(self, session_id: str) -> None:
        opened = self._open.pop(session_id, None)
        if opened is not None:
            try:
                await opened.leave()
            finally:
                await opened.session.close()

    async def stop(self) -> None:
        """Stop what is going on in all sessions: nobody waits for it any more."""
        await asyncio.gather(*(opened.leave() for opened in self._open.values()), return_exceptions=True)

    async def close(self) -> None:
        """Close all sessions; each can be resumed."""
        async with self._opening:
            opened, self._open = tuple(self._open.values()), {}
            for one in opened:
                one.session.keep()
            await asyncio.gather(*(one.session.close() for one in opened), return_exceptions=True)

    async def prepare(self, opened: OpenSession) -> bool:
        """Ask about the folder before its first prompt; False where the prompt is cancelled meanwhile.

        A session that was closed where it was open is continued here, or where it is open now.
        """
        if opened.opening_again is not None and not opened.opening_again.done():
            await _shielded(opened.opening_again)
            return True
        if await opened.session.was_closed_elsewhere():
            opened.opening_again = asyncio.create_task(self._continue(opened), name="acp continue")
            await _shielded(opened.opening_again)
        if opened.asked or opened.session.continues_elsewhere or not opened.session.live.trust.asks:
            return True
        asking = opened.preparing
        if asking is None or asking.done():
            asking = opened.preparing = asyncio.create_task(self._settle_trust(opened), name="acp trust")
        try:
            await asyncio.shield(asking)
        except asyncio.CancelledError:
            if not asking.cancelled():
                raise  # the request itself was taken back
            return False
        return True

    async def _settle_trust(self, opened: OpenSession) -> None:
        """Ask, unless that was done for another session of the folder, and go by the answer."""
        now = session_trust(opened.session.live.workspace)
        if now.asks:
            now = await ask_trust(now, opened.session.client)
        opened.asked = True
        if now.trusted:
            opening = self._opening_of(opened.wanted, now, resume=opened.session.live.id, new_id="")
            # Whoever cancels the prompt does not stop it half-way.
            opened.opening_again = asyncio.create_task(self._open_again(opened, opening), name="acp open again")
            await _shielded(opened.opening_again)

    async def _open_again(self, opened: OpenSession, opening: Opening) -> None:
        """Open a session under the new word on its folder: it goes by one word from its start to its end."""
        old, session_id = opened.session, opened.session.live.id
        async with self._opening:
            if self._open.get(session_id) is not opened:  # it was closed meanwhile
                return
            await old.close()
            known = any(row.id == session_id for row in list_sessions(opening.workspace))
            try:
                opened.session = await _start(
                    opening if known else replace(opening, resume="", session_id=session_id), old.client
                )
            except BaseException:
                self._open.pop(session_id, None)
                raise
        opened.session.show_choices()
        opened.session.greet()

    async def _continue(self, opened: OpenSession) -> None:
        old, session_id = opened.session, opened.session.live.id
        async with self._opening:
            if self._open.get(session_id) is not opened:
                return
            opened.session = await self._begin(
                opened.wanted, old.live.workspace, old.client, resume=session_id, new_id=""
            )
            await old.close()
        opened.session.show_choices()
        opened.session.greet()

    def _opening_of(self, wanted: OpenRequest, trust: SessionTrust, *, resume: str, new_id: str) -> Opening:
        flags = dict(self._flags)
        if wanted.additional_directories:
            folders = (str(absolute_folder(folder)) for folder in wanted.additional_directories)
            flags["add_dirs"] = (*flags.get("add_dirs", ()), *folders)
        return Opening(
            workspace=trust.workspace,
            settings=load_settings(flags, workspace=trust.workspace, trusted=trust.trusted),
            user_present=True,
            given=frozenset(flags) - ({"mode", *MODEL_FLAGS} if resume else frozenset()),
            said_mode=flags.get("mode"),
            trust=trust,
            servers=tuple(map(server_of, wanted.mcp_servers or ())),
            resume=resume,
            session_id=new_id,
        )


async def _start(opening: Opening, client: EditorClient) -> EditorSession:
    if client.edits_files:
        opening = replace(opening, editor=client)
    live = await open_session(opening)
    return await _started(EditorSession(live, client, Offers(live, opening.settings)))


async def _started(session: EditorSession) -> EditorSession:
    await session.start()
    with suppress(ConfigError):  # the models that can be called are then not listed
        await session.offers.look()
    return session


async def _whole(work: Coroutine[Any, Any, _T]) -> _T:
    """Do something to its end, also when whoever waits for it does so no more."""
    return await _shielded(asyncio.create_task(work, name="acp work"))


async def _shielded(task: "asyncio.Task[_T]") -> _T:
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # it is heard, if nobody waits
    return await asyncio.shield(task)


def absolute_folder(path: str) -> Path:
    """Take the path of a folder; raises `RpcError` for one that is not absolute."""
    if not path.startswith("/") or "\0" in path:
        raise RpcError(INVALID_PARAMS, f"{printable(path)} is not an absolute path.")
    return Path(path)
