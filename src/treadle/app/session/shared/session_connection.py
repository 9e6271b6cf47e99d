"""The connection to a session of another process: attaching, and the messages that go to and fro."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec

from treadle.app.session.shared.session_wire import WIRE_VERSION, Address, receive, send_message
from treadle.protocol.attach import AskServers, Attach, Attached, FeedCursor, Post, Refused, StopSession, ToClient
from treadle.protocol.codec import decoder_of
from treadle.protocol.errors import SessionError

_decoder: msgspec.json.Decoder[ToClient] = decoder_of(ToClient)

_ANSWERS_WITHIN = 10.0
"""Seconds."""

_LETS_IN_WITHIN = 3.0
"""Seconds that a session which was opened a moment ago may take until others can attach."""

_PAUSE = 0.05
_GONE = (ConnectionRefusedError, FileNotFoundError)


class SessionConnection:
    """The connection to a live session, made anew when it is lost; `attached` is what the session said first."""

    def __init__(self, session_id: str, kind: str = "tui", name: str = "") -> None:
        """`kind` is what kind of surface attaches, `name` who uses it; the session numbers them."""
        self._address = Address(session_id)
        self._session_id = session_id
        self.kind, self._name = kind, name
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self, cursor: FeedCursor | None = None) -> Attached:
        """Attach; raises `SessionError` where the session does not run, or does not let this client in."""
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN):
                self._reader, self._writer, key = await self._address.connect()
                hello = Attach(key=key, version=WIRE_VERSION, cursor=cursor, kind=self.kind, name=self._name)
                await send_message(self._writer, hello)
                answer = await receive(self._reader, _decoder)
        except TimeoutError as error:
            await self.close()
            raise SessionError(
                "session-silent",
                f"Session {self._session_id} does not answer.",
                why=f"Its process took longer than {_ANSWERS_WITHIN:g} s: it may be suspended, or very busy.",
                fix="Look for it with `ps`, resume it with `fg` or `kill -CONT`, or end it, and try again.",
            ) from error
        except OSError as error:
            raise SessionError(
                "session-not-live",
                f"Session {self._session_id} is not open in any process.",
                why="The process that had it open has ended."
                if isinstance(error, _GONE)
                else (error.strerror or str(error)),
                fix=f"Continue it with `treadle --resume {self._session_id}`.",
            ) from error
        match answer:
            case Attached():
                return answer
            case Refused(code=code, what=what, why=why, fix=fix):
                raise SessionError(code, what, why=why, fix=fix)
            case _:
                raise SessionError("session-closed", f"Session {self._session_id} was closed.", fix="Resume it.")

    async def reach(self, is_open: Callable[[], bool]) -> Attached:
        """Attach as `open` does, and wait while a process has the session open but does not let anyone in yet."""
        end = asyncio.get_running_loop().time() + _LETS_IN_WITHIN
        while True:
            try:
                return await self.open()
            except SessionError as error:
                late = asyncio.get_running_loop().time() > end
                if error.code not in ("session-not-live", "session-closed") or late or not is_open():
                    raise
            await asyncio.sleep(_PAUSE)

    async def hear(self) -> ToClient | None:
        """Give the next message; None when the connection is lost."""
        if self._reader is None:
            return None
        with suppress(OSError):
            return await receive(self._reader, _decoder)
        return None

    async def say(self, message: Post | AskServers | StopSession) -> None:
        """Send a message; raises `OSError`."""
        if self._writer is None:
            raise OSError("not connected")
        await send_message(self._writer, message)

    async def close(self) -> None:
        """Leave."""
        writer, self._reader, self._writer = self._writer, None, None
        if writer is not None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
