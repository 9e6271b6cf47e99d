"""A real session with a scripted model that makes one call after the other: what came of each, and what was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.security.trusting import session_trust
from treadle.protocol.events import Answer, Interrupt, Prompt, SetLimits, SetMode, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import CallChanged, CallStatus, Notice, QuestionAsked, TurnEnded
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question
from treadle.protocol.tools import CallResult, FileChange
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

ME = Source(kind="test")


@dataclass
class Rehearsal:
    """The questions, the results in the order of the calls, the requests' bodies, what nobody allowed, and notices."""

    asked: list[Question] = field(default_factory=list)
    results: list[CallResult] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    denied: int = 0
    changes: tuple[FileChange, ...] = ()
    notices: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """What the model read of each call."""
        return ["".join(block.text for block in one.content if isinstance(block, Text)) for one in self.results]


def call(name: str, **arguments: Any) -> MakeCall:
    """One call of the model."""
    return MakeCall(name=name, arguments=arguments)


def run(line: str) -> MakeCall:
    """One shell line."""
    return call("execute_command", command=line)


async def rehearse(
    workspace: Path,
    calls: Sequence[MakeCall],
    *,
    mode: Mode = Mode.ASK,
    present: bool = False,
    option: OptionKind = OptionKind.ALLOW_ONCE,
    scope: AllowScope = AllowScope.SESSION,
    trusted: bool = True,
    events: Sequence[SetMode | SetLimits] = (),
    later: Mapping[int, Mode] = MappingProxyType({}),
    interrupts: bool = False,
    **settings: Any,
) -> Rehearsal:
    """Run one turn with one call a step; every question gets the same answer. `events` are posted before it.

    `later` sets a mode before so many questions are answered. `interrupts`: what is said to each is an interrupt.
    """
    seen = Rehearsal()
    done = call("attempt_completion", result="Done.")
    turns = tuple(Turn(items=(one,)) for one in (*calls, done))
    trust = session_trust(workspace, once=trusted)
    async with ScriptedServer(Script(turns=turns)) as server:
        usual = {"model": "anthropic-compatible/scripted", "tool_protocol": ToolProtocol.NATIVE}
        told: dict[str, Any] = {**usual, **settings}
        chosen = Settings(base_url=server.base_url, mode=mode, **told)
        opening = Opening(workspace=workspace, settings=chosen, user_present=present, trust=trust)
        async with await open_session(opening) as live:
            feed = live.follow()
            for event in events:
                await live.post(event, ME)
            await live.post(Prompt(id="p1", content=(Text(text="Try."),)), ME)
            async for notification in feed:
                match notification:
                    case QuestionAsked(question=question):
                        seen.asked.append(question)
                        if len(seen.asked) in later:
                            await live.post(SetMode(mode=later[len(seen.asked)]), ME)
                        answer = Answer(question_id=question.id, option=option, scope=scope)
                        await live.post(Interrupt() if interrupts else answer, ME)
                    case CallChanged(status=CallStatus.FINISHED, result=CallResult() as result):
                        seen.results.append(result)
                    case Notice(text=text):
                        seen.notices.append(text)
                    case TurnEnded(outcome=outcome):
                        seen.denied, seen.changes = outcome.denied, outcome.changes
                        break
                    case _:
                        pass
        seen.requests = [request.body for request in server.requests]
    return seen
