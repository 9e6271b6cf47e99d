"""Questions of a session, answered by a function of the program."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec.structs import replace

from treadle.door.open_session import SessionClient
from treadle.present.forms import filled_in
from treadle.protocol.errors import RefusedError, TreadleError
from treadle.protocol.events import Answer, Interrupt
from treadle.protocol.notifications import Notification, QuestionAsked, QuestionClosed
from treadle.protocol.permissions import OptionKind, Question, QuestionKind

Approval: TypeAlias = Answer | OptionKind | bool | str | dict[str, Any]
"""Yes or no, an option, an answer in words, the values of a form, or a whole `Answer`, with other arguments too."""

Approve: TypeAlias = Callable[[Question], Approval | Awaitable[Approval]]
"""Answers a question. One that is not `async` runs in a thread."""

_IN_WORDS = (QuestionKind.FOLLOWUP, QuestionKind.GUIDANCE, QuestionKind.SUMMARY)


class Approvals:
    """Has each open question answered by `approve`, each in a task of its own; one that is closed is dropped."""

    def __init__(self, approve: Approve) -> None:
        self._approve = approve
        self._client: SessionClient | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failure: BaseException | None = None

    def begin(self, client: SessionClient) -> None:
        """Answer the questions of this session, those that are open already included."""
        self._client = client
        for question in client.session.status.questions:
            self._ask(question)

    def hear(self, notification: Notification) -> None:
        """Take what happened."""
        match notification:
            case QuestionAsked(question=question):
                self._ask(question)
            case QuestionClosed(question_id=question_id) if question_id in self._tasks:
                task = self._tasks[question_id]
                if task is not asyncio.current_task():
                    task.cancel()
            case _:
                pass

    def take_failure(self) -> BaseException | None:
        """Give what `approve` raised, once."""
        failure, self._failure = self._failure, None
        return failure

    async def close(self) -> None:
        """Ask no more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self, question: Question) -> None:
        if self._client is not None and question.id not in self._tasks:
            task = asyncio.create_task(self._answer(question, self._client), name="approval")
            self._tasks[question.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(question.id, None))

    async def _answer(self, question: Question, client: SessionClient) -> None:
        # Any error of foreign code is for the program to see; gathering hands it over as a value.
        (said,) = await asyncio.gather(self._said(question), return_exceptions=True)
        if isinstance(said, asyncio.CancelledError):
            return
        if isinstance(said, BaseException):
            await self._fail(said, client)
            return
        try:
            await client.post(said)
        except TreadleError as refusal:
            # Answered elsewhere, or withdrawn; else it would stay open with nobody to answer it.
            if any(other.id == question.id for other in client.session.status.questions):
                await self._fail(refusal, client)

    async def _fail(self, error: BaseException, client: SessionClient) -> None:
        """Stop the work, and keep the first error for the program."""
        self._failure = self._failure or error
        with suppress(RefusedError):
            await client.post(Interrupt())

    async def _said(self, question: Question) -> Answer | Interrupt:
        """Have it answered. Nothing but a yes is taken for one."""
        approve: Callable[[Question], Any] = self._approve
        direct = inspect.iscoroutinefunction(approve)
        said = approve(question) if direct else await asyncio.to_thread(approve, question)
        return answer_of(question, await said if inspect.isawaitable(said) else said)


def answer_of(question: Question, said: object) -> Answer | Interrupt:
    """Make an answer of what was said. Raises `TypeError` for what answers no question.

    A text answers a question in words; to a permission it is a no with a comment. Raises `ValueError` for a form that
    is not filled in.
    """
    in_words = question.kind in _IN_WORDS
    match said:
        case Answer():
            return replace(said, question_id=question.id)
        case OptionKind.ALLOW_ONCE if question.form:
            return _filled_in(question)
        case OptionKind():
            return Answer(question_id=question.id, option=said)
        case True if question.kind is QuestionKind.ELICITATION:
            return _filled_in(question)
        case str() if question.kind is QuestionKind.ELICITATION:
            return _filled_in(question, words=said)
        case dict() if question.kind is QuestionKind.ELICITATION:
            return _filled_in(question, values=said)
        case bool() if in_words:
            return _in_words(question, yes=said)
        case bool():
            option = question.yes if said else OptionKind.REJECT_ONCE
            return Answer(question_id=question.id, option=option)
        case str():
            option = OptionKind.ANSWER if in_words else OptionKind.REJECT_ONCE
            return Answer(question_id=question.id, option=option, text=said)
        case _:
            raise TypeError(
                f"approve returned {said!r}. Return True, False, a string, an OptionKind, a dict or an Answer."
            )


def _filled_in(question: Question, *, words: str = "", values: Mapping[str, Any] = MappingProxyType({})) -> Answer:
    values, wrong = filled_in(question.form, words, {**question.arguments, **values})
    if wrong:
        raise ValueError(f"{question.text} {wrong}")
    return Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE, arguments=dict(values))


def _in_words(question: Question, *, yes: bool) -> Answer | Interrupt:
    """Put a yes or no into the words that a question takes; no guidance for work that does not get on ends it."""
    match question.kind:
        case QuestionKind.SUMMARY:
            text = question.options[0 if yes else 1]
        case QuestionKind.GUIDANCE if not yes:
            return Interrupt()
        case QuestionKind.GUIDANCE:
            text = "Go on."
        case _:
            text = "Yes." if yes else "No."
    return Answer(question_id=question.id, option=OptionKind.ANSWER, text=text)
