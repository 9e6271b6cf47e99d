"""What the real APIs refuse in a declared tool, each with where that is said."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_WITHIN = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_GEMINI = frozenset(
    {
        "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "default", "enum", "items",
        "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties",
        "additionalProperties", "required",
    }
)  # fmt: skip
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_DEEPEST = 32

_NAME = "tool names"
_OBJECT = "a schema of an object"
_DESCRIBED = "a description"

ToolCheck = Callable[[Mapping[str, Any]], Iterator[str]]


class ToolRule(Struct, frozen=True, kw_only=True):
    """One thing that an API refuses; `source` says where that is known from, and of which month."""

    what: str
    source: str
    check: ToolCheck


class ToolRules(Struct, frozen=True, kw_only=True):
    """What one API refuses of tools: names, descriptions, and the root and every part of a schema."""

    name: re.Pattern[str]
    name_source: str
    object_source: str
    root: tuple[ToolRule, ...]
    parts: tuple[ToolRule, ...]
    described: str = ""
    """Where it is said that a description must not be empty; empty where it may be."""

    def rows(self) -> list[tuple[str, str]]:
        """What is refused, each with where that is known from."""
        found = [(_NAME, self.name_source), (_OBJECT, self.object_source)]
        found += [(_DESCRIBED, self.described)] if self.described else []
        return [*found, *((rule.what, rule.source) for rule in (*self.root, *self.parts))]

    def findings(self, name: object, description: object, schema: object) -> list[tuple[str, str]]:
        """Say what is wrong with a declared tool: what is refused, and how it is said."""
        found = []
        if not isinstance(name, str) or not self.name.fullmatch(name):
            found.append((_NAME, f"{name!r} is not a tool name"))
        if self.described and not (isinstance(description, str) and description):
            found.append((_DESCRIBED, f"the description of tool {name!r} must not be empty"))
        if not isinstance(schema, dict) or str(schema.get("type")).lower() != "object":
            return [*found, (_OBJECT, f"the schema of tool {name!r} is not a JSON Schema of an object")]
        said = [(rule.what, problem) for rule in self.root for problem in rule.check(schema)]
        said += [
            (rule.what, problem) for part in parts_of(schema) for rule in self.parts for problem in rule.check(part)
        ]
        return [*found, *((what, f"the schema of tool {name!r}: {problem}") for what, problem in dict.fromkeys(said))]

    def problems(self, name: object, description: object, schema: object) -> list[str]:
        """Say everything that is wrong with a declared tool."""
        return [said for _, said in self.findings(name, description, schema)]


def parts_of(schema: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Give a schema and every part of it."""
    if depth > _DEEPEST:
        yield {"$too deep": True}
        return
    yield schema
    inner = [schema[key] for key in _WITHIN if key in schema]
    inner += [one for key in _SEVERAL if isinstance(schema.get(key), list) for one in schema[key]]
    inner += [one for key in _NAMED if isinstance(schema.get(key), dict) for one in schema[key].values()]
    for one in inner:
        if isinstance(one, dict):
            yield from parts_of(one, depth + 1)


def _no_choice(schema: Mapping[str, Any]) -> Iterator[str]:
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            yield f"{key} is not supported at the top level"


def _no_choice_or_enum(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from _no_choice(schema)
    for key in ("enum", "not", "const"):
        if key in schema:
            yield f"{key} is not supported at the top level"


def _items(schema: Mapping[str, Any]) -> Iterator[str]:
    kinds = schema.get("type")
    if (kinds == "array" or (isinstance(kinds, list) and "array" in kinds)) and not isinstance(
        schema.get("items"), dict | bool
    ):
        yield "array schema missing items"


def _draft(schema: Mapping[str, Any]) -> Iterator[str]:
    """JSON Schema 2020-12, as far as a validator of schemas looks."""
    kinds = schema.get("type", "object")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind not in _TYPES:
            yield f"{kind!r} is not a type"
    if isinstance(kinds, list) and (not kinds or len(set(map(repr, kinds))) < len(kinds)):
        yield "type must be a list of different types"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        yield "required must be a list of names"
    elif len(set(required)) < len(required):
        yield "required has a name twice"
    if not isinstance(schema.get("enum", [0]), list) or not schema.get("enum", [0]):
        yield "enum must be a list with something in it"
    for key in ("title", "description", "format", "pattern", "$ref"):
        if not isinstance(schema.get(key, ""), str):
            yield f"{key} must be a text"
    yield from _bounds(schema)
    yield from _nested(schema)
    if "$too deep" in schema:
        yield "it is nested too deeply"


def _bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    for key in _COUNTS:
        value = schema.get(key, 0)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            yield f"{key} must be a number of things"
    for key in _BOUNDS:
        value = schema.get(key, 1)
        if not isinstance(value, int | float) or isinstance(value, bool):
            yield f"{key} must be a number"
    if not isinstance(schema.get("uniqueItems", True), bool):
        yield "uniqueItems must be true or false"
    try:
        re.compile(str(schema.get("pattern", "")))
    except re.error:
        yield "pattern is no regular expression"


def _nested(schema: Mapping[str, Any]) -> Iterator[str]:
    for key in _WITHIN:
        if not isinstance(schema.get(key, {}), dict | bool):
            yield f"{key} must be a schema"
    for key in _SEVERAL:
        value = schema.get(key, [{}])
        if not isinstance(value, list) or not value or not all(isinstance(one, dict | bool) for one in value):
            yield f"{key} must be a list of schemas"
    for key in _NAMED:
        value = schema.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(one, dict | bool) for one in value.values()):
            yield f"{key} must hold schemas"


def _property_names(schema: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties")
    for key in properties if isinstance(properties, dict) else ():
        if not _PROPERTY.fullmatch(key):
            yield f"property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$', {key!r} does not"


def _required_exist(schema: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    for key in required if isinstance(required, list) else ():
        if key not in known:
            yield f"required[{key}]: property is not defined"


def _gemini_words(schema: Mapping[str, Any]) -> Iterator[str]:
    for key in schema:
        if key not in _GEMINI:
            yield f"unknown name {key!r}"
    if isinstance(schema.get("type"), list) and sum(kind != "null" for kind in schema["type"]) > 1:
        yield "type must be one, or one and null"
    enum = schema.get("enum")
    if isinstance(enum, list) and not all(isinstance(one, str) for one in enum):
        yield "enum: only texts are possible"
    if "enum" in schema and schema.get("type") != "string":
        yield "enum: only allowed for STRING type"
    if schema.get("type") == "string" and schema.get("format", "enum") not in ("enum", "date-time", "date", "time"):
        yield "format: only 'enum' and 'date-time' are supported for STRING type"


def _empty_choice(schema: Mapping[str, Any]) -> Iterator[str]:
    enum = schema.get("enum")
    for number, one in enumerate(enum if isinstance(enum, list) else ()):
        if one == "":
            yield f"enum[{number}]: cannot be empty"


_2020 = ToolRule(
    what="a schema of draft 2020-12",
    source="the 400 of Messages: 'JSON schema is invalid. It must match JSON Schema draft 2020-12', 2025-11",
    check=_draft,
)
_ITEMS = ToolRule(
    what="an array with items",
    source="the 400 of Chat Completions and Responses: 'array schema missing items', 2025-11",
    check=_items,
)

ANTHROPIC_TOOLS = ToolRules(
    name=re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    name_source="docs.claude.com, tool use: name, and the 400 'String should match pattern', 2025-11",
    object_source="the 400 of Messages: 'input_schema.type: Field required', 2025-11",
    root=(
        ToolRule(
            what="no choice at the root",
            source="the 400 of Messages: 'does not support oneOf, allOf, or anyOf at the top level', 2026-05",
            check=_no_choice,
        ),
    ),
    parts=(
        _2020,
        ToolRule(
            what="property names of letters, digits, _ . and -",
            source="the 400 of Messages: 'Property keys should match pattern', 2025-11",
            check=_property_names,
        ),
    ),
)
OPENAI_TOOLS = ToolRules(
    name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    name_source="API reference of Chat Completions: tools.function.name, 2025-11",
    object_source="the 400: 'schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'', 2025-11",
    root=(
        ToolRule(
            what="no choice at the root",
            source="the 400: \"schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the "
            'top level", 2025-11',
            check=_no_choice_or_enum,
        ),
    ),
    parts=(_2020, _ITEMS),
)
GEMINI_TOOLS = ToolRules(
    name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
    name_source="ai.google.dev, FunctionDeclaration: name, 2025-11",
    object_source="the 400 of generateContent: 'parameters schema should be of type OBJECT', 2025-11",
    root=(
        ToolRule(
            what="no choice at the root",
            source="the 400 of generateContent: 'parameters schema should be of type OBJECT', 2025-11; so is a choice",
            check=_no_choice,
        ),
    ),
    parts=(
        _2020,
        _ITEMS,
        ToolRule(what="names that it knows", source="ai.google.dev, JSON Schema subset, 2025-11", check=_gemini_words),
        ToolRule(
            what="required properties that exist",
            source="the 400 of generateContent: 'required[0]: property is not defined', 2025-11",
            check=_required_exist,
        ),
        ToolRule(
            what="no empty text in an enum",
            source="the 400 of generateContent: 'enum[1]: cannot be empty', 2026-03",
            check=_empty_choice,
        ),
    ),
)
BEDROCK_TOOLS = replace(
    ANTHROPIC_TOOLS,
    name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    name_source="API reference of Bedrock: ToolSpecification.name, 2025-11",
    object_source="API reference of Bedrock: ToolInputSchema; the 400 'inputSchema.json.type must be one of', 2025-11",
    described="API reference of Bedrock: ToolSpecification.description, at least one character, 2025-11",
)
