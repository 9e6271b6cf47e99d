"""Sessions whose program is killed in the middle: of trials and their keeping, of questions of the brokers, of servers.

Each life is one session in the background, with somebody attached who answers. It is killed again and again, and each
start after that is held to what the workspace is: all of a change or nothing of it, and nothing said that is not so.
"""

import asyncio
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.in_background import InBackground
from tests.e2e.process import Program
from tests.orphans import command_line, nothing_left_behind
from tests.rehearsal.crash_work import MOVES, UNKNOWN, CrashModel, Moment, Workspace, moments, number_of
from treadle.app.config.sections import Settings
from treadle.app.processes.attaching import attach_session
from treadle.app.session.shared.remote import RemoteSession
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import Answer, Source
from treadle.protocol.messages import text_of
from treadle.protocol.notifications import CallChanged, CallStatus, Notification, QuestionAsked
from treadle.protocol.permissions import Mode, OptionKind, Question
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.workspace.commands.meter import descendants

PERSON = Source(kind="tui")
GONE_WITHIN = 5.0
"""Seconds in which all that a session started has ended after its program was killed."""

_PATIENCE = 60.0


@dataclass
class Lived:
    """What came of one life."""

    kills: int = 0
    met: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    troubles: list[str] = field(default_factory=list)


def kind_of(question: Question) -> str:
    """Say what a question is about."""
    if question.copy is not None:
        return "trial"
    if question.text.startswith("Let commands connect"):
        return "host"
    return "git" if question.text.startswith("Let `git") else "call"


_BEFORE_KEPT = re.compile("was interrupted before its changes were kept")
_ABOUT = {"trial": "a trial", "host": "a host", "git": "git", "call": "a call"}
_LISTENS = re.compile(r"It listens on localhost:(\d+)")
_MARKS = {
    "a trial is kept": "home/copies/*/journal",
    "git writes": "project/.git/**/*.lock",
}
"""Files that are there as long as something is being done."""

_LEFT = ("home/copies/*", "home/live/*", "home/saving/*", "tmp/*", "project/**/.treadle-*")
"""What there is only while a program runs."""

_MOST_FILES = 60
"""Files of a session in Treadle's data at most, however often it was killed; a life without a kill has some 20."""


class _Run:
    """One run of the program, up to its death. `again` are calls whose questions are to be put again."""

    def __init__(self, life: "_Life", moment: Moment, again: set[str]) -> None:
        self._life = life
        self._moment = moment
        self._come = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._numbers: dict[str, str] = {}
        self._open: dict[str, Question] = {}
        self._answering: set[str] = set()
        self.again = again
        self.relay = 0
        self.guards: list[int] = []

    async def live(self, worker: int) -> None:
        """Attach, answer, and kill at the moment."""
        if self._moment.what == "it starts":
            self._come.set()
        else:
            self._tasks.append(asyncio.create_task(self.attend()))
            self._tasks.append(asyncio.create_task(self._look()))
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._moment.most):
                    await self._come.wait()
            if self._come.is_set():
                self._life.found.met[self._moment.what] += 1
                await asyncio.sleep(self._moment.seconds)
            self._kill(worker)
        finally:
            await self.leave()

    async def leave(self) -> None:
        """Leave the session."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _kill(self, worker: int) -> None:
        life = self._life
        self.guards = descendants(worker)
        lines = [command_line(pid) for pid in self.guards]
        try:
            os.kill(worker, signal.SIGKILL)
        except ProcessLookupError:
            life.found.troubles.append(f"the program had ended by itself ({self._moment})")
            return
        life.found.kills += 1
        life.found.met["with a server"] += any("http.server" in line for line in lines)
        if self.again:
            life.found.troubles.append(f"not asked again: {self.again}") if self._moment.what != "it starts" else None
        for question in self._open.values():
            kind = kind_of(question)
            life.found.met[f"open: {kind}"] += 1
            number = self._numbers.get(question.call_id, "")
            if kind == "call" and question.id not in self._answering:
                self.again.add(question.call_id)
            elif kind != "call" and number and question.id not in self._answering:
                life.model.expected[number] = _BEFORE_KEPT if kind == "trial" else UNKNOWN

    async def _look(self) -> None:
        """Wait for what can be seen from outside."""
        if self._moment.what == "some time":
            self._come.set()
        if mark := _MARKS.get(self._moment.what):
            while not self._life.has(mark):
                await asyncio.sleep(0.001)
            self._come.set()

    async def attend(self) -> None:
        """Listen, and answer what is asked."""
        remote = await self._life.attached()
        feed = remote.follow()
        async with remote:
            for told in remote.past:
                if isinstance(told.notification, CallChanged):
                    call = told.notification.call
                    self._numbers[call.id] = number_of(call.arguments)
            for question in remote.status.questions:
                self._hear(remote, question)
            async for item in feed:
                self._note(remote, item)

    def _note(self, remote: RemoteSession, item: Notification) -> None:
        match item:
            case QuestionAsked(question=question):
                self._hear(remote, question)
            case CallChanged(call=called, status=status, result=result):
                self._numbers[called.id] = number_of(called.arguments)
                if status is CallStatus.RUNNING and self._moment.what == "a call runs":
                    self._come.set()
                if result is not None and (found := _LISTENS.search(text_of(result.content))):
                    self._tasks.append(asyncio.create_task(self._open_port(remote, found[1])))
            case _:
                pass

    async def _open_port(self, remote: RemoteSession, port: str) -> None:
        """Open a port of the session on this machine, and look whether its server answers there."""
        said = await asyncio.to_thread(remote.ports().command, port)
        if (found := re.search(r"127\.0\.0\.1:(\d+)", said.text)) and await _serves(int(found[1])):
            self.relay = int(found[1])
            if self._moment.what == "a port is open":
                self._come.set()

    def _hear(self, remote: RemoteSession, question: Question) -> None:
        if question.id in self._open:
            return
        self._open[question.id] = question
        self.again.discard(question.call_id)
        if self._moment.what == f"{_ABOUT[kind_of(question)]} is asked about":
            self._come.set()
        else:
            self._tasks.append(asyncio.create_task(self._answer(remote, question)))

    async def _answer(self, remote: RemoteSession, question: Question) -> None:
        chance = self._life.chance
        await asyncio.sleep(chance.random() * 0.15)
        no = chance.random() < 0.2
        yes = OptionKind.RUN_FOR_REAL if OptionKind.ALLOW_ONCE not in question.options else OptionKind.ALLOW_ONCE
        option = OptionKind.REJECT_ONCE if no else yes if question.options else OptionKind.ALLOW_ONCE
        self._answering.add(question.id)
        with suppress(TreadleError, OSError):
            await remote.post(Answer(question_id=question.id, option=option), PERSON)
        self._open.pop(question.id, None)
        if not no and self._moment.what == f"{_ABOUT[kind_of(question)]} is answered":
            self._come.set()


class _Life:
    def __init__(self, seed: str, folder: Path, server: ScriptedServer, model: CrashModel, mode: Mode) -> None:
        self.found = Lived()
        self.chance = random.Random(seed)
        self.model = model
        self._place = InBackground(folder, server)
        (folder / "tmp").mkdir()
        self._place.program = Program(folder / "home", {"TMPDIR": str(folder / "tmp")})
        self._folder = folder
        self._mode = mode
        self._session = ""
        self._guards: list[int] = []

    def has(self, pattern: str) -> bool:
        """Whether there are such files."""
        return any(self._folder.glob(pattern))

    async def attached(self) -> RemoteSession:
        """Attach to the session."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                with suppress(TreadleError):
                    return await attach_session(self._session, Path(), Settings())
                await asyncio.sleep(0.05)

    async def live(self, when: Iterator[Moment], kills: int) -> None:
        """Be killed so often, and then end properly."""
        again: set[str] = set()
        while self.found.kills < kills and not self.found.troubles:
            before = set(descendants(os.getpid()))
            moment = next(when)
            await self._start(moment)
            one = _Run(self, moment, again)
            await one.live(self._place.worker(self._session))
            await self._gone(before, f"{moment}")
            self._guards += one.guards
            if one.relay and await _serves(one.relay):
                self.found.troubles.append(f"port {one.relay} of this machine still answers after {moment}")
            again = one.again
            self.found.troubles += [f"{trouble} (before {moment})" for trouble in self.model.troubles]
        if not self.found.troubles:
            await self._end(again)

    async def _start(self, moment: Moment) -> None:
        self.model.begin(moment)
        self.found.met["killed while it kept a trial"] += (cut := self.has(_MARKS["a trial is kept"]))
        self.found.met["half of a trial was there"] += self._session != "" and len(self.model.numbers()["set"]) > 1
        more = ("--mode", self._mode.value, "--trust", *(("--resume", self._session) if self._session else ()))
        ended = await self._place.program.run("--bg", "" if self._session else "Work.", *self._place.flags, *more)
        if ended.code != 0 or "Traceback" in ended.err:
            self.found.troubles.append(f"it does not start: {ended}")
        if cut and "What it had applied was undone." not in ended.err:
            self.found.troubles.append(
                f"a trial was kept when it was killed, and the start says nothing of it: {ended}"
            )
        self._session = self._session or ended.out.strip()

    async def _gone(self, before: set[int], after: str) -> None:
        """Wait until nothing runs that did not before."""
        begun = time.monotonic()
        while left := [pid for pid in descendants(os.getpid()) if pid not in before]:
            for pid in left:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if time.monotonic() - begun > GONE_WITHIN:
                self.found.troubles.append(f"still runs after {after}: {[*map(command_line, left)]}")
                return
            await asyncio.sleep(0.005)
        self.found.slowest = max(self.found.slowest, time.monotonic() - begun)

    async def _end(self, again: set[str]) -> None:
        """Have the session end as it should, and look at what it and all kills before left."""
        self.model.finishing = True
        before = set(descendants(os.getpid()))
        await self._start(last := Moment("a call runs", 0))
        one = _Run(self, last, again)
        attending = asyncio.create_task(one.attend())
        await self._place.until(self._session, lambda row: row["state"] == "done")
        attending.cancel()
        await asyncio.gather(attending, return_exceptions=True)
        await one.leave()
        await self._place.until_closed(self._session)
        await self._gone(before, "its end")
        self.found.troubles += self.model.troubles
        if left := [str(path) for pattern in _LEFT for path in self._folder.glob(pattern)]:
            self.found.troubles.append(f"left behind: {left}")
        if groups := [*_groups(self._guards)]:
            self.found.troubles.append(f"these control groups are left: {groups}")
        files = [file for file in (self._folder / "home").rglob("*") if "checkpoints" not in file.parts]
        if len(files) > _MOST_FILES:
            self.found.troubles.append(f"{len(files)} files after {self.found.kills} kills: {files}")
        for words in (("audit", "verify"), ("replay", self._session, "--strict")):
            done = await self._place.program.run(*words, cwd=self._folder / "project")
            if done.code != 0:
                self.found.troubles.append(f"{words}: {done}")


def _groups(guards: Iterable[int]) -> Iterator[str]:
    names = {f"treadle-{pid}" for pid in guards}
    for folder, _, _ in os.walk("/sys/fs/cgroup"):  # others come and go meanwhile, which a walk does not mind
        if Path(folder).name in names:
            yield folder


async def _serves(port: int) -> bool:
    """Whether a port of this machine leads to a server of the workspace: some other program may take it any time."""
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with closing(writer):
                writer.write(b"GET /note.txt HTTP/1.0\r\nHost: localhost\r\n\r\n")
                return b"SimpleHTTP" in await reader.read()
    except OSError:
        return False


async def kill_sessions(
    seed: str, folder: Path, kills: int, *, mode: Mode, when: Iterator[Moment] | None = None, moves: int = MOVES
) -> Lived:
    """Live one life in a mode, killed so often at random moments, or at these, with at most so many calls before."""
    chance = random.Random(seed)
    model = CrashModel(Workspace(folder / "project"), mode, chance, moves)
    os.environ["TREADLE_HOME"] = str(folder / "home")
    with nothing_left_behind():
        async with ScriptedServer(model) as server:
            model.server = server
            life = _Life(seed, folder, server, model, mode)
            await life.live(moments(mode, chance) if when is None else when, kills)
    life.found.troubles = [f"life {seed} ({mode}): {one}" for one in life.found.troubles]
    life.found.met.update(model.seen)
    return life.found
