"""The sessions that the page shows: its own, which run in this process, and those of others, which it attaches to."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from treadle.door.history import Seen, look_closed, session_past
from treadle.door.open_session import LiveSession, sharing_changed
from treadle.door.opening import MODEL_FLAGS, Opening, attach_session, open_session, open_store, session_log
from treadle.door.reports import batches_changed
from treadle.door.settings import load_settings
from treadle.door.trust import SessionTrust, session_trust, trusted_by_variable
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import SessionError, TreadleError
from treadle.protocol.permissions import Mode
from treadle.web.batch_ends import BatchEnds
from treadle.web.closing import UNUSED_SECONDS
from treadle.web.column_foot import SpendingSeen, today_words
from treadle.web.folder_index import FolderIndex
from treadle.web.once import Once
from treadle.web.own_shells import OwnShells
from treadle.web.page_session import KIND, PageSession
from treadle.web.page_view import PageContent, page_content
from treadle.web.service.turn_gate import TurnGate
from treadle.web.signals import Signal

_LOOK, _LOOK_ANYWAY = 1.0, 10.0
"""Seconds between two looks at whether another session has a socket, and at which other processes have open."""

_SETTLED = 1.0
"""Seconds after which a change of a folder has another time than the next one."""

_MOST_PAST = 8
"""Sessions that nobody has open whose pages are kept."""


class SessionBook:
    """All sessions; an async context manager that closes its own at its end.

    `folder` is where a new session works if nothing else is said, `flags` are settings of the command line.
    `changed` tells when a session was opened or closed, or has another question or state. A session of this process
    that nobody has needed for `unused` seconds is closed; a message opens it again. `listed` counts what changed in the
    list besides: a name, or which sessions are in it. `today` says what was spent, None before the first look. With a
    `gate` turns of this process wait for their place, and `hears` is told what its sessions tell.
    """

    def __init__(
        self,
        folder: Path,
        flags: Mapping[str, Any],
        *,
        trust: bool = False,
        unused: float = UNUSED_SECONDS,
        gate: TurnGate | None = None,
        hears: Callable[[str, str, Stamped], None] | None = None,
    ) -> None:
        self.folder = folder
        self.flags = dict(flags)
        self.gate = gate
        self._hears = hears
        self.changed = Signal() if gate is None else gate.moved
        self.listed = 0
        self.batches = BatchEnds()
        self.today: str | None = None
        self._spending = SpendingSeen()
        self.files = FolderIndex()
        self.shells = OwnShells()
        self.once = Once()
        self._once = trust or trusted_by_variable()
        self._trusted_once: set[Path] = set()
        self._asked_later: dict[tuple[Path, bool], str] = {}
        self._open: dict[str, PageSession] = {}
        self._agents: dict[str, PageSession] = {}
        self._past: dict[str, tuple[tuple[int, bool], PageContent]] = {}
        self._seen: dict[str, Seen] = {}
        self._reading = Lock()
        self._failures: dict[str, TreadleError] = {}
        self._unused = unused
        self._entering: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._tasks.append(asyncio.create_task(self._watch(), name="watching sessions"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        opened = [*self._open.values(), *self._agents.values()]
        self._open, self._agents = {}, {}
        closing = (*(one.close() for one in opened), self.shells.close(), *self._closing)
        await asyncio.gather(*closing, return_exceptions=True)

    @property
    def opened(self) -> Mapping[str, PageSession]:
        """Those that are open, by their ids, the oldest first; without subagents, which work for one of them."""
        return self._open

    def find(self, session_id: str) -> PageSession | None:
        """Give a session that is open, also a subagent that somebody looks at."""
        return self.opened.get(session_id) or self._agents.get(session_id)

    async def look_at(self, session_id: str) -> PageSession | None:
        """Give a session that is open; a subagent that works is attached to for that."""
        if self.find(session_id) is None and await asyncio.to_thread(_is_agent_open, session_id):
            await self._attach(session_id, agent=True)
        return self.find(session_id)

    async def look_closed(self, session_id: str) -> None:
        """Have a session that nobody has open know what others changed of its work since it was closed."""
        if self.find(session_id) is None:
            with suppress(TreadleError, OSError):  # it is damaged, or was opened meanwhile: then it looks itself
                if await look_closed(session_id, seen := self._seen.pop(session_id, {})):
                    self.relist()
                self._seen[session_id] = seen
                if len(self._seen) > _MOST_PAST:
                    del self._seen[next(iter(self._seen))]

    def is_deleted(self, session_id: str) -> bool:
        """Whether there is no such session any more. Reads the store."""
        return self.find(session_id) is None and bool(_deleted([session_id]))

    def relist(self) -> None:
        """Say that the list of sessions is another one."""
        self.listed += 1
        self.changed.set()

    def trust(self, folder: Path) -> SessionTrust:
        """Say how a folder stands."""
        return session_trust(folder, once=self._once or folder in self._trusted_once)

    def trust_once(self, folder: Path) -> None:
        """Trust a folder as long as this process runs."""
        self._trusted_once.add(folder)

    def ask_later(self, folder: Path, seen: str, *, may_trust: bool) -> None:
        """Ask for a folder no more as long as this process runs and it has what the question showed.

        Who `may_trust` is asked, although somebody who may not has said so.
        """
        self._asked_later[folder, may_trust] = seen

    def asks_later(self, folder: Path, seen: str, *, may_trust: bool) -> bool:
        """Whether that was said of what the question shows now."""
        return seen in (self._asked_later.get((folder, one)) for one in {may_trust, True})

    def past(self, session_id: str) -> PageContent:
        """Make the page of a session that nobody has open. Takes its time; raises `TreadleError`."""
        version = _version(session_id)
        with self._reading:
            known = self._past.get(session_id)
        if known is None or known[0] != version:
            row, past = session_past(session_id)
            view = page_content(row.workspace, row.model, past, is_open=False, session=session_id)
            if session_id in self._failures:
                view.add_problem(self._failures[session_id])
            known = (version, view)
        with self._reading:
            self._past.pop(session_id, None)
            self._past[session_id] = known
            while len(self._past) > _MOST_PAST:
                self._past.pop(next(iter(self._past)))
        return known[1]

    async def start(self, opening: Opening) -> PageSession:
        """Open a session in this process: a new one, or one that is resumed. Raises `TreadleError`."""
        if not opening.resume:
            session = await open_session(opening)
            async with self._alone(session.id):
                return await self._enter(self._page(session))
        async with self._alone(opening.resume):
            known = self._open.get(opening.resume)
            return known or await self._enter(self._page(await open_session(opening)))

    def _page(self, session: LiveSession) -> PageSession:
        return PageSession(session, self.own_mode, self._hears)

    def _alone(self, session_id: str) -> asyncio.Lock:
        """Open, attach to and close one session only once at a time."""
        return self._entering.setdefault(session_id, asyncio.Lock())

    async def resume(self, session_id: str, trust: SessionTrust, **said: Any) -> PageSession:
        """Go on with a session that nobody has open, in its own mode; `said` are settings that it gets. Raises
        `TreadleError`.
        """
        await asyncio.to_thread(_version, session_id)
        self._failures.pop(session_id, None)
        wanted = {name: value for name, value in said.items() if value}
        flags = {**self.flags, **wanted}
        settings = load_settings(flags, workspace=trust.workspace, trusted=trust.trusted)
        return await self.start(
            Opening(
                workspace=trust.workspace,
                settings=settings,
                user_present=True,
                given=(frozenset(self.flags) - {"mode", *MODEL_FLAGS}) | frozenset(wanted),
                said_mode=self.flags.get("mode"),
                resume=session_id,
                trust=trust,
                turns=self.gate,
            )
        )

    def own_mode(self, trust: SessionTrust) -> Mode:
        """Give the mode that the user's own settings have in a folder. Raises `ConfigError`."""
        return load_settings(self.flags, workspace=trust.workspace, trusted=trust.trusted).mode

    def opening(self, trust: SessionTrust, **said: Any) -> Opening:
        """Say how a new session is opened in a folder; `said` are settings for it, such as its mode."""
        flags = {**self.flags, **{name: value for name, value in said.items() if value}}
        settings = load_settings(flags, workspace=trust.workspace, trusted=trust.trusted)
        return Opening(
            workspace=trust.workspace,
            settings=settings,
            user_present=True,
            given=frozenset(flags),
            trust=trust,
            turns=self.gate,
        )

    async def close(self, session_id: str) -> None:
        """Close a session of this process; it can be resumed."""
        async with self._alone(session_id):
            page = self._open.get(session_id)
            if page is not None:
                await self._close(page)

    async def _close(self, page: PageSession) -> None:
        del self._open[page.session.id]
        closing = asyncio.create_task(page.close(), name="closing a session")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        try:
            await asyncio.shield(closing)
        finally:
            page.changed.set()
            self.changed.set()

    async def _close_unused(self, page: PageSession) -> None:
        """Close a session of this process when it was stopped, or nobody needs it."""
        assert page.use is not None  # noqa: S101 - else nobody calls this
        session_id = page.session.id
        while self._open.get(session_id) is page:
            await page.use.wait_until_over(self._unused)
            if page.session.closed:
                return  # by itself
            async with self._alone(session_id):
                if self._open.get(session_id) is page and page.use.over(self._unused):
                    with suppress(TreadleError):
                        await self._close(page)

    async def _enter(self, page: PageSession) -> PageSession:
        await page.open()
        self._place(page)[page.session.id] = page
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks.append(asyncio.create_task(self._follow(page), name="page of a session"))
        self.changed.set()
        return page

    def _place(self, page: PageSession) -> dict[str, PageSession]:
        return self._agents if page.agent else self._open

    async def _follow(self, page: PageSession) -> None:
        """Pass on that a session's questions or state changed, and forget it when it was closed elsewhere."""
        event = asyncio.Event()
        last: object = None
        ended = asyncio.ensure_future(page.session.failure())
        ended.add_done_callback(lambda _: event.set())
        if page.use is not None:
            self._tasks.append(asyncio.create_task(self._close_unused(page), name="closing what is not used"))
        try:
            with page.moved.notifying(event):
                while not ended.done():
                    await event.wait()
                    event.clear()
                    now = (page.session.status.phase, tuple(one.id for one in page.questions))
                    if now != last:
                        last = now
                        self.changed.set()
        finally:
            ended.cancel()
        session_id, failure, pages = page.session.id, ended.exception(), self._place(page)
        if pages.get(session_id) is not page:
            return  # it was closed from the page
        if page.behind:
            await self._attach(session_id, page, agent=page.agent)
        if pages.get(session_id) is page:
            del pages[session_id]
            if page.own and isinstance(failure, TreadleError):
                self._failures[session_id] = failure
                self._past.pop(session_id, None)
        with suppress(TreadleError):
            await page.close()
        page.changed.set()
        self.changed.set()

    async def _watch(self) -> None:
        """Attach to the sessions that other processes have open, as they come, and note which batches end."""
        known, batches, looked = -1.0, -1.0, 0.0
        while True:
            changed, written = sharing_changed(), batches_changed()
            anyway = time.monotonic() - looked > _LOOK_ANYWAY
            if written != batches or (anyway and self.batches.at_work):  # one that is killed writes nothing
                batches = written if abs(time.time() - written) > _SETTLED else -1.0
                with suppress(OSError):
                    if await asyncio.to_thread(self.batches.look):
                        self.changed.set()
            if changed != known or anyway:
                known, looked = (changed if abs(time.time() - changed) > _SETTLED else -1.0), time.monotonic()
                with suppress(TreadleError, OSError):
                    if self.shells.sessions:
                        await self._end_shells_of_deleted()
                    for session_id in await asyncio.to_thread(_leased):
                        if session_id not in self._open and not await self._attach(session_id):
                            known = -1.0  # it is not ready yet
            await self._add_up()
            for page in (*self._open.values(), *self._agents.values()):
                await page.follow_jobs()
            if self.changed.heard.is_set() or self.shells.sessions:
                await asyncio.sleep(_LOOK)
                continue
            with suppress(TimeoutError):  # for nobody it looks seldom
                async with asyncio.timeout(_LOOK_ANYWAY):
                    await self.changed.heard.wait()

    async def _add_up(self) -> None:
        """Say what was spent today, where somebody looks and it may be another sum."""
        if self.changed.heard.is_set() and self._spending.is_new(self._open, self.batches.reached):
            before, self.today = self.today, await asyncio.to_thread(today_words)
            if self.today != before:
                self.changed.set()

    async def _end_shells_of_deleted(self) -> None:
        """End the shells that no screen leads to any more, whoever deleted their sessions."""
        for gone in await asyncio.to_thread(_deleted, self.shells.sessions):
            await self.shells.close_one(gone)

    async def _attach(self, session_id: str, known: PageSession | None = None, *, agent: bool = False) -> bool:
        """Attach to a session, in place of the page that is `known`; gives whether it is there."""
        async with self._alone(session_id):
            if self.find(session_id) is known:
                with suppress(TreadleError, OSError):  # it was closed meanwhile, or is not ready yet
                    settings = await asyncio.to_thread(load_settings, self.flags)
                    remote = await attach_session(
                        session_id, Path(), settings, kind=KIND, name="page", anew=True, wait=False
                    )
                    await self._enter(PageSession(remote, self.own_mode, agent=agent))
            return self.find(session_id) is not None


def _deleted(sessions: Sequence[str]) -> Sequence[str]:
    """Give those of some sessions that are no more."""
    store, gone = open_store(), []
    try:
        for session_id in sessions:
            try:
                store.find(session_id)
            except SessionError:
                gone.append(session_id)
    finally:
        store.close()
    return gone


def _leased() -> Sequence[str]:
    store = open_store()
    try:
        leased = store.leased()  # what a subagent asks, the session asks that began it
        return sorted(row.id for row in store.sessions() if row.id in leased)
    finally:
        store.close()


def _is_agent_open(session_id: str) -> bool:
    with session_log(session_id) as (row, store):
        return bool(row.root) and row.id == session_id and session_id in store.leased()


def _version(session_id: str) -> tuple[int, bool]:
    """Count the events of a session, named by its whole id, and say if it is open; raises `SessionError`."""
    with session_log(session_id) as (row, store):
        if row.id != session_id:
            raise SessionError(
                "session-unknown",
                f"There is no session with the id {session_id!r}.",
                why=f"One with the id {row.id} begins so.",
                fix="Open it from the list of sessions.",
            )
        return row.events, row.id in store.leased()
