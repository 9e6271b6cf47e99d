"""Values in another form than the schema asks for: read where only one reading is possible, and never otherwise."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parsing.test_arguments import SCHEMA

from treadle.parsing import coerced, validate_arguments

OBJECTS = {
    "type": "object",
    "properties": {
        "edits": {
            "type": "array",
            "items": {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]},
        },
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "action": {"type": "string", "enum": ["click", "scroll_down"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]},
        "coordinate": {"type": "string"},
        "command": {"type": "string"},
        "content": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        ({"path": " 12 "}, {"path": " 12 "}),
        ({"path": 12}, {"path": "12"}),
        ({"line": "\n+12 "}, {"line": 12}),
        ({"line": "-7.00"}, {"line": -7}),
        ({"line": 5.0}, {"line": 5}),
        ({"share": "-.5e1"}, {"share": -5.0}),
        ({"share": "3"}, {"share": 3}),
        ({"force": "True"}, {"force": True}),
        ({"force": " false\n"}, {"force": False}),
        ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
        ({"tags": "x"}, {"tags": ["x"]}),
        ({"tags": [1, "b"]}, {"tags": ["1", "b"]}),
        ({"range": '{"from": "1"}'}, {"range": {"from": 1}}),
        ({"limit": "null"}, {"limit": None}),
        ({"limit": "None"}, {"limit": None}),
        ({"limit": ""}, {}),
        ({"limit": "7"}, {"limit": 7}),
        ({"mode": "Fast "}, {"mode": "fast"}),
        ({"free": "7", "unknown": "x"}, {"free": "7", "unknown": "x"}),
        ({"line": None, "force": "", "tags": "null", "range": " "}, {}),
        ({"path": None}, {"path": None}),
    ],
)
def test_what_is_certain_is_read(given_: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = coerced(SCHEMA, given_)
    assert found == wanted
    assert [type(value) for value in found.values()] == [type(value) for value in wanted.values()]


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        ({"edits": {"line": "1"}}, {"edits": [{"line": 1}]}),
        ({"edits": '{"line": 1}'}, {"edits": [{"line": 1}]}),
        ({"edits": '[{"line": 1}, {"line": "2"}]'}, {"edits": [{"line": 1}, {"line": 2}]}),
        ({"numbers": 5}, {"numbers": [5]}),
        ({"numbers": "5"}, {"numbers": [5]}),
        ({"action": "CLICK"}, {"action": "click"}),
        ({"coordinate": [640, 400.0]}, {"coordinate": "640,400"}),
        ({"coordinate": {"x": 1, "y": 2}}, {"coordinate": "1,2"}),
        ({"command": ["bash", "-lc", "ls | head"]}, {"command": "ls | head"}),
        ({"command": ["git", "commit", "-m", "two words"]}, {"command": "git commit -m 'two words'"}),
        ({"command": ["ls -la"]}, {"command": "ls -la"}),
    ],
)
def test_structures_that_stand_for_another_one_are_read(given_: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert coerced(OBJECTS, given_) == wanted


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a", "line": "1.5"},
        {"path": "a", "line": 1.5},
        {"path": "a", "line": "9" * 5000},
        {"path": "a", "line": "0x10"},
        {"path": "a", "line": "1e3"},
        {"path": "a", "line": True},
        {"path": "a", "line": "1_000"},
        {"path": "a", "share": "1e9999"},
        {"path": "a", "share": "nan"},
        {"path": "a", "force": "yes"},
        {"path": "a", "force": 1},
        {"path": "a", "tags": "a, b"},
        {"path": "a", "tags": "a\nb"},
        {"path": "a", "tags": "['a']"},
        {"path": "a", "tags": {}},
        {"path": "a", "range": "[" * 100_000},
        {"path": "a", "range": {"from": "one"}},
        {"path": "a", "mode": "1"},
        {"path": True},
        {"path": 1.10},
        {"path": ["a"]},
        {"path": {"a": 1}},
        {"path": None},
    ],
)
def test_what_could_mean_something_else_stays_and_is_refused(arguments: dict[str, Any]) -> None:
    assert coerced(SCHEMA, arguments) == arguments
    assert validate_arguments(SCHEMA, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": {"name": "x"}},
        {"content": [1]},
        {"content": 5},
        {"either": "5"},
        {"coordinate": [1, 2, 3]},
        {"coordinate": [1.5, 2]},
        {"coordinate": [True, 2]},
        {"command": ["cd sub", "make"]},
        {"command": ["ls", 1]},
        {"command": []},
    ],
)
def test_texts_of_files_and_readings_that_differ_are_left_alone(arguments: dict[str, Any]) -> None:
    assert coerced(OBJECTS, arguments) == arguments
    assert validate_arguments(OBJECTS, arguments)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["5", "5.0", " true", "null", "[1]", '{"from": 1}', "x", "fast", '["a"]', "", "-0"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["from", "to", "x"]), inner, max_size=2)
    ),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), JSON, max_size=6)


@settings(max_examples=300)
@given(ARGUMENTS)
def test_coercing_twice_is_coercing_once_and_what_is_valid_keeps_its_value(arguments: dict[str, Any]) -> None:
    found = coerced(SCHEMA, arguments)
    assert msgspec.json.encode(coerced(SCHEMA, found)) == msgspec.json.encode(found)
    if not validate_arguments(SCHEMA, arguments):
        assert found == arguments
    assert found.keys() <= arguments.keys()
    assert all(arguments[name] is None or isinstance(arguments[name], str) for name in arguments.keys() - found.keys())


@settings(max_examples=300)
@given(st.sampled_from(["line", "share", "force", "tags", "limit"]), JSON)
def test_a_value_that_was_read_says_the_same_as_before(name: str, value: Any) -> None:
    read_as = coerced(SCHEMA, {"path": "a", name: value})
    found = read_as.get(name, value)
    if found is value or validate_arguments(SCHEMA, read_as):
        return
    said = msgspec.json.encode(found).decode()
    told = value.strip() if isinstance(value, str) else msgspec.json.encode(value).decode()
    match found:
        case bool() | None:
            assert said == told.lower()
        case int():
            assert found == float(told)
        case float():
            assert found == pytest.approx(float(told))
        case list() if isinstance(value, str) and not told.startswith("["):
            assert found == [told]
        case list():
            read = msgspec.json.decode(told)
            assert found == [str(item) for item in (read if isinstance(read, list) else [read])]
        case _:
            raise AssertionError(found)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), st.text()))
def test_no_arguments_raise(arguments: dict[str, str]) -> None:
    assert isinstance(validate_arguments(SCHEMA, coerced(SCHEMA, arguments)), list)


@settings(max_examples=200)
@given(st.text(), st.sampled_from(["content", "command", "coordinate"]))
def test_a_text_keeps_its_bytes_where_a_text_is_wanted(text: str, name: str) -> None:
    assert coerced(OBJECTS, {name: text}) == {name: text}
