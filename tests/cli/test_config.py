import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command


def _lines(text: str) -> dict[str, tuple[object, str]]:
    rows = map(json.loads, text.splitlines())
    return {row["key"]: (row["value"], row["origin"]) for row in rows}


def test_each_value_is_shown_with_its_origin(treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "config.toml"
    file.write_text(
        'model = "a/b"\nmax_steps = 9\n\n[providers.openai]\nbase_url = "https://me:pw@h/v1?token=t"\n'
        'headers = { "X-Secret" = "hunter2hunter2" }\n[modes.plan]\nmodel = "c/d"\nthinking_budget = 5\n'
    )
    monkeypatch.setenv("TREADLE_MODE", "edits")
    said = treadle("config", "--json", "--model", "e/f")
    assert _lines(said.out) == {
        "add_dirs": ([], "default"),
        "approve": ([], "default"),
        "base_url": ("", "default"),
        "budget": ({}, "default"),
        "checklist": (True, "default"),
        "fallback": ("", "default"),
        "max_retries": (None, "default"),
        "max_seconds": (None, "default"),
        "max_steps": (9, f"{file}:2"),
        "max_unasked": (None, "default"),
        "mode": ("edits", "TREADLE_MODE"),
        "model": ("e/f", "the command line"),
        "modes.plan.thinking_budget": (5, f"{file}:9"),
        "pass_variables": ([], "default"),
        "providers.openai.base_url": ("https://h/v1", f"{file}:5"),
        "providers.openai.headers.X-Secret": ("(hidden)", f"{file}:6"),
        "sandbox": ("auto", "default"),
        "thinking_budget": (None, "default"),
        "tool_protocol": (None, "default"),
        "web_search": (False, "default"),
    }
    assert "hunter2" not in treadle("config").out


def test_a_value_is_set_and_comments_stay(treadle: Command, home: Path) -> None:
    file = home / "config.toml"
    file.write_text('# first\nmodel = "a/b"  # beside\n\n[modes.plan]  # plans\nmodel = "c/d"\n')
    file.chmod(0o644)
    assert treadle("config", "set", "model", "e/f").code == 0
    assert treadle("config", "set", "max_steps", "12").code == 0
    assert treadle("config", "set", "modes.plan.thinking_budget", "4096").code == 0
    assert treadle("config", "set", 'models."e/f".context_window', "8000").code == 0
    assert file.read_text() == (
        '# first\nmodel = "e/f"  # beside\nmax_steps = 12\n\n[modes.plan]  # plans\nmodel = "c/d"\n'
        "thinking_budget = 4096\n"
        '\n[models."e/f"]\ncontext_window = 8000\n'
    )
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_file_that_is_a_link_stays_one(treadle: Command, home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n")
    (home / "config.toml").unlink()
    (home / "config.toml").symlink_to(real)
    treadle("config", "set", "mode", "plan")
    assert (home / "config.toml").is_symlink()
    assert real.read_text() == '# mine\nmode = "plan"\n'


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("max_steps", "many", "Expected `int | null`"),
        ("mode", "wild", "wild"),
        ("providers.openai.api_key", "sk-never-in-a-file", "unknown field"),
        ("no such key", "1", "not a key"),
        ("", "1", "not a key"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_written(
    treadle: Command, home: Path, key: str, value: str, code: str
) -> None:
    before = (home / "config.toml").read_text()
    said = treadle("config", "set", key, value)
    assert (said.code, code in said.err) == (78, True)
    assert "sk-never" not in said.err
    assert (home / "config.toml").read_text() == before


def test_the_file_of_a_workspace_is_told_but_not_used(treadle: Command, tmp_path: Path) -> None:
    (tmp_path / ".treadle").mkdir()
    (tmp_path / ".treadle" / "config.toml").write_text('model = "evil/model"\n')
    said = treadle("config", "--directory", str(tmp_path))
    assert "evil" not in said.out
    assert "counts only in a trusted workspace" in said.err


def test_the_file_of_a_trusted_workspace_is_shown_with_its_lines(treadle: Command, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".treadle").mkdir(parents=True)
    file = work / ".treadle" / "config.toml"
    file.write_text('\nmodel = "good/model"\n')
    for words in (("--trust",), ()):
        if not words:
            assert treadle("trust", str(work), "--yes").code == 0
        said = treadle("config", "--json", "--directory", str(work), *words)
        assert (_lines(said.out)["model"], "trusted" in said.err) == (("good/model", f"{file}:2"), False)
    file.write_text('model = "other/model"\n')
    assert "other/model" not in treadle("config", "--directory", str(work)).out
