"""What the APIs of OpenAI refuse of parameters, tools and sizes: one row each, with its source."""

import re
from collections.abc import Iterator

from treadle.providers.endpoint import MEBIBYTE
from treadle.providers.scripted.media_rules import READABLE, USUAL_IMAGES, kinds, whole_at_most
from treadle.providers.scripted.refused_schemas import OPENAI_TOOLS
from treadle.providers.scripted.request_rules import (
    CheckedRequest,
    RequestCheck,
    RequestRule,
    rows_of_tools,
    unknown_fields,
)
from treadle.providers.scripted.wire_format import duplicates, texts

REASONS = r"^(?:.*/)?(?:o[134]|gpt-5(?![.\d]|-chat)|gpt-5\.[\d]+-pro)"
"""Models that always reason, and take no parameters of sampling."""

NO_REASONING = r"^(?:.*/)?(?:gpt-4|gpt-3|chatgpt-4o)"
_REASONS_BY_DEFAULT = r"^(?:.*/)?gpt-5\.(?:[6-9]|\d\d)"
_NO_EFFORT_WITH_TOOLS = r"^(?:.*/)?gpt-5\.(?:[4-9]|\d\d)"
MAKERS = ("openai", "azure")
"""Who serves the models of OpenAI with its own checks."""

MOST_TOOLS = 128
_LONGEST_TEXT = 10 * 1024 * 1024
_TOP = frozenset(
    {
        "model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "max_tokens",
        "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed", "user", "metadata", "store",
        "response_format", "reasoning_effort", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs",
        "top_logprobs", "modalities", "audio", "prediction", "service_tier", "verbosity", "web_search_options",
        "functions", "function_call", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    }
)  # fmt: skip


def sampling(*names: str) -> RequestCheck:
    """Make the check of parameters that a model takes at their usual value only."""

    def check(request: CheckedRequest) -> Iterator[str]:
        for name in names:
            if request.body.get(name, 1) != 1:
                yield f"Unsupported value: '{name}' does not support {request.body[name]} with this model."

    return check


def absent(*names: str) -> RequestCheck:
    """Make the check of parameters that a model does not take."""

    def check(request: CheckedRequest) -> Iterator[str]:
        for name in names:
            if request.body.get(name) is not None:
                yield f"Unsupported parameter: '{name}' is not supported with this model."

    return check


def long_texts(request: CheckedRequest) -> Iterator[str]:
    """Say which texts are longer than any may be."""
    for turn in request.turns:
        for block in turn.blocks:
            for text in texts(block.get("content")):
                if len(text) > _LONGEST_TEXT:
                    yield f"Invalid '{turn.where}.content': string too long. Expected at most {_LONGEST_TEXT}"


def names_of_tools_once(request: CheckedRequest) -> Iterator[str]:
    """Say which names of tools are there twice."""
    for name in duplicates(str(name) for name, _, _ in request.tools):
        yield f"tools: Tool names must be unique, the name {name} is there twice"


def _max_tokens(request: CheckedRequest) -> Iterator[str]:
    if request.body.get("max_tokens") is not None:
        yield (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )


def _stream_options(request: CheckedRequest) -> Iterator[str]:
    if "stream_options" in request.body and request.body.get("stream") is not True:
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."


def _some_tools(request: CheckedRequest) -> Iterator[str]:
    if request.body.get("tools") == []:
        yield "Invalid 'tools': empty array. Expected an array with minimum length 1, tools: must not be empty"


def _few_tools(request: CheckedRequest) -> Iterator[str]:
    count = len(request.body.get("tools") or ())
    if count > MOST_TOOLS:
        yield f"Invalid 'tools': array too long. Expected an array with maximum length {MOST_TOOLS}, got {count}"


def _effort_with_tools(request: CheckedRequest) -> Iterator[str]:
    by_default = "medium" if re.match(_REASONS_BY_DEFAULT, request.model) else "none"
    if request.tools and request.body.get("reasoning_effort", by_default) != "none":
        yield (
            f"Function tools with reasoning_effort are not supported for {request.model} in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        )


_REFERENCE = "platform.openai.com/docs/api-reference/chat/create"
_IMAGES = "platform.openai.com/docs/guides/images-vision"

OPENAI_MEDIA = (
    READABLE,
    RequestRule(what="PNG, JPEG, GIF, WebP", source=f"{_IMAGES}, 2025-11", check=kinds(*USUAL_IMAGES)),
    RequestRule(what="50 MB", source=f"{_IMAGES}, 2025-11", check=whole_at_most(50 * MEBIBYTE), status=413),
    RequestRule(
        what="texts of 10 MB",
        source="the 400: 'string too long. Expected a string with maximum length 10485760', 2025-11",
        check=long_texts,
        code="string_above_max_length",
    ),
)

CHAT_PARAMETERS = (
    RequestRule(
        what="fields of the API",
        source=f"{_REFERENCE} and the 400 'Unrecognized request argument supplied', 2026-05",
        check=unknown_fields(_TOP, "Unrecognized request argument supplied: {}"),
        vendors=MAKERS,
        usual=False,
    ),
    RequestRule(what="stream_options", source=f"{_REFERENCE}: stream_options, 2025-11", check=_stream_options),
    RequestRule(
        what="max_completion_tokens",
        source="the 400: \"Unsupported parameter: 'max_tokens' is not supported with this model\", 2026-05",
        check=_max_tokens,
        code="unsupported_parameter",
        models=r"^(?:.*/)?(?:o[1-9]|gpt-5)",
        vendors=MAKERS,
    ),
    RequestRule(
        what="no sampling with reasoning",
        source="the 400: \"'temperature' does not support 0.2 with this model\", 2025-12",
        check=sampling("temperature", "top_p", "presence_penalty", "frequency_penalty"),
        code="unsupported_value",
        models=REASONS,
        vendors=MAKERS,
    ),
    RequestRule(
        what="no stop with reasoning",
        source="the 400: \"Unsupported parameter: 'stop' is not supported with this model\", 2025-08",
        check=absent("stop", "logprobs", "top_logprobs", "logit_bias"),
        code="unsupported_parameter",
        models=REASONS,
        vendors=MAKERS,
    ),
    RequestRule(
        what="no effort without reasoning",
        source="the 400: 'Unrecognized request argument supplied: reasoning_effort', 2025-11",
        check=absent("reasoning_effort"),
        models=NO_REASONING,
        vendors=MAKERS,
    ),
    RequestRule(
        what="no effort with tools",
        source=(
            "the 400: 'Function tools with reasoning_effort are not supported for gpt-5.4', 2026-03; "
            "for gpt-5.6 also where none is sent, 2026-07"
        ),
        check=_effort_with_tools,
        models=_NO_EFFORT_WITH_TOOLS,
        vendors=("openai",),
    ),
    RequestRule(
        what="some tools or none",
        source="the 400: \"[] is too short - 'tools'\", 2025-11",
        check=_some_tools,
        vendors=MAKERS,
    ),
    RequestRule(
        what="128 tools",
        source="the 400: \"Invalid 'tools': array too long. Expected an array with maximum length 128\", 2025-11",
        check=_few_tools,
        code="array_above_max_length",
        vendors=MAKERS,
    ),
    RequestRule(
        what="names of tools once",
        source="DeepSeek's 400: 'Tool names must be unique', 2025-11",
        check=names_of_tools_once,
        vendors=("deepseek",),
    ),
    *OPENAI_MEDIA,
    *rows_of_tools(OPENAI_TOOLS),
)
