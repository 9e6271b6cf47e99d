"""The open questions of a session: each is put to the client's user as a choice, a form, or the end of a turn."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from treadle.acp.client import EditorClient
from treadle.acp.client_questions import (
    ALL_EDITS,
    answer_of_choice,
    filled,
    form_of,
    no_to,
    put_question,
    question_message,
    words_of,
)
from treadle.acp.rpc import METHOD_NOT_FOUND, ClientGoneError, RpcError
from treadle.acp.shapes import ToolCallMoved
from treadle.acp.updates import Updates, text_chunk
from treadle.door.open_session import SessionAccess
from treadle.protocol.errors import ConfigError, RefusedError
from treadle.protocol.events import Answer, Op, SetMode, SetPresence
from treadle.protocol.permissions import Mode, Question, QuestionKind

_BY_CHOICE = (QuestionKind.PERMISSION, QuestionKind.BUDGET)
_CANNOT_ASK = (
    "This editor shows no questions, so what needs a yes is denied. To answer, close it here and open it elsewhere.\n"
)


class EditorQuestions:
    """Puts questions, and posts the answers. `in_words` is the one that waits for the user's next message.

    `left_open` is called when a question is shown as a message, which ends the turn for the client.
    """

    def __init__(
        self,
        live: SessionAccess,
        client: EditorClient,
        updates: Updates,
        *,
        post: Callable[[Op], Awaitable[None]],
        left_open: Callable[[Question], None],
    ) -> None:
        self._live = live
        self._client = client
        self._updates = updates
        self._post = post
        self._left_open = left_open
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._unshown: set[str] = set()
        self._shows_questions = True
        self._ending: asyncio.Task[None] | None = None
        self.in_words: Question | None = None

    def ask(self, question: Question) -> None:
        """Begin to ask, once."""
        if question.id in self._asking:
            return
        self._asking[question.id] = asyncio.create_task(self._ask(question), name="acp question")

    def over(self, question_id: str) -> None:
        """Stop asking what was answered, or does not matter any more."""
        self._unshown.discard(question_id)
        asking = self._asking.pop(question_id, None)
        if asking is not None:
            asking.cancel()
        if self.in_words is not None and self.in_words.id == question_id:
            self.in_words = None
        self._end_unshown()

    async def close(self) -> None:
        """Stop asking."""
        for asking in self._asking.values():
            asking.cancel()
        ending = filter(None, (*self._asking.values(), self._ending))
        await asyncio.gather(*ending, return_exceptions=True)

    def answered(self, text: str) -> Answer | str:
        """Read the user's words as the answer to the question that waits for them; else gives what is missing."""
        question = self.in_words
        if question is None:
            return ""
        answer = words_of(question, text)
        if isinstance(answer, Answer):
            self.in_words = None
            self._updates.answered.add(question.call_id)
        return answer

    async def _ask(self, question: Question) -> None:
        """Ask; a client that is gone answers nothing, and what was answered elsewhere needs no answer."""
        with suppress(ClientGoneError, RefusedError):
            try:
                await self._put(question)
            except RpcError as error:
                self._not_shown(question, error)

    def _not_shown(self, question: Question, error: RpcError) -> None:
        """Have what nobody saw end as it does without anybody, once the user looks at no other question."""
        if self._live.continues:
            return  # it is open in another process, where it can be answered
        if error.code == METHOD_NOT_FOUND and self._shows_questions:
            self._shows_questions = False
            self._client.update(text_chunk("agent_thought", _CANNOT_ASK, f"questions-{self._live.id}"))
        self._unshown.add(question.id)
        self._end_unshown()

    def _end_unshown(self) -> None:
        if self._unshown and self._unshown.issuperset(self._asking) and (self._ending is None or self._ending.done()):
            self._ending = asyncio.create_task(self._end_without_anybody(), name="acp question")

    async def _end_without_anybody(self) -> None:
        with suppress(RefusedError):
            await self._post(SetPresence(user_present=False))
            if self._shows_questions:
                await self._post(SetPresence(user_present=True))

    async def _put(self, question: Question) -> None:
        put = put_question(question, (str(self._live.workspace), *self._live.roots), self._live.status.mode)
        if question.url and self._client.opens_links:
            opened = await self._client.open_link(question.text, question.url, question.id)
            await self._answer(question, filled(question, opened))
        elif self._client.shows_forms and _has_form(question):
            entered = await self._client.fill_in(question_message(question), form_of(question), question.call_id)
            await self._answer(question, filled(question, entered))
        elif put is None:
            self._wait_for_words(question)
        else:
            of_call = question.kind is QuestionKind.PERMISSION and bool(question.call_id)
            if of_call:
                self._updates.show_call(question.call_id)
            chosen = await self._client.choose(put.call, put.choices)
            offered = any(chosen.option_id == choice.option_id for choice in put.choices)
            answer = answer_of_choice(question, chosen) if chosen.outcome == "selected" and offered else no_to(question)
            if not of_call:
                self._client.update(ToolCallMoved(tool_call_id=put.call.tool_call_id, status="completed"))
            if chosen.option_id == ALL_EDITS and offered:
                await self._change_to_edits()
            await self._answer(question, answer)

    async def _change_to_edits(self) -> None:
        """Change the mode; where its model cannot be called it stays, and the yes holds all the same."""
        try:
            await self._post(SetMode(mode=Mode.EDITS))
        except ConfigError as error:
            self._client.update(text_chunk("agent_thought", f"The mode stays: {error}\n", f"mode-{self._live.id}"))

    async def _answer(self, question: Question, answer: Answer | None) -> None:
        """Post an answer; without one the user's next message is it."""
        if answer is None:
            self._wait_for_words(question)
        else:
            await self._post(answer)

    def _wait_for_words(self, question: Question) -> None:
        self.in_words = question
        self._updates.asked.add(question.id)
        self._client.update(text_chunk("agent_message", question_message(question), question.id))
        self._left_open(question)


def _has_form(question: Question) -> bool:
    """Whether a question wants words or values, not only a yes or a no."""
    if question.kind is QuestionKind.ELICITATION:
        return bool(question.form)
    return question.kind not in _BY_CHOICE
