"""The OpenAI Responses API, used without state on the server: reasoning goes back encrypted, as it came."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import msgspec

from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    Message,
    RedactedThinking,
    ResultContent,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    WireData,
    text_of,
)
from treadle.protocol.models import (
    ModelRequest,
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
from treadle.protocol.tools import ToolSpec
from treadle.protocol.usage import Usage
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import from_problem, started_over
from treadle.providers.plain_schemas import schema_as
from treadle.providers.provider_problems import problem_of
from treadle.providers.sse import STREAM_END, SseEvent
from treadle.providers.web_search import MOST_SEARCHES, RESPONSES_TOOL, is_billed, read_call
from treadle.providers.wire import (
    SSE,
    CallFailedError,
    HttpCall,
    JsonEvents,
    MessageCache,
    ToolCache,
    dump,
    effort,
    origin,
    own_data,
    own_number,
    token_count,
    update_usage,
    wire_call_name,
)

API = "openai_responses"
ITEM = "item"
LEAST_ROOM = 16
"""Tokens; the API refuses a lower limit."""

_LONGEST_ID = 64
KEPT = ("type", "id", "summary", "content", "encrypted_content")
"""What of a reasoning item goes back."""


class OpenAIResponses:
    """Writes requests and reads replies of the Responses API."""

    framing = SSE

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._origin = origin(API, endpoint)
        self._messages = MessageCache(self._encode)
        self._tools = ToolCache(_tools)

    def prepare(self, request: ModelRequest) -> HttpCall:
        """Write the request."""
        parts = [b'{"model":', dump(request.model), b',"stream":true,"store":false']
        if request.system.strip():
            parts += [b',"instructions":', dump(request.system)]
        if request.max_tokens is not None:
            parts.append(b',"max_output_tokens":%d' % max(request.max_tokens, LEAST_ROOM))
        if request.thinking_budget:
            reasoning = {"effort": effort(request.thinking_budget), "summary": "auto"}
            parts += [b',"include":["reasoning.encrypted_content"],"reasoning":', dump(reasoning)]
        searches = request.web_search and self._endpoint.quirks.web_search
        if tools := self._tools.encode(request.tools, RESPONSES_TOOL if searches else None):
            parts += [b',"tools":', tools]
        if searches and self._endpoint.quirks.search_bound:
            parts.append(b',"max_tool_calls":%d' % MOST_SEARCHES)
        items = filter(None, self._messages.encode(request.messages))
        parts += [b',"input":[', b",".join(items), b"]}"]
        headers = self._endpoint.key_headers("authorization")
        return HttpCall(url=self._endpoint.url("/responses"), headers=headers, body=b"".join(parts))

    def reader(self) -> "ResponsesReader":
        """Begin to read a reply."""
        return ResponsesReader(self._endpoint)

    def _encode(self, message: Message) -> bytes:
        """Write one message as the items that this API makes of it, joined by commas; empty where none is."""
        if message.role is Role.USER:
            return b",".join(dump(item) for item in _user(message))
        items = [self._item(block) for block in message.content]
        return b",".join(dump(item) for item in items if item is not None)

    def _item(self, block: ContentBlock) -> dict[str, Any] | None:
        """Write a block of the assistant; reasoning of other providers is left out."""
        match block:
            case Text():
                return {"role": "assistant", "content": block.text} if block.text else None
            case Thinking() | RedactedThinking():
                return _reasoning((own_data(block.wire, self._origin) or {}).get(ITEM))
            case ToolUse():
                arguments = dump(block.arguments).decode()
                call_id = _call_id(block.wire_id or block.id)
                name = wire_call_name(block.name)
                return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
            case Image() | Document() | ToolResult():
                return None
            case _:
                assert_never(block)


def _call_id(call_id: str) -> str:
    """The id of a call, or what stands for one that is longer than this API takes: some gateways hide things in it."""
    if len(call_id) <= _LONGEST_ID:
        return call_id
    return hashlib.sha256(call_id.encode()).hexdigest()


def _reasoning(item: dict[str, Any] | None) -> dict[str, Any] | None:
    """Reasoning as it came, without an id that is longer than the API takes back: the encrypted content says it all."""
    if item is None or len(str(item.get("id", ""))) <= _LONGEST_ID:
        return item
    return {name: value for name, value in item.items() if name != "id"}


def _tools(tools: Sequence[ToolSpec], search: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    declared: list[Mapping[str, Any]] = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": schema_as("openai", tool.parameters),
            "strict": False,
        }
        for tool in tools
    ]
    return [*declared, search] if search else declared


def _user(message: Message) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for block in message.content:
        match block:
            case ToolResult():
                call_id = _call_id(block.wire_id or block.call_id)
                results.append({"type": "function_call_output", "call_id": call_id, "output": _output(block)})
            case Text():
                parts += [_part(block)] if block.text else []
            case Image() | Document():
                parts.append(_part(block))
            case Thinking() | RedactedThinking() | ToolUse():
                pass
            case _:
                assert_never(block)
    return [*results, {"role": "user", "content": parts}] if parts else results


def _output(block: ToolResult) -> str | list[dict[str, Any]]:
    """Results of text alone are sent as text, which every server takes."""
    if all(isinstance(part, Text) for part in block.content):
        return text_of(block.content) or "(no output)"
    return [_part(part) for part in block.content if not (isinstance(part, Text) and not part.text)]


def _part(block: ResultContent) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "input_text", "text": block.text}
        case Image():
            return {"type": "input_image", "image_url": f"data:{block.media_type};base64,{block.data}"}
        case Document():
            data = f"data:{block.media_type};base64,{block.data}"
            return {"type": "input_file", "filename": block.title or "document", "file_data": data}
        case _:
            assert_never(block)


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _ServerTools(msgspec.Struct):
    web_search_calls: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None
    server_side_tool_usage_details: _ServerTools | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    output: list[dict[str, Any]] | None = None
    usage: _Usage | None = None
    incomplete_details: _Incomplete | None = None


class _Event(msgspec.Struct):
    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: str | dict[str, Any] | None = None
    item: dict[str, Any] | None = None
    response: _Response | None = None


_decoder = JsonEvents(_Event)


class _Call(msgspec.Struct):
    """A call. `number` is the provider's index, or another one where it gives that twice."""

    number: int
    call_id: str
    done: bool = False
    has_arguments: bool = False


class ResponsesReader:
    """Reads one reply."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._origin = origin(API, endpoint)
        self._usage = _Usage()
        self._calls: dict[int, _Call] = {}
        self._numbers: set[int] = set()
        self._streamed: set[int] = set()
        self._begun = False
        self._whole = 0
        self._searched = 0
        self._refused = False

    @property
    def usage(self) -> Usage:
        """What is known to have been billed so far."""
        cached = token_count((self._usage.input_tokens_details or _InputDetails()).cached_tokens)
        reported = self._usage.server_side_tool_usage_details or _ServerTools()
        return Usage(
            input_tokens=token_count(token_count(self._usage.input_tokens) - cached),
            output_tokens=token_count(self._usage.output_tokens),
            cache_read_tokens=cached,
            reasoning_tokens=token_count((self._usage.output_tokens_details or _OutputDetails()).reasoning_tokens),
            searches=max(token_count(reported.web_search_calls), self._searched),
        )

    def read(self, event: SseEvent) -> Iterator[StreamEvent]:
        """Take the next event; kinds that are not known are passed over."""
        if event.data.strip() == STREAM_END:
            return
        value = _decoder.decode(event.data)
        if value.response is not None:
            self._usage = update_usage(value.response.usage, self._usage)
        kind = value.type or event.name
        if kind == "response.created" and self._begun:
            raise started_over(self._endpoint)
        self._begun = self._begun or value.item is not None or value.delta is not None
        match kind:
            case "response.output_item.added" | "response.output_item.done" if value.item is not None:
                yield from self._item(value.output_index, value.item, done=kind.endswith("done"))
            case "response.completed" | "response.incomplete":
                yield from self._missed(value.response or _Response())
                yield StreamStop(reason=self._reason(value.response or _Response()), usage=self.usage)
            case "response.failed" | "error":
                whole = msgspec.json.decode(event.data)
                problem = problem_of(whole.get("response") or whole)
                raise CallFailedError(from_problem(self._endpoint, problem))
            case _:
                yield from self._delta(kind, value)

    def end(self) -> Iterator[StreamEvent]:
        """Without a last event the reply was cut."""
        return iter(())

    def _reason(self, response: _Response) -> ReplyStop:
        match (response.incomplete_details or _Incomplete()).reason:
            case "content_filter":
                return ReplyStop.REFUSAL
            case None | "" if self._refused:
                return ReplyStop.REFUSAL
            case None | "":
                return ReplyStop.TOOL_USE if self._calls else ReplyStop.END_TURN
            case _:
                return ReplyStop.MAX_TOKENS

    def _missed(self, response: _Response) -> Iterator[StreamEvent]:
        """Give what only the last event has: some servers stream nothing, or leave out how their items end."""
        open_calls = [index for index, call in self._calls.items() if not call.done]
        output = response.output or ()
        if self._whole == 0 and not self._streamed and not self._calls:
            for index, item in enumerate(output):
                yield from self._item(index, item, done=True)
        for index in open_calls:
            call_id = self._calls[index].call_id
            for item in output:
                if item.get("call_id") == call_id:
                    yield from self._call(index, item, done=True)

    def _delta(self, kind: str, value: _Event) -> Iterator[StreamEvent]:
        index = value.output_index
        if kind == "response.reasoning_summary_part.added" and value.summary_index > 0:
            yield StreamThinking(text="\n\n")
        if not isinstance(value.delta, str) or not value.delta:
            return
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._refused = self._refused or kind == "response.refusal.delta"
                self._streamed.add(index)
                yield StreamText(text=value.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._streamed.add(index)
                yield StreamThinking(text=value.delta)
            case "response.function_call_arguments.delta" if index in self._calls:
                call = self._calls[index]
                call.has_arguments = True
                yield StreamCallArguments(index=call.number, text=value.delta)
            case _:
                pass

    def _item(self, index: int, item: dict[str, Any], *, done: bool) -> Iterator[StreamEvent]:
        self._whole += done
        match item.get("type"):
            case "function_call":
                yield from self._call(index, item, done=done)
            case "reasoning" if done:
                text = _texts(item.get("summary")) or _texts(item.get("content"))
                if text and index not in self._streamed:
                    yield StreamThinking(text=text)
                yield StreamThinkingDone(wire=self._kept(item))
            case "web_search_call" if done:
                self._searched += is_billed(item)
                yield from read_call(item, WireData(api=self._origin, data={ITEM: item}))
            case "message" if done:
                refusal = _texts(item.get("content"), "refusal")
                self._refused = self._refused or bool(refusal)
                text = _texts(item.get("content")) or refusal
                if text and index not in self._streamed:
                    yield StreamText(text=text)
            case _:
                pass

    def _call(self, index: int, item: dict[str, Any], *, done: bool) -> Iterator[StreamEvent]:
        call_id = str(item.get("call_id") or item.get("id") or "")
        call = self._calls.get(index)
        if call is None or call.done or call.call_id != call_id:
            call = self._calls[index] = _Call(number=own_number(index, self._numbers), call_id=call_id)
            yield StreamCallStart(index=call.number, name=str(item.get("name") or ""), wire_id=call_id)
        if done:
            arguments = item.get("arguments")
            text = arguments if isinstance(arguments, str) else dump(arguments or {}).decode()
            if text and not call.has_arguments:
                yield StreamCallArguments(index=call.number, text=text)
            call.done = True
            if item.get("status") == "incomplete":
                return
            yield StreamCallDone(index=call.number)

    def _kept(self, item: dict[str, Any]) -> WireData | None:
        """What goes back of a reasoning item; without its content a server that stores nothing cannot know it."""
        if not item.get("encrypted_content") and not item.get("content"):
            return None
        return WireData(api=self._origin, data={ITEM: {key: item[key] for key in KEPT if item.get(key) is not None}})


def _texts(parts: object, name: str = "text") -> str:
    texts = [part.get(name) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n\n".join(text for text in texts if isinstance(text, str))
