"""The recorded replies of real providers, and what they say, read without any of the code that is tested."""

import base64
import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.providers.support import SHARED

from treadle.providers.event_stream import frame
from treadle.providers.sse import SseEvent

FOLDER = SHARED / "recordings"
MARKS = {"anthropic": "message_start", "chat": "chat.completion", "responses": '"response.', "gemini": '"candidates"'}
AWS = ("bedrock", "amazon-bedrock")
APIS_THERE = {*MARKS, "bedrock"}


@dataclass(frozen=True)
class Recording:
    """One recorded reply and the wire API that it belongs to."""

    name: str
    api: str
    status: int
    body: bytes


def values_of(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.replace(b"\r", b"").split(b"\n"):
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            yield json.loads(data)


def recordings() -> Iterator[Recording]:
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            body = row.get("body") or ""
            apis = [api for api, mark in MARKS.items() if mark in body]
            if row["stream"] and row["status"] == 200 and "moonshot" in row["id"]:
                apis = ["chat"]  # the only chat stream that does not name its kind
            name = f"{path.stem}:{row['id'].rpartition('/')[2]}"
            if row["status"] >= 400:
                yield Recording(name, "bedrock" if path.stem in AWS else "chat", row["status"], body.encode())
            if row.get("body_base64"):
                yield Recording(name, "bedrock", 200, base64.b64decode(row["body_base64"]))
            if path.stem == "amazon-bedrock":
                yield Recording(name, "bedrock", 200, frames(body.encode()))
            for api in apis:
                for number, reply in enumerate(replies(api, body.encode())):
                    yield Recording(f"{name}.{number}", api, 200, reply)


def frames(body: bytes) -> bytes:
    """The binary form of a reply that was recorded as one JSON object an event, under the event's name."""
    events = [next(iter(value.items())) for value in values_of(body)]
    return b"".join(frame(json.dumps(value).encode(), message_type="event", event_type=name) for name, value in events)


def replies(api: str, body: bytes) -> list[bytes]:
    """Some recordings hold the replies of several requests, one behind the other."""
    end = {"anthropic": b'"message_stop"', "responses": b'"response.completed"', "chat": b"[DONE]"}.get(api)
    found = [b""]
    for block in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        if block.strip():
            found[-1] += block + b"\n\n"
            if end is not None and end in block:
                found.append(b"")
    return [reply for reply in found if len(reply) > 40]


def may_end(api: str, event: SseEvent) -> bool:
    """Whether a reply may be whole with this event."""
    if event.data == b"[DONE]":
        return True
    value = json.loads(event.data)
    match api:
        case "bedrock":
            return event.name == "messageStop"
        case "anthropic":
            return bool(value["type"] == "message_delta" and value["delta"].get("stop_reason"))
        case "chat":
            return any(choice.get("finish_reason") for choice in value.get("choices") or ())
        case "responses":
            return value["type"] in ("response.completed", "response.incomplete")
        case _:
            return any(candidate.get("finishReason") for candidate in value["candidates"])


@dataclass
class Reply:
    """What a reply says, read from the recording without any of the code that is tested."""

    text: str = ""
    thinking: str = ""
    calls: dict[Any, list[str]] = field(default_factory=dict)
    output: int = 0
    total_input: int = 0


def expected_anthropic(body: bytes) -> Reply:
    reply = Reply()
    for value in values_of(body):
        usage = value.get("usage") or (value.get("message") or {}).get("usage") or {}
        reply.output = usage.get("output_tokens", reply.output)
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        if usage.get("input_tokens") is not None:
            reply.total_input = sum(usage.get(name) or 0 for name in names)
        block, delta = value.get("content_block") or {}, value.get("delta") or {}
        reply.text += block.get("text", "") + delta.get("text", "")
        reply.thinking += delta.get("thinking", "")
        if block.get("type") == "tool_use":
            reply.calls[value["index"]] = [block["name"], json.dumps(block["input"])]
        if delta.get("partial_json") and value["index"] in reply.calls:
            known = reply.calls[value["index"]]
            known[1] = known[1].removeprefix("{}") + delta["partial_json"]
    return reply


def expected_chat(body: bytes) -> Reply:
    reply = Reply()
    for value in values_of(body):
        usage = value.get("usage") or (value.get("x_groq") or {}).get("usage") or {}
        for choice in value.get("choices") or ():
            usage = usage or choice.get("usage") or {}
            delta = choice.get("delta") or {}
            content: Any = delta.get("content") or ""
            parts: list[dict[str, Any]] = content if isinstance(content, list) else [{"text": content}]
            for part in parts:
                reply.text += part.get("text") or ""
                reply.thinking += "".join(inner["text"] for inner in part.get("thinking") or ())
            reply.thinking += delta.get("reasoning_content") or delta.get("reasoning") or ""
            for call in delta.get("tool_calls") or ():
                known = reply.calls.setdefault(call.get("index"), ["", ""])
                known[0] += (call["function"].get("name") or "") if not known[0] else ""
                known[1] += call["function"].get("arguments") or ""
        reply.total_input = usage.get("prompt_tokens", reply.total_input)
        reply.output = usage.get("total_tokens", reply.output + reply.total_input) - reply.total_input
    return reply


def expected_responses(body: bytes) -> Reply:
    reply = Reply()
    for value in values_of(body):
        if value["type"] == "response.output_text.delta":
            reply.text += value["delta"]
        if value["type"] in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
            reply.thinking += value["delta"]
        item = value.get("item") or {}
        if value["type"] == "response.output_item.done" and item["type"] == "function_call":
            reply.calls[value["output_index"]] = [item["name"], item["arguments"]]
        usage = (value.get("response") or {}).get("usage") or {}
        reply.output = usage.get("output_tokens", reply.output)
        reply.total_input = usage.get("input_tokens", reply.total_input)
    return reply


def expected_gemini(body: bytes) -> Reply:
    reply = Reply()
    for value in values_of(body):
        usage = value["usageMetadata"]
        reply.output = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
        reply.total_input = usage.get("promptTokenCount", 0) + usage.get("toolUsePromptTokenCount", 0)
        for candidate in value["candidates"]:
            for part in candidate["content"].get("parts") or ():
                if part.get("thought"):
                    reply.thinking += part["text"]
                else:
                    reply.text += part.get("text", "")
                call = part.get("functionCall") or {}
                if "name" in call:
                    reply.calls[len(reply.calls)] = [call["name"], json.dumps(call.get("args") or {})]
    return reply


def expected_bedrock(body: bytes) -> Reply:
    reply = Reply()
    for name, value in frames_in(body):
        delta, index = value.get("delta") or {}, value.get("contentBlockIndex")
        reply.text += delta.get("text", "")
        reply.thinking += (delta.get("reasoningContent") or {}).get("text", "")
        call = (value.get("start") or {}).get("toolUse") or {}
        if call and call.get("type") != "server_tool_use":
            reply.calls[index] = [call["name"], ""]
        if index in reply.calls:
            reply.calls[index][1] += (delta.get("toolUse") or {}).get("input", "")
        if name == "metadata":
            reply.output = value["usage"]["outputTokens"]
            reply.total_input = value["usage"]["inputTokens"]
    return reply


def frames_in(body: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    while body:
        total, head = struct.unpack(">II", body[:8])
        name = re.search(rb":event-type\x07..([A-Za-z]+)", body[12 : 12 + head], re.DOTALL)
        assert name is not None
        yield name[1].decode(), json.loads(body[12 + head : total - 4])
        body = body[total:]


EXPECTED = {
    "bedrock": expected_bedrock,
    "anthropic": expected_anthropic,
    "chat": expected_chat,
    "responses": expected_responses,
    "gemini": expected_gemini,
}
