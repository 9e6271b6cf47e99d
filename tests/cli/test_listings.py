import asyncio
import json
from pathlib import Path

import pytest

from tests.app.local_servers import http_server, ollama
from tests.cli.conftest import Command
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import PATIENCE
from treadle.providers.local import find_servers


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
    assert any(line.split()[0] == "anthropic/claude-sonnet-4-5" for line in said.out.splitlines()[1:])
    assert "Data of 20" in said.err


def test_what_can_be_used_comes_first_in_columns_and_the_rest_is_a_hint(
    treadle: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = treadle("models")
    assert (nothing.code, nothing.out) == (1, "")
    assert "No provider has a key yet: `treadle login PROVIDER` stores one." in nothing.err
    monkeypatch.setenv("GROQ_API_KEY", "gsk-test-12345678")
    said = treadle("models")
    head, *lines = said.out.splitlines()
    assert head.split() == ["model", "window", "output", "$", "in", "$", "out", "can"]
    assert lines
    assert all(line.startswith("*  groq/") for line in lines)
    assert len({line.index(line.split()[2]) + len(line.split()[2]) for line in lines}) == 1
    assert "of other providers, or retired: treadle models --all." in said.err
    everything = treadle("models", "--all").out.splitlines()[1:]
    assert len(everything) > 1000
    usable = [line for line in everything if line.startswith("*")]
    assert [line.split()[1] for line in usable] == [line.split()[1] for line in lines]
    first = next(number for number, line in enumerate(everything) if "groq/" not in line.split("  can")[0])
    assert all("retired 20" in line for line in everything[:first] if line not in usable)
    assert not any(line.startswith("*") for line in everything[first:])
    words = treadle("models", "gpt-oss-120b").out.splitlines()[1:]
    assert words[0].startswith("*  groq/openai/gpt-oss-120b ")
    assert len(words) > 1


async def test_a_terminal_is_not_flooded(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    program = Program(tmp_path / "home", {"OPENROUTER_API_KEY": "sk-or-test-12345678"})
    async with on_terminal(program, "models") as terminal:
        await terminal.until_shown("40 of ", "are shown. Add words of the name, or --all.")
        assert await terminal.ended() == 0


def test_no_model_like_it_is_said_by_the_exit_code(treadle: Command) -> None:
    assert treadle("models", "zzzzqqqq").code == 1


async def test_local_models_are_listed_with_the_fix_for_a_small_window(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_servers, "__kwdefaults__", {"limit": PATIENCE})  # a busy machine answers late
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


def test_retired_models_are_marked_with_what_takes_their_place_and_hidden_unless_asked_for(
    treadle: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-12345678")
    shown = [line.split()[1] for line in treadle("models").out.splitlines()[1:]]
    assert "openai/gpt-6.1-sol" in shown
    assert "openai/gpt-5-codex" not in shown
    (line,) = (one for one in treadle("models", "--all").out.splitlines() if one.split()[0] == "openai/gpt-5-codex")
    assert line.startswith(" "), "it cannot be used"
    assert "retired 2026-07-23, use openai/gpt-5.6-sol" in line


async def test_the_public_list_is_fetched_when_asked_for_and_what_changed_is_told(treadle: Command) -> None:
    def models(price: float) -> dict[str, object]:
        names = json.loads(treadle("models", "xai/grok-4.7", "--json").out.splitlines()[0])
        entry = {"litellm_provider": "xai", "mode": "chat", "max_input_tokens": names["context_window"]}
        entry |= {"max_output_tokens": 500_000, "input_cost_per_token": price, "output_cost_per_token": 6e-6}
        return {f"xai/grok-4.{number}": entry for number in range(50)}

    async with http_server(lambda _: (200, models(5e-6))) as url:
        said = await asyncio.to_thread(treadle, "models", "--update", f"{url}/list.json")
    assert said.code == 0
    assert "xai/grok-4.49 is new" in said.out.splitlines()
    assert "xai/grok-4.7 costs $5 in, $6 out, was $2 in, $6 out" in said.out.splitlines()
    assert said.err.count("Data of 20") == 1
    shown = json.loads(treadle("models", "xai/grok-4.49", "--json").out.splitlines()[0])
    assert shown["prices"]["input"] == 5.0
    failed = await asyncio.to_thread(treadle, "models", "--update", "http://127.0.0.1:1/list.json")
    assert (failed.code, failed.out) == (78, "")
    assert "http://127.0.0.1:1/list.json cannot be fetched" in failed.err
