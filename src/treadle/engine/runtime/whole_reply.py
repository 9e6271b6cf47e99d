"""A reply of the model that nobody watches being written: a summary, or the answer to a side question."""

import asyncio
from contextlib import aclosing
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.context.log_reader import TranscriptReader
from treadle.context.sizes import size
from treadle.engine.core.budgets import Send, check_budgets
from treadle.engine.core.state import State
from treadle.engine.ports import Ports, Provider
from treadle.engine.runtime.model_requests import CallMeter, own_size, priced, request_size, reserved_terms
from treadle.protocol.events import EventData
from treadle.protocol.models import ModelError, ModelRequest, ReplyStop, StreamFailure, StreamStop, StreamText
from treadle.protocol.sealed import OF_SUMMARY, SideAnswered, SideAsked
from treadle.protocol.usage import Usage


class WholeReply(Struct, frozen=True, kw_only=True):
    """What came of one request, without secrets; with an `error` there is no text. `cost` is in US dollars."""

    text: str = ""
    error: str = ""
    usage: Usage = Usage()
    cost: float | None = 0.0

    def answer_to(self, asked: SideAsked) -> SideAnswered:
        """Give it as the answer to a question beside the work."""
        answered = SideAnswered(question=asked.question, text=self.text, error=self.error, shown=asked.shown)
        return replace(answered, usage=self.usage, cost=self.cost)


class AsideLog(Protocol):
    """The log of a session: it has that the model is asked, and what was used where nobody waits for it any more."""

    async def post(self, data: EventData, /) -> None:
        """Queue an event and wait until it is in the log; raises `RefusedError`."""
        ...

    def post_soon(self, data: EventData, /) -> None:
        """Queue an event; a refusal is of no interest any more."""
        ...


async def whole_reply(
    ports: Ports,
    state: State,
    reader: TranscriptReader,
    request: ModelRequest,
    *,
    asked: SideAsked,
    log: AsideLog,
    alone: bool = False,
) -> WholeReply:
    """Call the model once, if the budgets allow it, and wait for all of it. Calls that it makes are ignored.

    The `log` has what is `asked` before the request leaves; when this is cancelled in the middle of a reply, also what
    it used. `alone`: it is not about the conversation.
    """
    new = sum(map(size, request.messages[-1:]))
    terms = await reserved_terms(ports, state, reader.transcript, new, aside=asked.question != OF_SUMMARY)
    if terms is not None and not isinstance(check_budgets(state, terms), Send):
        return WholeReply(error="the budget does not allow it")
    meter, spec = CallMeter(), ports.model(state.choice.model)
    try:
        await log.post(asked)
        if state.choice.model not in ports.unbilled:
            meter.send(own_size(reader, request) if alone else request_size(reader, new))
        reply = await _read(ports.provider(state.choice.model), request, meter)
    except asyncio.CancelledError as cancelled:
        meter.cut(cancelled)
        usage, cost = priced(spec, meter.used)
        log.post_soon(WholeReply(error="it was interrupted", usage=usage, cost=cost).answer_to(asked))
        raise
    redact = ports.redactor().redact
    usage, cost = priced(spec, reply.usage if reply.usage.context_tokens else meter.used)
    return replace(reply, text=redact(reply.text), error=redact(reply.error), usage=usage, cost=cost)


async def _read(provider: Provider, request: ModelRequest, meter: CallMeter) -> WholeReply:
    pieces: list[str] = []
    paced = 0.0
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            meter.take(item)
            match item:
                case StreamText(text=text):
                    pieces.append(text)
                case StreamStop(reason=ReplyStop.REFUSAL, usage=usage):
                    return WholeReply(error="the model refused", usage=usage)
                case StreamStop(usage=usage):
                    text = "".join(pieces).strip()
                    return WholeReply(text=text, error="" if text else "the model said nothing", usage=usage)
                case StreamFailure(error=ModelError(paced=True, retry_after=wait)):
                    paced = wait or 0.0
                case StreamFailure(error=error):
                    return WholeReply(error=error.message)
                case _:
                    pass
    if paced:
        await asyncio.sleep(paced)
        return await _read(provider, request, meter)
    return WholeReply(error="the reply ended too early")
