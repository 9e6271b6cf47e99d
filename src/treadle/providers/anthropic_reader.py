"""Reads a reply of the Anthropic Messages API."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from treadle.protocol.messages import WireData
from treadle.protocol.models import (
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
)
from treadle.protocol.usage import Usage
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import from_problem, started_over
from treadle.providers.provider_problems import problem_of
from treadle.providers.provider_rows import Wire
from treadle.providers.raw_blocks import RawBlocks
from treadle.providers.sse import SseEvent
from treadle.providers.web_search import BLOCKS, SearchReader
from treadle.providers.wire import (
    CallFailedError,
    HttpCall,
    JsonEvents,
    ReplyPausedError,
    dump,
    origin,
    own_number,
    token_count,
    update_usage,
)

_STOPS = {
    "end_turn": ReplyStop.END_TURN,
    "stop_sequence": ReplyStop.END_TURN,
    "tool_use": ReplyStop.TOOL_USE,
    "max_tokens": ReplyStop.MAX_TOKENS,
    "model_context_window_exceeded": ReplyStop.MAX_TOKENS,
    "refusal": ReplyStop.REFUSAL,
}


class _ServerTools(msgspec.Struct):
    web_search_requests: int | None = None


class _Written(msgspec.Struct):
    ephemeral_1h_input_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: _Written | None = None
    server_tool_use: _ServerTools | None = None


class _Block(msgspec.Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: dict[str, Any] | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Start(msgspec.Struct):
    usage: _Usage | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    message: _Start | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: Any = None


_decoder = JsonEvents(_Event)


class _Open(Struct):
    """A block that is not finished. `number` is the provider's index, or another one where it gives that twice.

    `ended` is a call without arguments: what comes next tells whether it has none, or was cut before them.
    """

    block: _Block
    number: int
    signature: str = ""
    has_arguments: bool = False
    ended: bool = False


class _Reply(Struct):
    """What is kept from one part of a reply to the next, if the provider pauses it."""

    searches: SearchReader
    raw: RawBlocks
    numbers: set[int]
    billed: Usage = Usage()


class AnthropicReader:
    """Reads one reply, or a part of it: `reply` is what is kept of the parts before."""

    def __init__(self, endpoint: Endpoint, reply: _Reply | None = None) -> None:
        self._endpoint = endpoint
        self._origin = origin(Wire.ANTHROPIC_MESSAGES.value, endpoint)
        self._usage = _Usage()
        self._open: dict[int, _Open] = {}
        self._begun = False
        self._stop: str | None = None
        self._reply = reply or _Reply(SearchReader(self._origin), RawBlocks(), set())

    @property
    def usage(self) -> Usage:
        """What is known to have been billed so far."""
        return self._reply.billed + Usage(
            input_tokens=token_count(self._usage.input_tokens),
            output_tokens=token_count(self._usage.output_tokens),
            cache_read_tokens=token_count(self._usage.cache_read_input_tokens),
            cache_write_tokens=token_count(self._usage.cache_creation_input_tokens),
            cache_write_hour_tokens=min(
                token_count((self._usage.cache_creation or _Written()).ephemeral_1h_input_tokens),
                token_count(self._usage.cache_creation_input_tokens),
            ),
            searches=token_count((self._usage.server_tool_use or _ServerTools()).web_search_requests),
        )

    def read(self, event: SseEvent) -> Iterator[StreamEvent]:
        """Take the next event; kinds that are not known are passed over."""
        value = _decoder.decode(event.data)
        self._begun = self._begun or value.content_block is not None or value.delta is not None
        match value.type or event.name:
            case "content_block_delta" if value.delta is not None:
                yield from self._delta(value.index, value.delta)
            case "content_block_start" if value.content_block is not None:
                raw = msgspec.json.decode(event.data)["content_block"]
                self._reply.raw.start(value.index, raw)
                if value.content_block.type in BLOCKS:
                    yield from self._reply.searches.start(value.index, raw)
                else:
                    yield from self._start(value.index, value.content_block)
            case "content_block_stop":
                yield from self._end(value.index)
            case "message_start" if value.message is not None:
                self._begin(value.message)
            case "message_delta":
                self._usage = update_usage(value.usage, self._usage)
                if value.delta is not None and value.delta.stop_reason:
                    self._stop = value.delta.stop_reason
            case "message_stop":
                yield from self._last()
            case "error" | "" if value.error is not None or event.name == "error":
                raise CallFailedError(from_problem(self._endpoint, problem_of(msgspec.json.decode(event.data))))
            case _:
                pass

    def end(self) -> Iterator[StreamEvent]:
        """The reply is whole with its stop reason; some servers leave out `message_stop`."""
        if self._stop is not None:
            yield from self._last()

    def _begin(self, message: _Start) -> None:
        """Take what the reply begins with; raises `CallFailedError` where one has begun already."""
        if self._begun:
            raise started_over(self._endpoint)
        self._usage = update_usage(message.usage, self._usage)

    def _last(self) -> Iterator[StreamEvent]:
        """Finish what no event finished, but no call of a reply that was cut."""
        if self._stop == "pause_turn" and (content := self._reply.raw.blocks()):
            for index in list(self._open):
                yield from self._finish(index)
            reply = msgspec.structs.replace(self._reply, billed=self.usage)
            raise ReplyPausedError(AnthropicReader(self._endpoint, reply), partial(_with_reply, content))
        reason = _STOPS.get(self._stop or "", ReplyStop.END_TURN)
        cut = reason in (ReplyStop.MAX_TOKENS, ReplyStop.REFUSAL)
        for index, one in list(self._open.items()):
            if not (cut and one.block.type == "tool_use"):
                yield from self._finish(index)
        yield StreamStop(reason=reason, usage=self.usage)

    def _start(self, index: int, block: _Block) -> Iterator[StreamEvent]:
        for other, one in list(self._open.items()):
            if one.ended or other == index:
                yield from self._finish(other)
        number = own_number(index, self._reply.numbers)
        self._open[index] = _Open(block, number, signature=block.signature)
        match block.type:
            case "tool_use":
                yield StreamCallStart(index=number, name=block.name, wire_id=block.id)
            case "text" if block.text:
                yield StreamText(text=block.text)
            case "thinking" if block.thinking:
                yield StreamThinking(text=block.thinking)
            case _:
                pass

    def _delta(self, index: int, delta: _Delta) -> Iterator[StreamEvent]:
        raw = self._reply.raw
        match delta.type:
            case "text_delta" if delta.text:
                raw.add(index, "text", delta.text)
                yield StreamText(text=delta.text)
            case "thinking_delta" if delta.thinking:
                raw.add(index, "thinking", delta.thinking)
                yield StreamThinking(text=delta.thinking)
            case "signature_delta" if index in self._open:
                raw.add(index, "signature", delta.signature)
                self._open[index].signature += delta.signature
            case "input_json_delta" if delta.partial_json:
                raw.add(index, "input", delta.partial_json)
                yield from self._arguments(index, delta.partial_json)
            case _:
                pass

    def _arguments(self, index: int, text: str) -> Iterator[StreamEvent]:
        one = self._open.get(index)
        if one is None or one.block.type != "tool_use":
            self._reply.searches.arguments(index, text)
            return
        one.has_arguments = True
        yield StreamCallArguments(index=one.number, text=text)

    def _end(self, index: int) -> Iterator[StreamEvent]:
        one = self._open.get(index)
        if one is not None and one.block.type == "tool_use" and not one.has_arguments and not one.block.input:
            one.ended = True
        else:
            yield from self._finish(index)

    def _finish(self, index: int) -> Iterator[StreamEvent]:
        self._reply.searches.finish(index)
        one = self._open.pop(index, None)
        if one is None:
            return
        block, wire = one.block, WireData(api=self._origin, data={})
        match block.type:
            case "tool_use":
                if not one.has_arguments:
                    yield StreamCallArguments(index=one.number, text=dump(block.input or {}).decode())
                yield StreamCallDone(index=one.number)
            case "thinking":
                yield StreamThinkingDone(signature=one.signature, wire=wire)
            case "redacted_thinking":
                yield StreamThinkingDone(redacted=block.data, wire=wire)
            case _:
                pass


def _with_reply(content: Sequence[dict[str, Any]], call: HttpCall) -> HttpCall:
    """Put the part of a reply behind the messages, with which the body ends; the provider then goes on with it."""
    body = call.body.removesuffix(b"]}") + b',{"role":"assistant","content":' + dump(content) + b"}]}"
    return msgspec.structs.replace(call, body=body)
