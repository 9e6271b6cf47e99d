"""What people type while a session works: sent, changed, put in order, held by stops, and kept through kills.

Each message has words of its own. Whatever happens, it reaches the model once with its last words, or is removed, or
still waits; and a stop starts nothing.
"""

import asyncio
import random
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.e2e.faults.driving import make
from tests.e2e.process import Program
from tests.e2e.running import model
from tests.rehearsal.surfaces import PATIENCE, Server, Wire, begin_session, log_of
from treadle.engine.core.past_history import last_state
from treadle.protocol.events import EditQueued, Event, Interrupt, MoveQueued, Prompt
from treadle.protocol.messages import text_of
from treadle.protocol.sealed import PromptsDelivered
from treadle.providers.scripted.script import Pace, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

_ACTS = ("say", "say", "say", "steer", "change", "remove", "send", "step", "first", "stop", "stop", "pause", "kill")
_DONE = 200


@dataclass
class WaitingFound:
    """How it went: what is wrong, how many messages were typed, and how often the work was stopped or killed."""

    troubles: list[str] = field(default_factory=list)
    messages: int = 0
    stops: int = 0
    kills: int = 0


class _Person:
    """Types in one browser, whose server may be killed. `sure` are the messages that were taken, with their words."""

    def __init__(self, server: Server, session: str, chance: random.Random, found: WaitingFound) -> None:
        self._server, self._session, self._chance, self._found = server, session, chance, found
        self.sure: dict[str, str] = {}
        self.typed: list[str] = []

    async def act(self) -> None:
        act, known = self._chance.choice(_ACTS), self._chance.choice(self.typed or [""])
        await asyncio.sleep(0.3 * self._chance.random())
        match act:
            case "say" | "steer":
                await self._say(steer=act == "steer")
            case "change":
                await self._queue(id=known, text=f"{known} again {self._chance.randrange(1_000_000)}")
            case "remove":
                await self._queue(id=known, text="")
            case "send" | "step":
                await self._queue(id=known, send="steer" if act == "step" else "queue")
            case "first":
                await self._queue(id=known, place=0)
            case "stop":
                self._found.stops += await self.post("interrupt") == _DONE
            case "kill":
                self._found.kills += 1
                await self._server.end(signal.SIGKILL)
                await self._server.start()
                await self.post("open", trust="once")
            case _:
                await asyncio.sleep(self._chance.random())

    async def _say(self, *, steer: bool) -> None:
        name = f"message{len(self.typed)}x{self._chance.randrange(1_000_000)}"
        self.typed.append(name)
        self._found.messages += 1
        if await self.post("say", text=name, id=name, steer=steer) == _DONE:
            self.sure[name] = name

    async def _queue(self, **said: Any) -> None:
        if said["id"]:
            await self.post("queue", **said)

    async def post(self, what: str, **said: Any) -> int:
        """Give the status of the answer; 0 where none came."""
        with suppress(httpx2.HTTPError, OSError):
            async with self._server.client() as client:
                return (await client.post(f"/s/{self._session}/{what}", json=said)).status_code
        return 0


async def rehearse_waiting(seed: int, folder: Path, acts: int = 25) -> WaitingFound:
    """Type `acts` times at random while a session works, then send all that is held, and read the log."""
    chance, found = random.Random(seed), WaitingFound()
    (folder / "ws").mkdir(parents=True)
    program = Program(folder / "home")
    async with ScriptedServer(_script(chance, 4 * acts)) as provider, Wire(0) as wire:
        server = Server(program, (*model(provider), "-C", str(folder / "ws")), wire)
        await server.start()
        session = await begin_session(server, folder)
        person = _Person(server, session, chance, found)
        try:
            for _ in range(acts):
                await person.act()
            await _finish(folder / "home", session, person)
        except TimeoutError:
            found.troubles.append(f"seed {seed}: it does not come to its end")
        finally:
            await server.end()
        sent = [str(one.body) for one in provider.requests]
    found.troubles += [f"seed {seed}: {one}" for one in _wrong(log_of(folder / "home", session), person.sure, sent)]
    return found


async def _finish(home: Path, session: str, person: _Person) -> None:
    """Send what is held until nothing waits and nothing works."""
    async with asyncio.timeout(PATIENCE):
        while True:
            state = last_state(log_of(home, session))
            for one in state.held:
                await person.post("queue", id=one.prompt.id)
            if not (state.held or state.queue or state.turn):
                return
            await person.post("open", trust="once")
            await asyncio.sleep(0.2)


def _wrong(events: list[Event], sure: dict[str, str], sent: list[str]) -> list[str]:
    wrong: list[str] = []
    words: dict[str, str] = {}
    removed: set[str] = set()
    delivered: list[str] = []
    stopped = False
    for event in events:
        match event.data:
            case Prompt(id=name, content=content):
                if name in words:
                    wrong.append(f"{name} is in the log twice")
                words[name], stopped = text_of(content), False
            case EditQueued(prompt_id=name, content=content):
                removed |= set() if content else {name}
                words[name] = text_of(content)
            case MoveQueued():
                stopped = False
            case Interrupt(hold=True):
                stopped = True
            case PromptsDelivered(prompt_ids=ids):
                wrong += [f"{name} was sent by a stop" for name in ids if stopped]
                wrong += [f"{name} was sent twice" for name in ids if name in delivered]
                wrong += [f"{name} was removed, and sent" for name in ids if name in removed]
                delivered += ids
            case _:
                pass
    wrong += [f"{name} was taken, and is in no log" for name in sure if name not in words]
    wrong += [f"{name} is lost" for name in words if name not in delivered and name not in removed]
    last = sent[-1] if sent else ""
    for name in delivered:
        if last.count(repr(words[name])[1:-1]) != 1:
            wrong.append(f"the model reads {words[name]!r} {last.count(words[name])} times")
    return wrong + [f"the model reads {name}, which was removed" for name in removed if f"{name}" in last]


def _script(chance: random.Random, turns: int) -> Script:
    def turn(number: int) -> Turn:
        text = " ".join(f"word{number}.{n}" for n in range(chance.randrange(3, 60)))
        ends = number % 2 == 1 or chance.random() < 0.3  # a model that repeats a call is asked about
        end = (make("attempt_completion", result=f"Done {number}."),) if ends else ()
        look = () if end else (make("list_files", path="."),)
        return Turn(items=(SayText(text=text), *end, *look), pace=Pace(chunk=5, delay=0.02))

    return Script(turns=tuple(map(turn, range(turns))))
