"""Requests that real providers accepted: our checks accept them too, and ours have no field that they do not know."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from tests.providers.recordings import FOLDER
from tests.providers.support import APIS, called, provider_at, request, result, user

from treadle.protocol.messages import Message, Role
from treadle.providers.http_provider import HttpProvider
from treadle.providers.scripted.scripted_server import WIRE_FORMATS

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


def accepted() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The recorded requests that were answered: wire API, name, body."""
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            place = urlsplit(row["url"]).path
            api = next((api for end, api in ENDS.items() if place.endswith(end)), "")
            if row["request"] and row["status"] == 200 and api:
                value = row["request"]
                yield api, row["id"].rpartition("/")[2], json.loads(value) if isinstance(value, str) else value


ACCEPTED = list(accepted())
pytestmark = pytest.mark.skipif(not ACCEPTED, reason=f"there are no recordings in {FOLDER}")


def beyond_us(api: str, body: dict[str, Any]) -> bool:
    """Whether a request has what we never send: tools of the provider, addresses of files, another form of schemas."""
    text = json.dumps(body)
    tools = body.get("tools") or (body.get("toolConfig") or {}).get("tools") or []
    kinds = {"anthropic": "input_schema", "chat": "function", "responses": "parameters", "bedrock": "toolSpec"}
    if api == "gemini":
        return any("parametersJsonSchema" not in json.dumps(tool) for tool in tools)
    return (
        any(kinds[api] not in tool for tool in tools)
        or '"type": "url"' in text
        or body.get("tools") == []
        or '"text": ""' in text
        or '"text": " "' in text
    )


@pytest.mark.parametrize(("api", "name", "body"), ACCEPTED, ids=[f"{api}:{name}" for api, name, _ in ACCEPTED])
def test_what_the_real_server_took_ours_takes(api: str, name: str, body: dict[str, Any]) -> None:
    wire = dict(zip(APIS, (form for _, form in WIRE_FORMATS), strict=True))[api]
    if not beyond_us(api, body):
        assert wire.problems({**body, "stream": True, "model": body.get("model", "m")}) == []


def test_enough_of_them_are_within_what_we_send() -> None:
    within = [api for api, _, body in ACCEPTED if not beyond_us(api, body)]
    assert len(within) > 40
    assert set(within) == set(APIS)


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
