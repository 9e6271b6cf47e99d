"""A question beside the work: answered from the conversation with one call of the model, and not a part of it."""

import os

from msgspec.structs import replace

from treadle.context.reader import TranscriptReader
from treadle.context.sizes import size
from treadle.engine.core.budgets import Send, bounded, check_budgets
from treadle.engine.core.state import State
from treadle.engine.ports import Ports
from treadle.engine.runtime.requests import build_request, cost, terms_of
from treadle.engine.runtime.whole_reply import whole_reply
from treadle.protocol.limits import Budget
from treadle.protocol.messages import Message, Role, Text, ToolUse
from treadle.protocol.models import ModelRequest
from treadle.protocol.sealed import SideAnswered

_MOST_TOKENS = 4_096
_ASKED = (
    "[The user asks something beside the work. Answer it briefly from what you know of this conversation. Call no tool "
    "and change nothing: the work continues afterwards as if this had not been asked.]\n\n"
)


async def answer_aside(question: str, ports: Ports, state: State, reader: TranscriptReader) -> SideAnswered:
    """Ask the model. What is sent before the question is what the provider's cache has, so tools are part of it."""
    request = _request(question, build_request(ports, state, reader))
    if why := await _too_costly(request, ports, state, reader):
        return SideAnswered(question=question, error=why)
    reply = await whole_reply(ports.provider(state.choice.model), request)
    priced = cost(ports.model(state.choice.model), reply.usage) if reply.usage.context_tokens else 0.0
    redact = ports.redactor().redact
    text, error = ("", redact(reply.error)) if reply.error else (redact(reply.text), "")
    return SideAnswered(question=question, text=text, error=error, usage=reply.usage, cost=priced)


def _request(question: str, request: ModelRequest) -> ModelRequest:
    messages = request.messages
    while messages and any(isinstance(block, ToolUse) for block in messages[-1].content):
        messages = messages[:-1]  # its results are not there yet
    asked: tuple[Text, ...] = (Text(text=f"{_ASKED}{question}"),)
    if messages and messages[-1].role is Role.USER:
        last = Message(role=Role.USER, content=(*messages[-1].content, *asked))
        messages = messages[:-1]
    else:
        last = Message(role=Role.USER, content=asked)
    most = min(_MOST_TOKENS, request.max_tokens or _MOST_TOKENS) + (request.thinking_budget or 0)
    own_id = f"{request.id}-aside-{os.urandom(4).hex()}"
    return replace(request, id=own_id, messages=(*messages, last), max_tokens=most, web_search=False)


async def _too_costly(request: ModelRequest, ports: Ports, state: State, reader: TranscriptReader) -> str:
    """Say that a budget does not allow it; else reserve what it can cost where a budget holds for the day."""
    if not bounded(state.limits):
        return ""
    terms = terms_of(ports, state, reader.transcript, sum(map(size, request.messages[-1:])))
    room = check_budgets(state, terms)
    if not isinstance(room, Send):
        return "the budget does not allow it"
    if state.limits.day != Budget():
        await ports.day_budget.reserve(room.worst)
    return ""
