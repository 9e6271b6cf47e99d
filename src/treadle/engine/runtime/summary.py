"""Having the model sum up a conversation that is about to leave its window."""

from msgspec.structs import replace

from treadle.context.compaction_words import summary_request
from treadle.engine.runtime.whole_reply import WholeReply
from treadle.protocol.events import SummaryWritten
from treadle.protocol.messages import ContentBlock, Message, Role, Text
from treadle.protocol.models import ModelRequest, ModelSpec

_MOST_TOKENS = 4_096
_LEAST = 40
"""Characters; less is no summary."""


def ask_for_summary(
    request: ModelRequest, pending: tuple[ContentBlock, ...], focus: str, spec: ModelSpec
) -> ModelRequest:
    """Put the question behind the conversation, which stays as the provider's cache has it, and its open results.

    The web is not searched for it: what the model writes is to come from the conversation.
    """
    asked = (*pending, Text(text=summary_request(focus)))
    messages = request.messages
    if messages and messages[-1].role is Role.USER:
        asked, messages = (*messages[-1].content, *asked), messages[:-1]
    most = min(_MOST_TOKENS, spec.max_output or _MOST_TOKENS) + (request.thinking_budget or 0)
    last = Message(role=Role.USER, content=asked)
    return replace(request, id=f"{request.id}-summary", messages=(*messages, last), max_tokens=most, web_search=False)


def written_summary(reply: WholeReply, step: int) -> SummaryWritten:
    """Take a reply for the summary."""
    error = reply.error or ("" if len(reply.text) >= _LEAST else "the model wrote too little")
    return SummaryWritten(step=step, text="" if error else reply.text, error=error, usage=reply.usage, cost=reply.cost)
