"""A program as hosts start it: one file to run, a home of its own, a scripted model, and a folder to work in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treadle.providers.scripted.script import Expectation, MakeCall, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

CONFIG = """
[models."anthropic-compatible/scripted"]
context_window = 200000
input_price = 1.0
output_price = 1.0
"""
DONE = Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "All done."}),))


def write(path: str = "out.txt", content: str = "hello") -> MakeCall:
    """A call that writes a file."""
    return MakeCall(name="write_to_file", arguments={"path": path, "content": content})


def run(command: str) -> MakeCall:
    """A call that runs a command."""
    return MakeCall(name="execute_command", arguments={"command": command})


def on(word: str, *items: Any) -> Turn:
    """What the model says to a message of the user that has this word."""
    return Turn(when=Expectation(last_user=Texts(contains=(word,))), items=items)


def says(*items: Any) -> Turn:
    """What the model says next."""
    return Turn(items=items)


@dataclass
class Host:
    """Where a host starts the program."""

    cli: Path
    folder: Path
    home: Path
    servers: list[ScriptedServer] = field(default_factory=list)

    @asynccontextmanager
    async def model(self, *turns: Turn) -> AsyncIterator[dict[str, str]]:
        """Serve a model; gives the environment that leads to it."""
        async with ScriptedServer(Script(turns=turns, otherwise=DONE)) as server:
            self.servers.append(server)
            yield self.environment(server.base_url)

    def environment(self, base_url: str) -> dict[str, str]:
        """What the program needs to know."""
        return {
            "TREADLE_HOME": str(self.home),
            "TREADLE_MODEL": "anthropic-compatible/scripted",
            "TREADLE_BASE_URL": base_url,
            "PYTHONDONTWRITEBYTECODE": "1",
            "TREADLE_TRUST": "",
        }
