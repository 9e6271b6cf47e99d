"""web_search in the settings: the provider is asked to search, where it can, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Program
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

DONE = Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Done."}),))
KEYS = {"ANTHROPIC_API_KEY": "k"}


async def offered(folder: Path, model: str, settings: str) -> list[dict[str, Any]]:
    """The tools of the first request that are the provider's own."""
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "config.toml").write_text(settings)
    (folder / "ws").mkdir(exist_ok=True)
    async with ScriptedServer(Script(turns=(DONE,))) as server:
        flags = ("--model", model, "--base-url", server.base_url, "-C", str(folder / "ws"))
        ended = await Program(folder / "home", KEYS).run("-p", "Go.", *flags)
    assert (ended.code, server.violations) == (Exit.DONE, []), ended.err
    tools: list[dict[str, Any]] = server.requests[0].body["tools"]
    return [tool for tool in tools if tool.get("type", "function") != "function"]


@pytest.mark.parametrize(
    ("model", "tools"),
    [
        ("anthropic/claude-sonnet-4-5", [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]),
        ("anthropic-compatible/scripted", []),
    ],
)
async def test_the_provider_searches_only_where_the_user_wants_it_and_it_can(
    tmp_path: Path, model: str, tools: list[dict[str, Any]]
) -> None:
    assert await offered(tmp_path, model, "web_search = true\n") == tools
    assert await offered(tmp_path, model, "") == []
