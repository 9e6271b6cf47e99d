"""Asking whether the goal of a session is met: its command, as any command of the session, or the model."""

import asyncio
import hashlib
import re
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from treadle.context.log_reader import TranscriptReader
from treadle.engine.core.calls import rights_of
from treadle.engine.core.goal import bounded_check, is_active, is_due
from treadle.engine.core.machine_effects import RunTool
from treadle.engine.core.state import Goal, State, standing
from treadle.engine.core.texts import NOT_RUN, goal_not_met, goal_question
from treadle.engine.ports import Asked, PersonReply, Ports, ask_person
from treadle.engine.runtime import tool_call
from treadle.engine.runtime.side_question import answer_aside
from treadle.engine.runtime.whole_reply import AsideLog
from treadle.protocol.errors import RefusedError, StoreError
from treadle.protocol.events import CallFinished, EventData
from treadle.protocol.goals import GoalChecked, GoalJudge
from treadle.protocol.messages import Text
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import AllowScope, Decision, Mode, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.sealed import OF_GOAL, SideAnswered
from treadle.protocol.tools import CallResult, Outcome, ToolCall

_SECONDS = 600
"""The longest time that a check may take."""

_LINES, _CHARACTERS = 30, 3_000
"""The end of what a check printed, as the model reads it."""

_WAY_ON = "Allow it with a rule or another mode, or give another check; /goal resume checks again."
_AGAIN = "Change that, or give another check; /goal resume checks again."
_VARIES = regex(
    r"0x[0-9a-f]+|\d+(?:[.:]\d+)*\s?(?:ms|s|sec|seconds|min)\b|\d\d(?::\d\d)+(?:\.\d+)?|\d{4}-\d\d-\d\d|/tmp/\S+"
)
"""What differs from run to run of the same failure: addresses, durations, times, names of temporary files."""

_ANSWER = regex(r"\W*(yes|no)\b[\s:.,;—–-]*(.*)", re.IGNORECASE)


class GoalSession(Protocol):
    """What a check needs of the session."""

    @property
    def state(self) -> State:
        """The state after the last event."""
        ...

    async def post(self, data: EventData, /) -> None:
        """Queue an event and wait until it is in the log; raises `RefusedError`."""
        ...

    async def ask(self, call_id: str, asked: Asked, /) -> PersonReply:
        """Ask the user; where nobody is there, that is the answer."""
        ...

    async def aside(
        self,
        ask: Callable[[Ports, State, TranscriptReader, AsideLog], Awaitable[SideAnswered]],
        /,
    ) -> SideAnswered:
        """Have a question answered beside the work, reserved and billed."""
        ...


async def check_goal(ports: Ports, session: GoalSession) -> str:
    """Ask whether the goal is met, and log the answer; gives what the model goes on with, empty where it does not."""
    while is_due(session.state) and (goal := session.state.goal) is not None:
        by = _by_command if goal.check else _by_model
        said = await by(ports, session, goal)
        now = session.state.goal
        if now is None or (now.condition, now.check) != (goal.condition, goal.check):
            continue  # the user has set another one meanwhile
        said = bounded_check(session.state, said, ports.clock())
        with suppress(RefusedError):  # the user has paused it meanwhile
            await session.post(said)
        goes_on = is_active(session.state) and is_due(session.state)
        return goal_not_met(goal.condition, goal.check, said.reason) if goes_on else ""
    return ""


async def _by_model(ports: Ports, session: GoalSession, goal: Goal) -> GoalChecked:  # noqa: ARG001 - as by a command
    if session.state.turns == 0:
        return GoalChecked(by=GoalJudge.MODEL, reason="Nothing was done yet.")
    answered = await session.aside(partial(answer_aside, goal_question(goal.condition), named=OF_GOAL))
    if answered.error:
        why = f"the model could not be asked: {answered.error}"
        return GoalChecked(by=GoalJudge.MODEL, reason=why, blocked=True)
    found = _ANSWER.match(answered.text)
    if found is None:
        unread = f"The model said neither yes nor no: {_shortened(answered.text)}"
        return GoalChecked(by=GoalJudge.MODEL, reason=unread, digest=_digest("neither"))
    reason = _shortened(answered.text[found.start(2) :]) or "It gave no reason."
    met = found.group(1).lower() == "yes"
    return GoalChecked(met=met, by=GoalJudge.MODEL, reason=reason, digest="" if met else _digest(reason))


async def _by_command(ports: Ports, session: GoalSession, goal: Goal) -> GoalChecked:
    """Run the command as the policy lets it; what cannot run says nothing of the goal."""
    if ports.check_tool not in ports.tools:
        return _not_run(f"this session runs no commands. {_AGAIN}")
    call = ToolCall(
        id=f"goal-{uuid.uuid4().hex[:12]}",
        name=ports.check_tool,
        arguments={"command": goal.check, "timeout": _SECONDS},
    )
    event, prepared = await tool_call.judge_call(ports, call, standing(session.state))
    if isinstance(event, CallFinished) or prepared is None:
        return _not_run(f"{_text(event.result) if isinstance(event, CallFinished) else ''} {_AGAIN}")
    why = await _why_not(ports, session, call, event.decision)
    if why:
        return _not_run(f"{why}. {_WAY_ON}")
    ask_person.set(partial(session.ask, call.id))  # of the task of this check alone
    run = RunTool(call=call, digest=event.decision.digest, rights=rights_of(event.decision))
    failed = asyncio.Event()
    result = await tool_call.run_call(prepared, run, tool_call.LiveOutput(), ports.trace, not_run=failed.set)
    text = _text(tool_call.redacted(result, ports.redactor()))
    if failed.is_set() or (result.denial is not None and text.startswith(NOT_RUN)):
        return _not_run(f"{text.removeprefix(NOT_RUN).rstrip('.')}. {_AGAIN}")
    first, _, rest = text.partition("\n")
    reason = "\n".join(filter(None, (first, _end_of(rest))))
    if result.outcome is Outcome.OK:
        return GoalChecked(met=True, by=GoalJudge.COMMAND, reason=reason)
    return GoalChecked(by=GoalJudge.COMMAND, reason=reason, digest=_digest(text))


async def _why_not(ports: Ports, session: GoalSession, call: ToolCall, decision: Decision) -> str:
    """Say why the check may not run; empty where it may, by the policy or because a person allows it."""
    words, line = words_of_decision(decision), call.arguments["command"]
    if decision.verdict is Verdict.ALLOW:
        return ""
    if decision.verdict is Verdict.DENY:
        return f"`{line}` is denied ({words.whole_headline})"
    asked = Asked(
        text=f"Run the check of the goal, `{line}`? ({words.headline})", offers=decision.offers, outlives=True
    )
    mode = session.state.mode
    said = await session.ask(call.id, asked)
    if said.accepted and session.state.mode is Mode.PLAN and mode is not Mode.PLAN:
        return f"`{line}` needs a yes ({words.whole_headline}), and plan mode was chosen before it was given"
    if said.accepted:
        if said.scope is AllowScope.USER:
            with suppress(StoreError):  # it holds for this session
                await asyncio.to_thread(ports.remember, decision.offers)
        return ""
    who = "you did not allow it" if said.declined else "nobody was there to allow it"
    return f"`{line}` needs a yes ({words.whole_headline}), and {who}"


def _not_run(why: str) -> GoalChecked:
    return GoalChecked(by=GoalJudge.COMMAND, reason=f"The check did not run: {why}", blocked=True)


def _text(result: CallResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, Text)).strip()


def _end_of(text: str) -> str:
    return "\n".join(text.split("\n")[-_LINES:])[-_CHARACTERS:]


def _shortened(text: str) -> str:
    return " ".join(text.split())[:_CHARACTERS]


def _digest(text: str) -> str:
    """Give the same for the same failure, whatever differs from run to run."""
    same = " ".join(_VARIES.sub("*", text.lower()).split())
    return hashlib.sha256(same.encode()).hexdigest()
