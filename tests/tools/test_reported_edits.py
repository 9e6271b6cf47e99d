"""Edits from public reports about other agents, in words of our own: the bytes of the file after each, or its refusal.

Each row of the table names the report, as repository and number; the file and the edit are the smallest that show it.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.tools.calls import call, text

from treadle.protocol.errors import ToolError
from treadle.workspace.workspace import Workspace

TABLE = Path(__file__).with_name("reported_edits.jsonl")
ROWS: list[dict[str, Any]] = [json.loads(line) for line in TABLE.read_text().splitlines()]


def row(source: str) -> dict[str, Any]:
    return next(one for one in ROWS if one["source"] == source)


def raw(one: dict[str, Any], name: str) -> bytes:
    return bytes(one[name].encode(one.get("encoding", "utf-8")))


async def edit(workspace: Workspace, before: bytes, arguments: dict[str, Any]) -> None:
    Path(workspace.root, "f.txt").write_bytes(before)
    await text(workspace, "read_file", path="f.txt")
    if "patch" in arguments:
        await call(workspace, "apply_patch", **arguments)
        return
    await call(workspace, "replace_in_file", path="f.txt", **arguments)


@pytest.mark.sample(16)
@pytest.mark.parametrize("source", [one["source"] for one in ROWS if "after" in one])
async def test_a_reported_edit_changes_what_it_says_and_nothing_else(workspace: Workspace, source: str) -> None:
    one = row(source)
    await edit(workspace, raw(one, "file"), one["edit"])
    assert Path(workspace.root, "f.txt").read_bytes() == raw(one, "after")


@pytest.mark.parametrize("source", [one["source"] for one in ROWS if "refused" in one])
async def test_a_reported_edit_of_which_the_place_is_not_certain_is_refused(workspace: Workspace, source: str) -> None:
    one = row(source)
    with pytest.raises(ToolError, match=re.escape(one["refused"])):
        await edit(workspace, raw(one, "file"), one["edit"])
    assert Path(workspace.root, "f.txt").read_bytes() == raw(one, "file")


GERMAN = "H\xf6he und L\xe4nge\nM\xe4dchen, Stra\xdfe\n"


@pytest.mark.parametrize(
    ("text_", "encoding"),
    [
        pytest.param(row("google-gemini/gemini-cli#14125")["file"], "cp1252", id="google-gemini/gemini-cli#14125"),
        pytest.param(row("anthropics/claude-code#7134")["file"], "cp1252", id="anthropics/claude-code#7134"),
        pytest.param(row("Kilo-Org/kilocode#1439")["file"], "gbk", id="anomalyco/opencode#31765"),
        pytest.param(GERMAN, "cp437", id="letters where cp1252 has quotes"),
    ],
)
async def test_a_reported_encoding_is_shown_as_it_was_written(workspace: Workspace, text_: str, encoding: str) -> None:
    Path(workspace.root, "f.txt").write_bytes(text_.encode(encoding))
    assert f"1 | {text_.splitlines()[0]}\n" in await text(workspace, "read_file", path="f.txt")
