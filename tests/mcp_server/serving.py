"""A server that runs, and clients of both eras that drive it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp
from mcp_types import ElicitResult

from tests.e2e.running import PATIENCE
from tests.ready import treadle

ERAS = ("legacy", "2026-07-28")
TOKEN = "0123456789abcdef0123"

Item = dict[str, Any]


def call(name: str, /, **arguments: Any) -> Item:
    """One call of a script."""
    return {"type": "call", "name": name, "arguments": arguments}


def text(words: str) -> Item:
    """What the model says."""
    return {"type": "text", "text": words}


def wait(seconds: float) -> Item:
    """A model that says nothing for a while."""
    return {"type": "wait", "seconds": seconds}


WRITE = call("write_to_file", path="a.txt", content="hello\n")
ASK = call("ask_followup_question", question="Which colour?")
DONE = call("attempt_completion", result="It is done.")


@dataclass
class Place:
    """A folder to work in, a home, and a script."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.script([WRITE], [DONE])

    @property
    def folder(self) -> Path:
        return self.root / "folder"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.root), "TREADLE_HOME": str(self.home), **self.variables}

    def script(self, *turns: Sequence[Item], when: Mapping[str, Sequence[Item]] | None = None) -> None:
        """Say what the model says: in this order, and `when` the last message has some words in it."""
        answers = [
            {"when": {"last_user": {"contains": [words]}}, "items": list(items)}
            for words, items in (when or {}).items()
        ]
        script = {"turns": [*answers, *({"items": list(items)} for items in turns)]}
        (self.root / "script.json").write_text(json.dumps(script))

    def arguments(self, *flags: str) -> list[str]:
        """What Treadle is told, to serve."""
        model = f"scripted/{self.root / 'script.json'}"
        return ["mcp", "serve", "-C", str(self.folder), "--model", model, *flags]

    def command(self, *flags: str) -> list[str]:
        """The command that serves."""
        return [*treadle(), *self.arguments(*flags)]

    def stdio(self, *flags: str) -> mcp.StdioServerParameters:
        """How a client starts it."""
        program, *arguments = self.command(*flags)
        return mcp.StdioServerParameters(command=program, args=arguments, env=self.environment)


@dataclass
class Person:
    """The client's user: answers forms as set, in their order, and remembers what they were shown."""

    answers: list[ElicitResult]
    shown: list[str] = field(default_factory=list)

    async def __call__(self, context: object, params: Any) -> ElicitResult:
        self.shown.append(params.message)
        return self.answers.pop(0)


def accept(**content: Any) -> ElicitResult:
    """A form that was filled in."""
    return ElicitResult(action="accept", content=content)


@asynccontextmanager
async def client(server: Any, era: str, person: Person | None = None) -> AsyncIterator[mcp.Client]:
    """Connect; with a person the client can ask."""
    async with (
        asyncio.timeout(PATIENCE * 2),
        mcp.Client(server, mode=era, elicitation_callback=person, read_timeout_seconds=PATIENCE) as connected,
    ):
        yield connected


async def use(connected: mcp.Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that works."""
    result = await connected.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


async def refused(connected: mcp.Client, tool: str, **arguments: Any) -> str:
    """Call a tool that refuses; gives its words."""
    result = await connected.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return str(result.content[0].text)  # type: ignore[union-attr]


async def until(connected: mcp.Client, task: Mapping[str, Any], *states: str) -> dict[str, Any]:
    """Wait until a task is in one of these states."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await use(connected, "task_result", task_id=task["task_id"], wait_seconds=5)
            if found["state"] in states:
                return found


@asynccontextmanager
async def serving_http(place: Place, *flags: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Serve over HTTP; gives the process and the address."""
    process = await asyncio.create_subprocess_exec(
        *place.command("--http", *flags),
        env={**place.environment, "TREADLE_MCP_TOKEN": TOKEN},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            line = (await process.stderr.readline()).decode()
        yield process, line.split()[-1]
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()
