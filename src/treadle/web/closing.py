"""When a session of the page's own process is closed: once it was stopped, or nobody has needed it for long."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from treadle.door.open_session import Attendance, LiveSession, RemoteSession
from treadle.door.reports import session_jobs

UNUSED_SECONDS = 30 * 60.0
"""Seconds after which a session is closed that has nothing to do and that nobody looks at."""

_LOOK = 60.0
_ENDS_WITHIN = 10.0
"""Seconds that a turn which was interrupted has to end."""


class SessionUse:
    """Who needs a session of this process; `waits` says whether something of the page does. Needs an event loop."""

    def __init__(self, session: LiveSession, waits: Callable[[], bool]) -> None:
        self._session = session
        self._waits = waits
        self._at = time.monotonic()
        self.lookers = 0
        self._attendance = session.attendance = Attendance(background=False)
        # Where no socket can be had the session works all the same.
        self._attendance.listening.add_done_callback(lambda listening: listening.exception())

    def touch(self) -> None:
        """Note that it is needed now."""
        self._at = time.monotonic()

    def over(self, seconds: float) -> bool:
        """Whether it was stopped, or has not been needed for so long. Its commands in the background are not asked."""
        if self._attendance.stopped:
            return True
        if self._needed():
            self.touch()
            return False
        return time.monotonic() - self._at >= seconds

    def _needed(self) -> bool:
        session, status = self._session, self._session.status
        if self.lookers or self._attendance.surfaces or self._waits():
            return True
        return (
            status.turn_active
            or bool(status.questions or status.queue or status.held)
            or not session.quiet
            or session.wakes()
        )

    async def wait_until_over(self, seconds: float) -> None:
        """Wait until it is to be closed, or is; a turn that was interrupted ends before."""
        while not self._attendance.stopped:
            if self._session.closed:
                return
            self._attendance.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(seconds, _LOOK)):
                    await self._attendance.changed.wait()
            if self.over(seconds) and not await asyncio.to_thread(_runs_commands, self._session.id):
                return
        await until_turn_ended(self._session)


async def until_turn_ended(session: LiveSession | RemoteSession) -> None:
    """Wait until the turn of a session is over that was interrupted, for some seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_ENDS_WITHIN), session.follow() as ended:
            while session.status.turn_active and await anext(ended, None) is not None:
                pass


def _runs_commands(session_id: str) -> bool:
    return any(line.running for line in session_jobs(session_id, now=int(time.time() * 1000)))
