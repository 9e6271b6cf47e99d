"""The questions of a session that its host has to answer: put when it can understand them, withdrawn when they are."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from treadle.door.open_session import LiveSession
from treadle.headless.channel import HostError
from treadle.headless.host_questions import (
    elicitation_answer,
    elicitation_request,
    host_answer,
    permission_request,
)
from treadle.headless.host_servers import server_of_call
from treadle.protocol.errors import RefusedError, TreadleError
from treadle.protocol.events import Answer
from treadle.protocol.notifications import QuestionAsked, QuestionClosed
from treadle.protocol.permissions import OptionKind, Question, QuestionKind
from treadle.protocol.tools import ToolCall

if TYPE_CHECKING:
    from treadle.headless.hosting import HostedSession

REQUIRES_ACTION = "requires_action"


_END_NOW = "Nobody is here to say how to go on. End with what you have found."


class OpenQuestions:
    """Those that wait for the host to read the call that they are about, and those that it was asked."""

    def __init__(self, host: "HostedSession") -> None:
        self._host = host
        self._held: list[Question] = []
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def take(self, notification: QuestionAsked | QuestionClosed) -> None:
        """Take a question, or withdraw it."""
        match notification:
            case QuestionAsked(question=question):
                self._held.append(question)
            case QuestionClosed(question_id=question_id):
                self._held = [one for one in self._held if one.id != question_id]
                if task := self._asking.pop(question_id, None):
                    await _cancelled(task)

    async def withdraw(self) -> None:
        """Withdraw all, before the host reads that the turn is over."""
        asking, self._asking, self._held = [*self._asking.values()], {}, []
        await _cancelled(*asking)

    def put(self, live: LiveSession) -> None:
        """Put the questions about calls that the host has read by now."""
        host = self._host
        for question in [one for one in self._held if not one.call_id or host.frames.was_said(one.call_id)]:
            self._held.remove(question)
            self._asking[question.id] = host.start(self._ask(live, question), "question")
        if self._asking:
            host.state(REQUIRES_ACTION)
        elif host.asks_now:
            host.state("running")

    async def _ask(self, live: LiveSession, question: Question) -> None:
        match question.kind:
            case QuestionKind.PERMISSION | QuestionKind.FOLLOWUP:
                await self._ask_host(live, question)
            case QuestionKind.ELICITATION if question.offers:
                await self._ask_host(live, question)
            case QuestionKind.ELICITATION:
                await self._ask_form(live, question)
            case QuestionKind.SUMMARY:
                use = Answer(question_id=question.id, option=OptionKind.ANSWER, text=question.options[0])
                await self._answer(live, use)
            case QuestionKind.BUDGET if question.waits:
                await self._ask_host(live, question)
            case QuestionKind.BUDGET:
                # The host has set the limit, and can raise it for the next run.
                await self._answer(live, Answer(question_id=question.id, option=OptionKind.REJECT_ONCE))
            case QuestionKind.GUIDANCE if question.child:
                await self._answer(live, Answer(question_id=question.id, option=OptionKind.ANSWER, text=_END_NOW))
            case QuestionKind.GUIDANCE:
                # Hosts have no way to say how the model goes on: the turn ends as without anybody there.
                self._asking.pop(question.id, None)
                await self._host.ask_nobody(live)

    async def _ask_host(self, live: LiveSession, question: Question) -> None:
        host, root = self._host, str(live.workspace)
        # What asks in the background is of no call of this turn.
        known = question.call_id
        call = host.frames.calls[known] if known else _call_of(question, host.frames.id_asked_about(question))
        try:
            said = await host.channel.ask(permission_request(question, call, root, live.roots))
        except HostError as error:
            if host.channel.silent:
                return  # the session denies it by itself
            said = {"behavior": "deny", "message": f"Nobody approved it: {error}"}
        given = host_answer(question, call, root, said)
        for note in given.notes:
            host.warn(f"From the host: {note}.")
        await self._answer(live, given.answer)
        try:
            if given.mode:
                await host.change_mode(live, given.mode)
        except TreadleError as error:
            host.warn(f"The mode stays: {error}")
        if given.interrupt:
            await host.interrupt(live)

    async def _ask_form(self, live: LiveSession, question: Question) -> None:
        if question.call_id not in self._host.frames.calls:
            await self._answer(live, Answer(question_id=question.id, option=OptionKind.REJECT_ONCE))
            return
        try:
            server = server_of_call(live, self._host.frames.calls[question.call_id])
            said = await self._host.channel.ask(elicitation_request(question, server))
        except HostError as error:
            if self._host.channel.silent:
                return
            self._host.warn(f"A question of a running call is declined: {error}")
            said = {}
        await self._answer(live, elicitation_answer(question, said))

    async def _answer(self, live: LiveSession, answer: Answer) -> None:
        self._asking.pop(answer.question_id, None)
        with suppress(RefusedError):  # it was closed meanwhile
            await live.post(answer, self._host.source)
        self.put(live)


def _call_of(question: Question, call_id: str) -> ToolCall:
    """Give the call that a question is about whose call is none of this turn: a subagent's, or one that is over."""
    if question.tool or not question.child:
        return ToolCall(id=call_id, name=question.tool or "execute_command", arguments=question.arguments)
    diff = "" if question.preview is None else question.preview.text
    return ToolCall(id=call_id, name="use_subagents", arguments={"apply": diff})


async def _cancelled(*asking: asyncio.Task[None]) -> None:
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
