"""A reply of the model that nobody watches being written: a summary, or the answer to a side question."""

from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from treadle.context.reader import TranscriptReader
from treadle.context.sizes import size
from treadle.engine.core.budgets import Send, check_budgets
from treadle.engine.core.state import State
from treadle.engine.ports import Ports, Provider
from treadle.engine.runtime.requests import cost, reserved_terms
from treadle.protocol.models import ModelRequest, ReplyStop, StreamFailure, StreamStop, StreamText
from treadle.protocol.usage import Usage


class WholeReply(Struct, frozen=True, kw_only=True):
    """What came of one request, without secrets; with an `error` there is no text. `cost` is in US dollars."""

    text: str = ""
    error: str = ""
    usage: Usage = Usage()
    cost: float | None = 0.0


async def whole_reply(ports: Ports, state: State, reader: TranscriptReader, request: ModelRequest) -> WholeReply:
    """Call the model once, if the budgets allow it, and wait for all of it. Calls that it makes are ignored."""
    terms = await reserved_terms(ports, state, reader.transcript, sum(map(size, request.messages[-1:])))
    if terms is not None and not isinstance(check_budgets(state, terms), Send):
        return WholeReply(error="the budget does not allow it")
    reply = await _read(ports.provider(state.choice.model), request)
    priced = cost(ports.model(state.choice.model), reply.usage) if reply.usage.context_tokens else 0.0
    redact = ports.redactor().redact
    return replace(reply, text=redact(reply.text), error=redact(reply.error), cost=priced)


async def _read(provider: Provider, request: ModelRequest) -> WholeReply:
    pieces: list[str] = []
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            match item:
                case StreamText(text=text):
                    pieces.append(text)
                case StreamStop(reason=ReplyStop.REFUSAL, usage=usage):
                    return WholeReply(error="the model refused", usage=usage)
                case StreamStop(usage=usage):
                    text = "".join(pieces).strip()
                    return WholeReply(text=text, error="" if text else "the model said nothing", usage=usage)
                case StreamFailure(error=error, usage=usage):
                    return WholeReply(error=error.message, usage=usage)
                case _:
                    pass
    return WholeReply(error="the reply ended too early")
