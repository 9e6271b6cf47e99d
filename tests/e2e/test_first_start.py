"""The first minutes on a terminal: no key yet."""

from pathlib import Path

from tests.app.local_servers import http_server, ollama
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.person import ENTER
from treadle.app.exits import Exit


def _program(folder: Path, local_server: str) -> Program:
    """A program whose local servers are nowhere but at the given place."""
    home = folder / "home"
    home.mkdir()
    places = {"ollama": local_server, "lmstudio": "", '"llama.cpp"': "", "vllm": ""}
    (home / "config.toml").write_text(
        "".join(f'[providers.{name}]\nbase_url = "{url or "http://127.0.0.1:1"}/v1"\n' for name, url in places.items())
    )
    return Program(home)


async def test_without_a_model_the_ways_on_are_shown_and_the_demo_is_offered(tmp_path: Path) -> None:
    async with http_server(ollama) as url, on_terminal(_program(tmp_path, url)) as terminal:
        await terminal.until_shown(
            "No model is configured",
            "treadle login anthropic",
            "treadle --model ollama/gemma3:4b",
            "gemma3:4b holds 4,096 tokens",
            "OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
            "Start the demo now? [y/N]",
        )
        terminal.type(ENTER)
        assert await terminal.ended() == Exit.CONFIG


async def test_the_demo_starts_with_a_yes(tmp_path: Path) -> None:
    async with on_terminal(_program(tmp_path, "")) as terminal:
        await terminal.until_shown("none was found", "Start the demo now? [y/N]")
        terminal.type(f"y{ENTER}")
        await terminal.until_shown("❯ Yes")


async def test_a_key_that_is_typed_is_not_shown(tmp_path: Path) -> None:
    program = _program(tmp_path, "")
    async with on_terminal(program, "login", "groq", "--no-check") as terminal:
        await terminal.until_shown("Key of groq (hidden):")
        terminal.type(f"gsk-typed-5772156649{ENTER}")
        await terminal.until_shown("The key of groq is stored in")
        assert "gsk-typed" not in terminal.shown
        assert await terminal.ended() == Exit.DONE
    assert "gsk-typed-5772156649" in (program.home / "auth.json").read_text()
