"""Arguments against a schema: types for XML strings, and messages that the model can act on."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.parsing import ToolGrammar, grammar_of, typed_arguments, validate_arguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer"},
        "share": {"type": "number"},
        "force": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "range": {
            "type": "object",
            "properties": {"from": {"type": "integer"}},
            "required": ["from"],
            "additionalProperties": False,
        },
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "mode": {"enum": ["fast", "slow", 1]},
        "free": {},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def test_the_grammar_of_a_tool_is_read_off_its_schema() -> None:
    schema = {"properties": {"path": {}, "line": {}}, "required": ["path", "unknown"]}
    assert grammar_of("read_file", schema) == ToolGrammar("read_file", ("path", "line"), ("path",))
    assert grammar_of("done", {"type": "object"}) == ToolGrammar("done", ())


def test_strings_get_the_types_of_the_schema() -> None:
    written = {
        "path": " 12 ",
        "line": "\n+12 ",
        "share": "-.5e1",
        "force": "True",
        "tags": '["a", "b"]',
        "range": '{"from": 1}',
        "limit": "null",
        "mode": "fast",
        "free": "7",
        "unknown": "x",
    }
    assert typed_arguments(SCHEMA, written) == (
        {
            "path": " 12 ",
            "line": 12,
            "share": -5.0,
            "force": True,
            "tags": ["a", "b"],
            "range": {"from": 1},
            "limit": None,
            "mode": "fast",
            "free": "7",
            "unknown": "x",
        },
        [],
    )


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("line", "1.5", '<line> must be integer, not "1.5".'),
        ("line", "", '<line> must be integer, not "".'),
        ("line", "9" * 5000, '<line> must be integer, not "' + "9" * 76 + "...."),
        ("share", "1e9999", '<share> must be number, not "1e9999".'),
        ("share", "nan", '<share> must be number, not "nan".'),
        ("force", "yes", '<force> must be boolean, not "yes".'),
        ("tags", "a, b", '<tags> must be array, not "a, b".'),
        ("tags", "{}", '<tags> must be array, not "{}".'),
        ("limit", "none", '<limit> must be integer or null, not "none".'),
        ("range", "[" * 100_000, '<range> must be object, not "' + "[" * 76 + "...."),
    ],
)
def test_a_value_that_cannot_be_read_stays_a_string_and_is_a_problem(name: str, text: str, problem: str) -> None:
    assert typed_arguments(SCHEMA, {name: text}) == ({name: text}, [problem])


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({"path": "a", "line": 1, "share": 1, "force": False, "mode": 1, "limit": None, "free": [1]}, []),
        ({"path": "a", "line": 2.0, "tags": [], "range": {"from": 0}}, []),
        ({}, ['Parameter "path" is missing. Send the call again with it.']),
        ({"path": 1}, ['Parameter "path" must be string, not 1.']),
        ({"path": "a", "line": True}, ['Parameter "line" must be integer, not true.']),
        ({"path": "a", "line": 1.5}, ['Parameter "line" must be integer, not 1.5.']),
        ({"path": "a", "tags": ["x", 2]}, ['Parameter "tags[1]" must be string, not 2.']),
        (
            {"path": "a", "range": {"to": 1}},
            [
                'Parameter "range.from" is missing. Send the call again with it.',
                'Parameter "range.to" is not known. Use only: "from".',
            ],
        ),
        (
            {"path": "a", "limit": "x"},
            ['Parameter "limit" must be integer or null, in one of the forms that the schema allows.'],
        ),
        ({"path": "a", "mode": True}, ['Parameter "mode" must be one of "fast", "slow", 1, not true.']),
    ],
)
def test_problems_are_listed_for_the_model(arguments: dict[str, Any], problems: list[str]) -> None:
    assert validate_arguments(SCHEMA, arguments) == problems


def test_other_properties_and_constants_are_checked() -> None:
    schema = {"additionalProperties": {"type": "integer"}, "properties": {"kind": {"const": "a"}}}
    assert validate_arguments(schema, {"kind": "b", "x": 1, "y": "z"}) == [
        'Parameter "kind" must be "a", not "b".',
        'Parameter "y" must be integer, not "z".',
    ]
    assert validate_arguments({"properties": {"gone": False}}, {"gone": 1}) == ['Parameter "gone" must not be given.']


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), st.text()))
def test_no_arguments_raise(arguments: dict[str, str]) -> None:
    typed, problems = typed_arguments(SCHEMA, arguments)
    assert typed.keys() == arguments.keys()
    assert len(problems) <= len(arguments)
    assert isinstance(validate_arguments(SCHEMA, typed), list)
