"""What the Messages API refuses of parameters, tools and sizes: one row each, with its source."""

import re
from collections.abc import Iterator

from treadle.providers.endpoint import MEBIBYTE
from treadle.providers.scripted.media_rules import (
    READABLE,
    USUAL_IMAGES,
    each_at_most,
    images_at_most,
    kinds,
    sides_at_most,
    whole_at_most,
)
from treadle.providers.scripted.refused_schemas import ANTHROPIC_TOOLS
from treadle.providers.scripted.request_rules import CheckedRequest, RequestRule, rows_of_tools, unknown_fields
from treadle.providers.scripted.wire_format import duplicates

_LEAST_BUDGET = 1024
_NO_BUDGET = r"claude-(?:opus-4[-.](?:[7-9]|\d\d)|[a-z]+-[5-9]|mythos)"
"""Models that decide by themselves how much to think, and take neither a budget nor sampling parameters."""

_SAMPLING = ("temperature", "top_p", "top_k")
_MOST_TOKENS = (
    (r"claude-3-(?:opus|haiku|sonnet)", 4_096),
    (r"claude-3-5-", 8_192),
    (r"claude-opus-4(?:-0|-1|-20)", 32_000),
    (r"claude-(?:sonnet-4|haiku-4|opus-4-5)", 64_000),
)
_TOP = frozenset(
    {
        "model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking", "temperature", "top_p",
        "top_k", "stop_sequences", "stream", "metadata", "service_tier", "container", "mcp_servers",
        "context_management", "output_config", "output_format", "inference_geo", "cache_control", "speed",
        "anthropic_version", "anthropic_beta",
    }
)  # fmt: skip


def _thinks(request: CheckedRequest) -> bool:
    return (request.body.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def _room(request: CheckedRequest) -> Iterator[str]:
    room = request.body.get("max_tokens")
    if not isinstance(room, int) or room < 1:
        yield "max_tokens: a positive number is required"


def _room_of_model(request: CheckedRequest) -> Iterator[str]:
    room = request.body.get("max_tokens")
    for model, most in _MOST_TOKENS:
        if re.search(model, request.model):
            if isinstance(room, int) and room > most:
                yield (
                    f"max_tokens: {room} > {most}, which is the maximum allowed number of output tokens for "
                    f"{request.model}"
                )
            return


def _budget(request: CheckedRequest) -> Iterator[str]:
    thinking, room = request.body.get("thinking") or {}, request.body.get("max_tokens")
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < _LEAST_BUDGET:
        yield f"thinking.budget_tokens: must be at least {_LEAST_BUDGET}"
    elif isinstance(room, int) and budget >= room:
        yield "thinking.budget_tokens: must be less than max_tokens"


def _names_once(request: CheckedRequest) -> Iterator[str]:
    for name in duplicates(str(tool.get("name")) for tool in request.body.get("tools") or ()):
        yield f"tools: Tool names must be unique, the name {name} is there twice"


def _thinking_temperature(request: CheckedRequest) -> Iterator[str]:
    if _thinks(request) and request.body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode"


def _thinking_choice(request: CheckedRequest) -> Iterator[str]:
    if _thinks(request) and (request.body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _one_sampling(request: CheckedRequest) -> Iterator[str]:
    if request.body.get("temperature") is not None and request.body.get("top_p") is not None:
        yield "`temperature` and `top_p` cannot both be specified for this model. Please use only one."


def _no_sampling(request: CheckedRequest) -> Iterator[str]:
    for name in _SAMPLING:
        if request.body.get(name, 1) != 1:
            yield f"`{name}` is deprecated for this model."


def _adaptive_only(request: CheckedRequest) -> Iterator[str]:
    if (request.body.get("thinking") or {}).get("type") == "enabled":
        yield '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"'


def _efforts(request: CheckedRequest) -> Iterator[str]:
    level = (request.body.get("output_config") or {}).get("effort", "high")
    if level not in ("low", "medium", "high", "max"):
        yield (f"This model does not support effort level '{level}'. Supported levels: high, low, max, medium.")


def _model_names(request: CheckedRequest) -> Iterator[str]:
    if ":" in request.model or request.model != request.model.strip():
        yield f"model: {request.model}"


_MESSAGES = "platform.claude.com/docs/en/api/messages"
_VISION = "platform.claude.com/docs/en/build-with-claude/vision"
_THINKING = "platform.claude.com/docs/en/build-with-claude/extended-thinking"

ANTHROPIC_PARAMETERS = (
    RequestRule(what="max_tokens", source=f"{_MESSAGES}: max_tokens is required, 2025-11", check=_room),
    RequestRule(
        what="max_tokens of the model",
        source="the 400: 'max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens', 2025-11",
        check=_room_of_model,
        models=r"^claude-",
    ),
    RequestRule(what="thinking budget", source=f"{_THINKING}, 2025-11", check=_budget),
    RequestRule(
        what="fields of the API",
        source=f"{_MESSAGES} and the 400 'Extra inputs are not permitted', 2026-05",
        check=unknown_fields(_TOP, "{}: Extra inputs are not permitted"),
    ),
    RequestRule(
        what="names of models",
        source="the 404: 'model: claude-sonet-4-5' (recorded), 2026-05; no name of a model has a colon",
        check=_model_names,
        status=404,
        models=r"^claude-",
    ),
    RequestRule(what="names of tools once", source="the 400: 'Tool names must be unique', 2025-11", check=_names_once),
    RequestRule(
        what="no temperature with thinking",
        source="the 400: '`temperature` may only be set to 1 when thinking is enabled or in adaptive mode', 2026-08",
        check=_thinking_temperature,
    ),
    RequestRule(
        what="no forced tool with thinking",
        source="the 400: 'Thinking may not be enabled when tool_choice forces tool use', 2025-11",
        check=_thinking_choice,
    ),
    RequestRule(
        what="one sampling parameter",
        source="the 400: '`temperature` and `top_p` cannot both be specified for this model', 2025-10",
        check=_one_sampling,
        models=r"claude-(?:opus-4-[1-9]|sonnet-4-[5-9]|haiku-4)",
    ),
    RequestRule(
        what="no sampling parameter",
        source="the migration guide of Claude 4.7: other values of temperature, top_p, top_k give 400, 2026-05",
        check=_no_sampling,
        models=_NO_BUDGET,
    ),
    RequestRule(
        what="adaptive thinking only",
        source="the 400: '\"thinking.type.enabled\" is not supported for this model', 2026-04",
        check=_adaptive_only,
        models=_NO_BUDGET,
    ),
    RequestRule(
        what="levels of effort",
        source="the 400: \"This model does not support effort level 'xhigh'\" (recorded), 2026-05",
        check=_efforts,
        models=r"claude-(?:opus|sonnet)-4[-.]6",
    ),
    READABLE,
    RequestRule(what="PNG, JPEG, GIF, WebP", source=f"{_VISION}, 2025-11", check=kinds(*USUAL_IMAGES)),
    RequestRule(what="5 MB an image", source=f"{_VISION}, 2025-11", check=each_at_most(5 * MEBIBYTE)),
    RequestRule(
        what="100 images",
        source=f"{_VISION}: 100 for models with a window of 200,000 tokens, 600 for others, 2026-05",
        check=images_at_most(100),
    ),
    RequestRule(what="8,000 pixels", source=f"{_VISION}, 2026-05", check=sides_at_most(8_000)),
    RequestRule(
        what="2,000 pixels with more than 20 images", source=f"{_VISION}, 2026-05", check=sides_at_most(2_000, above=20)
    ),
    RequestRule(
        what="32 MB",
        source="platform.claude.com/docs/en/api/overview: request size limits, 2025-11",
        check=whole_at_most(32 * MEBIBYTE),
        status=413,
    ),
    *rows_of_tools(ANTHROPIC_TOOLS),
)
