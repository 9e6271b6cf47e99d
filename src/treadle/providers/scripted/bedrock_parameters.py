"""What the Converse API refuses of parameters, tools and sizes: one row each, with its source."""

import re
from collections.abc import Iterator
from typing import Any

from treadle.providers.endpoint import MEBIBYTE
from treadle.providers.scripted.media_rules import (
    READABLE,
    USUAL_IMAGES,
    each_at_most,
    images_of_one_message,
    kinds,
    sides_at_most,
)
from treadle.providers.scripted.refused_schemas import BEDROCK_TOOLS
from treadle.providers.scripted.request_rules import CheckedRequest, RequestRule, rows_of_tools, unknown_fields
from treadle.providers.scripted.wire_format import duplicates

MAX_CACHE_POINTS = 4
_LEAST_BUDGET = 1024
_MOST_IMAGES = 20
_PROFILE = re.compile(r"(?:us|eu|apac|global|jp|au|ca|us-gov)\.[^.]+")
"""A name that begins as an inference profile does, but names no maker."""
_TOP = frozenset(
    {
        "model", "stream", "messages", "system", "inferenceConfig", "toolConfig", "additionalModelRequestFields",
        "additionalModelResponseFieldPaths", "guardrailConfig", "promptVariables", "requestMetadata",
        "performanceConfig", "serviceTier", "outputConfig", "modelId",
    }
)  # fmt: skip
_CONFIG = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})


def _profiles(request: CheckedRequest) -> Iterator[str]:
    if _PROFILE.fullmatch(request.model):
        yield "The provided model identifier is invalid."


def _fields_of_config(request: CheckedRequest) -> Iterator[str]:
    for name in (request.body.get("inferenceConfig") or {}).keys() - _CONFIG:
        yield f"Malformed input request: #/inferenceConfig: extraneous key [{name}] is not permitted"


def _room(request: CheckedRequest) -> Iterator[str]:
    room = (request.body.get("inferenceConfig") or {}).get("maxTokens", 1)
    if not isinstance(room, int) or room < 1:
        yield "inferenceConfig.maxTokens: must have value greater than or equal to 1"


def _tools_defined(request: CheckedRequest) -> Iterator[str]:
    if not (request.body.get("toolConfig") or {}).get("tools") and request.of("toolUse", "toolResult"):
        yield "the toolConfig field must be defined when using toolUse and toolResult content blocks"


def _some_tools(request: CheckedRequest) -> Iterator[str]:
    if "toolConfig" in request.body and not (request.body["toolConfig"] or {}).get("tools"):
        yield "toolConfig.tools: valid min length: 1"


def _names_once(request: CheckedRequest) -> Iterator[str]:
    for name in duplicates(str(name) for name, _, _ in request.tools):
        yield f"toolConfig: the name {name} is there twice"


def _few_points(request: CheckedRequest) -> Iterator[str]:
    if _points(request) > MAX_CACHE_POINTS:
        yield f"a maximum of {MAX_CACHE_POINTS} cache points may be provided"


def _no_points(request: CheckedRequest) -> Iterator[str]:
    if _points(request):
        yield "You invoked an unsupported model or your request did not allow prompt caching."


def _points(request: CheckedRequest) -> int:
    system = [part for part in request.body.get("system") or () if "cachePoint" in part]
    tools = [tool for tool in (request.body.get("toolConfig") or {}).get("tools") or () if "cachePoint" in tool]
    return len(system) + len(tools) + len(request.of("cachePoint"))


def thinking_of(request: CheckedRequest) -> dict[str, Any]:
    """What the request asks of thinking."""
    return (request.body.get("additionalModelRequestFields") or {}).get("thinking") or {}


def _budget(request: CheckedRequest) -> Iterator[str]:
    thinking = thinking_of(request)
    room = (request.body.get("inferenceConfig") or {}).get("maxTokens", 1 << 20)
    if "budget_tokens" in thinking and not _LEAST_BUDGET <= thinking["budget_tokens"] < room:
        yield f"thinking.budget_tokens: must be at least {_LEAST_BUDGET} and less than maxTokens"


def _thinking_temperature(request: CheckedRequest) -> Iterator[str]:
    config = request.body.get("inferenceConfig") or {}
    if thinking_of(request).get("type") in ("enabled", "adaptive") and config.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode"


_REFERENCE = "docs.aws.amazon.com/bedrock/latest/APIReference"

BEDROCK_PARAMETERS = (
    RequestRule(
        what="inference profiles",
        source="the 400: 'The provided model identifier is invalid' (recorded), 2026-05",
        check=_profiles,
    ),
    RequestRule(
        what="fields of the API",
        source=f"{_REFERENCE}/API_runtime_ConverseStream.html, 2025-11",
        check=unknown_fields(_TOP, "Malformed input request: extraneous key [{}] is not permitted"),
    ),
    RequestRule(
        what="fields of inferenceConfig",
        source=f"{_REFERENCE}/API_runtime_InferenceConfiguration.html, 2025-11",
        check=_fields_of_config,
    ),
    RequestRule(what="room", source=f"{_REFERENCE}/API_runtime_InferenceConfiguration.html, 2025-11", check=_room),
    RequestRule(
        what="tools where there are calls",
        source="the 400: 'The toolConfig field must be defined when using toolUse and toolResult', 2025-11",
        check=_tools_defined,
    ),
    RequestRule(
        what="some tools or none",
        source=f"{_REFERENCE}/API_runtime_ToolConfiguration.html: at least one tool, 2025-11",
        check=_some_tools,
    ),
    RequestRule(
        what="names of tools once",
        source="the 400 of Claude there: 'Tool names must be unique', 2025-11",
        check=_names_once,
    ),
    RequestRule(
        what="4 cache points",
        source="docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html, 2025-11",
        check=_few_points,
    ),
    RequestRule(
        what="no cache points",
        source="the 403: 'You invoked an unsupported model or your request did not allow prompt caching', 2025-11",
        check=_no_points,
        status=403,
        models=r"meta\.|mistral\.|cohere\.|ai21\.|deepseek\.|openai\.|claude-3-(?:opus|sonnet|haiku)",
    ),
    RequestRule(
        what="thinking budget",
        source="docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html, 2025-11",
        check=_budget,
    ),
    RequestRule(
        what="no temperature with thinking",
        source="the 400 of Claude: '`temperature` may only be set to 1 when thinking is enabled', 2026-08",
        check=_thinking_temperature,
    ),
    READABLE,
    RequestRule(
        what="PNG, JPEG, GIF, WebP",
        source=f"{_REFERENCE}/API_runtime_ImageBlock.html, 2025-11",
        check=kinds(*USUAL_IMAGES),
    ),
    RequestRule(
        what="3.75 MB an image",
        source=f"{_REFERENCE}/API_runtime_Message.html, 2025-11",
        check=each_at_most(5 * MEBIBYTE),
    ),
    RequestRule(
        what="20 images a message",
        source=f"{_REFERENCE}/API_runtime_Message.html, 2025-11",
        check=images_of_one_message(_MOST_IMAGES),
    ),
    RequestRule(
        what="8,000 pixels", source=f"{_REFERENCE}/API_runtime_Message.html, 2025-11", check=sides_at_most(8_000)
    ),
    *rows_of_tools(BEDROCK_TOOLS),
)
