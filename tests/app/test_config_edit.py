import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.app.config.edit import Saved, set_value, unset_value
from treadle.app.config.layers import load_settings
from treadle.app.config.sections import Settings
from treadle.app.config.setting_lines import dotted, leaves

BEFORE = """\
# the model
model = "a/b"  # beside it

[modes]
# plans think
plan = { model = "c/d" }

[providers.openai]
base_url = "http://h/v1"
headers.X-Team = "blue"
"""
CHANGES = st.sampled_from(
    [
        ("model", '"', "e/f"),
        ("max_steps", "", "7"),
        ("modes.plan.thinking_budget", "", "9"),
        ("modes.ask.model", '"', "g/h"),
        ("providers.openai.proxy", '"', "http://p"),
        ('providers.openai.headers."X-Other"', '"', "red"),
        ("providers.mine.base_url", '"', "http://m/v1"),
        ('models."e/f.g".context_window', "", "8192"),
        ("tool_protocol", '"', "xml"),
    ]
)


@given(st.lists(CHANGES, max_size=8))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changes_leave_a_valid_file_with_all_else_as_it_was(
    tmp_path: Path, changes: list[tuple[str, str, str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREADLE_HOME", str(tmp_path))
        file = tmp_path / "config.toml"
        file.write_text(BEFORE)
        wanted = tomllib.loads(BEFORE)
        for key, quote, text in changes:
            assert set_value(key, text, accept) == Saved(file=file)
            wanted = _merged(wanted, tomllib.loads(f"{key} = {quote}{text}{quote}"))
        assert tomllib.loads(file.read_text()) == wanted
        assert all(comment in file.read_text() for comment in ("# the model\n", "# beside it\n", "# plans think\n"))
        load_settings({}, file)


@given(st.permutations([path for path, _ in leaves(tomllib.loads(BEFORE))]))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_values_are_removed_in_any_order_and_comments_stay(tmp_path: Path, paths: list[tuple[str, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREADLE_HOME", str(tmp_path))
        file = tmp_path / "config.toml"
        file.write_text(BEFORE)
        left = dict(leaves(tomllib.loads(BEFORE)))
        for path in paths:
            unset_value(dotted(path), accept)
            del left[path]
            assert {key: one for key, one in leaves(tomllib.loads(file.read_text())) if one != {}} == left
        assert "# the model\n" in file.read_text()
        assert "# plans think\n" in file.read_text()


def accept(_: Settings, __: tuple[str, ...]) -> None:
    """Take every settings."""


def _merged(below: dict[str, object], above: dict[str, object]) -> dict[str, object]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _merged(under, value) if isinstance(value, dict) and isinstance(under, dict) else value
    return merged
