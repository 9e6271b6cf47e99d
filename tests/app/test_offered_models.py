"""The models to choose from, and the one that becomes the default."""

from pathlib import Path

import pytest

from treadle.app.config.layers import load_settings
from treadle.app.config.sections import Settings
from treadle.app.models.known import is_over
from treadle.app.models.model_choice import Models
from treadle.app.models.model_order import newest_first
from treadle.app.models.model_rows import catalogue_models, models_of_provider, offered_models
from treadle.app.models.saving_model import save_default
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelSpec
from treadle.providers.catalogue import find_provider
from treadle.providers.provider_rows import ROWS


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
    other = next(model for model in offered if model.ref == "anthropic/claude-sonnet-5-5")
    assert (other.usable, other.key, other.window, other.thinks) == (False, "", 1_000_000, True)


def listed(*models: tuple[str, str]) -> list[str]:
    specs = [ModelSpec(provider="p", name=name, released=released) for name, released in models]
    assert newest_first(specs[::-1]) == newest_first(specs)
    return [spec.name for spec in newest_first(specs)]


def test_the_newest_come_first_and_names_without_a_date_before_dated_ones() -> None:
    assert listed(
        ("a-3-20240307", "2024-03-07"),
        ("a-4-20250514", "2025-05-14"),
        ("a-3-latest", "2024-03-07"),
        ("a-4", "2025-05-14"),
        ("b-0613", "2026-01-01"),
        ("b@20250929", "2025-09-29"),
        ("b-2025-08-07:1m", "2025-08-07"),
    ) == ["a-4", "a-3-latest", "b-0613", "b@20250929", "b-2025-08-07:1m", "a-4-20250514", "a-3-20240307"]


def test_without_a_day_of_release_a_model_is_newer_than_lower_versions_of_its_line() -> None:
    assert listed(
        ("x/a-4.7", "2026-04-16"), ("x/a-small-5", ""), ("x/a-5.5", ""), ("x/a-4", "2025-05-14"), ("x/a-4.6", "")
    ) == ["x/a-5.5", "x/a-small-5", "x/a-4.7", "x/a-4.6", "x/a-4"]
    assert listed(("a-1", "2020-01-01"), ("q-9", ""), ("a-0.5", "")) == ["a-1", "q-9", "a-0.5"]


def test_providers_stay_together_and_in_their_order() -> None:
    specs = [ModelSpec(provider=name, name=f"m-{number}") for name in ("z", "a") for number in (1, 2)]
    assert [spec.ref for spec in newest_first(specs)] == ["z/m-2", "z/m-1", "a/m-2", "a/m-1"]


def test_a_default_is_saved_with_its_thinking_and_comments_stay(home: Path) -> None:
    file = home / "config.toml"
    file.write_text('# mine\nmodel = "openai/gpt-5"  # old\n')
    assert save_default("anthropic/claude-sonnet-5-5", 4_096) == (
        f"anthropic/claude-sonnet-5-5 is the default now. Saved in {file}."
    )
    assert "# mine\n" in file.read_text()
    settings = load_settings({})
    assert (settings.model, settings.thinking_budget) == ("anthropic/claude-sonnet-5-5", 4_096)
    save_default("openai/gpt-5")
    assert (load_settings({}).model, load_settings({}).thinking_budget) == ("openai/gpt-5", 4_096)


def test_a_default_with_which_no_session_could_start_is_not_saved(home: Path) -> None:
    with pytest.raises(ConfigError):
        save_default("anthropic/claude-sonet-5-5")
    assert not (home / "config.toml").exists()


def test_a_variable_that_overrides_the_default_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_MODEL", "openai/gpt-5")
    assert save_default("anthropic/claude-sonnet-5-5").endswith(
        " TREADLE_MODEL is set in the environment and overrides the file."
    )


def test_the_first_list_of_a_providers_models_is_in_the_order_of_all_others() -> None:
    listed = catalogue_models(Models(Settings(), environment={}), "")
    for row in ROWS:
        offered = list(models_of_provider(row))
        assert offered == [spec for spec in listed if spec.provider == row.name and not is_over(spec)]
    (first, *_) = models_of_provider(find_provider("anthropic"))
    assert first.name == "claude-haiku-5-5"
