import errno
import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from treadle.app.errors.error_report import describe_error, describe_unusable_folder, is_own_folder, sentences_of
from treadle.protocol.errors import ConfigError


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
        "disable_all_hooks": (False, "default"),
        "hooks_from": ([], "default"),
        "animation": (True, "default"),
        "links": (True, "default"),
        "status_line": ("", "default"),
        "approve": ([], "default"),
        "base_url": ("", "default"),
        "budget": ({}, "default"),
        "checklist": (True, "default"),
        "code_mode": (False, "default"),
        "checkpoints": ({}, "default"),
        "network": ({}, "default"),
        "context": ({}, "default"),
        "editing": ("emacs", "default"),
        "fallback": ("", "default"),
        "max_retries": (None, "default"),
        "profile": ("", "default"),
        "wait_for_reset": (False, "default"),
        "max_seconds": (None, "default"),
        "max_steps": (9, f"{file}:2"),
        "max_auto_approved": (None, "default"),
        "mode": ("edits", "TREADLE_MODE"),
        "model": ("e/f", "the command line"),
        "modes.plan.thinking_budget": (5, f"{file}:9"),
        "pass_variables": ([], "default"),
        "providers.openai.base_url": ("https://h/v1", f"{file}:5"),
        "providers.openai.headers.X-Secret": ("(hidden)", f"{file}:6"),
        "sandbox": ("auto", "default"),
        "screen_reader": (False, "default"),
        "gpu": (False, "default"),
        "theme": ("auto", "default"),
        "thinking_budget": (None, "default"),
        "tool_protocol": (None, "default"),
        "try_first": (True, "default"),
        "web_search": (False, "default"),
        "language": ("", "default"),
        "instructions": ("", "default"),
    }
    assert "hunter2" not in treadle("config").out


def test_the_look_of_the_terminal_is_the_user_s_own_setting(treadle: Command, home: Path, tmp_path: Path) -> None:
    wrong = treadle("config", "set", "theme", "drak")
    assert wrong.code == 78
    assert "It must be one of: auto, dark, light, ansi." in wrong.err
    assert "Did you mean dark?" in wrong.err
    assert treadle("config", "set", "animation", "sometimes").code == 78
    assert treadle("config", "set", "theme", "light").code == treadle("config", "set", "animation", "false").code == 0
    assert (treadle("config", "get", "theme").out, treadle("config", "get", "animation").out) == ("light\n", "false\n")
    (tmp_path / "ws" / ".treadle").mkdir(parents=True)
    (tmp_path / "ws" / ".treadle" / "config.toml").write_text('theme = "dark"\n')
    said = treadle("config", "--trust", "--directory", str(tmp_path / "ws"))
    assert (said.code, "a workspace may not set theme" in said.err) == (78, True)


def test_a_value_is_set_and_comments_stay(treadle: Command, home: Path) -> None:
    file = home / "config.toml"
    file.write_text('# first\nmodel = "a/b"  # beside\n\n[modes.plan]  # plans\nmodel = "c/d"\n')
    file.chmod(0o644)
    assert treadle("config", "set", "model", "groq/f").code == 78
    assert treadle("config", "set", "model", "ollama/f").code == 0
    assert treadle("config", "set", "max_steps", "12").code == 0
    assert treadle("config", "set", "modes.plan.thinking_budget", "4096").code == 0
    assert treadle("config", "set", 'models."e/f".context_window', "8000").code == 0
    assert file.read_text() == (
        '# first\nmodel = "ollama/f"  # beside\nmax_steps = 12\n\n[modes.plan]  # plans\nmodel = "c/d"\n'
        "thinking_budget = 4096\n"
        '\n[models."e/f"]\ncontext_window = 8000\n'
    )
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("trouble", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_settings_that_cannot_be_written_are_named_with_what_to_do(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch, trouble: int
) -> None:
    (home / "config.toml").write_text('mode = "ask"\n')

    def refused(_: int) -> None:
        raise OSError(trouble, os.strerror(trouble))

    monkeypatch.setattr(os, "fsync", refused)
    for words in (("set", "mode", "edits"), ("unset", "mode")):
        said = treadle("config", *words)
        assert (said.code, said.out) == (78, "")
        assert f"The settings file {home}/config.toml cannot be written. [config-unwritable]" in said.err
        assert f"Correct the permissions of {home}, or free space on its disk" in " ".join(said.err.split())
    assert [one.name for one in home.iterdir() if "config" in one.name] == ["config.toml"]
    assert (home / "config.toml").read_text() == 'mode = "ask"\n'


def test_a_folder_of_treadle_that_cannot_be_used_is_no_bug_of_treadle(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TREADLE_HOME")
    for variable, name in (("XDG_DATA_HOME", "data directory"), ("XDG_CONFIG_HOME", "configuration folder")):
        (home / variable).mkdir()
        (home / variable / "treadle").write_text("a file")
        monkeypatch.setenv(variable, str(home / variable))
        said = treadle("sessions", "--search", "x")
        error = OSError(errno.EROFS, "Read-only file system", str(home / variable / "treadle" / "mcp.json"))
        assert is_own_folder(error)
        assert f"The {name} cannot be used." in describe_unusable_folder(error)
        assert "bug" not in said.err
    assert not is_own_folder(OSError(errno.ENOENT, "", str(home / "XDG_DATA_HOME" / "treadle" / "x")))
    assert not is_own_folder(OSError(errno.EACCES, "", str(home / "elsewhere")))
    assert not is_own_folder(OSError(errno.EACCES, ""))


def test_a_file_that_is_a_link_stays_one(treadle: Command, home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n")
    (home / "config.toml").unlink()
    (home / "config.toml").symlink_to(real)
    treadle("config", "set", "mode", "plan")
    assert (home / "config.toml").is_symlink()
    assert real.read_text() == '# mine\nmode = "plan"\n'


@pytest.mark.parametrize(
    ("key", "value", "why", "fix"),
    [
        ("max_steps", "many", "max_steps cannot be 'many'. It must be a whole number from 1.", "Nothing was saved."),
        ("max_retries", "101", "It must be a whole number from 0 to 100.", ""),
        ("budget.ask_at", "2", "budget.ask_at cannot be '2'. It must be a number above 0 to 1", ""),
        ("mode", "edit", "mode cannot be 'edit'. It must be one of: plan, ask, edits, auto, full.", "mean edits?"),
        ("checklist", "yes", "It must be true or false.", ""),
        ("approve", "write", "It must be a list of: none, read,", """Write it as '["write"]'."""),
        ("approve", '["critical"]', "dangerous calls always ask.", ""),
        ("modle", "openai/gpt-5", "There is no setting modle.", "Did you mean model or mode?"),
        ("modes.plam.model", "openai/gpt-5", "no setting modes.plam.model.", "Did you mean modes.plan.model?"),
        ("providers.openai.url", "http://x", "no setting providers.openai.url.", "providers.openai.base_url"),
        ("model.name", "x", "model has no settings of its own: it is a string in quotes.", ""),
        ("modes", "plan", "modes cannot be 'plan'. It must be a table with: plan, ask,", ""),
        ("providers.openai.api_key", "sk-never-in-a-file", "no setting", "treadle login PROVIDER"),
        ("providers.openai.headers", "sk-never-in-a-file", "headers cannot be this.", ""),
        ("no such key", "1", "A setting's key is one name", "quotes"),
        ("", "1", "A setting's key is one name", ""),
        ("model", "gpt", "named by its provider, a slash", "Write openai/gpt-6.1-sol or "),
        ("model", "claude-sonnet-5-5", "", "Write anthropic/claude-sonnet-5-5"),
        ("fallback", "openai/gpt-55", "The nearest names are: openai/gpt-5", "treadle config set 'models."),
        ("modes.plan.model", "antropic/x", "", "Did you mean 'anthropic'"),
        ("base_url", "http://h/v1", "Neither --model nor model in your own settings", "[providers.NAME]"),
        (
            "providers.openai.base_url",
            "h/v1",
            "It must have http:// or https://, a host, and a port from 1 to 65535 if it has one.",
            "",
        ),
        ("providers.mine.wire_api", "chat", "", "Choose one of anthropic_messages"),
    ],
)
def test_a_wrong_value_is_refused_in_plain_words_and_nothing_is_written(
    treadle: Command, home: Path, key: str, value: str, why: str, fix: str
) -> None:
    before = (home / "config.toml").read_text()
    said = treadle("config", "set", key, value)
    assert (said.code, said.out) == (78, "")
    assert why in said.err
    assert fix in said.err
    assert not any(word in said.err for word in ("sk-never", "Expected", "$.", "`int", "log:"))
    assert (home / "config.toml").read_text() == before


def test_a_value_is_read_and_removed_again(treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "config.toml"
    file.write_text('# mine\nmodel = "ollama/x"\n[modes.plan]\nmodel = "ollama/y"\nthinking_budget = 7\n')
    assert treadle("config", "get", "model").out == "ollama/x\n"
    assert treadle("config", "get", "modes.plan.thinking_budget").out == "7\n"
    assert treadle("config", "get", "mode").out == "ask\n"
    assert treadle("config", "get", "modes").out.splitlines() == [
        f'modes.plan.model = "ollama/y"  ({file}:4)',
        f"modes.plan.thinking_budget = 7  ({file}:5)",
    ]
    assert _lines(treadle("config", "--json", "get", "model").out) == {"model": ("ollama/x", f"{file}:2")}
    nothing = treadle("config", "get", "max_steps")
    assert (nothing.code, nothing.out, nothing.err) == (1, "", "max_steps is not set.\n")
    wrong = treadle("config", "get", "modle")
    assert (wrong.code, "Did you mean model or mode?" in wrong.err) == (78, True)
    assert treadle("config", "unset", "modes.plan").code == 0
    assert treadle("config", "unset", "model").code == 0
    assert file.read_text() == "# mine\n"
    again = treadle("config", "unset", "model")
    assert (again.code, f"model is not set in {file}." in again.err) == (78, True)
    monkeypatch.setenv("TREADLE_MODE", "plan")
    assert "TREADLE_MODE is set in the environment and overrides" in treadle("config", "set", "mode", "auto").err


def test_a_model_that_a_base_url_depends_on_is_not_removed(treadle: Command, home: Path) -> None:
    text = 'model = "openai/gpt-5"\nbase_url = "http://h/v1"\n'
    (home / "config.toml").write_text(text)
    assert treadle("config", "unset", "model").code == 78
    assert (home / "config.toml").read_text() == text
    assert [treadle("config", "unset", key).code for key in ("base_url", "model")] == [0, 0]


def test_a_broken_file_is_named_by_every_start_and_repaired_one_mistake_after_the_other(
    treadle: Command, home: Path
) -> None:
    file = home / "config.toml"
    file.write_text('# mine\nmode = "wild"  # too wild\n\n[provider.openai]\nproxy = "http://p"\n')
    for command in (("-p", "Hi."), ("models",), ("config",), ("login", "openai"), ("start",)):
        said = treadle(*command)
        assert said.code == 78
        assert f"A setting from {file}, line 2, is wrong." in said.err
        assert "`treadle config unset mode`" in said.err
    first = treadle("config", "set", "mode", "edits")
    assert (first.code, first.out) == (0, f"Saved in {file}.\n")
    assert f"A setting from {file}, line 4, is wrong." in first.err
    assert "Did you mean providers.openai" in first.err
    second = treadle("config", "unset", "provider")
    assert (second.code, second.err) == (0, "")
    assert file.read_text() == '# mine\nmode = "edits"  # too wild\n\n'
    file.write_text("# mine\nmode = \n")
    said = treadle("config", "set", "mode", "edits")
    assert (said.code, "line 2" in said.err, f"Correct that line in {file}" in said.err) == (78, True, True)


def test_a_model_in_the_file_that_cannot_be_is_told_with_its_line(treadle: Command, home: Path) -> None:
    file = home / "config.toml"
    file.write_text('\nmodel = "gpt"\n')
    said = treadle("-p", "Hi.")
    assert said.code == 78
    assert f"{file}, line 2, has model = 'gpt'." in said.err
    assert "`treadle config set model PROVIDER/NAME`" in said.err
    file.write_text("")
    assert str(file) not in treadle("-p", "Hi.", "--model", "gpt").err


def test_the_file_of_a_workspace_is_told_but_not_used(treadle: Command, tmp_path: Path) -> None:
    (tmp_path / ".treadle").mkdir()
    (tmp_path / ".treadle" / "config.toml").write_text('model = "evil/model"\n')
    said = treadle("config", "--directory", str(tmp_path))
    assert "evil" not in said.out
    assert "applies only in a trusted workspace" in said.err


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


@pytest.mark.parametrize("said", ['editing = "vim"', "screen_reader = true"])
def test_the_keys_and_the_plain_lines_are_the_user_s_own_settings(treadle: Command, tmp_path: Path, said: str) -> None:
    name, _, value = said.partition(" = ")
    wrong = treadle("config", "set", "editing", "vi")
    assert (wrong.code, "It must be one of: emacs, vim." in wrong.err) == (78, True)
    assert treadle("config", "set", name, value.strip('"')).code == 0
    assert treadle("config", "get", name).out == f"{value.strip(chr(34))}\n"
    (tmp_path / "ws" / ".treadle").mkdir(parents=True)
    (tmp_path / "ws" / ".treadle" / "config.toml").write_text(f"{said}\n")
    refused = treadle("config", "--trust", "--directory", str(tmp_path / "ws"))
    assert (refused.code, f"a workspace may not set {name}" in refused.err) == (78, True)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("network.allow", '["http://pypi.org"]', "network contains 'http://pypi.org', which is neither a host"),
        ("network.deny", '["PyPI.org"]', "network contains 'PyPI.org', which is neither a host"),
        ("network.loopback_ports", "[80]", "It must be a list of whole numbers, each"),
    ],
)
def test_a_rule_of_a_setting_in_a_table_is_said_in_its_own_words(
    treadle: Command, home: Path, key: str, value: str, said: str
) -> None:
    before = (home / "config.toml").read_text()
    wrong = treadle("config", "set", key, value)
    assert (wrong.code, said in wrong.err) == (78, True), wrong.err
    assert (home / "config.toml").read_text() == before


def test_a_mistake_of_a_folder_is_not_to_be_removed_from_the_users_own_file(
    treadle: Command, home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    (folder / ".treadle").mkdir(parents=True)
    (folder / ".treadle" / "config.toml").write_text('modle = "a/b"\n')
    said = treadle("-p", "Hi.", "-C", str(folder), "--trust")
    assert said.code == 78
    assert "There is no setting modle." in said.err
    assert "config unset" not in said.err


def test_a_file_with_the_mark_of_an_editor_is_read_and_written(treadle: Command, home: Path) -> None:
    file = home / "config.toml"
    file.write_bytes(b"\xef\xbb\xbfmode = 'edits'\n")
    assert treadle("config", "get", "mode").out == "edits\n"
    assert treadle("config", "set", "max_steps", "7").code == 0
    assert treadle("config", "get", "mode").out == "edits\n"
    file.write_bytes(b"\xef\xbb\xbfmode = 'wild'\n")
    assert f"A setting from {file}, line 1, is wrong." in treadle("config").err


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("add_dirs", '["/"]', "too wide"),
        ("add_dirs", '["~/nope"]', "does not exist"),
        ("profile", "nope", "There is no profile 'nope'"),
        ("hooks_from", '["cluade"]', "a list of: claude"),
    ],
)
def test_what_no_session_could_start_with_is_not_saved(
    treadle: Command, home: Path, key: str, value: str, why: str
) -> None:
    before = (home / "config.toml").read_text()
    said = treadle("config", "set", key, value)
    assert said.code == 78
    assert why in said.err
    assert (home / "config.toml").read_text() == before


@pytest.mark.parametrize("written", ["Be brief.", '"Be brief."', "'Be brief.'"])
def test_quotes_around_a_value_are_no_part_of_it(treadle: Command, home: Path, written: str) -> None:
    assert treadle("config", "set", "instructions", written).code == 0
    assert treadle("config", "get", "instructions").out == "Be brief.\n"
    assert treadle("config", "set", "instructions", '""').code == 0
    assert treadle("config", "get", "instructions").out == "\n"


def test_what_is_printed_of_an_error_is_read_elsewhere_as_sentences() -> None:
    error = ConfigError("provider-unknown", "There is no provider 'x'.", why="It is new.", fix="Use [a] or b.")
    assert sentences_of(describe_error(error)) == "There is no provider 'x'. It is new. Use [a] or b."
    assert sentences_of("# r: 2 tasks\ntreadle: Gone. [a-b]\n  log: /x\n") == "r: 2 tasks Gone."
