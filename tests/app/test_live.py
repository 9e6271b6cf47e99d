from pathlib import Path

import pytest

from treadle.app.compose import Opening, open_session
from treadle.app.settings import Settings
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import SetModel
from treadle.protocol.models import ToolProtocol


async def test_another_model_is_chosen_under_the_settings_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1", tool_protocol=ToolProtocol.XML)
    async with await open_session(Opening(workspace=workspace, settings=settings, user_present=True)) as live:
        assert live.choose("openai/two") == SetModel(model="openai/two", tool_protocol=ToolProtocol.XML)
        with pytest.raises(ConfigError):
            live.choose("two")
