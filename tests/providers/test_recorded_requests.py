"""Recorded requests and replies of real providers: our doubles take what they took and refuse what they refused."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from msgspec import Struct
from tests.providers.odd_histories import BOOKS, MAKERS, PICTURE, ROW, tool
from tests.providers.recordings import FOLDER, Recording, recordings
from tests.providers.support import APIS, called, provider_at, request, result, user

from treadle.engine.runtime.reply_reader import ReplyReader
from treadle.protocol.messages import Message, Role, Text, ToolResult, ToolUse
from treadle.protocol.models import ModelRequest, StreamCallStart, StreamEvent, StreamFailure, StreamStop, ToolProtocol
from treadle.providers.endpoint import Endpoint, Quirks
from treadle.providers.http_provider import HttpProvider
from treadle.providers.provider_rows import Wire
from treadle.providers.wire import CallFailedError, ReplyPausedError, WireApi

CLAUDE = "anthropic.claude-sonnet-4-5"
ENDS = {
    "/messages": "anthropic",
    "/chat/completions": "chat",
    "/responses": "responses",
    ":streamGenerateContent": "gemini",
    ":generateContent": "gemini",
    "/converse-stream": "bedrock",
    "/converse": "bedrock",
}
WIRES = {
    "anthropic": Wire.ANTHROPIC_MESSAGES,
    "chat": Wire.OPENAI_CHAT,
    "responses": Wire.OPENAI_RESPONSES,
    "gemini": Wire.GEMINI,
    "bedrock": Wire.BEDROCK_CONVERSE,
}
NOT_ITS_FAULT = {
    "test_tool_use_failed_error.yaml#0": "what the model answered did not fit its tool",
    "test_tool_use_failed_error_with_text.yaml#0": "the model did not call the tool that it had to",
    **dict.fromkeys(
        (
            "test_multimodal_tool_return_matrix[direct-url-image-google_vertex].yaml#2",
            "test_multimodal_tool_return_matrix[tool_return_content-url-image-google_vertex].yaml#3",
        ),
        "a file could not be fetched",
    ),
}
"""Requests that were answered with 400 for another reason than what stands in them."""

NAMES = {
    "qwen": ("alibaba",),
    "azure": ("azure",),
    "bedrock": ("amazon-bedrock", "bedrock"),
    "gemini": ("gemini", "google"),
    "moonshot": ("moonshotai",),
    "openai-compatible": ("open-responses", "openai-compatible", "snowflake"),
}
"""Providers of the catalogue by the files of their recordings, where that is not their name."""

FREE = {"input_schema", "parameters", "parametersJsonSchema", "json", "args", "input_json"}
"""Below these keys anything goes: schemas and arguments."""

_BLOCK = "messages[].content[]"
NOT_SEEN = {
    "anthropic": {
        *(f"{_BLOCK}:{kind}.cache_control{more}" for kind in ("text", "tool_result") for more in ("", ".type")),
        *(f"{_BLOCK}:tool_result.content[]:text.{field}" for field in ("text", "type")),
        "system",
        *(f"system[]:text.{field}" for field in ("text", "type", "cache_control", "cache_control.type")),
    },
    "chat": {"max_tokens"},
    "responses": {
        "input[].content[]:input_text.text",
        "input[].content[]:input_text.type",
        "max_output_tokens",
    },
    "gemini": {
        "contents[].parts[].functionResponse.response.output",
        "generationConfig.maxOutputTokens",
        "tools[].functionDeclarations[].parametersJsonSchema",
    },
    "bedrock": {
        "inferenceConfig.maxTokens",
        *(f"{_BLOCK}.cachePoint{more}" for more in ("", ".type")),
        *(f"{_BLOCK}.toolResult{more}" for more in ("", ".content", ".content[].text", ".toolUseId")),
        *(f"{_BLOCK}.toolUse{more}" for more in ("", ".input", ".name", ".toolUseId")),
        "system[].cachePoint",
        "system[].cachePoint.type",
    },
}
"""Fields of ours that no recording has; each is in the documentation of its API."""


class Recorded(Struct, frozen=True):
    """A recorded request, with the name of the file it is in and the status of its answer."""

    api: str
    vendor: str
    name: str
    status: int
    body: dict[str, Any]


def recorded() -> Iterator[Recorded]:
    for vendor, row in rows():
        place = urlsplit(row["url"]).path
        api = next((api for end, api in ENDS.items() if place.endswith(end)), "")
        if row["request"] and api:
            value = json.loads(row["request"]) if isinstance(row["request"], str) else row["request"]
            in_path = re.search(r"/models?/([^/]+?)(?::(?:stream)?[gG]enerateContent|/converse)", place)
            model = unquote(in_path[1]) if in_path else value.get("model")
            yield Recorded(api, vendor, row["id"].rpartition("/")[2], row["status"], {**value, "model": model})


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield path.stem, json.loads(line)


RECORDED = list(recorded())
ACCEPTED = [(one.api, one.name, one.body) for one in RECORDED if one.status == 200]
REFUSED = [one for one in RECORDED if one.status == 400]
MODELS = {f"{vendor}:{row['id'].rpartition('/')[2]}": row["model"] for vendor, row in rows()}
REPLIES = [one for one in recordings() if one.status == 200]
pytestmark = pytest.mark.skipif(not RECORDED, reason=f"there are no recordings in {FOLDER}")


def broken(one: Recorded) -> list[str]:
    found = BOOKS[WIRES[one.api]].broken({**one.body, "stream": True}, one.vendor)
    return [f"{each.rule.what}: {each.said}" for each in found]


@pytest.mark.parametrize("one", [one for one in RECORDED if one.status == 200], ids=lambda one: f"{one.api}:{one.name}")
def test_what_the_real_server_took_ours_takes(one: Recorded) -> None:
    assert broken(one) == []


@pytest.mark.parametrize("one", REFUSED, ids=lambda one: f"{one.api}:{one.name}")
def test_what_the_real_server_refused_ours_refuses(one: Recorded) -> None:
    assert bool(broken(one)) == (one.name not in NOT_ITS_FAULT)


def test_there_are_enough_of_them() -> None:
    assert len(ACCEPTED) > 60
    assert {api for api, _, _ in ACCEPTED} == set(APIS)
    assert sum(one.name not in NOT_ITS_FAULT for one in REFUSED) > 3


def api_of(recording: Recording) -> WireApi:
    """The API of a recorded reply, with what the catalogue knows of its provider."""
    vendor = recording.name.partition(":")[0]
    name = next((name for name, files in NAMES.items() if vendor in files), vendor)
    row, wire = ROW.get(name), WIRES[recording.api]
    quirks = row.quirks if row is not None and row.wire is wire else Quirks()
    made: WireApi = MAKERS[wire](Endpoint(name=name, base_url="https://a.example", quirks=quirks))
    return made


def read(api: WireApi, body: bytes) -> list[StreamEvent]:
    """What our reader makes of a recorded body, up to where the provider paused or failed."""
    decoder, reader = api.framing.decoder(1 << 24), api.reader()
    found: list[StreamEvent] = []
    try:
        for event in (*decoder.feed(body), *decoder.end()):
            found += reader.read(event)
        found += [] if found and isinstance(found[-1], StreamStop) else reader.end()
    except (CallFailedError, ReplyPausedError):
        pass
    return found


def after(events: list[StreamEvent], model: str) -> ModelRequest:
    """The request that goes on after a reply: each call has a result, one of them failed and has a picture."""
    names = dict.fromkeys(event.name for event in events if isinstance(event, StreamCallStart))
    tools = {name: tool(name, "It works.", {"type": "object", "properties": {}}) for name in (*names, "read_file")}
    reader = ReplyReader(tools, ToolProtocol.NATIVE, step=1, attempt=1)
    for event in events:
        if not isinstance(event, StreamStop | StreamFailure):
            reader.feed(event)
    reader.finish()
    said = reader.message()
    results = tuple(
        ToolResult(
            call_id=use.id,
            name=use.name,
            content=(Text(text="one"), PICTURE) if number else (Text(text="two"),),
            is_error=bool(number),
            wire_id=use.wire_id,
        )
        for number, use in enumerate(block for block in said.content if isinstance(block, ToolUse))
    )
    answer = Message(role=Role.USER, content=(*results, Text(text="Go on.")))
    offered = tuple(one for name, one in tools.items() if name)
    return ModelRequest(id="r", model=model, system="Be brief.", messages=(user("Hi"), said, answer), tools=offered)


@pytest.mark.parametrize("recording", REPLIES, ids=lambda one: one.name)
def test_what_the_real_server_said_it_takes_back_as_we_send_it(recording: Recording) -> None:
    api = api_of(recording)
    vendor = recording.name.partition(":")[0]
    model = next((model for name, model in MODELS.items() if recording.name.startswith(name)), "") or "any"
    call = api.prepare(after(read(api, recording.body), model))
    body = {"model": model, "stream": True, **json.loads(call.body)}
    assert [f"{one.rule.what}: {one.said}" for one in BOOKS[WIRES[recording.api]].broken(body, vendor)] == []


def fields(value: object, path: str = "") -> Iterator[str]:
    """The fields of a request, each as its path; blocks are told apart by their kind."""
    if isinstance(value, list):
        for item in value:
            kind = item.get("type") if isinstance(item, dict) else None
            yield from fields(item, f"{path}[]" + (f":{kind}" if isinstance(kind, str) else ""))
    elif isinstance(value, dict):
        for key, inner in value.items():
            place = f"{path}.{key}".lstrip(".")
            yield place
            if key not in FREE and not place.endswith(("tool_use.input", "toolUse.input")):
                yield from fields(inner, place)


@pytest.mark.parametrize("api", APIS)
def test_no_field_goes_out_that_no_accepted_request_has(api: str) -> None:
    known = {field for other, _, body in ACCEPTED if other == api for field in fields(body)}
    answer = Message(role=Role.USER, content=(result("print()"),))
    asked = msgspec.structs.replace(request(user("Hello"), called(), answer), max_tokens=9000, model=CLAUDE)
    provider = provider_at(api, "http://127.0.0.1:9")
    assert isinstance(provider, HttpProvider)
    ours = set(fields(json.loads(provider._api.prepare(asked).body)))
    assert ours - known == NOT_SEEN[api]
