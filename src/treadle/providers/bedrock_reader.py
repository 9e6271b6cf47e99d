"""Reads a reply of the Converse API."""

import base64
from collections.abc import Iterator

import msgspec

from treadle.protocol.messages import WireData
from treadle.protocol.models import (
    ErrorKind,
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
from treadle.providers.event_stream import EXCEPTION, EventStreamDecoder
from treadle.providers.failures import failure, from_problem, started_over
from treadle.providers.provider_problems import ProviderProblem, problem_in
from treadle.providers.sse import SseEvent
from treadle.providers.wire import CallFailedError, Framing, JsonEvents, origin, token_count, update_usage

API = "bedrock_converse"
EVENT_STREAM = Framing(
    accept="application/vnd.amazon.eventstream",
    types=frozenset({"", "application/vnd.amazon.eventstream", "application/octet-stream"}),
    decoder=EventStreamDecoder,
)
_STOPS = {
    "end_turn": ReplyStop.END_TURN,
    "stop_sequence": ReplyStop.END_TURN,
    "tool_use": ReplyStop.TOOL_USE,
    "max_tokens": ReplyStop.MAX_TOKENS,
    "model_context_window_exceeded": ReplyStop.MAX_TOKENS,
    "guardrail_intervened": ReplyStop.REFUSAL,
    "content_filtered": ReplyStop.REFUSAL,
    "refusal": ReplyStop.REFUSAL,
}
_BROKEN = frozenset({"malformed_model_output", "malformed_tool_use"})


class _ToolUse(msgspec.Struct, rename="camel"):
    tool_use_id: str = ""
    name: str = ""
    type: str = ""
    input: str = ""


class _Reasoning(msgspec.Struct, rename="camel"):
    text: str = ""
    signature: str = ""
    redacted_content: bytes = b""


class _Start(msgspec.Struct, rename="camel"):
    tool_use: _ToolUse | None = None


class _Delta(msgspec.Struct, rename="camel"):
    text: str = ""
    tool_use: _ToolUse | None = None
    reasoning_content: _Reasoning | None = None


class _Written(msgspec.Struct, rename="camel"):
    ttl: str = ""
    input_tokens: int | None = None


class _Usage(msgspec.Struct, rename="camel"):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    cache_details: list[_Written] | None = None


class _Event(msgspec.Struct, rename="camel"):
    content_block_index: int = 0
    start: _Start | None = None
    delta: _Delta | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


_decoder = JsonEvents(_Event)


class BedrockReader:
    """Reads one reply. It is whole with its stop reason; what was billed comes behind that."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._origin = origin(API, endpoint)
        self._usage = _Usage()
        self._calls: set[int] = set()
        self._has_arguments: set[int] = set()
        self._bare: list[int] = []
        self._begun = False
        self._reasoning: int | None = None
        self._signature = ""
        self._redacted = b""
        self._stop: ReplyStop | None = None

    @property
    def usage(self) -> Usage:
        """What is known to have been billed so far."""
        return Usage(
            input_tokens=token_count(self._usage.input_tokens),
            output_tokens=token_count(self._usage.output_tokens),
            cache_read_tokens=token_count(self._usage.cache_read_input_tokens),
            cache_write_tokens=token_count(self._usage.cache_write_input_tokens),
            cache_write_hour_tokens=min(
                sum(token_count(one.input_tokens) for one in self._usage.cache_details or () if one.ttl == "1h"),
                token_count(self._usage.cache_write_input_tokens),
            ),
        )

    def read(self, event: SseEvent) -> Iterator[StreamEvent]:
        """Take the next event; kinds that are not known are passed over."""
        if event.name.startswith(EXCEPTION):
            raise CallFailedError(from_problem(self._endpoint, _problem(event)))
        value = _decoder.decode(event.data)
        index = value.content_block_index
        if event.name == "messageStart" and self._begun:
            raise started_over(self._endpoint)
        self._begun = self._begun or event.name.startswith("contentBlock")
        match event.name:
            case "contentBlockDelta" if value.delta is not None:
                yield from self._delta(index, value.delta)
            case "contentBlockStart" if value.start is not None and value.start.tool_use is not None:
                yield from self._start(index, value.start.tool_use)
            case "contentBlockStop":
                yield from self._finish(index)
            case "messageStop":
                self._end(value.stop_reason or "")
                if self._stop not in (ReplyStop.MAX_TOKENS, ReplyStop.REFUSAL):
                    yield from self._finish_bare()
            case "metadata":
                self._usage = update_usage(value.usage, self._usage)
                if self._stop is not None:
                    yield StreamStop(reason=self._stop, usage=self.usage)
            case _:
                pass

    def end(self) -> Iterator[StreamEvent]:
        """A reply with a stop reason is whole, even if nobody says what it cost, or said it before."""
        if self._stop is not None:
            yield StreamStop(reason=self._stop, usage=self.usage)

    def _start(self, index: int, call: _ToolUse) -> Iterator[StreamEvent]:
        if call.type == "server_tool_use":  # the provider runs it by itself
            return
        yield from self._finish_bare()
        self._calls.add(index)
        yield StreamCallStart(index=index, name=call.name, wire_id=call.tool_use_id)

    def _delta(self, index: int, delta: _Delta) -> Iterator[StreamEvent]:
        if delta.text:
            yield StreamText(text=delta.text)
        if delta.tool_use is not None and delta.tool_use.input and index in self._calls:
            self._has_arguments.add(index)
            yield StreamCallArguments(index=index, text=delta.tool_use.input)
        reasoning = delta.reasoning_content
        if reasoning is None:
            return
        self._reasoning = index
        self._signature += reasoning.signature
        self._redacted += reasoning.redacted_content
        if reasoning.text:
            yield StreamThinking(text=reasoning.text)

    def _finish(self, index: int) -> Iterator[StreamEvent]:
        if index in self._calls:
            if index not in self._has_arguments:
                self._bare.append(index)
                return
            yield StreamCallDone(index=index)
        elif index == self._reasoning:
            redacted = base64.b64encode(self._redacted).decode()
            yield StreamThinkingDone(
                signature=self._signature, redacted=redacted, wire=WireData(api=self._origin, data={})
            )
            self._reasoning, self._signature, self._redacted = None, "", b""

    def _finish_bare(self) -> Iterator[StreamEvent]:
        """Finish calls without arguments: what came behind them tells that they were not cut before them."""
        for index in self._bare:
            yield StreamCallArguments(index=index, text="{}")
            yield StreamCallDone(index=index)
        self._bare.clear()

    def _end(self, reason: str) -> None:
        if reason in _BROKEN:
            why = f"the model stopped with {reason}"
            raise CallFailedError(failure(self._endpoint, ErrorKind.MALFORMED_STREAM, why))
        self._stop = _STOPS.get(reason, ReplyStop.END_TURN)


def _problem(event: SseEvent) -> ProviderProblem:
    """Read an exception inside the stream; its type is the name of the event."""
    problem = problem_in(event.data) or ProviderProblem(message=event.data[:500].decode("utf-8", "replace"))
    return msgspec.structs.replace(problem, codes=(event.name.removeprefix(EXCEPTION).lower(), *problem.codes))
