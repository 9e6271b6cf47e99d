"""The first minutes on a terminal: no key yet."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.app.local_servers import Answer, Asked, http_server, ollama
from tests.cli.test_login import SECRET
from tests.cli.test_login import provider as groq
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import Terminal, on_terminal
from tests.person import CTRL_C, CTRL_D, DOWN, ENTER, ESCAPE
from treadle.app.errors.exits import Exit

START, KEY, DEMO = "No model is configured yet.", "Add an API key", "Try the demo, no key needed"
LOCAL = "Use a model on this machine (Ollama found)"
NOWHERE = "http://127.0.0.1:1"
WIDE = 400
"""Columns that no line with a path of the tests fills."""

WRONG = "sk-wrong-161803398"


def _program(folder: Path, local_server: str = NOWHERE, provider: str = NOWHERE) -> Program:
    """A program whose servers and provider are nowhere but at the given places."""
    home = folder / "home"
    home.mkdir()
    (folder / "project").mkdir()
    places = {"ollama": local_server, "lmstudio": NOWHERE, '"llama.cpp"': NOWHERE, "vllm": NOWHERE, "groq": provider}
    (home / "config.toml").write_text(
        "".join(f'[providers.{name}]\nbase_url = "{url}/v1"\n' for name, url in places.items())
    )
    return Program(home)


@asynccontextmanager
async def _started(program: Program, *words: str) -> AsyncIterator[Terminal]:
    folder = str(program.home.parent / "project")
    async with on_terminal(program, *words, "--directory", folder, columns=WIDE) as terminal:
        await terminal.until_shown(START, KEY, DEMO)
        yield terminal


async def _to_key_of_groq(terminal: Terminal) -> None:
    await terminal.confirm()
    await terminal.until_shown("Whose API key?", "❯ Anthropic", "OpenAI", "Google Gemini", "OpenRouter")
    terminal.type("groq")
    await terminal.until_shown("❯ Groq")
    await terminal.confirm()
    await terminal.until_shown("API key of Groq", "It is not shown", "https://console.groq.com/keys")


def _nowhere(program: Program, terminal: Terminal, *keys: str) -> None:
    """No key is on the screen, nor in any file but that of keys."""
    for key in keys:
        assert key not in terminal.shown
        holding = [f.name for f in program.home.rglob("*") if f.is_file() and key.encode() in f.read_bytes()]
        assert holding in ([], ["auth.json"])


@pytest.mark.parametrize(
    "words", [pytest.param((), id="treadle"), pytest.param(("start",), id="start", marks=pytest.mark.soak)]
)
async def test_a_key_is_tried_stored_and_the_session_begins_with_the_chosen_model(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    async with http_server(groq) as url:
        program = _program(tmp_path, provider=url)
        async with _started(program, *words) as terminal:
            await _to_key_of_groq(terminal)
            await terminal.paste(f"{WRONG}\n")
            await terminal.until_shown("18 characters")
            terminal.type(ENTER)
            await terminal.until_shown("Groq refused the key. It is not stored.", "Get a key at https://", "❯ Groq")
            assert not (program.home / "auth.json").exists()
            await terminal.confirm()
            await terminal.until_shown("API key of Groq")
            await terminal.paste(SECRET)
            await terminal.until_shown(f"{len(SECRET)} characters")
            terminal.type(ENTER)
            stored = ("✓ Your key for Groq is stored in", "it answered", "Which model of Groq?")
            await terminal.until_shown(*stored, "❯ qwen/qwen3.8-27b")
            await terminal.confirm(DOWN)
            await terminal.until_shown("✓ Model groq/", "saved in", "? for keys")
            terminal.type(CTRL_D)
            assert await terminal.ended() == Exit.DONE
            _nowhere(program, terminal, SECRET, WRONG)
        async with on_terminal(program, "--directory", str(tmp_path / "project")) as again:
            await again.until_shown("? for keys")
            assert START not in again.shown
    assert json.loads((program.home / "auth.json").read_text())["keys"] == {"groq": SECRET}


async def test_a_key_is_kept_when_the_network_fails_and_the_screen_says_so(tmp_path: Path) -> None:
    program = _program(tmp_path)
    async with _started(program) as terminal:
        await _to_key_of_groq(terminal)
        terminal.type(f"{SECRET}{ENTER}")
        await terminal.until_shown(
            "Your key for Groq is stored in", "but it was not checked with", "Which model of Groq?"
        )
        terminal.type(ESCAPE)
        await terminal.until_shown("qwen/qwen3.8-27b (Groq)", "? for keys")
        _nowhere(program, terminal, SECRET)
    assert json.loads((program.home / "auth.json").read_text())["keys"] == {"groq": SECRET}


async def test_who_does_not_wait_for_the_trial_skips_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        program = _program(tmp_path, provider=f"http://127.0.0.1:{silent.getsockname()[1]}")
        async with _started(program) as terminal:
            await _to_key_of_groq(terminal)
            terminal.type(f"{SECRET}{ENTER}")
            await terminal.until_shown("Trying the key with Groq…", "esc to skip")
            terminal.type(ESCAPE)
            await terminal.until_shown("is stored in", "(untried)", "Which model of Groq?")
            terminal.type(CTRL_C)
            assert await terminal.ended() == Exit.INTERRUPTED
            assert terminal.restored()
            _nowhere(program, terminal, SECRET)


async def test_what_cannot_be_a_key_is_asked_again_without_any_call(tmp_path: Path) -> None:
    asked: list[Asked] = []

    def count(request: Asked) -> tuple[int, object]:
        asked.append(request)
        return groq(request)

    async with http_server(count) as url, _started(_program(tmp_path, provider=url)) as terminal:
        await _to_key_of_groq(terminal)
        terminal.type(f"two words{ENTER}")
        await terminal.until_shown("This is not a key.", "API key of Groq")
        terminal.type("\x15abc\x7f")
        await terminal.until_shown("2 characters")
        terminal.type(ESCAPE)
        await terminal.until_shown("Whose API key?", "❯ Groq")
        terminal.type(ESCAPE)
        await terminal.until_shown(START)
    assert not asked


async def test_a_model_of_this_machine_is_offered_once_a_server_answers(tmp_path: Path) -> None:
    async with http_server(ollama) as url:
        program = _program(tmp_path, url)
        async with _started(program) as terminal:
            await terminal.until_shown(LOCAL)
            await terminal.confirm(DOWN)
            await terminal.until_shown(
                "Which model on this machine?", "❯ ollama/qwen3:8b", "gemma3:4b holds 4,096 tokens"
            )
            await terminal.confirm()
            await terminal.until_shown("✓ Model ollama/qwen3:8b, saved in", "qwen3:8b (Ollama)", "? for keys")
    assert 'model = "ollama/qwen3:8b"' in (program.home / "config.toml").read_text()


async def test_a_server_that_is_started_while_the_list_is_open_is_offered(tmp_path: Path) -> None:
    running = False

    def later(asked: Asked) -> tuple[int, object]:
        return ollama(asked) if running else (503, {"error": "starting"})

    async with http_server(later) as url, _started(_program(tmp_path, url)) as terminal:
        assert LOCAL not in terminal.shown
        running = True
        await terminal.until_shown(LOCAL)


async def test_a_server_without_models_or_that_hangs_is_not_offered(tmp_path: Path) -> None:
    def empty(asked: Asked) -> tuple[int, object]:
        return 200, {"models": []}

    answer: Answer = empty
    async with http_server(answer) as url, _started(_program(tmp_path, url)) as terminal:
        await terminal.confirm(DOWN)
        await terminal.until_shown("❯ Yes", "python3 -m unittest")
        assert LOCAL not in terminal.shown


async def test_escape_quits_and_says_what_to_do_later(tmp_path: Path) -> None:
    async with _started(_program(tmp_path)) as terminal:
        terminal.type(ESCAPE)
        assert await terminal.ended() == Exit.CONFIG
        await terminal.until_shown("treadle login PROVIDER", "treadle demo")
        assert terminal.restored()


async def test_letters_choose_nothing_and_a_key_pasted_too_early_is_not_shown(tmp_path: Path) -> None:
    program = _program(tmp_path)
    async with _started(program) as terminal:
        await terminal.paste(f"{SECRET}\n")
        terminal.type(f"yes{ENTER}")
        await asyncio.sleep(1.0)
        assert START in terminal.shown
        await terminal.confirm()
        await terminal.until_shown("Whose API key?")
        await terminal.paste(SECRET)
        terminal.type(SECRET)
        await asyncio.sleep(0.5)
        assert "❯ Anthropic" in terminal.shown
        _nowhere(program, terminal, SECRET, SECRET[:6])


async def test_a_key_that_is_typed_is_not_shown(tmp_path: Path) -> None:
    program = _program(tmp_path)
    async with on_terminal(program, "login", "groq", "--no-check", columns=WIDE) as terminal:
        await terminal.until_shown("Key of groq (hidden):")
        terminal.type(f"gsk-typed-5772156649{ENTER}")
        await terminal.until_shown("Your key for groq is stored in")
        assert "gsk-typed" not in terminal.shown
        assert await terminal.ended() == Exit.DONE
    assert "gsk-typed-5772156649" in (program.home / "auth.json").read_text()


async def test_login_on_a_terminal_tries_the_key_and_refuses_a_wrong_one(tmp_path: Path) -> None:
    async with http_server(groq) as url:
        program = _program(tmp_path, provider=url)
        for key, said in ((WRONG, "The key was refused and is not stored."), (SECRET, "it answered")):
            async with on_terminal(program, "login", "groq", columns=WIDE) as terminal:
                await terminal.until_shown("Key of groq (hidden):")
                terminal.type(f"{key}{ENTER}")
                await terminal.until_shown(said)
                assert await terminal.ended() == (Exit.DONE if key == SECRET else Exit.CONFIG)
                assert terminal.restored()
                assert key not in terminal.shown
    assert json.loads((program.home / "auth.json").read_text())["keys"] == {"groq": SECRET}
