"""What the Gemini API refuses: one row each, with its source."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from treadle.providers.endpoint import MEBIBYTE
from treadle.providers.scripted.media_rules import READABLE, kinds, whole_at_most
from treadle.providers.scripted.refused_schemas import GEMINI_TOOLS
from treadle.providers.scripted.request_rules import (
    Body,
    CheckedMessage,
    CheckedRequest,
    CheckedTool,
    RequestRule,
    SentBlock,
    WireRules,
    rows_of_tools,
    shape_rules,
    unknown_fields,
)
from treadle.providers.scripted.wire_format import duplicates
from treadle.providers.wire import dump

_DATA = (
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
    "toolCall", "toolResponse",
)  # fmt: skip
_BESIDE = frozenset({"thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution"})
_OF_MODEL = frozenset({"functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
_TOP = frozenset(
    {
        "model", "stream", "contents", "tools", "toolConfig", "safetySettings", "systemInstruction", "generationConfig",
        "cachedContent", "serviceTier", "store", "labels",
    }
)  # fmt: skip
_CONFIG = frozenset(
    {
        "stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities",
        "candidateCount", "maxOutputTokens", "temperature", "topP", "topK", "seed", "presencePenalty",
        "frequencyPenalty", "responseLogprobs", "logprobs", "enableEnhancedCivicAnswers", "speechConfig",
        "thinkingConfig", "imageConfig", "mediaResolution", "audioTimestamp", "routingConfig",
    }
)  # fmt: skip
_BUDGETS = (
    (r"2\.5-pro", 128, 32_768, False),
    (r"2\.5-flash-lite", 512, 24_576, True),
    (r"2\.5-flash", 1, 24_576, True),
)
"""Models, the least and the most tokens of thinking, and whether it can be turned off."""

_IN_SNAKE_CASE = re.compile(rb'"(?:[a-z]+_)+[a-z]+":')
_SIGNATURE = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_UNSIGNED = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_SCHEMA_ONLY = frozenset({"nullable", "propertyOrdering", "example", "maxLength", "minLength", "pattern"})
_FREE = frozenset({"args", "response", "parametersJsonSchema", "responseJsonSchema", "parameters", "responseSchema"})
"""Below these keys names are the user's own."""


def _sent(body: Body) -> CheckedRequest:
    """Read a body whose contents are objects; a name may be written as in JSON or as in the protocol buffers."""
    named: dict[str, Any] = _named(body) if _IN_SNAKE_CASE.search(dump(body)) else dict(body)
    turns = [
        CheckedMessage(
            where=f"contents[{number}]",
            role=str(content.get("role", "user")),
            blocks=[_first(part) for part in content.get("parts") or ()],
        )
        for number, content in enumerate(named["contents"])
    ]
    return CheckedRequest(named, turns, [_declared(function) for function in functions_of(named)])


def functions_of(body: Body) -> list[dict[str, Any]]:
    """The declared functions of a body."""
    return [function for tool in body.get("tools") or () for function in tool.get("functionDeclarations") or ()]


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return [_named(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, one in value.items():
        key = re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
        found[key] = one if key in _FREE else _named(one)
    return found


def _first(part: SentBlock) -> SentBlock:
    """Put what a part holds before what stands beside it: that is its kind."""
    return dict(sorted(part.items(), key=lambda item: item[0] in _BESIDE))


def _declared(function: Body) -> CheckedTool:
    schema = function.get("parametersJsonSchema")
    if schema is None:
        schema = _as_json_schema(function.get("parameters") or {"type": "OBJECT"})
    return function.get("name"), function.get("description"), schema


def _as_json_schema(schema: Any) -> Any:
    """Read a schema of the older form, whose types are in capitals."""
    if isinstance(schema, list):
        return [_as_json_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _as_json_schema(value) for name, value in schema.items() if name not in _SCHEMA_ONLY}
    if isinstance(found.get("type"), str):
        found["type"] = found["type"].lower()
    return found


def _fields_of_config(request: CheckedRequest) -> Iterator[str]:
    for name in (request.body.get("generationConfig") or {}).keys() - _CONFIG:
        yield f"Invalid JSON payload received. Unknown name \"{name}\" at 'generation_config': Cannot find field."


def _roles(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if turn.role not in ("user", "model", "function"):
            yield f"{turn.where}: Please use a valid role: user, model, not {turn.role!r}"


def _some_parts(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if not turn.blocks:
            yield f"* GenerateContentRequest.{turn.where}.parts: contents.parts must not be empty"


def _one_of(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        for part in turn.blocks:
            given = [name for name in _DATA if name in part]
            if len(given) > 1:
                yield f"{turn.where}: oneof field 'data' is already set, cannot set {given[1]!r}"
            elif not given and "thoughtSignature" not in part:
                yield f"{turn.where}: required oneof field 'data' must have one initialized field"


def _fields_of_parts(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        for part in turn.blocks:
            for name in part.keys() - _BESIDE - {*_DATA}:
                yield f'{turn.where}: Invalid JSON payload received. Unknown name "{name}"'


def _of_role(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        for part in turn.blocks:
            wrong = _OF_MODEL if turn.role != "model" else {"functionResponse"}
            for name in part.keys() & wrong:
                yield f"{turn.where}: a part of {turn.role} cannot have {name}"


def _empty_text(request: CheckedRequest) -> Iterator[str]:
    for turn, part in request.of("text"):
        if part["text"] == "" and "thoughtSignature" not in part:
            yield f"{turn.where}: a part of {turn.role} cannot have an empty text"


def _calls_before(request: CheckedRequest) -> Iterator[tuple[CheckedMessage, list[str], list[str]]]:
    calls: list[str] = []
    for turn in request.turns:
        yield turn, calls, [str(part["functionResponse"].get("name")) for part in turn.of("functionResponse")]
        calls = [str(part["functionCall"].get("name")) for part in turn.of("functionCall")]
    yield CheckedMessage(where="contents", role="user", blocks=()), calls, []


def _as_many_responses(request: CheckedRequest) -> Iterator[str]:
    for turn, calls, answers in _calls_before(request):
        if len(calls) != len(answers):
            yield f"{turn.where}: there must be a function response for each function call before, and for no other"


def _names_of_responses(request: CheckedRequest) -> Iterator[str]:
    for turn, calls, answers in _calls_before(request):
        if len(calls) == len(answers) and sorted(calls) != sorted(answers):
            yield f"{turn.where}: the function responses {answers} are not those of the calls {calls}"


def _ids_of_responses(request: CheckedRequest) -> Iterator[str]:
    for first, second in pairwise(request.turns):
        calls = {str(part["functionCall"].get("id", "")) for part in first.of("functionCall")}
        for part in second.of("functionResponse"):
            answered = str(part["functionResponse"].get("id", ""))
            if answered not in calls:
                yield f"{second.where}: the function response {answered!r} is that of no call"


def _calls_after_user(request: CheckedRequest) -> Iterator[str]:
    before = ""
    for turn in request.turns:
        if turn.of("functionCall") and before != "user":
            yield (
                f"{turn.where}: Please ensure that function call turn comes immediately after a user turn or after a "
                "function response turn: roles must alternate"
            )
        before = "user" if turn.role == "function" else turn.role


def _alternating(request: CheckedRequest) -> Iterator[str]:
    for first, second in pairwise(request.turns):
        if first.role == second.role:
            yield f"{second.where}: roles must alternate between user and model, this one is {second.role!r}"


def _user_last(request: CheckedRequest) -> Iterator[str]:
    if request.turns[-1].role == "model":
        yield "Please ensure that single turn requests end with a user role: the last one must be the user's"


def _objects(request: CheckedRequest) -> Iterator[str]:
    for kind, name in (("functionCall", "args"), ("functionResponse", "response")):
        for turn, part in request.of(kind):
            if not isinstance(part[kind].get(name, {}), dict) or (name == "response" and name not in part[kind]):
                yield f"{turn.where}: Invalid value at '{kind}.{name}' (google.protobuf.Struct)"


def _names(request: CheckedRequest) -> Iterator[str]:
    for kind in ("functionCall", "functionResponse"):
        for turn, part in request.of(kind):
            if not part[kind].get("name"):
                yield f"* GenerateContentRequest.{turn.where}.{kind}.name: Name cannot be empty."


def _names_once(request: CheckedRequest) -> Iterator[str]:
    for name in duplicates(str(name) for name, _, _ in request.tools):
        yield f"Duplicate function declaration found: {name}, the name {name} is there twice"


def _signatures(request: CheckedRequest) -> Iterator[str]:
    """Look at the first call of each step since the last question: Gemini 3 wants its signature back."""
    asked = [
        number for number, turn in enumerate(request.turns) if turn.role == "user" and not turn.of("functionResponse")
    ]
    for turn in request.turns[(asked[-1] if asked else 0) :]:
        calls = turn.of("functionCall")
        if turn.role == "model" and calls and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"].get("name")
            yield f"Function call is missing a thought_signature in functionCall parts: {name}, {turn.where}"


def _readable_signatures(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        for part in turn.blocks:
            signature = part.get("thoughtSignature")
            if signature is not None and not (
                signature in _UNSIGNED or (isinstance(signature, str) and _SIGNATURE.fullmatch(signature))
            ):
                yield f"{turn.where}: Invalid value at 'thought_signature' (TYPE_BYTES), Base64 decoding failed"


def _thinking(request: CheckedRequest) -> dict[str, Any]:
    return (request.body.get("generationConfig") or {}).get("thinkingConfig") or {}


def _budget(request: CheckedRequest) -> Iterator[str]:
    budget = _thinking(request).get("thinkingBudget", -1)
    for model, least, most, off in _BUDGETS:
        if re.search(model, request.model):
            if budget != -1 and not (least <= budget <= most or (off and budget == 0)):
                yield f"The thinking budget ({budget}) is invalid. Please choose a value between {least} and {most}."
            return


def _budget_or_level(request: CheckedRequest) -> Iterator[str]:
    thinking = _thinking(request)
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        yield "You can only set only one of thinking budget and thinking level."


def _no_level(request: CheckedRequest) -> Iterator[str]:
    if "thinkingLevel" in _thinking(request):
        yield "Thinking level is not supported for this model."


def _temperature(request: CheckedRequest) -> Iterator[str]:
    value = (request.body.get("generationConfig") or {}).get("temperature", 1)
    if not isinstance(value, int | float) or not 0 <= value <= 2:
        yield "* GenerateContentRequest.generation_config.temperature: must be in the range [0.0, 2.0]"


def _room(request: CheckedRequest) -> Iterator[str]:
    value = (request.body.get("generationConfig") or {}).get("maxOutputTokens", 1)
    if not isinstance(value, int) or value < 1:
        yield "* GenerateContentRequest.generation_config.max_output_tokens: must be positive"


_REFERENCE = "ai.google.dev/api/generate-content"
_CALLING = "ai.google.dev/gemini-api/docs/function-calling"
_IMAGES = "ai.google.dev/gemini-api/docs/image-understanding"
_THOUGHTS = "ai.google.dev/gemini-api/docs/thinking"


GEMINI_RULES = (
    RequestRule(
        what="fields of the API",
        source=f"{_REFERENCE} and the 400 'Invalid JSON payload received. Unknown name', 2025-11",
        check=unknown_fields(_TOP, 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'),
    ),
    RequestRule(
        what="fields of generationConfig",
        source=f"{_REFERENCE}: GenerationConfig, and the 400 'Unknown name', 2025-11",
        check=_fields_of_config,
    ),
    RequestRule(what="roles", source="the 400: 'Please use a valid role: user, model', 2025-11", check=_roles),
    RequestRule(what="parts", source="the 400: 'contents.parts must not be empty', 2025-11", check=_some_parts),
    RequestRule(
        what="one kind of data in a part",
        source="the 400: \"required oneof field 'data' must have one initialized field\", 2025-11",
        check=_one_of,
    ),
    RequestRule(
        what="fields of parts",
        source=f"{_REFERENCE}: Part, and the 400 'Unknown name', 2025-11",
        check=_fields_of_parts,
    ),
    RequestRule(what="parts of a role", source=f"{_CALLING}: roles, 2025-11", check=_of_role),
    RequestRule(
        what="no empty text",
        source="the 400: 'Unable to submit request because it must have a text parameter' (Vertex), 2025-11",
        check=_empty_text,
        vendors=("vertex",),
    ),
    RequestRule(
        what="as many responses as calls",
        source="the 400: 'the number of function response parts is equal to the number of', 2025-11",
        check=_as_many_responses,
    ),
    RequestRule(
        what="names of responses", source=f"{_CALLING}: name of the response, 2025-11", check=_names_of_responses
    ),
    RequestRule(what="ids of responses", source=f"{_REFERENCE}: FunctionResponse.id, 2025-11", check=_ids_of_responses),
    RequestRule(
        what="calls after the user",
        source="the 400: 'function call turn comes immediately after a user turn or after a', 2026-05",
        check=_calls_after_user,
    ),
    RequestRule(
        what="roles in turn",
        source="Gemini 1.0 at Vertex: 'multiturn requests alternate between user and model', 2024-01; not since",
        check=_alternating,
        vendors=("gemini-1.0",),
    ),
    RequestRule(
        what="the user last",
        source="the 400: 'Please ensure that single turn requests end with a user role', 2026-08",
        check=_user_last,
    ),
    RequestRule(what="arguments and responses are objects", source=f"{_REFERENCE}: Struct, 2025-11", check=_objects),
    RequestRule(
        what="names of calls", source="the 400: 'function_response.name: Name cannot be empty', 2025-11", check=_names
    ),
    RequestRule(
        what="names of functions once",
        source="the 400: 'Duplicate function declaration found', 2025-11",
        check=_names_once,
    ),
    RequestRule(
        what="signatures of calls",
        source="ai.google.dev/gemini-api/docs/thought-signatures and the 400 'missing a thought_signature', 2026-07",
        check=_signatures,
        models=r"gemini-(?:[3-9]|\d\d)",
    ),
    RequestRule(
        what="signatures in base64", source="the 400: 'Base64 decoding failed', 2025-11", check=_readable_signatures
    ),
    RequestRule(
        what="thinking budget of the model",
        source=f"{_THOUGHTS}: ranges, and the 400 'The thinking budget (52428) is invalid', 2025-06",
        check=_budget,
    ),
    RequestRule(
        what="budget or level",
        source=f"{_THOUGHTS}: 'you cannot use both thinking_level and the legacy thinking_budget', 2025-11",
        check=_budget_or_level,
    ),
    RequestRule(
        what="no level before Gemini 3",
        source="the 400: 'Thinking level is not supported for this model', 2026-09",
        check=_no_level,
        models=r"gemini-[12]\.",
    ),
    RequestRule(what="temperature", source=f"{_REFERENCE}: temperature, [0.0, 2.0], 2025-11", check=_temperature),
    RequestRule(
        what="room", source=f"{_REFERENCE}: maxOutputTokens, and the 400 'must be positive', 2025-11", check=_room
    ),
    READABLE,
    RequestRule(
        what="PNG, JPEG, WebP, HEIC, HEIF",
        source=f"{_IMAGES}, 2025-11",
        check=kinds("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"),
    ),
    RequestRule(what="20 MB", source=f"{_IMAGES}, 2025-11", check=whole_at_most(20 * MEBIBYTE)),
    *rows_of_tools(GEMINI_TOOLS),
)
GEMINI_BOOK = WireRules(shape=shape_rules("contents"), rules=GEMINI_RULES, read=_sent)
