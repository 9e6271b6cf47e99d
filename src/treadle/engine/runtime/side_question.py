"""A question beside the work: answered from the conversation with one call of the model, and not a part of it."""

import os

from msgspec.structs import replace

from treadle.context.log_reader import TranscriptReader
from treadle.engine.core.state import State
from treadle.engine.ports import Ports
from treadle.engine.runtime.model_requests import build_request
from treadle.engine.runtime.whole_reply import AsideLog, whole_reply
from treadle.protocol.messages import Message, Role, Text, ToolUse
from treadle.protocol.models import ModelRequest
from treadle.protocol.sealed import SideAnswered, SideAsked

_MOST_TOKENS = 4_096
_ASKED = (
    "[The user asks something beside the work. Answer it briefly from what you know of this conversation. Call no tool "
    "and change nothing: the work continues afterwards as if this had not been asked.]\n\n"
)


async def answer_aside(  # noqa: PLR0917 - what a session gives whoever asks beside the work
    question: str, ports: Ports, state: State, reader: TranscriptReader, log: AsideLog, *, named: str = ""
) -> SideAnswered:
    """Ask the model. What is sent before the question is what the provider's cache has, so tools are part of it.

    The log has what is `named` in the place of a question that no person wrote; what a person asks is shown.
    """
    asked = SideAsked(question=named or question, shown=not named)
    request = _request(question, build_request(ports, state, reader))
    reply = await whole_reply(ports, state, reader, request, asked=asked, log=log)
    return reply.answer_to(asked)


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
