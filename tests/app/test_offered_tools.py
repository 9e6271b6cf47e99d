"""Which tools a model is told of: those that can work for it, here and now."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.app.rehearsal import Rehearsal, call, rehearse
from treadle.app.session.offering import ANSWERED, has_notebooks, left_out, left_out_now, offering
from treadle.engine.core.texts import NO_USER_TO_ASK
from treadle.protocol.events import SetMode
from treadle.protocol.models import ModelSpec, ToolProtocol
from treadle.protocol.permissions import Mode, Situation
from treadle.protocol.tools import Outcome
from treadle.store.sqlite import Store
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import open_workspace

HIDES_PLAYWRIGHT = """
import sys
from importlib.abc import MetaPathFinder
import importlib.util
known = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "playwright" else known(name, *rest)
from treadle.app.session.offering import left_out
from treadle.store.sqlite import Store
from pathlib import Path
store = Store(Path(sys.argv[1]))
print(*sorted(left_out("p/m", store)))
store.close()
"""
LEAST_PROMPT_BYTES = 16_700


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return (tmp_path / "ws").resolve()


def names(request: Mapping[str, Any]) -> set[str]:
    return {tool["name"] for tool in request.get("tools", ())}


def test_a_browser_is_not_offered_where_its_library_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HIDES_PLAYWRIGHT, str(tmp_path / "sessions.db")]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    assert shown.stdout.split() == ["apply_patch", "browser_action"]


def test_a_browser_is_not_offered_to_a_model_that_takes_no_images(tmp_path: Path) -> None:
    store = Store(tmp_path / "sessions.db")
    blind = ModelSpec(provider="p", name="m", images=False)
    found = offering(store, lambda _: blind)("p/m", ANSWERED)
    seeing = left_out("p/m", store, ModelSpec(provider="p", name="m", images=True))
    store.close()
    assert "browser_action" in found
    assert seeing.get("browser_action", "") in (
        "",
        "Playwright is not installed; the user sees how to add it with: treadle update --with browser",
    )


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("mode", Mode)
def test_planning_is_offered_in_plan_mode_and_questions_where_somebody_is(mode: Mode, present: bool) -> None:
    gone = left_out_now(Situation(mode=mode, user_present=present))
    assert ("plan_mode_respond" in gone, "ask_followup_question" in gone) == (mode is not Mode.PLAN, not present)


async def test_the_tools_of_a_request_follow_the_mode(folder: Path) -> None:
    calls = [call("list_files", path="."), call("list_files", path="src")]
    seen = await rehearse(folder, calls, mode=Mode.PLAN, present=True)
    changed = await rehearse(folder, calls, mode=Mode.ASK, present=True, events=[SetMode(mode=Mode.PLAN)])
    acting = await rehearse(folder, calls, mode=Mode.ASK, present=True)
    alone = await rehearse(folder, calls, mode=Mode.ASK)
    assert {"plan_mode_respond", "ask_followup_question"} <= names(seen.requests[0])
    assert names(changed.requests[0]) == names(seen.requests[0])
    assert names(seen.requests[0]) - names(acting.requests[0]) == {"plan_mode_respond"}
    assert names(acting.requests[0]) - names(alone.requests[0]) == {"ask_followup_question", "new_task", "set_timer"}
    assert len({json.dumps(request["tools"]) for request in alone.requests}) == 1, "the cached beginning stays"


@pytest.mark.parametrize("protocol", ["native", "xml"])
async def test_a_call_of_a_tool_that_cannot_be_used_now_is_told_why_and_what_to_do(folder: Path, protocol: str) -> None:
    calls = [
        call("plan_mode_respond", response="The plan."),
        call("list_files", path="."),
        call("ask_followup_question", question="Which?"),
    ]
    seen = await rehearse(folder, calls, mode=Mode.EDITS, tool_protocol=ToolProtocol(protocol))
    assert [result.outcome for result in seen.results[:3]] == [Outcome.INVALID, Outcome.OK, Outcome.INVALID]
    assert seen.texts[0].startswith(
        "plan_mode_respond cannot be used now: it works in plan mode only. Continue with the task"
    )
    assert seen.texts[2] == NO_USER_TO_ASK


def prompt_of(seen: Rehearsal) -> str:
    return json.dumps([seen.requests[0]["system"], seen.requests[0].get("tools", ()), seen.requests[0]["messages"]])


@pytest.mark.parametrize("protocol", ["native", "xml"])
@pytest.mark.parametrize(
    ("mode", "present"), [(Mode.PLAN, True), (Mode.PLAN, False), (Mode.EDITS, True), (Mode.AUTO, False)]
)
async def test_no_prompt_names_a_tool_that_is_not_offered(
    folder: Path, mode: Mode, present: bool, protocol: str
) -> None:
    seen = await rehearse(folder, [], mode=mode, present=present, tool_protocol=ToolProtocol(protocol))
    prompt = prompt_of(seen)
    every = {tool.spec.name for tool in builtin_tools(open_workspace(folder))}
    gone = {
        "apply_patch",
        "edit_notebook",
        "run_code",
        "use_skill",
        *left_out_now(Situation(mode=mode, user_present=present)),
    }
    if "browser_action" not in names(seen.requests[0]) and "## browser_action" not in prompt:
        gone.add("browser_action")
    assert {name for name in every if name in prompt} == every - gone


async def test_the_first_request_with_all_core_tools_is_small(folder: Path) -> None:
    seen = await rehearse(folder, [], mode=Mode.AUTO, present=True)
    first = seen.requests[0]
    prompt = json.dumps([first["system"], first["tools"], first["messages"]], separators=(",", ":"))
    assert len(prompt.encode()) < LEAST_PROMPT_BYTES


EMPTY = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
INSERT = call("edit_notebook", path="deep/er/a.ipynb", action="insert", cell="0", content="x = 1")


@pytest.mark.parametrize("protocol", ["native", "xml"])
async def test_cells_of_notebooks_can_be_edited_from_the_first_one_that_is_met(folder: Path, protocol: str) -> None:
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/a.ipynb").write_text(EMPTY)
    calls = [INSERT, call("read_file", path="deep/er/a.ipynb"), INSERT]
    seen = await rehearse(folder, calls, mode=Mode.EDITS, tool_protocol=ToolProtocol(protocol))
    offered = ['"edit_notebook"' in json.dumps(one) or "## edit_notebook" in json.dumps(one) for one in seen.requests]
    assert [result.outcome for result in seen.results[:3]] == [Outcome.INVALID, Outcome.OK, Outcome.OK]
    assert seen.texts[0].startswith(
        "edit_notebook cannot be used now: no notebook was read yet. Read it with read_file"
    )
    assert json.loads((folder / "deep/er/a.ipynb").read_text())["cells"][0]["source"] == ["x = 1"]
    if protocol == "native":
        assert ["edit_notebook" in names(request) for request in seen.requests] == [False, False, True, True]
    assert offered[-1]


@pytest.mark.parametrize("place", ["a.ipynb", "notebooks/a.ipynb"])
@pytest.mark.parametrize("mode", Mode)
async def test_a_folder_with_a_notebook_has_the_tool_from_the_start(folder: Path, place: str, mode: Mode) -> None:
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_text(EMPTY)
    insert = call("edit_notebook", path=place, action="insert", cell="0", content="x = 1")
    seen = await rehearse(folder, [insert], mode=mode, present=True)
    assert len({json.dumps(request["tools"]) for request in seen.requests}) == 1, "the cached beginning stays"
    assert "edit_notebook" in names(seen.requests[0])
    expected = Outcome.DENIED if mode is Mode.PLAN else Outcome.OK
    assert (seen.results[0].outcome, len(seen.asked)) == (expected, mode is Mode.ASK)
    if mode is Mode.ASK:
        assert seen.asked[0].preview is not None
        assert "+# Cell 1 (code, id " in seen.asked[0].preview.text


def test_only_the_first_entries_of_a_folder_are_looked_at(folder: Path) -> None:
    assert not has_notebooks(str(folder / "none"))
    for number in range(1_001):
        (folder / f"{number}.txt").touch()
    (folder / ".hidden").mkdir()
    (folder / ".hidden/a.ipynb").touch()
    assert not has_notebooks(str(folder))
