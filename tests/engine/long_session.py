"""A long session with a small window: a model that works through a project, and remembers how it began."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

from msgspec import Struct

from tests.engine.invariants import broken_invariants
from tests.fakes.engine import SPEC, FakeLog, agree, ports
from treadle.context.compaction_words import CompactionSettings, CompactionStrategy
from treadle.engine.core.state import replace
from treadle.engine.ports import Output, Prepared
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.protocol.events import Answer, Compacted, EditChecklist, Pin, Prompt, SessionStarted, SetPresence, Source
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Text
from treadle.protocol.models import (
    ModelChoice,
    ModelRequest,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
    ToolProtocol,
)
from treadle.protocol.notifications import QuestionAsked, TurnEnded, TurnOutcome
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import (
    CallResult,
    FileChange,
    Flow,
    Outcome,
    Preview,
    Risk,
    RunCommand,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)
from treadle.protocol.usage import Usage

TASK, RULES, PIN = "Port the project to the new API, module by module.", "Rule: tabs.", "The release is on Friday."
WINDOW = 32_000
BYTES_PER_TOKEN = 3.3
"""Of the simulated tokenizer, which is another one than the engine's first guess."""

FACTS = {
    "a file's name": "src/mod_0_0.py",
    "a decision": "The user answered: sqlite",
    "a test's result": "7 failed, 5 passed in module 0",
    "a pin": PIN,
    "a changed file": "/w/src/mod_0.py",
    "the checklist": "- [x] module 0",
}


class ProjectTool(Struct, frozen=True):
    """A tool of the project; what it gives depends on its arguments alone."""

    name: str
    traits: ToolTraits

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return ToolSpec(
            name=self.name, description="", parameters={"type": "object"}, traits=self.traits, risk=Risk.READ
        )

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Make the call ready."""
        command = arguments.get("command")
        accesses = (RunCommand(command=command, cwd="/w"),) if command else ()

        async def run(_: Output) -> CallResult:
            return self._result(arguments)

        return Prepared(accesses=accesses, preview=Preview(title=self.name), run=run)

    def _result(self, arguments: Mapping[str, Any]) -> CallResult:
        number = int(arguments["n"])
        chance = random.Random(number)
        match self.name:
            case "read_file":
                lines = (f"{at} | value_{chance.randrange(999)} = compute({number}, '{at}')" for at in range(90))
                return result_text(Outcome.OK, "\n".join(lines))
            case "write_to_file":
                change = FileChange(path=f"/w/src/mod_{number}.py", before="1", after="2", added=3, removed=1)
                return replace(result_text(Outcome.OK, "The file was written."), changes=(change,))
            case _:
                output, failed = "x" * chance.randrange(40, 1_500), 0 if number else 7
                return result_text(Outcome.OK, f"{output}\n{failed} failed, 5 passed in module {number}")


READ = ProjectTool("read_file", ToolTraits(kind=ToolKind.READ, effect=ToolEffect.PURE))
WRITE = ProjectTool("write_to_file", ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT))
RUN = ProjectTool("execute_command", ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE))
ASK = ProjectTool("ask_followup_question", ToolTraits(flow=Flow.ASK, effect=ToolEffect.ONCE))


class Worker:
    """The model: ten steps a module. After each compaction it looks for what it must still know."""

    def __init__(self, steps: int) -> None:
        self.requests = 0
        self.largest = 0
        self.asked_facts = 0
        self.missing: list[str] = []
        self.broken: list[str] = []
        self.prefix_lost = 0
        self.uncached: list[int] = []
        self.sizes: list[int] = []
        self._steps = steps
        self._before: list[str] = []
        self._compactions = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Make the next step."""
        step, self.requests = self.requests, self.requests + 1
        parts = [request.system, *map(repr, request.messages)]
        tokens = int(sum(len(part.encode()) for part in _texts(request)) / BYTES_PER_TOKEN)
        self.largest = max(self.largest, tokens)
        self.broken += broken_invariants(request.messages)
        new = len(parts) if parts[: len(self._before)] == self._before else 0
        self.prefix_lost += bool(self._before) and not new
        self.uncached.append(sum(map(len, parts[len(self._before) if new else 0 :])))
        self.sizes.append(sum(map(len, parts)))
        self._before = parts
        self._look_back(parts)
        usage = Usage(input_tokens=tokens, output_tokens=30)
        name, arguments = self._next(step)
        yield StreamText(text=f"Step {step}: I look at module {step // 10}.")
        if name:
            yield StreamCallStart(index=0, name=name)
            yield StreamCallArguments(index=0, text=arguments)
            yield StreamCallDone(index=0)
        yield StreamStop(reason=ReplyStop.TOOL_USE if name else ReplyStop.END_TURN, usage=usage)

    def _look_back(self, parts: list[str]) -> None:
        count = parts[1].count("left out to make room")
        if not count or parts[1] == getattr(self, "_first", ""):
            return
        self._first = parts[1]
        whole = "\n".join(parts)
        for what, text in FACTS.items():
            self.asked_facts += 1
            if text not in whole:
                self.missing.append(what)
        self.broken += [what for what in (TASK, RULES) if what not in whole]

    def _next(self, step: int) -> tuple[str, str]:
        number, within = divmod(step, 10)
        if step >= self._steps:
            return "", ""
        if step == 4:
            return "ask_followup_question", '{"n": 0, "question": "Which database?"}'
        if within < 6:
            return "read_file", f'{{"n": {step}, "path": "src/mod_{number}_{within}.py"}}'
        if within == 6:
            return "write_to_file", f'{{"n": {number}, "path": "src/mod_{number}.py"}}'
        if within == 7:
            return "execute_command", f'{{"n": {number}, "command": "pytest tests/test_{number}.py"}}'
        return "read_file", f'{{"n": {number}, "path": "src/again_{number % 3}.py"}}'

    async def close(self) -> None:
        """Nothing is held."""


def _system() -> tuple[PromptPart, ...]:
    return (PromptPart(name="work", text="Work."), PromptPart(name="rules", text=RULES, origin="AGENTS.md"))


def _texts(request: ModelRequest) -> list[str]:
    found = [request.system]
    for message in request.messages:
        for block in message.content:
            found += [block.text] if isinstance(block, Text) else [repr(block)]
    return found


async def work(steps: int, protocol: ToolProtocol = ToolProtocol.NATIVE) -> tuple[Worker, TurnOutcome, int]:
    """Let the model work; gives what it saw, how the turn ended, and how often room was made."""
    worker, log = Worker(steps), FakeLog()
    spec = replace(SPEC, context_window=WINDOW, max_output=4_000)
    made = ports(
        worker,
        *(READ, WRITE, RUN, ASK),
        log=log,
        judge=agree,
        model=lambda _: spec,
        system=lambda *_: _system(),
        compaction=CompactionSettings(strategy=CompactionStrategy.DROP),
    )
    session = Session(Track(), made.clock)
    feed = session.follow()
    running = asyncio.create_task(session.run(made))
    choice = ModelChoice(model="p/m", tool_protocol=protocol)
    started = SessionStarted(session_id="s", workspace="/w", choice=choice, mode=Mode.FULL, limits=Limits())
    for event in (started, SetPresence(user_present=True), Pin(id="a", text=PIN)):
        await session.post(event)
    await session.post(EditChecklist(text="- [x] module 0\n- [ ] the rest"))
    await session.post(Prompt(id="p", content=(Text(text=TASK),)), Source(kind="test"))
    outcome = None
    async for one in feed:
        if isinstance(one, QuestionAsked):
            await session.post(Answer(question_id=one.question.id, option=OptionKind.ANSWER, text="sqlite"))
        if isinstance(one, TurnEnded):
            outcome = one.outcome
            break
    await session.close()
    await running
    assert outcome is not None
    return worker, outcome, sum(isinstance(event.data, Compacted) for event in log.events)
