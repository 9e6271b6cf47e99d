"""A new session works with the model that was chosen where it was started."""

import re
from pathlib import Path

import pytest

from tests.web.in_process import page_here
from treadle.providers.scripted.script import SayText, Turn


async def test_a_session_begins_with_the_chosen_model_else_with_that_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-one")
    turns = [Turn(items=(SayText(text="Done."),))] * 2
    async with page_here(tmp_path, monkeypatch, turns) as here:
        visit = here.visit()
        offered = re.findall(r'<option value="(\w+/[^"]+)">', await visit.get("/"))
        assert any(one.startswith("anthropic/") for one in offered)
        assert not [one for one in offered if one.startswith("openai/")], "there is no key for them"
        for chosen in ("anthropic-compatible/another", ""):
            said = {"folder": str(here.folder), "text": "Begin.", "model": chosen, "trust": "once"}
            status, answered = await visit.post("/sessions", **said)
            assert status == 200, answered
            model = here.book.opened[answered["session"]].session.status.model
            assert model == (chosen or "anthropic-compatible/scripted")


async def test_without_a_key_no_other_model_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        assert 'name="model"' not in await here.visit().get("/")
