import gc
import os
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.store.test_places import count_events
from treadle.app.compose import Opening, open_session
from treadle.app.config.places import check_workspace
from treadle.app.config.sections import ModeSettings, Settings
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import SetMode, SetModel, Source
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.permissions import Mode


async def test_another_model_is_chosen_under_the_settings_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1", tool_protocol=ToolProtocol.XML)
    async with await open_session(Opening(workspace=workspace, settings=settings, user_present=True)) as live:
        assert live.choose("openai/two") == SetModel(
            choice=ModelChoice(model="openai/two", tool_protocol=ToolProtocol.XML)
        )
        with pytest.raises(ConfigError):
            live.choose("two")


async def test_the_end_of_a_session_removes_old_outputs_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ws").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1")
    async with await open_session(Opening(workspace=tmp_path / "ws", settings=settings, user_present=True)) as live:
        folders = [tmp_path / "home" / "output" / name for name in ("gone", live.id)]
        for folder in folders:
            folder.mkdir(parents=True)
            os.utime(folder, (0, 0))
    assert [folder.exists() for folder in folders] == [False, True], "its own is kept while it runs"


async def test_a_session_that_is_busy_leaves_no_log_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ws").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1")
    opening = Opening(workspace=tmp_path / "ws", settings=settings, user_present=True)
    async with await open_session(opening) as live:
        other = await open_session(replace(opening, resume=live.id))
        with pytest.raises(SessionError, match="busy"):
            await other.__aenter__()
        # Each log that was written to has a thread.
        assert [one.name for one in threading.enumerate() if one.name.startswith("treadle-log")] == ["treadle-log_0"]


@pytest.mark.parametrize("place", ["/", "..", ".", "link"])
def test_the_home_directory_and_what_holds_it_are_too_wide_to_work_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    home = tmp_path / "people" / "me"
    (home / "project").mkdir(parents=True)
    (home / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(ConfigError) as caught:
        check_workspace(home / place)
    assert caught.value.code == "workspace-too-wide"
    assert check_workspace(home / "project") == home / "project"


MODES = {Mode.PLAN: ModeSettings(model="openai/planner"), Mode.EDITS: ModeSettings(thinking_budget=0)}


async def test_the_model_changes_with_the_mode_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ws").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1", modes=MODES)
    me = Source(kind="test")
    async with await open_session(Opening(workspace=tmp_path / "ws", settings=settings, user_present=True)) as live:
        assert live.status.model == "openai/one"
        await live.post(SetMode(mode=Mode.PLAN), me)
        assert (live.status.mode, live.status.model) == (Mode.PLAN, "openai/planner")
        await live.post(SetMode(mode=Mode.ASK), me)
        assert (live.status.mode, live.status.model) == (Mode.ASK, "openai/one")
        await live.post(SetMode(mode=Mode.PLAN), me)
        resume = live.id
    again = Opening(
        workspace=tmp_path / "ws",
        settings=replace(settings, mode=Mode.ASK),
        given=frozenset({"mode"}),
        resume=resume,
        user_present=True,
    )
    async with await open_session(again) as live:
        assert (live.status.mode, live.status.model) == (Mode.ASK, "openai/one")


async def test_a_mode_whose_model_cannot_be_called_is_not_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ws").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    modes = {Mode.PLAN: ModeSettings(model="nobody/planner")}
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1", modes=modes)
    async with await open_session(Opening(workspace=tmp_path / "ws", settings=settings, user_present=True)) as live:
        with pytest.raises(ConfigError):
            await live.post(SetMode(mode=Mode.PLAN), Source(kind="test"))
        assert (live.status.mode, live.status.model) == (Mode.ASK, "openai/one")


async def test_a_session_that_goes_on_does_not_hold_the_events_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ws").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1")
    async with await open_session(Opening(workspace=tmp_path / "ws", settings=settings, user_present=True)) as live:
        for number in range(200):
            await live.post(SetMode(mode=(Mode.ASK, Mode.EDITS)[number % 2]), Source(kind="test"))
        resume = live.id
    del live
    gc.collect()
    before = count_events()
    again = Opening(workspace=tmp_path / "ws", settings=settings, resume=resume, user_present=True)
    async with await open_session(again) as live:
        gc.collect()
        assert live.status.mode is Mode.EDITS
        assert count_events() - before < 10
