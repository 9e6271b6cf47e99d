"""What helps when a provider refuses a request: one table of what they say, and what is sent instead.

A remedy is tried once for a request and kept for its model as long as the provider is. What concerns the conversation
(`refused_part`) is for the engine, which writes down what it leaves out.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.models import RefusedPart
from treadle.providers.wire import HttpCall, dump

_MOST_AMENDMENTS = 8
"""For one model; a provider that wants more is not understood."""

_LEAST_BOUND = 16
_LEAST_THINKING = 1_024
_PLACES = ("generationConfig", "inferenceConfig", "additionalModelRequestFields")
"""Objects of a body in which some APIs keep their parameters."""

_DROPPABLE = (
    "stream_options", "parallel_tool_calls", "reasoning_effort", "reasoning", "thinkingConfig", "thinking",
    "enable_thinking", "thinking_budget", "output_config", "max_tool_calls", "include", "store", "temperature", "top_p",
)  # fmt: skip
"""Parameters without which a request means the same, or nearly."""

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens")


class Way(StrEnum):
    """How a request is sent otherwise."""

    DROP = "drop"
    RENAME = "rename"
    BOUND = "bound"
    SET = "set"
    WHOLE = "whole"


class Amendment(Struct, frozen=True):
    """A change to the requests for one model: of the parameter `name`, to the name or number `value`."""

    way: Way
    name: str = ""
    value: str | int = ""


class Remedy(Struct, frozen=True, kw_only=True):
    """What a provider says, what helps, and where the words are from."""

    says: str
    source: str
    amend: Callable[[re.Match[str], Mapping[str, Any]], Amendment | None]


def _parameter(name: str, body: Mapping[str, Any]) -> Amendment | None:
    """Send the request without a parameter that it has, where nothing is lost by that."""
    last = name.replace("->", ".").split(".")[-1].strip(" `'\"")
    return Amendment(Way.DROP, last) if last in _DROPPABLE and _holder(body, last) is not None else None


def _renamed(found: re.Match[str], body: Mapping[str, Any]) -> Amendment | None:
    old, new = found["old"], found["new"]
    known = old in _LIMITS and new in _LIMITS and _holder(body, old) is not None
    return Amendment(Way.RENAME, old, new) if known else None


def _named(found: re.Match[str], body: Mapping[str, Any]) -> Amendment | None:
    return _parameter(found["name"], body)


def _mentioned(found: re.Match[str], body: Mapping[str, Any]) -> Amendment | None:
    """Find a parameter by its name in a refusal of the usual words."""
    for name in _DROPPABLE:
        if re.search(rf"(?<![\w]){name}(?![\w])", found.string) and (amendment := _parameter(name, body)) is not None:
            return amendment
    return None


def _thinking(_: re.Match[str], body: Mapping[str, Any]) -> Amendment | None:
    names = ("thinking", "thinkingConfig", "reasoning_effort", "reasoning", "enable_thinking", "thinking_budget")
    return next((found for name in names if (found := _parameter(name, body)) is not None), None)


def _bounded(found: re.Match[str], body: Mapping[str, Any]) -> Amendment | None:
    most = int(re.sub(r"\D", "", found["most"])) - ("exclusive" in found[0])
    for name in _LIMITS:
        holder = _holder(body, name)
        if holder is not None and isinstance(holder[name], int) and _LEAST_BOUND <= most < holder[name]:
            return Amendment(Way.BOUND, name, most)
    return None


def _no_effort(_: re.Match[str], body: Mapping[str, Any]) -> Amendment | None:
    """Ask a model that reasons by default not to: it calls functions only so."""
    return Amendment(Way.SET, "reasoning_effort", "none") if body.get("tools") else None


def _whole(_: re.Match[str], body: Mapping[str, Any]) -> Amendment | None:
    return Amendment(Way.WHOLE) if body.get("stream") is True else None


def _found(wording: str, said: str) -> re.Match[str] | None:
    """Find a wording: each is read when a provider refuses something, and not at every start."""
    return re.search(wording, said, re.IGNORECASE | re.DOTALL)


_LIMIT_NAMES = r"(?:max_?(?:new_|completion_|output_)?tokens|maxOutputTokens|maximum tokens)"
REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        says=r"set [`'\"]?reasoning_effort[`'\"]? to [`'\"]?none",
        source="OpenAI 'Function tools with reasoning_effort are not supported', also behind gateways, 2026-07",
        amend=_no_effort,
    ),
    Remedy(
        says=r"unsupported parameter: '(?P<old>\w+)'.{0,120}?use '(?P<new>\w+)' instead",
        source="OpenAI, models that reason, 2026-05",
        amend=_renamed,
    ),
    Remedy(
        says=_LIMIT_NAMES + r":? \d+ > (?P<most>\d{1,12})",
        source="Anthropic: 'max_tokens: 64000 > 8192, which is the maximum allowed', 2025-11",
        amend=_bounded,
    ),
    Remedy(
        says=(_LIMIT_NAMES + r".{0,80}?(?:at most|<=|less than or equal to|model limit of) `?(?P<most>\d[\d,]{0,12})"),
        source="OpenAI 'supports at most', Responses 'a value <=', Groq, Bedrock 'model limit of', 2025-11",
        amend=_bounded,
    ),
    Remedy(
        says=_LIMIT_NAMES + r".{0,60}?\[\d+, ?(?P<most>\d{1,12})\]",
        source="DeepSeek, Qwen: 'range of max_tokens is [1, 8192]', 2025-11",
        amend=_bounded,
    ),
    Remedy(
        says=_LIMIT_NAMES + r".{0,120}?to (?P<most>\d{1,12}) \(exclusive\)",
        source="Gemini: 'supported range is from 1 (inclusive) to 8193 (exclusive)', 2025-11",
        amend=_bounded,
    ),
    Remedy(
        says=(
            r"stream(?:ing)? (?:is |mode is )?not (?:supported|enabled|allowed|available)|not support stream(?:ing)?\b"
            r"|stream(?:ing)? must be (?:false|disabled)|verified to stream|set stream(?: to|=) ?false"
        ),
        source="OpenAI 'must be verified to stream this model', gateways, 2025-11",
        amend=_whole,
    ),
    Remedy(
        says=(
            r"(?:unsupported|unrecogni[sz]ed|unknown|unexpected)(?: request)? (?:keyword )?"
            r"(?:parameter|argument|field|name|key|property)s?(?: supplied)?:? ?[`'\"\[]*(?P<name>[\w.]+)"
        ),
        source="OpenAI 'Unrecognized request argument supplied', Gemini 'Unknown name', 2025-11",
        amend=_named,
    ),
    Remedy(
        says=r"(?P<name>[\w.]+)[`'\"]?: extra inputs are not permitted",
        source="Anthropic and servers with pydantic: 'Extra inputs are not permitted', 2025-11",
        amend=_named,
    ),
    Remedy(
        says=(
            r"(?:thinking|reasoning)(?: mode| effort)? is not (?:supported|available)"
            r"|not support (?:thinking|reasoning)"
        ),
        source="Anthropic, OpenRouter, Ollama 'does not support thinking', 2025-11",
        amend=_thinking,
    ),
    Remedy(
        says=(
            r"not (?:currently )?support|unsupported|not permitted|extra_forbidden|not allowed|unrecogni[sz]ed|unknown"
        ),
        source="Mistral 'extra_forbidden', vLLM, Azure, 2025-11: the parameter is named somewhere",
        amend=_mentioned,
    ),
)

_PARTS: tuple[tuple[RefusedPart, str, str], ...] = (
    (
        RefusedPart.TOOLS,
        (
            r"(?:does not|doesn't|not) support (?:tools?|function|tool_?(?:use|call))|support tool use"
            r"|(?:tools?|tool[ _]?use|tool[ _]?calling|function[ _]?calling|`tools`) (?:is|are) not supported"
            r"|requires --enable-auto-tool-choice"
        ),
        "Ollama 'does not support tools', OpenRouter 'No endpoints found that support tool use', vLLM, 2025-11",
    ),
    (
        RefusedPart.THINKING,
        (
            r"signature.{0,20}in.{0,4}thinking|thought[ _]signature|thinking.{0,40}blocks?.{0,60}cannot be modified"
            r"|encrypted[ _]content.{0,60}(?:could not|cannot|invalid)|reasoning_content"
        ),
        "Anthropic 'Invalid `signature` in `thinking` block', Gemini 'Thought signature is not valid', 2026-05",
    ),
    (
        RefusedPart.EVERY_IMAGE,
        (
            r"(?:does not|doesn't|not) support (?:images?|image input|vision|multimodal)|support image input"
            r"|image(?:s| input|_url)? (?:is|are) not supported|unknown variant `?image_url|image_url is only supported"
        ),
        "OpenRouter 'support image input', DeepSeek 'unknown variant', 2025-11",
    ),
    (
        RefusedPart.DOCUMENT,
        (
            r"\bpdf\b|could not process document|document(?:s)? (?:is|are|cannot|could not)|password[- ]protected|"
            r"\bfile_data\b"
        ),
        "Anthropic 'Could not process PDF', 'The PDF specified was not valid', OpenAI, 2025-11",
    ),
    (
        RefusedPart.IMAGE,
        (
            r"could not process image|image.{0,80}(?:not supported|not match|exceeds?|too (?:large|small|many)|invalid|"
            r"cannot|could not|unable|dimension|corrupt|empty)|(?:invalid|unsupported|unable to process|failed to \w+|"
            r"too many|cannot \w+|not a valid).{0,20} images?|inline_?data|"
            r"image.{0,120}(?:media[ _]?type|appears to be)|media[ _]?type.{0,40}(?:mismatch|not match)"
        ),
        "Anthropic 'Could not process image', OpenAI 'Invalid image', Gemini 'Unable to process input image', 2026-05",
    ),
)


def refused_part(said: str) -> RefusedPart | None:
    """Tell which part of a conversation a provider refuses, by its words; None for anything else."""
    return next((part for part, says, _ in _PARTS if _found(says, said)), None)


class Amendments:
    """How the requests for each model are changed, as its provider wants it; there is one for each provider."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Amendment, ...]] = {}

    def of(self, model: str) -> tuple[Amendment, ...]:
        """Give what is known to help with a model."""
        return self._known.get(model, ())

    def changed(self, model: str, call: HttpCall) -> HttpCall:
        """Give a call for a model as its provider is known to want it."""
        return with_amendments(call, self.of(model))

    def learn(self, model: str, said: str, call: HttpCall) -> bool:
        """Find what helps against a refusal of a call; tells whether there is something that was not tried."""
        body = _body(call)
        if body is None or len(self.of(model)) >= _MOST_AMENDMENTS:
            return False
        for remedy in REMEDIES:
            found = _found(remedy.says, said)
            amendment = None if found is None else remedy.amend(found, body)
            if amendment is not None and amendment not in self.of(model):
                self._known[model] = (*self.of(model), amendment)
                return True
        return False


def with_amendments(call: HttpCall, amendments: tuple[Amendment, ...]) -> HttpCall:
    """Give a call with these changes."""
    body = _body(call) if amendments else None
    if body is None:
        return call
    for amendment in amendments:
        _amend(body, amendment)
    return replace(call, body=dump(body))


def _body(call: HttpCall) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(call.body)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _holder(body: Any, name: str) -> Any:
    """The object of a body that has a parameter; None where it has none."""
    for place in (body, *(body.get(key) for key in _PLACES)):
        if isinstance(place, Mapping) and name in place:
            return place
    return None


def _amend(body: dict[str, Any], amendment: Amendment) -> None:
    if amendment.way is Way.WHOLE:
        body["stream"] = False
        body.pop("stream_options", None)
        return
    if amendment.way is Way.SET:
        if body.get("tools"):  # without them it may reason
            body[amendment.name] = amendment.value
        return
    holder = _holder(body, amendment.name)
    if holder is None:
        return
    match amendment.way:
        case Way.DROP:
            del holder[amendment.name]
            if amendment.name == "thinking":
                holder.pop("output_config", None)
        case Way.RENAME:
            holder[str(amendment.value)] = holder.pop(amendment.name)
        case Way.BOUND:
            holder[amendment.name] = min(holder[amendment.name], int(amendment.value))
            _bound_thinking(body, holder[amendment.name])


def _bound_thinking(body: dict[str, Any], most: int) -> None:
    """Keep the thinking within the reply: APIs refuse a budget that leaves nothing for the answer."""
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("budget_tokens", 0) < most:
        return
    if most // 2 >= _LEAST_THINKING:
        thinking["budget_tokens"] = most // 2
    else:
        del body["thinking"]
