"""Tasks that need searching, done by a session itself and by its subagents: what is in its window in the end."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.security.trusting import session_trust
from treadle.protocol.events import Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import TurnEnded, TurnStop
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

MODEL = "anthropic-compatible/scripted"
TASKS = 20
LEAST_READ = 50_000
"""Tokens that a task reads."""

_LINES, _AT_ONCE = 190, 3
OF_CHILD = Texts(contains=("You are a subagent",))
_WORDS = ("order", "price", "total", "cart", "stock", "user", "token", "retry", "cache", "index", "parse", "build")


@dataclass(frozen=True)
class Searched:
    """The tokens of the conversation at the end of a task: searched by itself, and by subagents."""

    alone: int
    with_subagents: int


def write_project(folder: Path, task: int) -> list[str]:
    """Write the files that a task reads; gives their names."""
    rng = random.Random(task)
    names = [f"part{number:02}.py" for number in range(rng.randrange(28, 40))]
    for name in names:
        rows = (
            f"def {rng.choice(_WORDS)}_{number}({rng.choice(_WORDS)}): return {rng.choice(_WORDS)}({rng.randrange(99)})"
            for number in range(_LINES)
        )
        (folder / name).write_text("".join(f"{row}\n" for row in rows))
    return names


def _reads(names: list[str]) -> Iterator[MakeCall]:
    for first in range(0, len(names), _AT_ONCE):
        yield MakeCall(name="read_file", arguments={"paths": names[first : first + _AT_ONCE]})


def alone(names: list[str], answer: str) -> Script:
    """Read all of it in the session."""
    return Script(turns=(*(Turn(items=(read,)) for read in _reads(names)), Turn(items=(SayText(text=answer),))))


def by_subagents(names: list[str], answer: str, parts: int) -> Script:
    """Let each of some subagents read a part of it, and say what it found."""
    turns: list[Turn] = []
    tasks = []
    for part in range(parts):
        prompt = f"Part {part}: who calls the function? Read every file and name each place."
        tasks.append({"prompt": prompt})
        mine = (*(Turn(items=(read,)) for read in _reads(names[part::parts])), Turn(items=(SayText(text=answer),)))
        turns += [
            Turn(
                when=Expectation(
                    system=OF_CHILD, conversation=Texts(contains=(f"Part {part}:",)), assistant_messages=number
                ),
                items=turn.items,
            )
            for number, turn in enumerate(mine)
        ]
    begins = Turn(items=(MakeCall(name="use_subagents", arguments={"tasks": tasks}),))
    return Script(turns=(*turns, begins, Turn(items=(SayText(text=answer),))))


async def window_after(folder: Path, script: Script) -> int:
    """Do the task; gives the tokens that the conversation takes then."""
    window = {MODEL: ModelSettings(context_window=1_000_000)}
    async with ScriptedServer(script) as server:
        settings = Settings(
            model=MODEL, base_url=server.base_url, mode=Mode.AUTO, tool_protocol=ToolProtocol.NATIVE, models=window
        )
        opening = Opening(
            workspace=folder, settings=settings, user_present=False, trust=session_trust(folder, once=True)
        )
        async with await open_session(opening) as live, live.follow() as feed:
            await live.post(Prompt(id="p", content=(Text(text="Who calls the function?"),)), Source(kind="test"))
            async for one in feed:
                if isinstance(one, TurnEnded):
                    assert one.outcome.stop is TurnStop.END_TURN, one.outcome
                    return live.status.tokens
    raise AssertionError("the session ended")


async def search(folder: Path, task: int) -> Searched:
    """Do one task both ways, in a folder of its own."""
    folder.mkdir(parents=True)
    names = write_project(folder, task)
    rng = random.Random(-task)
    answer = " ".join(f"{rng.choice(names)}:{rng.randrange(1, _LINES)} calls it." for _ in range(rng.randrange(15, 40)))
    return Searched(
        alone=await window_after(folder, alone(names, answer)),
        with_subagents=await window_after(folder, by_subagents(names, answer, 2 + task % 4)),
    )
