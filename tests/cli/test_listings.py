import asyncio
import json
from pathlib import Path

from tests.app.local_servers import http_server, ollama
from tests.cli.conftest import Command


def test_providers_tell_whether_they_are_configured(treadle: Command, home: Path) -> None:
    with (home / "config.toml").open("a") as file:
        file.write('[providers.mine]\nbase_url = "https://me:secret@models.example/v1"\nwire_api = "openai_chat"\n')
    rows = {row["name"]: row for row in map(json.loads, treadle("providers", "--json").out.splitlines())}
    assert len(rows) > 40
    assert rows["anthropic"] == {
        "name": "anthropic",
        "title": "Anthropic",
        "base_url": "https://api.anthropic.com",
        "wire": "anthropic_messages",
        "key_variables": ["ANTHROPIC_API_KEY"],
        "key_origin": "",
        "configured": False,
        "problem": "no key",
    }
    assert rows["mine"]["base_url"] == "https://models.example/v1"


def test_models_are_found_by_words(treadle: Command) -> None:
    said = treadle("models", "openai/", "GPT-5", "--json")
    names = [f"{row['provider']}/{row['name']}" for row in map(json.loads, said.out.splitlines())]
    assert "openai/gpt-5" in names
    assert all("gpt-5" in name.lower() for name in names)


def test_a_mistyped_model_is_found_by_likeness(treadle: Command) -> None:
    said = treadle("models", "anthropic/claude-sonet-4-5")
    assert "anthropic/claude-sonnet-4-5," in said.out
    assert "figures of 20" in said.err


def test_no_model_like_it_is_said_by_the_exit_code(treadle: Command) -> None:
    assert treadle("models", "zzzzqqqq").code == 1


async def test_local_models_are_listed_with_the_fix_for_a_small_window(treadle: Command, home: Path) -> None:
    async with http_server(ollama) as url:
        (home / "config.toml").write_text((home / "config.toml").read_text().replace("http://127.0.0.1:1", url, 1))
        said = await asyncio.to_thread(treadle, "models", "--local")
    assert said.out.splitlines() == [
        f"ollama/qwen3:8b, window 32,768 of 40,960, not loaded, {url}/v1",
        f"ollama/gemma3:4b, window 4,096 of 131,072, loaded, {url}/v1",
        "  gemma3:4b holds 4,096 tokens; 16,384 are needed to work.",
        "  fix: Stop Ollama and start it with: OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
        f"ollama/phi4:latest, window unknown of 16,384, not loaded, {url}/v1",
        "  phi4:latest is not loaded: Ollama gives it 4,096 tokens on many machines; 16,384 are needed.",
        "  fix: Stop Ollama and start it with: OLLAMA_CONTEXT_LENGTH=16384 ollama serve",
    ]


def test_without_local_servers_it_is_said(treadle: Command) -> None:
    assert treadle("models", "--local").code == 1
