"""A reply of the model that nobody watches being written: a summary, or the answer to a side question."""

from contextlib import aclosing

from msgspec import Struct

from treadle.engine.ports import Provider
from treadle.protocol.models import ModelRequest, ReplyStop, StreamFailure, StreamStop, StreamText
from treadle.protocol.usage import Usage


class WholeReply(Struct, frozen=True, kw_only=True):
    """What came of one request; with an `error` there is no text."""

    text: str = ""
    error: str = ""
    usage: Usage = Usage()


async def whole_reply(provider: Provider, request: ModelRequest) -> WholeReply:
    """Call the model once and wait for all of it. Calls that it makes are ignored."""
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
