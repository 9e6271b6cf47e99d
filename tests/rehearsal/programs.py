"""Ten tasks that take many calls, done one by one and by a program: the window, the steps and the cost of both."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.rehearsal.searches import MODEL
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.security.trusting import session_trust
from treadle.protocol.events import Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import TurnEnded, TurnStop
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

_FILES, _LINES, _AT_ONCE = 24, 60, 6
_WORDS = ("order", "price", "total", "cart", "stock", "user", "token", "retry", "cache", "index")


@dataclass(frozen=True)
class Spent:
    """What the session of a task had in its window in the end, and how many steps and US dollars it took."""

    tokens: int
    steps: int
    cost: float


@dataclass(frozen=True)
class ProgramTask:
    """A task: the calls that it takes one by one, and the program that makes the same calls."""

    name: str
    calls: Callable[[list[str]], list[MakeCall]]
    code: str


def _reads(names: list[str]) -> list[MakeCall]:
    return [MakeCall(name="read_file", arguments={"path": name}) for name in names]


def _searches(names: list[str]) -> list[MakeCall]:
    return [
        MakeCall(name="search_files", arguments={"path": name, "regex": "def ", "context_lines": 1}) for name in names
    ]


def _writes(names: list[str]) -> list[MakeCall]:
    made = (
        MakeCall(name="write_to_file", arguments={"path": f"out/{name}.txt", "content": f"{name}: seen\n"})
        for name in names[:8]
    )
    return [*_reads(names[:8]), *made]


def _commands(names: list[str]) -> list[MakeCall]:
    return [MakeCall(name="execute_command", arguments={"command": f"wc {name}"}) for name in names[:12]]


_ALL = "names = [f'part{number:02}.py' for number in range(24)]\n"
_READ = f"{_ALL}texts = await asyncio.gather(*[read_file(name) for name in names])\n"
_DEFS = (
    f"{_ALL}found = await asyncio.gather(*[search_files(path=name, regex='def ', context_lines=1) for name in names])\n"
)

TASKS = (
    ProgramTask("count definitions", _reads, f"{_READ}print(sum(text.count('def ') for text in texts))"),
    ProgramTask("longest file", _reads, f"{_READ}print(max(zip(map(len, texts), names)))"),
    ProgramTask("files with a word", _reads, f"{_READ}print([n for n, t in zip(names, texts) if 'retry' in t][:5])"),
    ProgramTask(
        "most common word",
        _reads,
        f"{_READ}import collections, re\n"
        "print(collections.Counter(re.findall(r'[a-z]+', ' '.join(texts))).most_common(3))",
    ),
    ProgramTask(
        "same definitions",
        _searches,
        f"{_DEFS}import re, collections\nnames = collections.Counter(re.findall(r'def (\\w+)', ' '.join(found)))\n"
        "print([name for name, times in names.items() if times > 1][:5])",
    ),
    ProgramTask("definitions by file", _searches, f"{_DEFS}print([text.count('def ') for text in found])"),
    ProgramTask("first definitions", _searches, f"{_DEFS}print([text.partition('def ')[2][:9] for text in found][:9])"),
    ProgramTask(
        "write a file for each",
        _writes,
        "names = [f'part{number:02}.py' for number in range(8)]\n"
        "await asyncio.gather(*[read_file(name) for name in names])\n"
        "for name in names:\n    await write_to_file(f'out/{name}.txt', f'{name}: seen\\n')\n"
        "print(len(names), 'written')",
    ),
    ProgramTask(
        "sizes by a command",
        _commands,
        "said = [await execute_command(f'wc part{number:02}.py') for number in range(12)]\nprint(len(said))",
    ),
    ProgramTask(
        "read again until it is there",
        lambda names: _reads(names)[:10],
        f"{_ALL}for name in names[:10]:\n    text = await read_file(name)\nprint(text.count('def '))",
    ),
)


def write_parts(folder: Path, seed: int) -> list[str]:
    """Write the files of a task; gives their names."""
    rng = random.Random(seed)
    names = [f"part{number:02}.py" for number in range(_FILES)]
    for name in names:
        rows = (f"def {rng.choice(_WORDS)}_{line}(): return {rng.choice(_WORDS)}({line})" for line in range(_LINES))
        (folder / name).write_text("".join(f"{row}\n" for row in rows))
    return names


def one_by_one(task: ProgramTask, names: list[str]) -> Script:
    """Make the calls, some in each reply, as models do."""
    calls = task.calls(names)
    replies = [tuple(calls[first : first + _AT_ONCE]) for first in range(0, len(calls), _AT_ONCE)]
    return Script(turns=(*(Turn(items=reply) for reply in replies), Turn(items=(SayText(text="Here it is."),))))


def as_program(task: ProgramTask) -> Script:
    """Make them in one program."""
    program = MakeCall(name="run_code", arguments={"code": task.code})
    return Script(turns=(Turn(items=(program,)), Turn(items=(SayText(text="Here it is."),))))


async def spent_on(folder: Path, script: Script) -> Spent:
    """Do the task."""
    known = {MODEL: ModelSettings(context_window=1_000_000, input_price=3.0, output_price=15.0)}
    async with ScriptedServer(script) as server:
        settings = Settings(
            model=MODEL,
            base_url=server.base_url,
            mode=Mode.AUTO,
            tool_protocol=ToolProtocol.NATIVE,
            models=known,
            code_mode=True,
        )
        opening = Opening(
            workspace=folder, settings=settings, user_present=False, trust=session_trust(folder, once=True)
        )
        async with await open_session(opening) as live, live.follow() as feed:
            await live.post(Prompt(id="p", content=(Text(text="Find it out."),)), Source(kind="test"))
            async for one in feed:
                if isinstance(one, TurnEnded):
                    assert one.outcome.stop is TurnStop.END_TURN, one.outcome
                    assert one.outcome.cost is not None
                    return Spent(tokens=live.status.tokens, steps=one.outcome.steps, cost=one.outcome.cost)
    raise AssertionError("the session ended")
