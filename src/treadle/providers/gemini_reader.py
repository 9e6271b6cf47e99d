"""Reads a reply of the Gemini API."""

from collections.abc import Iterator
from typing import Any

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
from treadle.providers.failures import failure, from_problem, started_over
from treadle.providers.gemini_arguments import PartialArgument, add_argument
from treadle.providers.provider_problems import problem_of
from treadle.providers.sse import SseEvent
from treadle.providers.web_search import ReportedSearches, gemini_queries, read_gemini
from treadle.providers.wire import CallFailedError, JsonEvents, ReplyId, dump, origin, token_count, update_usage

API = "gemini"
SIGNATURE = "thoughtSignature"

_REFUSALS = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "OTHER"}
)
_BROKEN = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"})


class _FunctionCall(msgspec.Struct, rename="camel"):
    name: str = ""
    id: str = ""
    args: dict[str, Any] | None = None
    partial_args: list[PartialArgument] | None = None
    will_continue: bool = False


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str = ""
    function_call: _FunctionCall | None = None
    tool_call: dict[str, Any] | None = None
    tool_response: dict[str, Any] | None = None


class _Grounding(msgspec.Struct, rename="camel"):
    """What the answer rests on; `grounding_chunks` are pages as `{"web": {"uri": …, "title": …}}`."""

    web_search_queries: list[str] | None = None
    grounding_chunks: list[dict[str, Any]] | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding_metadata: _Grounding | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    response_id: str | None = None
    usage_metadata: _Usage | None = None
    error: Any = None


_decoder = JsonEvents(_Chunk)


class GeminiReader:
    """Reads one reply."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._origin = origin(API, endpoint)
        self._usage = _Usage()
        self._id = ReplyId()
        self._thinking = False
        self._calls = 0
        self._arguments: dict[str, Any] | None = None
        self._signature = ""
        self._finish: str | None = None
        self._asked: dict[str, dict[str, Any]] = {}
        self._found = ReportedSearches()
        self._queries: set[str] = set()

    @property
    def usage(self) -> Usage:
        """What is known to have been billed so far."""
        usage = self._usage
        cached, thoughts = token_count(usage.cached_content_token_count), token_count(usage.thoughts_token_count)
        prompt = token_count(usage.prompt_token_count) + token_count(usage.tool_use_prompt_token_count)
        return Usage(
            input_tokens=token_count(prompt - cached),
            output_tokens=token_count(usage.candidates_token_count) + thoughts,
            cache_read_tokens=cached,
            reasoning_tokens=thoughts,
            searches=len(self._queries),
        )

    def read(self, event: SseEvent) -> Iterator[StreamEvent]:
        """Take the next chunk."""
        chunk = _decoder.decode(event.data)
        if chunk.error is not None:
            problem = problem_of(msgspec.json.decode(event.data))
            raise CallFailedError(from_problem(self._endpoint, problem))
        if self._id.is_another(chunk.response_id) and any(one.content is not None for one in chunk.candidates or ()):
            raise started_over(self._endpoint)
        self._usage = update_usage(chunk.usage_metadata, self._usage)
        blocked = chunk.prompt_feedback.block_reason if chunk.prompt_feedback is not None else None
        if blocked:
            raise CallFailedError(failure(self._endpoint, ErrorKind.CONTENT_FILTER, f"block reason {blocked}"))
        for candidate in chunk.candidates or ():
            for part in (candidate.content or _Content()).parts or ():
                yield from self._part(part)
            self._ground(candidate.grounding_metadata or _Grounding())
            if candidate.finish_reason:
                self._finish = candidate.finish_reason
            if self._finish in _BROKEN:
                why = candidate.finish_message or f"finish reason {self._finish}"
                raise CallFailedError(failure(self._endpoint, ErrorKind.MALFORMED_STREAM, why))

    def end(self) -> Iterator[StreamEvent]:
        """There is no last event in this API: a reply is whole when there was a finish reason."""
        if self._finish is None:
            return
        yield from self._end_thinking()
        yield from self._found.report()
        if self._finish == "STOP":  # a call that is open at any other end was cut, and must not look whole
            yield from self._end_call()
        yield StreamStop(reason=self._reason(self._finish), usage=self.usage)

    def _reason(self, finish: str) -> ReplyStop:
        if finish == "MAX_TOKENS":
            return ReplyStop.MAX_TOKENS
        if finish in _REFUSALS:
            return ReplyStop.REFUSAL
        return ReplyStop.TOOL_USE if self._calls else ReplyStop.END_TURN

    def _ground(self, grounding: _Grounding) -> None:
        """Note queries, each once (empty ones are none and cost nothing), and the pages that were found."""
        queries = [query for query in grounding.web_search_queries or () if query]
        pages = [chunk.get("web") for chunk in grounding.grounding_chunks or ()]
        links = [{"url": page.get("uri"), "title": page.get("title")} for page in pages if isinstance(page, dict)]
        self._found.add([query for query in queries if query not in self._queries], links)
        self._queries.update(queries)

    def _search(self, part: _Part) -> Iterator[StreamEvent]:
        """Take a half of a search that the provider made; one without its answer is dropped, as it cannot go back."""
        signature = {SIGNATURE: part.thought_signature} if part.thought_signature else {}
        if part.tool_call is not None:
            self._asked[str(part.tool_call.get("id"))] = {"toolCall": part.tool_call, **signature}
            return
        call = self._asked.pop(str((part.tool_response or {}).get("id")), None)
        if call is not None:
            yield from self._end_thinking()
            self._queries.update(gemini_queries(call) or [str(call["toolCall"].get("id"))])
            yield from read_gemini(call, {"toolResponse": part.tool_response, **signature}, self._origin)

    def _part(self, part: _Part) -> Iterator[StreamEvent]:
        if part.tool_call is not None or part.tool_response is not None:
            yield from self._search(part)
            return
        if part.thought and part.text:
            self._thinking = not part.thought_signature
            yield StreamThinking(text=part.text)
            if part.thought_signature:
                yield StreamThinkingDone(wire=self._wire(part.thought_signature))
            return
        if part.function_call is not None:
            yield from self._end_thinking()
            yield from self._call(part.function_call, part.thought_signature)
            return
        if part.text:
            yield from self._end_thinking()
            yield from self._end_call()
            yield StreamText(text=part.text)
        if part.thought_signature:
            self._thinking = False
            yield StreamThinkingDone(wire=self._wire(part.thought_signature))

    def _call(self, call: _FunctionCall, signature: str) -> Iterator[StreamEvent]:
        """Take a call, or a piece of one: pieces have no name, and the last one does not announce another."""
        if call.name:
            yield from self._end_call()
            yield StreamCallStart(index=self._calls, name=call.name, wire_id=call.id)
            self._arguments = call.args or {}
            self._signature = signature
            self._calls += 1
        if self._arguments is None:
            return
        for piece in call.partial_args or ():
            add_argument(self._arguments, piece)
        if not call.will_continue:
            yield from self._end_call()

    def _end_call(self) -> Iterator[StreamEvent]:
        if self._arguments is None:
            return
        index = self._calls - 1
        yield StreamCallArguments(index=index, text=dump(self._arguments).decode())
        yield StreamCallDone(index=index, wire=self._wire(self._signature))
        self._arguments = None

    def _end_thinking(self) -> Iterator[StreamEvent]:
        if self._thinking:
            self._thinking = False
            yield StreamThinkingDone()

    def _wire(self, signature: str) -> WireData:
        """Marks a block as ours, with its signature if it has one."""
        return WireData(api=self._origin, data={SIGNATURE: signature} if signature else {})
