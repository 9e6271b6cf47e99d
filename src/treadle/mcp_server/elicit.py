"""Asks a client's user what a task waits for: in the middle of a call, or between the rounds that the call is made in.

From the version of 2026-07-28 on a call that needs a person ends with the question, and the client makes it again with
the answer. Before, the server sends the question while the call waits.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import is_version_at_least
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from treadle.mcp_server.running_task import ServedTask
from treadle.mcp_server.wording import decisions, form_answer, in_terminal, question_form, question_words
from treadle.protocol.events import Answer
from treadle.protocol.permissions import OptionKind, Question

_ROUNDS_SINCE = "2026-07-28"
_MOST_ASKED = 8
"""Questions a call; the SDK's clients make 10 rounds at most."""

GoOn = Callable[[Answer | None], Awaitable[None]]
"""Gives an answer to the task, None: none yet, and waits until it ended or the next person is needed."""


class _Round(Struct, frozen=True):
    """What a call says when it is made again: the id of the question, and how many were asked."""

    question: str
    asked: int


def can_ask(ctx: Context[Any]) -> bool:
    """Whether the client can show its user a form."""
    capabilities = ctx.client_capabilities
    found = None if capabilities is None else capabilities.elicitation
    return found is not None and (found.form is not None or found.url is None)


async def ask_clients_user(ctx: Context[Any], task: ServedTask, go_on: GoOn) -> InputRequiredResult | None:
    """Have the client's user asked what the task waits for, one question after the other.

    Gives the next question where the call is to be made again with its answer. A form that was declined is a no; one
    that was dismissed leaves its question open. Raises `ToolError` for an answer that does not fit its form, and where
    the client cannot show it.
    """
    in_rounds = ctx.protocol_version is not None and is_version_at_least(ctx.protocol_version, _ROUNDS_SINCE)
    before = _round_before(ctx) if in_rounds else None
    asked = 0 if before is None else before.asked
    if before is None:
        await go_on(None)
    elif (question := _open(task, before.question)) is not None:
        answer = _answer(task, question, (ctx.input_responses or {}).get(question.id))
        if answer is None:
            return None
        await go_on(answer)
    while can_ask(ctx) and asked < _MOST_ASKED and task.questions:
        question, asked = task.questions[0], asked + 1
        params = ElicitRequestFormParams(
            message=question_words(task, question), requested_schema=render_elicitation_schema(_form(task, question))
        )
        if in_rounds:
            state = msgspec.json.encode(_Round(question.id, asked)).decode()
            return InputRequiredResult(input_requests={question.id: ElicitRequest(params=params)}, request_state=state)
        try:
            said = await ctx.session.elicit_form(params.message, params.requested_schema, ctx.request_id)
        except MCPError as error:
            raise ToolError(
                f"The client could not ask its user ({error}). {in_terminal(task)}. Only answer_question with a no is "
                "possible here; or call task_result to ask again."
            ) from error
        if _open(task, question.id) is None:  # answered elsewhere meanwhile
            continue
        answer = _answer(task, question, said)
        if answer is None:
            return None
        await go_on(answer)
    return None


def _round_before(ctx: Context[Any]) -> _Round | None:
    """Read what the call brings from its last round: the SDK has sealed it, for a call with these arguments alone."""
    return msgspec.json.decode(ctx.request_state, type=_Round) if ctx.request_state else None


def _open(task: ServedTask, question_id: str) -> Question | None:
    return next((one for one in task.questions if one.id == question_id), None)


def _form(task: ServedTask, question: Question) -> type[BaseModel]:
    return question_form(question, decisions(task, question))


def _answer(task: ServedTask, question: Question, said: object) -> Answer | None:
    match said:
        case ElicitResult(action="accept", content=content):
            try:
                return form_answer(question, _form(task, question).model_validate(content))
            except ValidationError as error:
                raise ToolError("The form was not filled in as it says. Call task_result to ask again.") from error
        case ElicitResult(action="decline") if OptionKind.REJECT_ONCE in question.options:
            return Answer(question_id=question.id, option=OptionKind.REJECT_ONCE)
        case _:
            return None
