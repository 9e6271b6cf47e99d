"""A person who works, goes back, forks and compacts, and whose program is killed at random moments in all of it."""

import asyncio
import json
import random
import signal
from pathlib import Path

from msgspec import Struct

from tests.e2e.process import Ended, Program
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

MODEL = "anthropic-compatible/main"
_LATEST = 1.4
"""Seconds after the start at which the program is killed at the latest: most runs are over by then."""


class History(Struct, kw_only=True):
    """What came of one history: how often it was killed, and what was wrong."""

    seed: int
    kills: int = 0
    runs: int = 0
    troubles: list[str]


def _script() -> Script:
    """Edits, commands and ends of turns, as many as any history asks for."""
    turns = []
    for number in range(400):
        edit = MakeCall(name="write_to_file", arguments={"path": f"f{number % 5}.txt", "content": f"text {number}\n"})
        line = f"mkdir -p d{number % 3} && echo {number} >> d{number % 3}/log.txt && rm -f f{(number + 2) % 5}.txt"
        command = MakeCall(name="execute_command", arguments={"command": line})
        done = MakeCall(name="attempt_completion", arguments={"result": f"Done {number}."})
        turns += [Turn(items=(SayText(text=f"Step {number}."), edit)), Turn(items=(command,)), Turn(items=(done,))]
    return Script(turns=tuple(turns))


class _Person:
    def __init__(self, seed: int, folder: Path, address: str) -> None:
        self.found = History(seed=seed, troubles=[])
        self._random = random.Random(seed)
        self._program = Program(folder / "home")
        self._work = folder / "work"
        self._work.mkdir(parents=True)
        self._address = address
        self._own: dict[str, str] = {}
        self._last = ""

    async def live(self, kills: int) -> None:
        """Do one thing after the other until the program was killed so often, then look at what there is."""
        await self._run("-p", "Begin.", *self._flags())
        while self.found.kills < kills and not self.found.troubles:
            self._write_own()
            await self._run(*await self._next(), kill=self._random.random() < 0.7)
            self._look_at_own()
        ended = await self._run("-p", "The last task.", "--continue", *self._flags())
        if ended is None or ended.code != 0:
            self._trouble("the session does not go on", ended)
        await self._verify()

    def _flags(self) -> tuple[str, ...]:
        return ("--model", MODEL, "--base-url", self._address, "--mode", "full", "--trust")

    async def _next(self) -> tuple[str, ...]:
        what = self._random.choice(("task", "task", "task", "undo", "rewind", "compact", "restore", "both", "fork"))
        match what:
            case "task":
                return ("-p", f"Task {self.found.runs}.", "--continue", *self._flags())
            case "undo" | "compact":
                return ("-p", f"/{what}", "--continue", *self._flags())
            case "rewind":
                return ("-p", f"/rewind {self._random.randint(1, 4)}", "--continue", *self._flags())
            case "fork":
                return ("fork", (await self._sessions())[0])
            case _:
                pass
        listed = await self._program.run("checkpoint", "list", "--json", cwd=self._work)
        numbers = [json.loads(line)["n"] for line in listed.out.splitlines()] or [1]
        more = ("--both",) if what == "both" else ()
        return ("checkpoint", "restore", str(self._random.choice(numbers)), *more, "--yes")

    async def _sessions(self) -> list[str]:
        listed = await self._program.run("sessions", "--json", cwd=self._work)
        return [json.loads(line)["id"] for line in listed.out.splitlines()]

    async def _run(self, *arguments: str, kill: bool = False) -> Ended | None:
        self.found.runs += 1
        self._last = " ".join(arguments[:4])
        process = await self._program.start(*arguments, cwd=self._work)
        ended = asyncio.ensure_future(process.communicate())
        if kill:
            await asyncio.wait((ended,), timeout=self._random.uniform(0.15, _LATEST))
            if not ended.done():
                process.send_signal(signal.SIGKILL)
                self.found.kills += 1
        out, err = await ended
        if process.returncode not in (0, 1, 2, 3, 4, 5, 6, -signal.SIGKILL):
            self._trouble(" ".join(arguments), Ended(process.returncode or 0, out.decode(), err.decode()))
        if b"Traceback" in err or b"bug in Treadle" in err:
            self._trouble(" ".join(arguments), Ended(process.returncode or 0, out.decode(), err.decode()))
        return None if process.returncode is None else Ended(process.returncode, out.decode(), err.decode())

    def _write_own(self) -> None:
        """Write a file that no model knows of, or change one."""
        name = f"own{self._random.randint(0, 3)}.txt"
        self._own[name] = f"{self._own.get(name, '')}line {self.found.runs}\n"
        (self._work / name).write_text(self._own[name])

    def _look_at_own(self) -> None:
        for name, text in self._own.items():
            file = self._work / name
            if not file.is_file() or file.read_text() != text:
                self._trouble(f"{name} of the user is not as they left it after {self._last}", None)

    async def _verify(self) -> None:
        verified = await self._program.run("audit", "verify", cwd=self._work)
        if verified.code != 0:
            self._trouble("audit verify", verified)
        for session in await self._sessions():
            replayed = await self._program.run("replay", session, "--strict", cwd=self._work)
            if replayed.code != 0:
                self._trouble(f"replay {session}", replayed)

    def _trouble(self, what: str, ended: Ended | None) -> None:
        said = "" if ended is None else f"\nexit {ended.code}\n{ended.out}\n{ended.err}"
        self.found.troubles.append(f"history {self.found.seed}, run {self.found.runs}: {what}{said}")


async def kill_histories(seed: int, histories: int, kills: int, folder: Path) -> list[History]:
    """Live so many histories, two at a time, each killed so often."""
    found: list[History] = []
    at_once = asyncio.Semaphore(2)

    async def one(number: int) -> None:
        async with at_once, ScriptedServer(_script()) as server:
            person = _Person(seed + number, folder / f"history{number}", server.base_url)
            await person.live(kills)
            found.append(person.found)

    await asyncio.gather(*map(one, range(histories)))
    return found
