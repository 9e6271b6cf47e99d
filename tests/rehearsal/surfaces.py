"""Several surfaces on one session while it works: browsers behind a bad network, a second server, a terminal.

Each is cut off, killed and brought back at random. Nothing is lost or comes twice, and each question has one answer.
"""

import asyncio
import difflib
import json
import random
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2

from tests.e2e.faults.driving import DONE, run
from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.app.config.sections import Settings
from treadle.app.processes.attaching import attach_session
from treadle.app.session.shared.remote import RemoteSession
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import Answer, Event, Source
from treadle.protocol.notifications import QuestionAsked, TurnEnded
from treadle.protocol.permissions import OptionKind
from treadle.providers.scripted.script import Pace, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

PATIENCE = 90.0
_ITEM = re.compile(r'<li id="i(\d+)" class="item (\w+)[ "]')
_TAG, _TIME = re.compile(r"<[^>]*>"), re.compile(r" · [\d.]+ ?(?:ms|s)\b")


class Wire:
    """A network between a browser and a server, which can be cut."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.port = 0
        self._ends: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Break all connections as they are."""
        for end in tuple(self._ends):
            end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there, out = await asyncio.open_connection("127.0.0.1", self.target)
            self._ends |= {writer, out}
            try:
                await asyncio.gather(_pipe(reader, out), _pipe(there, writer))
            finally:
                self._ends -= {writer, out}
                out.transport.abort()
        writer.transport.abort()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    writer.transport.abort()


@dataclass
class Server:
    """A `treadle web`, which can be killed and started again."""

    program: Program
    flags: tuple[str, ...]
    wire: Wire
    process: asyncio.subprocess.Process | None = None
    cookies: dict[str, str] = field(default_factory=dict)
    key: str = ""
    path: str = ""

    async def start(self) -> None:
        self.process = await self.program.start("web", "--no-open", *self.flags)
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            link = (await self.process.stdout.readline()).decode().strip()
        self.wire.target = int(link.partition("/#")[0].rpartition(":")[2])
        async with httpx2.AsyncClient() as client:
            answer = await client.post(
                f"{self.base}/login", json={"token": link.partition("token=")[2]}, headers=self.headers
            )
        assert answer.status_code == 200, answer.text
        self.cookies, self.key, self.path = dict(answer.cookies), answer.json()["key"], answer.json()["base"]

    async def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)
            async with asyncio.timeout(PATIENCE):
                await self.process.communicate()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.wire.target}"

    @property
    def headers(self) -> dict[str, str]:
        return {"host": f"127.0.0.1:{self.wire.target}", "origin": self.base, "x-treadle-key": self.key}

    def client(self) -> httpx2.AsyncClient:
        """A browser: it goes over the wire."""
        base = f"http://127.0.0.1:{self.wire.port}{self.path}"
        return httpx2.AsyncClient(base_url=base, headers=self.headers, cookies=self.cookies, timeout=90)


class Reader:
    """A browser with a session's page: what stands on it, kept up to date as the page's own script does."""

    def __init__(self, server: Server, session: str, chance: random.Random) -> None:
        self._server = server
        self._session = session
        self._chance = chance
        self._cursor = ""
        self.items: dict[int, str] = {}
        self.answers: dict[str, int] = {}
        self.loaded = 0
        self.connected = 0

    @property
    def ended(self) -> bool:
        return any(_kind(html) == "end" for html in self.items.values())

    async def read(self) -> None:
        """Read on, whatever becomes of the connection."""
        while True:
            with suppress(httpx2.HTTPError, OSError, json.JSONDecodeError):
                async with self._server.client() as client:
                    if not self._cursor:
                        await self._load(client)
                    await self._listen(client)
            await asyncio.sleep(0.05)

    async def _load(self, client: httpx2.AsyncClient) -> None:
        answer = await client.get(f"/s/{self._session}")
        if answer.status_code == 200:
            self.items = items_of(answer.text)
            self._cursor = (re.findall(r'data-cursor="([^"]*)"', answer.text) or [""])[0]
            self.loaded += 1

    async def _listen(self, client: httpx2.AsyncClient) -> None:
        query = {"session": self._session, "cursor": self._cursor}
        async with client.stream("GET", "/events", params=query) as stream:
            if stream.status_code != 200:
                return
            self.connected += 1
            known = self._cursor
            async for line in stream.aiter_lines():
                if line.startswith("id: "):
                    known = line[4:]
                elif line.startswith("data: "):
                    news = json.loads(line[6:])
                    self._cursor = "" if news.get("reload") else known
                    if news.get("reload"):
                        return
                    await self._take(news)

    async def _take(self, news: dict[str, Any]) -> None:
        for position, html in news.get("items", []):
            self.items[position] = html
        for question_id, _ in news.get("status", {}).get("questions", []):
            if self.answers.get(question_id, 0) == 0:
                await self._answer(question_id)

    async def _answer(self, question_id: str) -> None:
        await asyncio.sleep(self._chance.random() * 0.1)
        body = {"question_id": question_id, "option": "allow_once"}
        with suppress(httpx2.HTTPError, OSError):
            async with self._server.client() as client:
                answer = await client.post(f"/s/{self._session}/answer", json=body)
                self.answers[question_id] = answer.status_code


def items_of(page: str) -> dict[int, str]:
    """Find the items of a page."""
    page = page.partition('<ol id="items"')[2].partition("</ol>\n<div")[0]
    found = list(_ITEM.finditer(page))
    ends = [*(one.start() for one in found), len(page)][1:]
    return {int(one[1]): page[one.start() : end] for one, end in zip(found, ends, strict=True)}


def _kind(html: str) -> str:
    found = _ITEM.search(html)
    return "" if found is None else found[2]


def words_of(items: dict[int, str]) -> str:
    """What a person reads on a page, but for how long it took."""
    shown = "".join(items[position] for position in sorted(items))
    return " ".join(_TIME.sub("", " ".join(_TAG.sub(" ", shown).split())).split())


class Terminal:
    """A surface of another process that is cut off at random, and attaches again by itself."""

    def __init__(self, session: str, chance: random.Random) -> None:
        self._session = session
        self._chance = chance
        self.asked: list[str] = []
        self.ended = 0
        self.answered: list[str] = []

    async def work(self) -> None:
        """Listen to the end, and answer now and then."""
        remote = await self._attached()
        feed = remote.follow()
        async with remote:
            cutting = asyncio.create_task(self._cut(remote))
            try:
                for question in remote.status.questions:
                    await self._hear(remote, question.id)
                async for notification in feed:
                    if isinstance(notification, QuestionAsked):
                        await self._hear(remote, notification.question.id)
                    self.ended += isinstance(notification, TurnEnded)
                    if self.ended:
                        return
            finally:
                cutting.cancel()
                await asyncio.gather(cutting, return_exceptions=True)

    async def _attached(self) -> RemoteSession:
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(TreadleError):
                    return await attach_session(self._session, Path(), Settings())
                await asyncio.sleep(0.05)

    async def _hear(self, remote: RemoteSession, question_id: str) -> None:
        self.asked.append(question_id)
        if self._chance.random() < 0.5:
            await asyncio.sleep(self._chance.random() * 0.1)
            with suppress(TreadleError, OSError):
                await remote.post(Answer(question_id=question_id, option=OptionKind.ALLOW_ONCE), Source(kind="tui"))
                self.answered.append(question_id)

    async def _cut(self, remote: RemoteSession) -> None:
        while True:
            await asyncio.sleep(0.1 + self._chance.random())
            await remote._line.close()


@dataclass
class Found:
    """How it went: what is wrong, and how often something was cut, killed or loaded anew."""

    troubles: list[str] = field(default_factory=list)
    cuts: int = 0
    kills: int = 0
    loads: int = 0
    connections: int = 0


async def rehearse_surfaces(seed: int, folder: Path, steps: int = 6) -> Found:
    """Let a session ask `steps` times. The data directory is `folder / "home"`, which the environment names."""
    chance = random.Random(seed)
    found = Found()
    (folder / "ws").mkdir(parents=True)
    async with ScriptedServer(_script(steps, chance)) as server, _servers(folder, model(server)) as (own, other):
        session = await begin_session(own, folder)
        readers = [Reader(one, session, chance) for one in (own, own, other)]
        terminal = Terminal(session, chance)
        working = asyncio.create_task(terminal.work())
        tasks = [asyncio.create_task(one.read()) for one in readers] + [
            asyncio.create_task(_spoil(own, other, chance, found))
        ]
        try:
            async with asyncio.timeout(PATIENCE):
                while not all(one.ended for one in readers):
                    await asyncio.sleep(0.05)
                await working
        except TimeoutError:
            found.troubles.append(f"seed {seed}: not at its end: {[words_of(one.items)[-300:] for one in readers]}")
        finally:
            for task in (*tasks, working):
                task.cancel()
            await asyncio.gather(*tasks, working, return_exceptions=True)
        found.loads, found.connections = sum(one.loaded for one in readers), sum(one.connected for one in readers)
        if not found.troubles:
            found.troubles += [f"seed {seed}: {one}" async for one in _wrong(own, session, readers, terminal)]
    events = log_of(folder / "home", session)
    given = [event.data.question_id for event in events if isinstance(event.data, Answer)]
    if len(given) != len(set(given)) or len(given) != steps:
        found.troubles.append(f"seed {seed}: {len(given)} answers to {steps} questions")
    written = (folder / "ws" / "done.txt").read_text().split()
    if written != [str(step) for step in range(steps)]:
        found.troubles.append(f"seed {seed}: the commands ran as {written}")
    return found


async def _wrong(own: Server, session: str, readers: list[Reader], terminal: Terminal) -> AsyncIterator[str]:
    async with own.client() as client:
        answer = await client.get(f"/s/{session}")
        assert answer.status_code == 200, answer.text
        fresh = items_of(answer.text)
    for number, reader in enumerate(readers):
        same = {position: html.strip() for position, html in reader.items.items() if _kind(html) != "gone"}
        wrong = [number for number, html in fresh.items() if same.get(number) != html.strip()]
        if number < 2 and (wrong or same.keys() != fresh.keys()):
            yield f"browser {number} shows other items: {wrong}, {same.keys() ^ fresh.keys()}"
        if difference := _difference(words_of(reader.items).split(), words_of(fresh).split()):
            yield f"browser {number} reads otherwise: {difference}"
    if len(terminal.asked) != len(set(terminal.asked)) or terminal.ended != 1:
        yield f"the terminal heard {terminal.asked}, and {terminal.ended} ends"
    for question in {id_ for reader in readers for id_ in reader.answers}:
        taken = sum(reader.answers.get(question) == 200 for reader in readers) + (question in terminal.answered)
        if taken > 1:
            yield f"question {question} was answered {taken} times"


def _difference(one: list[str], other: list[str]) -> str:
    return " ".join(line for line in difflib.ndiff(one, other) if line[0] in "+-")


def _script(steps: int, chance: random.Random) -> Script:
    def text(step: int) -> str:
        return "\n\n".join(
            f"Step {step}, part {part}: " + " ".join(f"word{step}.{part}.{n}" for n in range(chance.randrange(2, 30)))
            for part in range(chance.randrange(1, 6))
        )

    turns = (
        Turn(items=(SayText(text=text(step)), run(f"echo {step} >> done.txt")), pace=Pace(chunk=7, delay=0.002))
        for step in range(steps)
    )
    return Script(turns=(*turns, DONE))


@asynccontextmanager
async def _servers(folder: Path, flags: tuple[str, ...]) -> AsyncIterator[tuple[Server, Server]]:
    program = Program(folder / "home")
    async with Wire(0) as one, Wire(0) as two:
        own, other = (Server(program, (*flags, "-C", str(folder / "ws")), wire) for wire in (one, two))
        try:
            await own.start()
            await other.start()
            yield own, other
        finally:
            await own.end()
            await other.end()


async def begin_session(own: Server, folder: Path) -> str:
    """Start a session in the folder `ws`; gives its id."""
    async with httpx2.AsyncClient(base_url=own.base + own.path, headers=own.headers, cookies=own.cookies) as client:
        body = {"folder": str(folder / "ws"), "text": "Work.", "mode": "ask"}
        answer = (await client.post("/sessions", json=body)).json()
        if "trust" in answer:
            body |= {"trust": "once", "seen": answer["trust"]["seen"]}
            answer = (await client.post("/sessions", json=body)).json()
    return str(answer["session"])


async def _spoil(own: Server, other: Server, chance: random.Random, found: Found) -> None:
    """Cut wires, suspend a server, and kill the other one, at random moments."""
    while True:
        await asyncio.sleep(0.05 + 0.5 * chance.random())
        match chance.randrange(8):
            case 0:
                found.kills += 1
                await other.end(signal.SIGKILL)
                await asyncio.sleep(0.3 * chance.random())
                await other.start()
            case 1 | 2:
                assert own.process is not None
                own.process.send_signal(signal.SIGSTOP)
                try:
                    await asyncio.sleep(0.3 * chance.random())
                finally:
                    own.process.send_signal(signal.SIGCONT)
            case _:
                found.cuts += 1
                chance.choice((own, other)).wire.cut()


def log_of(home: Path, session: str) -> list[Event]:
    store = Store(home / "sessions.db")
    try:
        return list(store.read(session))
    finally:
        store.close()
