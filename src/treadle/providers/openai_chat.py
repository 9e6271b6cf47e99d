"""The OpenAI Chat Completions API, as OpenAI and the many who copy it speak it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import msgspec

from treadle.protocol.messages import (
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
    text_of,
)
from treadle.protocol.models import ErrorKind, ModelRequest, ReplyStop, StreamEvent, StreamStop, StreamText
from treadle.protocol.patterns import regex
from treadle.protocol.tools import ToolSpec
from treadle.protocol.usage import Usage
from treadle.providers.chat_pieces import DETAILS, FIELD, CallReader, ChatDelta, ReasoningReader, texts_of
from treadle.providers.endpoint import CallIds, Endpoint, ThinkingField
from treadle.providers.failures import failure, from_problem, started_over
from treadle.providers.plain_schemas import schema_as
from treadle.providers.provider_problems import ProviderProblem, problem_in, problem_of
from treadle.providers.sse import STREAM_END, SseEvent
from treadle.providers.web_search import ReportedSearches
from treadle.providers.wire import (
    BRIDGE,
    SSE,
    CallFailedError,
    HttpCall,
    JsonEvents,
    MessageCache,
    ReplyId,
    ToolCache,
    dump,
    effort,
    origin,
    own_data,
    token_count,
    update_usage,
    wire_call_name,
)

API = "openai_chat"

_NINE = regex(r"[A-Za-z0-9]{9}")
_FORTY = 40
_NO_EFFORT_WITH_TOOLS = regex(r"(?:.*/)?gpt-5\.(?:[4-9]|\d\d).*")
"""Models of OpenAI that call functions in this API only where they do not reason."""

_STOPS = {
    "stop": ReplyStop.END_TURN,
    "eos": ReplyStop.END_TURN,
    "tool_calls": ReplyStop.TOOL_USE,
    "function_call": ReplyStop.TOOL_USE,
    "length": ReplyStop.MAX_TOKENS,
    "model_length": ReplyStop.MAX_TOKENS,
    "content_filter": ReplyStop.REFUSAL,
    "refusal": ReplyStop.REFUSAL,
    "sensitive": ReplyStop.REFUSAL,
}


class OpenAIChat:
    """Writes requests and reads replies of the Chat Completions API."""

    framing = SSE

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._origin = origin(API, endpoint)
        self._messages = MessageCache(self._encode)
        self._tools = ToolCache(_tools)
        self._search = {"type": endpoint.quirks.search_tool} if endpoint.quirks.search_tool else None

    def prepare(self, request: ModelRequest) -> HttpCall:
        """Write the request."""
        quirks = self._endpoint.quirks
        messages = [part for part in self._messages.encode(request.messages) if part]
        if request.system.strip():
            messages.insert(0, dump({"role": "system", "content": request.system}))
        parts = [b'{"model":', dump(request.model), b',"stream":true']
        if quirks.stream_usage:
            parts.append(b',"stream_options":{"include_usage":true}')
        if request.max_tokens is not None:
            parts += [b',"', quirks.max_tokens_field.encode(), b'":%d' % request.max_tokens]
        if fields := self._thinking(request):
            parts += [b',"%s":%s' % (name.encode(), dump(value)) for name, value in fields.items()]
        if tools := self._tools.encode(request.tools, self._search if request.web_search else None):
            parts += [b',"tools":', tools]
        parts += [b',"messages":[', b",".join(messages), b"]}"]
        headers = self._endpoint.key_headers("authorization")
        return HttpCall(url=self._endpoint.url("/chat/completions"), headers=headers, body=b"".join(parts))

    def _thinking(self, request: ModelRequest) -> dict[str, Any]:
        """The fields that ask for reasoning, or say that there is to be none."""
        of_openai = self._endpoint.quirks.call_ids is CallIds.FORTY
        if of_openai and request.tools and _NO_EFFORT_WITH_TOOLS.fullmatch(request.model):
            return {"reasoning_effort": "none"}
        budget = request.thinking_budget
        return _thinking(self._endpoint.quirks.thinking, budget) if budget else {}

    def reader(self) -> "ChatReader":
        """Begin to read a reply."""
        return ChatReader(self._endpoint)

    def _encode(self, message: Message) -> bytes:
        """Write one message as the one or more that this API makes of it, joined by commas; empty where none is."""
        messages = self._assistant(message) if message.role is Role.ASSISTANT else self._user(message)
        return b",".join(dump(value) for value in messages)

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        value: dict[str, Any] = {"role": "assistant"}
        text = text_of(message.content)
        calls = [self._call(block) for block in message.content if isinstance(block, ToolUse)]
        if text:
            value["content"] = text
        elif calls:
            value["content"] = None
        else:
            return []
        if calls:
            value["tool_calls"] = calls
        for block in message.content:
            if isinstance(block, Thinking | RedactedThinking):
                self._add_reasoning(value, block)
        if calls and self._endpoint.quirks.thinking is ThinkingField.SWITCH:
            value.setdefault("reasoning_content", "")  # with thinking on, these refuse calls without the field
        return [value]

    def _add_reasoning(self, value: dict[str, Any], block: Thinking | RedactedThinking) -> None:
        """Put reasoning back into the field in which this provider sent it."""
        data = own_data(block.wire, self._origin)
        if data is None:
            return
        if DETAILS in data:
            value.setdefault(DETAILS, []).extend(data[DETAILS])
        elif FIELD in data and isinstance(block, Thinking):
            value[data[FIELD]] = value.get(data[FIELD], "") + block.text

    def _call(self, block: ToolUse) -> dict[str, Any]:
        function = {"name": wire_call_name(block.name), "arguments": dump(block.arguments).decode()}
        return {"id": self._call_id(block.wire_id or block.id), "type": "function", "function": function}

    def _call_id(self, call_id: str) -> str:
        match self._endpoint.quirks.call_ids:
            case CallIds.ANY:
                return call_id
            case CallIds.NINE:
                if _NINE.fullmatch(call_id):
                    return call_id
                return hashlib.sha256(call_id.encode()).hexdigest()[:9]
            case CallIds.FORTY:
                return call_id if len(call_id) <= _FORTY else hashlib.sha256(call_id.encode()).hexdigest()[:_FORTY]

    def _user(self, message: Message) -> list[dict[str, Any]]:
        """Results become tool messages, which hold text only; what else they have follows as the user's."""
        results: list[dict[str, Any]] = []
        parts: list[dict[str, Any]] = []
        for block in message.content:
            match block:
                case ToolResult():
                    attached = [part for part in block.content if not isinstance(part, Text)]
                    note = "(attached below)" if attached else "(no output)"
                    text = text_of(block.content) or note
                    call_id = self._call_id(block.wire_id or block.call_id)
                    results.append({"role": "tool", "tool_call_id": call_id, "content": text})
                    if attached:
                        parts.append({"type": "text", "text": f"Attached to the result of {block.name}:"})
                        parts += [_part(part) for part in attached]
                case Text():
                    parts += [_part(block)] if block.text else []
                case Image() | Document():
                    parts.append(_part(block))
                case Thinking() | RedactedThinking() | ToolUse():
                    pass
                case _:
                    assert_never(block)
        return self._after(results, parts) if parts else results

    def _after(self, results: list[dict[str, Any]], parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Put a message of the user behind results, or into the last where a vendor takes none behind them."""
        words = all(part["type"] == "text" for part in parts)
        content = "\n\n".join(part["text"] for part in parts) if words else parts
        said = {"role": "user", "content": content}
        if not results or self._endpoint.quirks.user_after_tool:
            return [*results, said]
        if words:
            last = results[-1]
            return [*results[:-1], {**last, "content": f"{last['content']}\n\n{content}"}]
        return [*results, {"role": "assistant", "content": BRIDGE}, said]


def _tools(tools: Sequence[ToolSpec], search: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    declared: list[Mapping[str, Any]] = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": schema_as("openai", tool.parameters),
            },
        }
        for tool in tools
    ]
    return [*declared, search] if search else declared


def _thinking(field: ThinkingField, budget: int) -> dict[str, Any]:
    """The fields that ask for reasoning, each vendor's in its own way."""
    match field:
        case ThinkingField.NONE:
            return {}
        case ThinkingField.EFFORT:
            return {"reasoning_effort": effort(budget)}
        case ThinkingField.BUDGET:
            return {"reasoning": {"max_tokens": budget}}
        case ThinkingField.SWITCH:
            return {"thinking": {"type": "enabled"}}
        case ThinkingField.ENABLE:
            return {"enable_thinking": True, "thinking_budget": budget}


def _part(block: ResultContent) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Image():
            return {"type": "image_url", "image_url": {"url": f"data:{block.media_type};base64,{block.data}"}}
        case Document():
            data = f"data:{block.media_type};base64,{block.data}"
            return {"type": "file", "file": {"filename": block.title or "document", "file_data": data}}
        case _:
            assert_never(block)


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _ServerTools(msgspec.Struct):
    web_search_requests: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _OutputDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None
    server_tool_use: _ServerTools | None = None


class _Choice(msgspec.Struct):
    delta: ChatDelta | None = None
    message: ChatDelta | None = None
    finish_reason: str | None = None
    usage: _Usage | None = None
    error: Any = None


class _Extra(msgspec.Struct):
    """Where one vendor puts the usage."""

    usage: _Usage | None = None


class _Chunk(msgspec.Struct):
    id: str | int | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    x_groq: _Extra | None = None
    search_results: list[dict[str, Any]] | None = None
    error: Any = None
    message: Any = None
    detail: Any = None

    @property
    def fails(self) -> bool:
        """Whether it is a failure: some servers have no field for one, but say it in place of the reply."""
        return self.error is not None or (self.choices is None and bool(self.message or self.detail))

    @property
    def begins(self) -> bool:
        """Whether it names the role, as the first chunk of a reply does."""
        return any(choice.delta is not None and choice.delta.role for choice in self.choices or ())


_decoder = JsonEvents(_Chunk)


class ChatReader:
    """Reads one reply."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._thinking = ReasoningReader(origin(API, endpoint))
        self._calls = CallReader()
        self._found = ReportedSearches()
        self._usage = _Usage()
        self._id = ReplyId()
        self._finish: str | None = None
        self._refused = False

    @property
    def usage(self) -> Usage:
        """What is known to have been billed so far."""
        usage = self._usage
        details = usage.prompt_tokens_details or _PromptDetails()
        cached = (
            token_count(details.cached_tokens)
            or token_count(usage.prompt_cache_hit_tokens)
            or token_count(usage.cached_tokens)
        )
        written = token_count(details.cache_write_tokens)
        output = usage.completion_tokens_details or _OutputDetails()
        prompt = token_count(usage.prompt_tokens)
        beside = (
            token_count(usage.total_tokens) - prompt - token_count(usage.completion_tokens)
        )  # some count reasoning only there
        return Usage(
            input_tokens=token_count(prompt - cached - written),
            output_tokens=token_count(usage.completion_tokens) + (token_count(beside) if prompt else 0),
            cache_read_tokens=cached,
            cache_write_tokens=written,
            reasoning_tokens=token_count(output.reasoning_tokens),
            searches=token_count((usage.server_tool_use or _ServerTools()).web_search_requests),
        )

    def read(self, event: SseEvent) -> Iterator[StreamEvent]:
        """Take the next event."""
        if event.data.strip() == STREAM_END:  # some servers give no other sign of the end
            self._finish = self._finish or "stop"
            yield from self.end()
            return
        chunk = _decoder.decode(event.data)
        if chunk.fails or event.name == "error":
            raise CallFailedError(from_problem(self._endpoint, problem_in(event.data) or ProviderProblem()))
        if self._id.is_another(str(chunk.id or "")) and chunk.begins:
            raise started_over(self._endpoint)
        self._usage = update_usage(
            chunk.usage or (chunk.x_groq.usage if chunk.x_groq is not None else None), self._usage
        )
        self._found.add(None, chunk.search_results or ())
        for choice in chunk.choices or ():
            if choice.error is not None:
                raise CallFailedError(from_problem(self._endpoint, problem_of({"error": choice.error})))
            self._usage = update_usage(choice.usage, self._usage)
            delta = choice.delta or choice.message
            if delta is not None:
                yield from self._delta(delta)
            if choice.finish_reason:
                self._finish = choice.finish_reason

    def end(self) -> Iterator[StreamEvent]:
        """The end is in order once there was a finish reason; some servers never send the end marker."""
        if self._finish is None:
            return
        if self._finish == "error":
            raise CallFailedError(failure(self._endpoint, ErrorKind.SERVER, "the reply ended with an error"))
        reason = _STOPS.get(self._finish, ReplyStop.END_TURN)
        yield from self._thinking.finish()
        yield from self._found.report(searched=self.usage.searches > 0)
        yield from self._calls.finish(cut=reason in (ReplyStop.MAX_TOKENS, ReplyStop.REFUSAL))
        if reason is ReplyStop.END_TURN and self._calls.seen:
            reason = ReplyStop.TOOL_USE
        elif reason is ReplyStop.END_TURN and self._refused:
            reason = ReplyStop.REFUSAL
        yield StreamStop(reason=reason, usage=self.usage)

    def _delta(self, delta: ChatDelta) -> Iterator[StreamEvent]:
        self._refused = self._refused or delta.refuses
        self._found.add(None, (note.get("url_citation") for note in delta.annotations or ()))
        yield from self._thinking.read(delta)
        for text, is_thinking in texts_of(delta):
            if is_thinking:
                yield from self._thinking.add(text, "")
            else:
                yield from self._thinking.finish()
                yield StreamText(text=text)
        for position, call in enumerate(delta.calls):
            yield from self._thinking.finish()
            yield from self._found.report()
            yield from self._calls.read(call, position)
