"""Schemas of tools: whatever a server declares is written so that each wire API takes it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.providers.plain_schemas import is_plain_schema
from treadle.providers.scripted.refused_schemas import (
    ANTHROPIC_TOOLS,
    BEDROCK_TOOLS,
    GEMINI_TOOLS,
    OPENAI_TOOLS,
)
from treadle.providers.tool_schemas import ANTHROPIC, BEDROCK, GEMINI, OPENAI, schema_for
from treadle.providers.tool_schemas import SCHEMA_FORMS as WITHOUT_CHANGE
from treadle.tools.tool_catalogue import SPECS

FORMS = {
    "anthropic": (ANTHROPIC, ANTHROPIC_TOOLS),
    "openai": (OPENAI, OPENAI_TOOLS),
    "gemini": (GEMINI, GEMINI_TOOLS),
    "bedrock": (BEDROCK, BEDROCK_TOOLS),
}

scalars = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text("ab$ ", max_size=3), st.floats(-1, 1))
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text("ab", max_size=2), inner, max_size=2)),
    max_leaves=4,
)
kinds = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null", "any", "int", "file"])
keys = st.sampled_from(["a", "b", "c.d", "with space", "$ref", "x" * 70, "ä", ""])
refs = st.sampled_from(["#/$defs/a", "#/definitions/b", "#", "#/properties/a", "other.json", "#/$defs/none"])


def _schema(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, max_size=3)
    named = st.dictionaries(keys, inner, max_size=3)
    valued = {
        "type": st.one_of(kinds, st.lists(kinds, max_size=3)),
        "properties": named,
        "required": st.lists(keys, max_size=3),
        "items": st.one_of(inner, several),
        "prefixItems": several,
        "oneOf": several,
        "anyOf": several,
        "allOf": several,
        "$defs": named,
        "definitions": named,
        "$ref": refs,
        "additionalProperties": inner,
        "patternProperties": named,
        "not": inner,
        "if": inner,
        "then": inner,
        "enum": st.lists(scalars, max_size=3),
        "const": scalars,
        "format": st.sampled_from(["uri", "date-time", "email", "int32", "regex"]),
        "pattern": st.sampled_from(["^a+$", "(?<!a)b", "[", "\\p{L}"]),
        "minimum": st.integers(-2, 2),
        "exclusiveMinimum": st.one_of(st.booleans(), st.integers(-2, 2)),
        "minItems": st.integers(-2, 2),
        "nullable": st.booleans(),
        "description": st.text("ab ", max_size=5),
        "default": anything,
        "x-own": anything,
    }
    sound = st.fixed_dictionaries({}, optional=valued)
    broken = st.dictionaries(st.sampled_from(sorted(valued)), anything, max_size=4)
    return st.one_of(sound, sound, broken, st.booleans())


schemas = st.recursive(st.one_of(st.fixed_dictionaries({"type": kinds}), st.just({})), _schema, max_leaves=12)


@settings(max_examples=120)
@given(schema=schemas.filter(lambda found: isinstance(found, dict)))
def test_every_schema_is_written_so_that_each_api_takes_it(schema: dict[str, Any]) -> None:
    """To draw a schema takes fifty times as long as to write it: one is drawn for all APIs."""
    written = {api: schema_for(form, schema) for api, (form, _) in FORMS.items()}

    found = {api: FORMS[api][1].problems("tool", "It works.", one) for api, one in written.items()}
    assert {api: problems for api, problems in found.items() if problems} == {}
    msgspec.json.encode(written)


USUAL = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "lines": {"type": "array", "items": {"type": "integer"}, "maxItems": 5},
        "kind": {"type": "string", "enum": ["a", "b"]},
    },
    "required": ["path"],
}


@pytest.mark.parametrize("api", FORMS)
def test_a_usual_schema_stays_as_it_is(api: str) -> None:
    assert schema_for(FORMS[api][0], USUAL) == USUAL


simple = st.recursive(
    st.sampled_from([{"type": "string", "enum": ["a", "b"]}, {"type": "integer", "minimum": 1}, {"type": "boolean"}]),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items, "maxItems": 3}, inner),
        st.builds(
            lambda named: {"type": "object", "properties": named, "required": list(named), "description": "One."},
            st.dictionaries(st.sampled_from(["a", "b_2", "c"]), inner, min_size=1, max_size=3),
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=120)
@given(schema=st.one_of(schemas, simple))
def test_a_plain_schema_is_one_that_no_api_needs_otherwise(schema: dict[str, Any]) -> None:
    if is_plain_schema(schema) and schema["type"] == "object":
        assert {api: schema_for(form, schema) for api, form in WITHOUT_CHANGE.items()} == dict.fromkeys(
            WITHOUT_CHANGE, schema
        )


def test_the_schemas_of_the_built_in_tools_are_plain() -> None:
    specs = list(SPECS.values())

    assert len(specs) > 10
    assert [spec.name for spec in specs if not is_plain_schema(spec.parameters)] == []


def test_a_choice_at_the_root_keeps_the_properties_of_its_branches() -> None:
    one = {"properties": {"id": {"type": "string"}, "note": {"type": "string"}}, "required": ["id", "note"]}
    other = {"properties": {"path": {"type": "string"}, "note": {"type": "string"}}, "required": ["path", "note"]}

    assert schema_for(ANTHROPIC, {"oneOf": [one, other], "required": ["force"], "properties": {"force": {}}}) == {
        "type": "object",
        "properties": {"id": {"type": "string"}, "note": {"type": "string"}, "path": {"type": "string"}, "force": {}},
        "required": ["force", "note"],
    }


def test_what_a_reference_leads_to_stands_in_its_place_and_one_in_circles_ends() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }

    tree = schema_for(BEDROCK, schema)["properties"]["tree"]

    assert tree["properties"]["next"]["properties"]["next"]["type"] == "object"
    assert ANTHROPIC_TOOLS.problems("t", "d", schema_for(ANTHROPIC, schema)) == []


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("api", FORMS)
def test_a_schema_that_branches_into_itself_ends(api: str, name: str) -> None:
    form, rules = FORMS[api]
    itself = {name: [{"$ref": "#"}] * 16}

    for schema in (itself, {**itself, "properties": {"a": {"$ref": "#"}}}):
        assert rules.problems("tool", "It works.", schema_for(form, schema)) == []


@pytest.mark.parametrize(
    ("rules", "schema", "complaint"),
    [
        (ANTHROPIC_TOOLS, {"type": "object", "oneOf": [{}]}, "oneOf is not supported at the top level"),
        (ANTHROPIC_TOOLS, {"type": "object", "properties": {"a b": {}}}, "property keys should match"),
        (OPENAI_TOOLS, {"type": "object", "properties": {"a": {"type": "array"}}}, "array schema missing items"),
        (GEMINI_TOOLS, {"type": "object", "properties": {"a": {"$comment": ""}}}, "unknown name '$comment'"),
        (GEMINI_TOOLS, {"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}, "type must be one"),
        (GEMINI_TOOLS, {"type": "object", "required": ["a"]}, "required[a]: property is not defined"),
        (GEMINI_TOOLS, {"type": "object", "properties": {"a": {"type": "string", "enum": [""]}}}, "enum[0]: cannot"),
        (OPENAI_TOOLS, {"properties": {}}, "is not a JSON Schema of an object"),
        (OPENAI_TOOLS, {"type": "object", "properties": {"a": {"type": [{}]}}}, "{} is not a type"),
        (GEMINI_TOOLS, {"type": "object", "required": 3}, "required must be a list of names"),
    ],
)  # fmt: skip
def test_the_scripted_servers_refuse_what_the_real_ones_refuse(rules: Any, schema: object, complaint: str) -> None:
    (problem,) = rules.problems("tool", "d", schema)
    assert complaint in problem


@pytest.mark.parametrize("api", FORMS)
@pytest.mark.parametrize("rest", [{}, {"not": {"required": ["c"]}}, {"enum": [{}]}, {"allOf": [{}]}, {"anyOf": [{}]}])
def test_the_schema_of_the_report_is_taken_and_keeps_its_arguments(api: str, rest: dict[str, Any]) -> None:
    """A tool of a server that offers one of two arguments made every request of a session fail."""
    branches = [{"required": ["a"]}, {"required": ["b"]}]
    properties = {"a": {"type": "array"}, "b": {"type": "string"}}
    form, rules = FORMS[api]
    written = schema_for(form, {"type": "object", "properties": properties, "oneOf": branches, **rest})
    assert rules.problems("tool", "It works.", written) == []
    assert set(written["properties"]) == {"a", "b"}


_Q = {"properties": {"team_ids": {"type": "array", "default": None}, "limit": {"type": "integer"}}, "type": "object"}
REPORTED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "github/copilot-cli#1876": (
        {"$defs": {"Q": _Q}, "properties": {"q": {"$ref": "#/$defs/Q"}}, "required": ["q"], "type": "object"},
        {"q", "q.limit", "q.team_ids"},
    ),
    "anomalyco/opencode#12295": (
        {"type": "object", "properties": {"o": {"$ref": "#/$defs/O", "title": "O"}}, "$defs": {"O": _Q}},
        {"o", "o.limit", "o.team_ids"},
    ),
    "google-gemini/gemini-cli#13326": (
        {
            "type": "object",
            "properties": {"t": {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "string"}]}},
            "$defs": {"T": _Q},
        },
        {"t"},
    ),
    "tadata-org/fastapi_mcp#218": (
        {"type": "object", "properties": {"a": {"type": "string", "nullable": True, "example": "x", "readOnly": True}}},
        {"a"},
    ),
    "opentokenz/mcpx#28": (
        {
            "type": "object",
            "oneOf": [{"properties": {"run": {"type": "string"}}, "required": ["run"]}, {"properties": {"stop": {}}}],
        },
        {"run", "stop"},
    ),
    "MarkusPfundstein/mcp-gsuite#48": (
        {"type": "object", "properties": {"query": {"type": "string", "required": False}}, "required": ["query"]},
        {"query"},
    ),
    "ee0pdt/Godot-MCP#13": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"p": {"type": "object", "additionalProperties": {"type": "string"}}},
            "additionalProperties": False,
        },
        {"p"},
    ),
    "aaif-goose/goose#854": ({"properties": {}, "required": [], "type": "object"}, set()),
    "ggml-org/llama.cpp#14227": ({"type": "object", "properties": {"w": {"anyOf": [{"type": "number"}]}}}, {"w"}),
    "open-webui/computer#87": (
        {
            "type": "object",
            "properties": {"f": {"$ref": "#/$defs/F"}},
            "$defs": {"F": {"type": "string", "enum": ["fit", "raw"]}},
            "additionalProperties": False,
        },
        {"f"},
    ),
    "dodopayments/dodopayments-typescript#189": (
        {
            "type": "object",
            "properties": {"id": {"type": "string"}},
            "anyOf": [{"required": ["id"]}, {"required": ["jq"]}],
            "allOf": [{"properties": {"jq": {"type": "string"}}}],
        },
        {"id", "jq"},
    ),
}
"""Schemas of servers in public reports, and the arguments of each, those of objects within too."""


def _arguments(schema: dict[str, Any], above: str = "") -> set[str]:
    inner = schema.get("properties", {})
    return {f"{above}{name}" for name in inner}.union(
        *(_arguments(one, f"{above}{name}.") for name, one in inner.items())
    )


@pytest.mark.parametrize("api", FORMS)
@pytest.mark.parametrize("source", REPORTED)
def test_the_schema_of_a_reported_server_is_taken_by_each_api_with_all_arguments(source: str, api: str) -> None:
    schema, arguments = REPORTED[source]
    form, rules = FORMS[api]
    written = schema_for(form, schema)
    assert rules.problems("tool", "It works.", written) == []
    assert _arguments(written) == arguments
