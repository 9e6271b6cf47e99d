"""Native calls: argument JSON in pieces, complete or reported."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parsing.replies import coalesced

from treadle.parsing import CallComplete, CallOpened, Malformation, NativeReader, ParameterDelta, ParserEvent
from treadle.parsing.readings import Reading

MALFORMED = "JSON is malformed: invalid character (byte 5)"
EXAMPLES = settings(max_examples=200)
FEW = settings(max_examples=50)
TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from('"\\{}[]:,\n\t'))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)
JSON_LIKE = st.lists(
    st.sampled_from(["{", "}", '"', "\\", "\\u", "\\ud83d", "\\ude00", "d8", "00e9", ":", ",", "[", "]", " ", "1", "x"])
    | st.text(max_size=2),
    max_size=25,
).map("".join)


def read(chunks: list[str]) -> list[ParserEvent]:
    reader = NativeReader()
    blocks = reader.start(0, "id-1", "tool")
    for chunk in chunks:
        blocks += reader.feed(0, chunk)
    return coalesced([*blocks, *reader.end(0), *reader.finish()])


def previews(blocks: list[ParserEvent]) -> dict[str, str]:
    return {block.name: block.text for block in blocks if isinstance(block, ParameterDelta)}


def test_partial_arguments_can_be_shown() -> None:
    reader = NativeReader()
    chunks = ['{"pa', 'th": "a', ".py\\", 'n", "lines', '": [1, {"x"', ': "]"}], "on": tr', "ue }"]
    assert reader.start(3, "id-3", "edit") == [CallOpened(3, "edit", "id-3")]
    assert [reader.feed(3, chunk) for chunk in chunks] == [
        [],
        [ParameterDelta(3, "path", "a")],
        [ParameterDelta(3, "path", ".py")],
        [ParameterDelta(3, "path", "\n")],
        [ParameterDelta(3, "lines", '[1, {"'), ParameterDelta(3, "lines", 'x"')],
        [
            ParameterDelta(3, "lines", ': "'),
            ParameterDelta(3, "lines", ']"'),
            ParameterDelta(3, "lines", "}]"),
            ParameterDelta(3, "on", "tr"),
        ],
        [ParameterDelta(3, "on", "ue ")],
    ]
    arguments = {"path": "a.py\n", "lines": [1, {"x": "]"}], "on": True}
    assert reader.end(3) == [CallComplete(3, "edit", arguments, "id-3", "".join(chunks))]
    assert reader.end(3) == []


def test_calls_may_interleave_and_close_in_their_order() -> None:
    reader = NativeReader()
    assert reader.start(0, "a", "one") == [CallOpened(0, "one", "a")]
    assert reader.start(1, "b", "two") == [CallOpened(1, "two", "b")]
    assert reader.feed(1, '{"x":') == []
    assert reader.feed(0, '{"y": "1"}') == [ParameterDelta(0, "y", "1")]
    assert reader.feed(1, "2}") == [ParameterDelta(1, "x", "2")]
    assert reader.finish() == [
        CallComplete(0, "one", {"y": "1"}, "a", '{"y": "1"}'),
        CallComplete(1, "two", {"x": 2}, "b", '{"x":2}'),
    ]
    assert reader.finish() == []


def test_a_name_and_an_id_may_come_late_or_twice() -> None:
    reader = NativeReader()
    assert reader.start(0, None, "") == []
    assert reader.feed(0, "{}") == []
    assert reader.start(0, "a", "one") == [CallOpened(0, "one", "a")]
    assert reader.start(0, "b", "other") == []
    assert reader.end(0) == [CallComplete(0, "one", {}, "a", "{}")]


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_no_arguments_are_an_empty_object(nothing: str) -> None:
    assert read([nothing]) == [CallOpened(0, "tool", "id-1"), CallComplete(0, "tool", {}, "id-1", nothing)]


@pytest.mark.parametrize(
    ("source", "code", "what"),
    [
        (
            '{"path": "a',
            "cut_json",
            "its argument JSON is cut off. Send the whole call again; if it is long, split it into several calls.",
        ),
        ("[1]", "not_an_object", "its arguments must be one JSON object of parameters."),
        ('"path"', "not_an_object", "its arguments must be one JSON object of parameters."),
        ('{"a": 1, "a": 2}', "duplicate_parameter", '"a" came twice. Give each parameter once.'),
        (
            '{"a":x}',
            "invalid_json",
            f"its arguments are not valid JSON ({MALFORMED}). Send valid JSON.",
        ),
    ],
)
def test_what_is_not_one_whole_object_is_reported(source: str, code: str, what: str) -> None:
    assert read([source])[-1] == Malformation(code, f"The call was not run: {what}", 0, "tool", source)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ('{"a": 1} x', "invalid_json"),
        ("{", "cut_json"),
        ('{"a": 1', "cut_json"),
        ('{"a": 1,', "cut_json"),
        ('{"a": -', "cut_json"),
        ('{"a": "\\u00', "cut_json"),
        ('{"a": [1, 2]', "cut_json"),
        ('{"a": "\\ud800"}', "invalid_json"),
        ('{"a": "\ud800"}', "invalid_json"),
        ('{"a": NaN}', "invalid_json"),
        ("{a: 1}", "invalid_json"),
        ('{"a": 1}{}', "several_objects"),
        ('{"a": 1}{"a": 2}', "several_objects"),
        ('{}{"a": 1}{"b": 1}', "several_objects"),
        ('{"a": true}{"a": 1}', "several_objects"),
        ('{"a": 1}[]', "several_objects"),
        ('{}{"a": 1, "a": 2}', "duplicate_parameter"),
        ('{}{"a": "b', "cut_json"),
        ('{}{"a": 1e999}', "invalid_json"),
        ('{}{"a": NaN}', "invalid_json"),
        ('{}{"a": "\\ud800"}', "invalid_json"),
        ("{}x", "invalid_json"),
        ('{"a": ' + "[" * 20_000 + "]" * 20_000 + "}", "invalid_json"),
        ("null", "not_an_object"),
    ],
)
def test_broken_json_is_never_mended(source: str, code: str) -> None:
    for chunks in ([source], list(source)):
        last = read(chunks)[-1]
        assert isinstance(last, Malformation)
        assert (last.code, last.source) == (code, source)


EMPTY, AGAIN, RAW = Reading.EMPTY_OBJECTS, Reading.REPEATED_OBJECT, Reading.RAW_CHARACTERS
READINGS = [
    ('{}{"path": "a.py"}', {"path": "a.py"}, (EMPTY,)),
    ('{}\n{}\n {"path": "a.py"}\n', {"path": "a.py"}, (EMPTY,)),
    ('{"path": "a.py"}{"path": "a.py"}', {"path": "a.py"}, (AGAIN,)),
    ('{"path": "a.py", "line": 1} {"path":"a.py","line":1}', {"path": "a.py", "line": 1}, (AGAIN,)),
    ("{}{}", {}, (EMPTY,)),
    ('{"content": "one\n\ttwo\r\n"}', {"content": "one\n\ttwo\r\n"}, (RAW,)),
    ('{}{"content": "one\ntwo \\"x\\" \\n"}', {"content": 'one\ntwo "x" \n'}, (EMPTY, RAW)),
    (' {"content": "one\n"} {"content": "one\\n"}', {"content": "one\n"}, (RAW, AGAIN)),
]


@pytest.mark.parametrize(("source", "arguments", "readings"), READINGS)
def test_json_that_can_mean_one_object_only_is_that_object_however_it_is_cut(
    source: str, arguments: dict[str, Any], readings: tuple[Reading, ...]
) -> None:
    for size in range(1, len(source) + 1):
        last = read([source[at : at + size] for at in range(0, len(source), size)])[-1]
        assert last == CallComplete(0, "tool", arguments, "id-1", source, readings)


@FEW
@given(OBJECTS, st.integers(0, 3), st.integers(1, 3), st.sampled_from(["", " ", "\n"]))
def test_empty_objects_in_front_and_copies_behind_change_nothing(
    arguments: dict[str, Any], empty: int, copies: int, gap: str
) -> None:
    source = gap.join(["{}"] * empty + [json.dumps(arguments)] * copies)
    readings = [EMPTY] if empty else []
    if copies > 1 and arguments:
        readings.append(AGAIN)
    elif not arguments and empty + copies > 1:
        readings = [EMPTY]
    assert read(list(source))[-1] == CallComplete(0, "tool", arguments, "id-1", source, tuple(readings))


@FEW
@given(OBJECTS, OBJECTS)
def test_two_objects_that_differ_are_never_one_call(first: dict[str, Any], second: dict[str, Any]) -> None:
    if not first or first == second:
        return
    last = read([json.dumps(first) + json.dumps(second)])[-1]
    assert isinstance(last, Malformation)
    assert last.code == "several_objects"


def test_a_call_without_a_name_is_reported() -> None:
    reader = NativeReader()
    assert reader.feed(2, "{}") == []
    assert reader.finish() == [
        Malformation(
            "missing_name",
            "The call was not run: it has no tool name. Send it again with a name.",
            2,
            "",
            "{}",
        )
    ]


@EXAMPLES
@given(OBJECTS, st.booleans(), st.integers(1, 7))
def test_any_split_gives_the_arguments_and_their_preview(
    arguments: dict[str, Any], ascii_only: bool, size: int
) -> None:
    source = json.dumps(arguments, ensure_ascii=ascii_only)
    blocks = read([source[at : at + size] for at in range(0, len(source), size)])
    assert blocks == read([source])
    assert blocks[-1] == CallComplete(0, "tool", arguments, "id-1", source)
    shown = previews(blocks)
    for name, value in arguments.items():
        if isinstance(value, str):
            assert shown.get(name, "") == value
        else:
            assert json.loads(shown[name]) == value


@EXAMPLES
@given(OBJECTS, st.integers(0, 10_000))
def test_cut_json_is_never_a_call(arguments: dict[str, Any], cut: int) -> None:
    source = json.dumps(arguments)
    last = read([source[: 1 + cut % (len(source) - 1)]])[-1]
    assert isinstance(last, Malformation)
    assert last.code == "cut_json"


@EXAMPLES
@given(JSON_LIKE)
def test_no_input_raises_and_any_split_gives_the_same_blocks(source: str) -> None:
    for text in (source, '{"a": "' + source, '{"a": ' + source, '{"a' + source):
        assert read(list(text)) == read([text])
