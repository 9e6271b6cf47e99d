"""Models that no list knows: what they cost is told as about, also to budgets, and what they write is bounded."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Program
from tests.rehearsal.bills import count_tokens
from treadle.protocol.limits import USUAL_REPLY
from treadle.providers.model_data import LISTED, TOOLS, DataSource, ModelFigures
from treadle.providers.model_sources import encode_data
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

SAYS = Script(turns=tuple(Turn(items=(SayText(text="Done."),)) for _ in range(3)))
KNOWN = ModelFigures("grok-9", TOOLS | LISTED, 500_000, 50_000, 2_000.0, 6_000.0)
LIST = encode_data({"xai": {"grok-9": KNOWN}}, (DataSource("test", "1", "MIT", "2098-01-01"),))
KEYS = {"XAI_API_KEY": "xai-test-12345678", "MISTRAL_API_KEY": "mistral-test-12345678"}


async def program_at(tmp_path: Path, url: str, settings: str = "") -> Program:
    """One whose server has a name that is not known to be this machine's, where models are nobody's own."""
    home, folder = tmp_path / "home", tmp_path / "w"
    home.mkdir()
    folder.mkdir()
    (home / "models.json").write_bytes(LIST)
    (home / "config.toml").write_text(settings)
    program = Program(home, KEYS)
    for name in ("xai", "mine"):
        there = url.replace("127.0.0.1", "127.1")
        confirmed = await program.run("config", "set", f"providers.{name}.base_url", f"{there}/v1")
        assert confirmed.code == 0, confirmed.err
    return program


async def asked(tmp_path: Path, model: str, *more: str, settings: str = "") -> tuple[dict[str, Any], str, list[Any]]:
    """Run a task; gives the result, what was said beside it, and the requests."""
    async with ScriptedServer(SAYS, tokens=count_tokens) as server:
        program = await program_at(tmp_path, server.base_url, settings)
        where = ("--model", model, "-C", str(tmp_path / "w"), "--trust")
        ended = await program.run("-p", "Go.", *where, *more, "--output-format", "json")
        text = (await program.run("-p", "Go.", *where, *more)).err
        assert ended.out, ended.err
        return json.loads(ended.out), f"{ended.err}\n{text}", [one.body for one in server.requests]


async def test_a_cost_by_the_prices_of_a_relative_is_about(tmp_path: Path) -> None:
    result, said, requests = await asked(tmp_path, "xai/grok-10")
    assert result["cost"] > 0
    assert result["usage"]["estimated"] is True
    assert "about what it costs are taken from xai/grok-9" in said
    assert "about $" in said
    assert all(50_000 in one.values() for one in requests)


async def test_prices_that_the_user_set_are_no_estimate(tmp_path: Path) -> None:
    prices = '[models."xai/grok-10"]\ninput_price = 2.0\noutput_price = 6.0\n'
    result, said, _ = await asked(tmp_path, "xai/grok-10", settings=prices)
    assert result["cost"] > 0
    assert "estimated" not in result["usage"]
    assert "about $" not in said


async def test_a_budget_holds_by_the_prices_of_a_relative_and_says_about(tmp_path: Path) -> None:
    result, said, requests = await asked(tmp_path, "xai/grok-10", "--max-budget-usd", "0.01")
    assert (result["stop"], requests) == ("budget", [])
    assert "the next call can cost about $" in json.dumps(result) + said


@pytest.mark.parametrize("model", ["mine/never-heard-of-it"])
async def test_of_a_model_of_which_nothing_is_known_the_reply_is_bounded_and_said_so(
    tmp_path: Path, model: str
) -> None:
    result, said, requests = await asked(tmp_path, model)
    assert result["cost"] is None
    assert f"128,000 tokens are assumed, and its replies are bounded to {USUAL_REPLY:,}" in said
    assert [one["max_tokens"] for one in requests] == [USUAL_REPLY] * len(requests)
