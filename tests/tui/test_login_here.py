"""/login in a session: the key is shown nowhere, kept nowhere but where keys are, and used by the next request."""

import asyncio
from pathlib import Path

import pytest

from tests.app.local_servers import http_server
from tests.cli.test_login import SECRET, provider
from tests.person import BACKSPACE, ENTER, ESCAPE
from tests.tui.session import says, session, text
from tests.tui.terminal import Terminal, terminal
from treadle.app.config.layers import load_settings
from treadle.app.models.model_choice import Models
from treadle.app.models.provider_keys import key_file, store_key
from treadle.app.models.provider_login import key_owner
from treadle.store.sqlite import Store
from treadle.tui.draft.prompt_history import open_history

READY, ASKED = "? for keys", "API key of Groq"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.delenv("GROQ_API_KEY", raising=False)


async def paste(term: Terminal, key: str) -> None:
    term.type(f"\x1b[200~{key}\n\x1b[201~")
    await term.until(f"{len(key)} characters")
    term.type(ENTER)


def everything_written(folder: Path) -> str:
    """All files below a folder but the one of the keys."""
    files = [file for file in folder.rglob("*") if file.is_file() and file != key_file()]
    return "\n".join(file.read_bytes().decode(errors="replace") for file in files)


async def test_a_key_is_stored_from_the_session_and_seen_nowhere(tmp_path: Path) -> None:
    async with http_server(provider) as url:
        (tmp_path / "config.toml").write_text(f'[providers.groq]\nbase_url = "{url}/v1"\n')
        async with session(tmp_path, says(text("fine"))) as rig, terminal(rig.live) as (term, _):
            await term.until(READY)
            term.type(f"/login groq{ENTER}")
            await term.until(ASKED, "It is not shown")
            await paste(term, "sk-wrong-161803398")
            await term.until("The key was refused and is not stored.")
            assert not key_file().exists()
            await paste(term, SECRET)
            stored = "it answered). Requests to Groq use it from now on. To change to it: /model groq/"
            await term.when(lambda: stored in " ".join(term.shown.split()), stored)
            term.type(f"go{ENTER}")
            await term.until("fine", "■ Done")
            assert "sk-" not in term.shown
            events = [str(event) for event in Store(tmp_path / "sessions.db").read(rig.live.id)]
    assert SECRET in key_file().read_text()
    assert SECRET not in everything_written(tmp_path) + "".join(events)
    assert "sk-wrong" not in everything_written(tmp_path) + "".join(events)


async def test_whose_key_it_is_is_chosen_and_esc_goes_back_step_by_step(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/login{ENTER}")
        await term.until("Whose API key?", "❯ Anthropic")
        term.type(f"\x1b[200~{SECRET}\x1b[201~")
        await term.until("Choose whose key it is first.")
        assert "sk-" not in term.shown
        term.type("groq")
        await term.until("❯ Groq")
        term.type(ENTER)
        await term.until(ASKED)
        term.type("a bc")
        await term.until("4 characters")
        term.type(BACKSPACE)
        await term.until("3 characters")
        term.type(ENTER)
        await term.until("This is not a key.")
        term.type(ESCAPE)
        await term.until("Whose API key?")
        term.type(ESCAPE)
        await term.when(lambda: "Whose API key?" not in term.shown, "the list is closed")
        assert not key_file().exists()


async def test_settings_that_cannot_be_read_close_the_list_and_store_nothing(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/login groq{ENTER}")
        await term.until(ASKED)
        (tmp_path / "config.toml").write_text("broken = [")
        await paste(term, SECRET)
        await term.until("config.toml")
        await term.when(lambda: ASKED not in term.shown, "the list is closed")
        assert SECRET not in term.shown
    assert not key_file().exists()


@pytest.mark.parametrize("line", [f"/login groq {SECRET}", f"/login {SECRET}", f"/Login {SECRET}"])
async def test_a_key_in_the_line_is_neither_shown_nor_kept(tmp_path: Path, line: str) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"{line}{ENTER}")
        await term.until("› /login")
        await term.until("Whose API key?" if line == f"/login {SECRET}" else "/login")
        await term.when(lambda: SECRET not in term.shown, "the line is gone")
        await asyncio.sleep(0)
    assert list(open_history(tmp_path / "history", tmp_path).load_history_strings()) == []


def test_whose_key_is_known_by_its_name_alone() -> None:
    settings = load_settings({})
    work, nobody = key_owner(settings, "anthropic@work"), key_owner(settings, "sk-nobody")
    assert work is not None
    assert (work.name, work.title, nobody) == ("anthropic@work", "Anthropic for the profile work", None)


async def test_a_key_that_was_stored_meanwhile_is_used_by_the_next_request(tmp_path: Path) -> None:
    async with http_server(provider) as url:
        (tmp_path / "config.toml").write_text(f'[providers.groq]\nbase_url = "{url}/v1"\n')
        store_key("groq", "sk-wrong-161803398")
        models = Models(load_settings({}), {})
        ref = "groq/qwen/qwen3.8-27b"
        first = models.provider(ref)
        assert models.provider(ref) is first
        store_key("groq", SECRET)
        second = models.provider(ref)
        assert second is not first
        assert models.provider(ref) is second
        await models.close()


async def test_a_key_that_was_removed_is_used_as_long_as_the_session() -> None:
    store_key("groq", SECRET)
    models = Models(load_settings({}), {})
    first = models.provider("groq/qwen/qwen3.8-27b")
    key_file().unlink()
    assert models.provider("groq/qwen/qwen3.8-27b") is first
    await models.close()
