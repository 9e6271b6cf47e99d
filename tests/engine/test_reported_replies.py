"""Replies from public reports about other agents, in words of our own: the calls, answers and thoughts in them.

Each row names the report, as repository and number; the input is the smallest that shows it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from treadle.context.focus import with_progress
from treadle.engine.runtime.reply_reader import ReplyReader
from treadle.protocol.events import CallProposed
from treadle.protocol.messages import Text, Thinking
from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamText,
    ToolProtocol,
)
from treadle.protocol.tools import ToolSpec
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import open_workspace

PROTOCOLS = (ToolProtocol.NATIVE, ToolProtocol.XML)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ToolSpec]:
    root = tmp_path_factory.mktemp("root")
    specs = (tool.spec for tool in builtin_tools(open_workspace(root, spool=Path(f"{root}-spool"))))
    return {spec.name: with_progress(spec) for spec in specs}


TABLE = Path(__file__).with_name("reported_replies.jsonl")
ROWS: list[dict[str, Any]] = [json.loads(line) for line in TABLE.read_text().splitlines()]


def rows(kind: str) -> list[Any]:
    return [pytest.param(one, id=one["source"]) for one in ROWS if kind in one]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("row", rows("text"))
def test_a_reported_reply_in_text_is_read_as_it_was_meant(
    tools: Mapping[str, ToolSpec], row: dict[str, Any], protocol: ToolProtocol
) -> None:
    text = row["text"]
    for size in (1, 6, 10**6):
        reader = ReplyReader(tools, protocol, step=1, attempt=1)
        found = [one for at in range(0, len(text), size) for one in reader.feed(StreamText(text=text[at : at + size]))]
        found += reader.finish()
        proposed = [one.call for one in found if isinstance(one, CallProposed)]
        content = reader.message().content
        assert [[call.name, call.arguments] for call in proposed if not call.problem] == row["calls"]
        assert not [call.problem for call in proposed if call.problem]
        assert "".join(block.text for block in content if isinstance(block, Text)) == row["said"]
        assert "".join(block.text for block in content if isinstance(block, Thinking)) == row["thought"]


@pytest.mark.parametrize("row", rows("json"))
def test_a_reported_native_call_is_read_or_refused_with_the_way_on(
    tools: Mapping[str, ToolSpec], row: dict[str, Any]
) -> None:
    raw = row["json"]
    for size in (1, 10**6):
        reader = ReplyReader(tools, ToolProtocol.NATIVE, step=1, attempt=1)
        found = [*reader.feed(StreamCallStart(index=0, name=row["name"], wire_id="w"))]
        for at in range(0, len(raw), size):
            found += reader.feed(StreamCallArguments(index=0, text=raw[at : at + size]))
        found += [*reader.feed(StreamCallDone(index=0)), *reader.finish()]
        (call,) = (one.call for one in found if isinstance(one, CallProposed))
        assert [call.name, json.dumps(call.arguments)] == [row["calls"][0][0], json.dumps(row["calls"][0][1])]
        assert row["problem"] in call.problem
        assert bool(call.problem) is bool(row["problem"])
