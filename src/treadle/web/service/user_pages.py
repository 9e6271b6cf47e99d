"""The processes of all users, and the queue of their turns."""

import asyncio
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from treadle.door.program import write_log
from treadle.protocol.errors import SessionError, TreadleError
from treadle.web.service.due_times import DueTimes
from treadle.web.service.service_metrics import ServiceMetrics
from treadle.web.service.service_users import ServiceUser, UserBook
from treadle.web.service.service_words import (
    Began,
    FromPage,
    NewBudget,
    NextDue,
    RunAnswered,
    RunWanted,
    TurnGiven,
    TurnPlace,
    TurnWanted,
)
from treadle.web.service.turn_queue import TurnQueue
from treadle.web.service.user_confinement import FolderSize, folder_size, user_place
from treadle.web.service.user_process import UserProcess
from treadle.web.signals import Signal

IDLE_SECONDS = 10 * 60.0
"""Seconds after which the process of a user ends who has no page and no session open."""

MOST_WAITING = 200
"""Turns of one user that may wait; a process that asks for more is ended."""

_LOOK = 30.0
_LOOKS_FOR_DUE = 1.0
_ANNOUNCES = 0.1
"""Seconds between two tellings of the places in the queue."""

_GIGABYTE = 1e9


class PageTerms(Struct, frozen=True, kw_only=True):
    """How pages are served: settings of the command line, names of hosts, and variables that are passed to them.

    `traces` is the address that spans are sent to, as OTLP over HTTP; empty is nowhere.
    """

    flags: Mapping[str, Any]
    hosts: tuple[str, ...]
    scheme: str
    trust: bool = False
    passed: tuple[str, ...] = ()
    traces: str = ""


class UserPages:
    """Starts the process of a user when it is needed; `most` turns of all users work at the same time.

    An async context manager. `changed` tells when turns or processes are other ones.
    """

    def __init__(self, users: UserBook, terms: PageTerms, sockets: Path, metrics: ServiceMetrics, *, most: int) -> None:
        self.changed = Signal()
        self._users = users
        self._terms = terms
        self._sockets = sockets
        self._metrics = metrics
        self._most = most
        self._pages: dict[str, UserProcess] = {}
        self._starting: dict[str, asyncio.Task[UserProcess]] = {}
        self._queue = TurnQueue(most, self._turns_of)
        self._wanted: dict[tuple[str, str], float] = {}
        self._told: dict[tuple[str, str], int] = {}
        self._sizes: dict[str, FolderSize] = {}
        self._moved = asyncio.Event()
        self._draining = False
        self._tasks: list[asyncio.Task[None]] = []
        self._aside: set[asyncio.Task[None]] = set()
        self._due = DueTimes(users.data)

    async def __aenter__(self) -> Self:
        self._tasks = [
            asyncio.create_task(self._announce(), name="places in the queue"),
            asyncio.create_task(self._look_after(), name="processes that nobody needs"),
            asyncio.create_task(self._start_what_is_due(), name="what is scheduled"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (*self._tasks, *self._starting.values()):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._starting.values(), return_exceptions=True)
        ending = [page.end() for page in self._pages.values()]
        await asyncio.gather(*ending, *self._aside, return_exceptions=True)

    @property
    def working(self) -> int:
        """How many turns work."""
        return sum(self._queue.working.values())

    def drain(self) -> None:
        """Let no turn begin any more: those that wait go on when the service is there again."""
        self._draining = True

    async def page_of(self, user: ServiceUser) -> UserProcess:
        """Give the process of a user, started if it is not there. Raises `TreadleError`."""
        page = self._pages.get(user.name)
        if page is not None:
            if page.user.day_cost != user.day_cost:
                page.say(NewBudget(budget=self._budget(user)))
            page.user = user
            return page
        if self._draining:
            raise SessionError("service-ends", "This service ends.", fix="Try again in a minute.")
        starting = self._starting.get(user.name)
        if starting is None:
            starting = asyncio.create_task(self._start(user), name="starting a user's page")
            self._starting[user.name] = starting
            starting.add_done_callback(lambda _: self._starting.pop(user.name, None))
        return await asyncio.shield(starting)

    async def _start(self, user: ServiceUser) -> UserProcess:
        place = await asyncio.to_thread(user_place, self._users.data, user.name, user.account)
        page = UserProcess(user, place, self._sockets, hears=self._hear, ended=self._ended)
        budget = self._budget(user)
        flags = {**self._terms.flags, **({"budget": budget} if budget else {})}
        began = Began(
            user=user.name,
            folder=str(place.projects),
            flags=flags,
            hosts=self._terms.hosts,
            scheme=self._terms.scheme,
            trust=self._terms.trust,
            traces=self._terms.traces,
        )
        if user.disk_gb is not None:
            self._sizes[user.name] = await asyncio.to_thread(folder_size, place.folder)
        await page.start(began, self._terms.passed)
        self._pages[user.name] = page
        self.changed.set()
        return page

    def _budget(self, user: ServiceUser) -> Mapping[str, Any]:
        own = {} if user.day_cost is None else {"day_cost": user.day_cost}
        return {**self._terms.flags.get("budget", {}), **own}

    def _turns_of(self, name: str) -> int:
        page = self._pages.get(name)
        return 0 if page is None else page.user.turns

    def _hear(self, user: str, said: FromPage) -> None:
        match said:
            case TurnWanted(turn=turn):
                self._queue.want(user, turn)
                self._wanted.setdefault((user, turn), time.monotonic())
                if sum(1 for one, _ in self._wanted if one == user) > MOST_WAITING + self._turns_of(user):
                    self._kill(user)
            case TurnGiven(turn=turn):
                self._queue.gives(user, turn)
                self._wanted.pop((user, turn), None)
                self._told.pop((user, turn), None)
            case NextDue(due=due):
                self._due.note(user, due)
                return
            case RunWanted(run=run):
                self._own(self._answer(user, run), "whether a scheduled run may begin")
                return
            case _:
                return
        self._moved.set()

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _answer(self, name: str, run: str) -> None:
        """Let a scheduled run begin, if a session of its user could: what is asked of a browser is asked of it."""
        starting, page = self._starting.get(name), self._pages.get(name)
        problem = "the service was ending" if self._draining else ""
        try:
            page = await asyncio.shield(starting) if page is None and starting is not None else page
            if page is not None:
                await self.require_space(page.user, page)
        except SessionError as error:
            problem = f"{error.what} {error.fix}"
        if page is not None:  # else it ended meanwhile
            page.say(RunAnswered(run=run, problem=problem))

    async def _start_what_is_due(self) -> None:
        """Start the processes of users of whom something is scheduled; those that are there see to it themselves."""
        while True:
            await asyncio.sleep(_LOOKS_FOR_DUE)
            for name in () if self._draining else self._due.over(time.time()):
                try:
                    user = self._users.all().get(name)
                    if user is not None:
                        await self.page_of(user)
                except TreadleError as error:
                    write_log(f"Something of {name} is scheduled, and their page cannot be started: {error}")

    def _kill(self, user: str) -> None:
        page = self._pages.get(user)
        if page is not None:
            page.kill()

    def _ended(self, page: UserProcess) -> None:
        name = page.user.name
        if self._pages.get(name) is page:  # it ended by itself: what it had here is closed
            del self._pages[name]
            self._own(page.end(), "closing a user's page")
        self._queue.gone(name)
        self._wanted = {one: at for one, at in self._wanted.items() if one[0] != name}
        self._told = {one: place for one, place in self._told.items() if one[0] != name}
        self._moved.set()
        self.changed.set()

    async def _announce(self) -> None:
        """Let turns work that have a place now, and tell the others theirs."""
        while True:
            await self._moved.wait()
            self._moved.clear()
            places = {} if self._draining else dict.fromkeys(self._queue.admit(), 0)
            now = time.monotonic()
            for one in places:
                self._metrics.add("treadle_turns_total", user=one[0])
                self._metrics.add("treadle_turn_wait_seconds_sum", now - self._wanted.pop(one, now))
            for one, place in {**self._queue.places(), **places}.items():
                page = self._pages.get(one[0])
                if self._told.get(one) != place and page is not None:
                    self._told[one] = place
                    page.say(TurnPlace(turn=one[1], place=place))
            self.changed.set()
            await asyncio.sleep(_ANNOUNCES)

    async def _look_after(self) -> None:
        """End what nobody needs, and measure the folders that are bounded."""
        while True:
            await asyncio.sleep(_LOOK)
            with suppress(TreadleError):
                users = self._users.all()
                for name, page in tuple(self._pages.items()):
                    user = users.get(name)
                    if user is None or page.idle(IDLE_SECONDS):
                        await self._end(page)
                    elif user.disk_gb is not None:
                        self._sizes[name] = await asyncio.to_thread(folder_size, page.place.folder)

    async def _end(self, page: UserProcess) -> None:
        self._pages.pop(page.user.name, None)
        await page.end()

    async def require_space(self, user: ServiceUser, page: UserProcess) -> None:
        """Raise `SessionError` where the folder of a user is larger than it may be, or nobody can say how large."""
        if user.disk_gb is None:
            return
        size = self._sizes.get(user.name)
        if size is None:  # it was bounded after the process began
            size = self._sizes[user.name] = await asyncio.to_thread(folder_size, page.place.folder)
        taken = size.taken
        if size.unread:
            raise SessionError(
                "service-disk",
                f"The size of your folder is not known: {size.unread} cannot be read.",
                why="It is bounded, so nothing new is begun until it can be measured.",
                fix="Give its owner the right to read it (chmod u+rx); it is measured every half minute.",
            )
        if taken > user.disk_gb * _GIGABYTE:
            raise SessionError(
                "service-disk",
                f"Your folder takes {taken / _GIGABYTE:.3g} GB of at most {user.disk_gb:g} GB.",
                why="Nothing new is begun until there is room.",
                fix="Delete sessions or files that you do not need; it is measured every half minute.",
            )

    def measure(self, metrics: ServiceMetrics) -> None:
        """Say how much there is of everything now."""
        metrics.clear()
        metrics.gauge("treadle_turns_most", self._most)
        metrics.gauge("treadle_turns_waiting", self._queue.waiting)
        metrics.gauge("treadle_user_processes", len(self._pages))
        metrics.gauge("treadle_draining", self._draining)
        for user, turns in self._queue.working.items():
            metrics.gauge("treadle_turns_working", turns, user=user)
        for name, page in self._pages.items():
            metrics.gauge("treadle_sessions_open", page.use.sessions, user=name)
            metrics.gauge("treadle_cost_dollars", page.use.cost, user=name)
        for name, size in self._sizes.items():
            metrics.gauge("treadle_folder_bytes", size.taken, user=name)
