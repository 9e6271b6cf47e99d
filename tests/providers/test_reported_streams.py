"""Streams from public reports about other agents, in words of our own: the calls and texts in them.

Each row names the report, as repository and number; the bytes are the smallest that show it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from tests.providers.support import READ

from treadle.engine.runtime.reply_reader import ReplyReader
from treadle.protocol.events import CallProposed
from treadle.protocol.messages import text_of
from treadle.protocol.models import StreamEvent, StreamStop, ToolProtocol
from treadle.protocol.tools import ToolSpec
from treadle.providers.endpoint import Endpoint
from treadle.providers.openai_chat import OpenAIChat
from treadle.providers.sse import SseDecoder
from treadle.providers.wire import CallFailedError

PLACE = Endpoint(name="acme", base_url="https://api.example.org/v1", api_key="k")
TIME = ToolSpec(
    name="get_time", description="Tells the time.", parameters={"type": "object"}, traits=READ.traits, risk=READ.risk
)
A, B = ("read_file", {"path": "a"}), ("read_file", {"path": "b"})
JSON_A, JSON_B = '{"path":"a"}', '{"path":"b"}'


def data(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> str:
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return f"data: {json.dumps(chunk)}\n\n"


def call(arguments: str | None, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{**more, "function": {"name": name, "arguments": arguments}}]}


def begun(index: int | None, call_id: str | None, arguments: str, name: str | None = "read_file") -> str:
    place = {} if index is None else {"index": index}
    return data(call(arguments, name, **place, **({} if call_id is None else {"id": call_id, "type": "function"})))


def rest(index: int | None, arguments: str) -> str:
    return data(call(arguments, None, **({} if index is None else {"index": index})))


DONE = "data: [DONE]\n\n"
END = data({}, "tool_calls") + DONE
HALF_A, HALF_B = ('{"path"', ':"a"}'), ('{"path"', ':"b"}')
HELLO = data({"content": "Hel"}) + data({"content": "lo"}) + data({}, "stop") + DONE
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
Calls = Sequence[tuple[str, dict[str, Any]]]

CALLS: list[tuple[str, str, Calls]] = [
    ("apache/maka#1976", begun(0, "a", JSON_A) + begun(0, "b", JSON_B) + END, [A, B]),
    (
        "earendil-works/pi#8861",
        begun(0, "a", JSON_A) + begun(0, "b", "{}", "get_time") + END,
        [A, ("get_time", {})],
    ),
    ("SamSaffron/term-llm#314", begun(None, "a", JSON_A) + begun(None, "b", JSON_B) + END, [A, B]),
    ("dirac-run/dirac#215", begun(0, "a", HALF_A[0]) + rest(1, HALF_A[1]) + END, [A]),
    (
        "QwenLM/Qwen-Agent#943",
        begun(0, "a", HALF_A[0]) + begun(1, "b", HALF_B[0]) + rest(0, HALF_A[1]) + rest(1, HALF_B[1]) + END,
        [A, B],
    ),
    (
        "agno-agi/agno#8880",
        begun(0, "a", JSON_A) + begun(0, "b", HALF_B[0]) + rest(1, HALF_B[1]) + END,
        [A, B],
    ),
    (
        "LibreChat-AI/agents#260",
        begun(0, "a", HALF_A[0]) + rest(0, HALF_A[1]) + begun(0, "b", HALF_B[0]) + rest(0, HALF_B[1]) + END,
        [A, B],
    ),
    ("openai/openai-python#3246", begun(None, "a", HALF_A[0]) + rest(None, HALF_A[1]) + END, [A]),
    ("openai/openai-python#3241", begun(0, "a", HALF_A[0]) + begun(0, "a", HALF_A[1], None) + END, [A]),
    ("anomalyco/opencode#14973", begun(0, "a", JSON_A) + data({}, "stop") + DONE, [A]),
    ("no reason of the end", begun(0, "a", JSON_A) + DONE, [A]),
    ("huggingface/smolagents#1958", begun(0, None, JSON_A) + begun(0, None, JSON_B) + END, [A, B]),
    ("BerriAI/litellm#4537", begun(0, "a", "{}") + rest(0, JSON_A) + END, [A]),
    ("vercel/ai#20203", data({"tool_calls": []}) + begun(0, "a", JSON_A) + data({"tool_calls": []}) + END, [A]),
]
TEXTS: list[tuple[str, str]] = [
    (
        "zendev-sh/goai#112",
        data({"content": "Hello", "tool_calls": None}) + data({"tool_calls": None}, "tool_calls") + DONE,
    ),
    ("mnfst/llm-gateway#2053", "data: : OPENROUTER PROCESSING\n\n" + HELLO),
    ("continuedev/continue#13144", ": ping\n" + HELLO.replace("\n\n", "\n\n: ping\n", 1)),
    ("theopenco/llmgateway#2334", HELLO.replace("data:", "id: 1\ndata:").replace("\n\n", "\n\n: ping\n\n")),
    ("openai/openai-go#651", ": PROCESSING\n\ndata:\n\n" + HELLO),
    ("mistralai/mistral-vibe#774", ":\n\n" + HELLO),
    ("Routstr/routstr-core#543, together", data({"content": "Hello"}, "stop", usage=USAGE) + DONE),
    ("Routstr/routstr-core#543, CRLF", HELLO.replace("\n", "\r\n")),
    ("Routstr/routstr-core#543, lines", HELLO.replace('"choices": ', '"choices":\ndata: ')),
    ("brainlid/langchain#569", ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + HELLO),
    ("deepnoodle-ai/dive#206", HELLO.replace("\n\n", "\n: OPENROUTER PROCESSING\n\n", 1)),
    ("one line end between events", HELLO.replace("\n\n", "\n")),
    ("one line end between named events", HELLO.replace("\n\n", "\n").replace("data:", "event: chunk\ndata:")),
    ("a byte order mark, no blank", "\ufeff" + HELLO.replace("data: ", "data:")),
    ("no end", HELLO.removesuffix("\n\n")),
]


def read(stream: str, size: int) -> tuple[Calls, list[str], str]:
    decoder, reader = SseDecoder(2**20), OpenAIChat(PLACE).reader()
    raw = stream.encode()
    found = [event for at in range(0, len(raw), size) for event in decoder.feed(raw[at : at + size])]
    pieces: list[StreamEvent] = [one for event in [*found, *decoder.end()] for one in reader.read(event)]
    if not any(isinstance(one, StreamStop) for one in pieces):
        pieces += reader.end()
    kept = ReplyReader({"read_file": READ, "get_time": TIME}, ToolProtocol.NATIVE, step=1, attempt=1)
    proposed = [made for one in pieces if not isinstance(one, StreamStop) for made in kept.feed(one)]  # type: ignore[arg-type]
    calls = [one.call for one in [*proposed, *kept.finish()] if isinstance(one, CallProposed)]
    said = text_of(kept.message().content)
    return [(call.name, call.arguments) for call in calls], [call.problem for call in calls if call.problem], said


@pytest.mark.parametrize(("stream", "calls"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
def test_the_calls_of_a_reported_stream_are_told_apart(stream: str, calls: Calls) -> None:
    for size in (1, 7, 10**6):
        assert read(stream, size) == (calls, [], "")


@pytest.mark.parametrize("stream", [row[1] for row in TEXTS], ids=[row[0] for row in TEXTS])
def test_the_text_of_a_reported_stream_is_whole(stream: str) -> None:
    for size in (1, 7, 10**6):
        assert read(stream, size) == ([], [], "Hello")


@pytest.mark.parametrize(
    "stream",
    [
        data({"content": "Hel"})
        + 'data: {"error": {"message": "JSON error injected into SSE stream", "code": 502}}\n\n'
        + DONE,
        data({"content": "Hel"}) + 'data: {"choices": [{"delta": {"content"\n\n' + DONE,
    ],
    ids=["cline/cline#12161", "cline/cline#12161, cut"],
)
def test_a_reported_stream_with_an_error_in_it_is_no_answer(stream: str) -> None:
    with pytest.raises((CallFailedError, msgspec.DecodeError)):
        read(stream, 10**6)
