"""Replies that are forced to be JSON become text and calls, however they are split."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.providers.support import READ, joined

from treadle.protocol.models import StreamCallArguments, StreamCallDone, StreamCallStart, StreamEvent, StreamText
from treadle.providers.constrained import ConstrainedReply, reply_schema, tool_text

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def read(text: str, cuts: list[int]) -> list[StreamEvent]:
    reply = ConstrainedReply()
    places = sorted(min(cut, len(text)) for cut in cuts)
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    return joined([event for piece in pieces for event in reply.feed(piece)])


@settings(max_examples=150)
@given(
    arguments=st.dictionaries(st.text(max_size=6), json_values, max_size=3),
    indent=st.sampled_from([None, 2]),
    ascii_only=st.booleans(),
    cuts=st.lists(st.integers(0, 90), max_size=9),
)
def test_a_call_comes_out_with_its_arguments(
    arguments: dict[str, Any], indent: int | None, ascii_only: bool, cuts: list[int]
) -> None:
    text = json.dumps({"tool": "read_file", "arguments": arguments}, indent=indent, ensure_ascii=ascii_only)
    events = read(text, cuts)
    assert [type(event) for event in events] == [StreamCallStart, StreamCallArguments, StreamCallDone]
    assert events[0] == StreamCallStart(index=0, name="read_file")
    assert isinstance(events[1], StreamCallArguments)
    assert json.loads(events[1].text) == arguments


@settings(max_examples=150)
@given(
    answer=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
    ascii_only=st.booleans(),
    cuts=st.lists(st.integers(0, 200), max_size=12),
)
def test_an_answer_comes_out_as_text(answer: str, ascii_only: bool, cuts: list[int]) -> None:
    text = json.dumps({"answer": answer}, ensure_ascii=ascii_only)
    assert read(text, cuts) == [StreamText(text=answer)]


@settings(max_examples=80)
@given(cut=st.integers(0, 46))
def test_a_call_that_is_cut_is_never_said_to_be_whole(cut: int) -> None:
    text = '{"tool":"read_file","arguments":{"path":"a\\"}"}}'
    assert not any(isinstance(event, StreamCallDone) for event in read(text[:cut], []))


def test_the_schema_has_each_tool_and_the_answer() -> None:
    call, answer = reply_schema((READ,))["anyOf"]
    assert call["properties"] == {"tool": {"const": "read_file"}, "arguments": READ.parameters}
    assert answer["required"] == ["answer"]
    assert "- read_file(path): Reads a file." in tool_text((READ,))
