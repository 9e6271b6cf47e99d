"""The models to choose from, and the one that becomes the default."""

from pathlib import Path

import pytest

from treadle.app.config.layers import load_settings
from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models
from treadle.app.models.model_rows import offered_models
from treadle.app.models.saving_model import save_default
from treadle.protocol.errors import ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    monkeypatch.delenv("TREADLE_MODEL", raising=False)
    return tmp_path


def test_what_can_be_used_comes_first_the_usual_model_before_the_others() -> None:
    offered = offered_models(Models(Settings(), environment={"GROQ_API_KEY": "gsk-test-12345678"}))
    usable = [model.usable for model in offered]
    assert usable == sorted(usable, reverse=True)
    assert offered[0].ref == "groq/qwen/qwen3.8-27b"
    assert (offered[0].key, offered[0].title) == ("GROQ_API_KEY", "Groq")
    other = next(model for model in offered if model.ref == "anthropic/claude-sonnet-4-5")
    assert (other.usable, other.key, other.window, other.thinks) == (False, "", 200_000, True)


def test_a_default_is_saved_with_its_thinking_and_comments_stay(home: Path) -> None:
    file = home / "config.toml"
    file.write_text('# mine\nmodel = "openai/gpt-5"  # old\n')
    assert save_default("anthropic/claude-sonnet-4-5", 4_096) == (
        f"anthropic/claude-sonnet-4-5 is the default now. Saved in {file}."
    )
    assert "# mine\n" in file.read_text()
    settings = load_settings({})
    assert (settings.model, settings.thinking_budget) == ("anthropic/claude-sonnet-4-5", 4_096)
    save_default("openai/gpt-5")
    assert (load_settings({}).model, load_settings({}).thinking_budget) == ("openai/gpt-5", 4_096)


def test_a_default_with_which_no_session_could_start_is_not_saved(home: Path) -> None:
    with pytest.raises(ConfigError):
        save_default("anthropic/claude-sonet-4-5")
    assert not (home / "config.toml").exists()


def test_a_variable_that_overrides_the_default_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_MODEL", "openai/gpt-5")
    assert save_default("anthropic/claude-sonnet-4-5").endswith(
        " TREADLE_MODEL is set in the environment and overrides the file."
    )
