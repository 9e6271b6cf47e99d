"""Arguments against a schema: messages that the model can act on."""

from typing import Any

import pytest

from treadle.parsing import ToolGrammar, grammar_of, validate_arguments

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


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (0, 'Parameter "n" must be at least 1, not 0.'),
        (601, 'Parameter "n" must be at most 600, not 601.'),
        (10**30, f'Parameter "n" must be at most 600, not {10**30}.'),
        (-(10**30), f'Parameter "n" must be at least 1, not {-(10**30)}.'),
    ],
)
def test_numbers_outside_of_their_bounds_are_told_with_the_bound(value: int, problem: str) -> None:
    schema = {"properties": {"n": {"type": "integer", "minimum": 1, "maximum": 600}}}
    assert validate_arguments(schema, {"n": value}) == [problem]


@pytest.mark.parametrize("value", [2**53, -(2**53), 10**30, 1e300])
def test_an_integer_that_no_tool_can_use_is_a_problem(value: float) -> None:
    (problem,) = validate_arguments(SCHEMA, {"path": "a", "line": value})
    assert problem.startswith('Parameter "line" is too large a number: ')


def test_a_structure_where_a_text_is_wanted_says_what_to_send() -> None:
    assert validate_arguments(SCHEMA, {"path": {"a": 1}}) == [
        'Parameter "path" must be string, not {"a":1}. Give the text itself, as one string.'
    ]
