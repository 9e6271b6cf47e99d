"""Hooks as they are written: in Treadle's settings, in those of Claude Code, by the user and by a folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from treadle.app.config.hook_settings import HookEvent, HookOrigin, HookSpec, hook_specs, seconds_of
from treadle.app.config.settings import Settings, load_settings
from treadle.app.hooks.opening_hooks import found_hooks
from treadle.app.security.trusting import SessionTrust, session_trust, trust_store
from treadle.protocol.errors import ConfigError

OWN = """
[[hooks.PreToolUse]]
matcher = "Bash"
hooks = [{ type = "command", command = "check", timeout = 5, confined = false }]
"""
FOLDERS = """
[[hooks.PreToolUse]]
hooks = [{ command = "./check.sh", args = ["a b"], confined = false }]

[[hooks.Stop]]
hooks = [{ command = "x" }]
"""
CLAUDE: dict[str, Any] = {
    "permissions": {"allow": ["Bash"]},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "lint"}]},
            {"hooks": [{"type": "prompt", "prompt": "Is it fine?"}, {"type": "http", "url": "http://localhost:9/x"}]},
        ],
        "SubagentStop": [{"hooks": [{"type": "command", "command": "bell"}]}],
        "Notification": [{"hooks": [{"type": "agent", "prompt": "Look."}]}],
    },
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "ws/.treadle", "ws/.claude", "people/.claude"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "people"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return tmp_path


def trusted(folder: Path) -> SessionTrust:
    trust = session_trust(folder / "ws")
    return SessionTrust(trust=trust_store().grant(trust.trust))


def found(folder: Path, trust: SessionTrust | None = None) -> list[HookSpec]:
    trust = trust or session_trust(folder / "ws")
    settings = load_settings({}, workspace=folder / "ws", trusted=trust.trusted)
    return list(found_hooks(settings, trust).specs)


def said(specs: list[HookSpec]) -> list[tuple[str, str, HookOrigin, bool]]:
    return [(spec.event, spec.says, spec.origin, spec.confined) for spec in specs]


USERS = ("PreToolUse", "check", HookOrigin.USER, False)
OF_FOLDER = [
    ("PreToolUse", "./check.sh a b", HookOrigin.FOLDER, True),
    ("Stop", "x", HookOrigin.FOLDER, True),
]


def test_the_hooks_of_a_folder_come_beside_those_of_the_user_after_trust_and_stay_confined(folder: Path) -> None:
    (folder / "home" / "config.toml").write_text(OWN)
    (folder / "ws" / ".treadle" / "config.toml").write_text(FOLDERS)
    assert said(found(folder)) == [USERS]
    assert said(found(folder, trusted(folder))) == [USERS, *OF_FOLDER]


def test_a_folder_cannot_turn_the_user_s_hooks_off_or_ask_for_others(folder: Path) -> None:
    for line in ("disable_all_hooks = true", 'hooks_from = ["claude"]'):
        (folder / "ws" / ".treadle" / "config.toml").write_text(line)
        with pytest.raises(ConfigError, match="a workspace may not set"):
            found(folder, trusted(folder))


def test_a_folder_cannot_pass_its_hooks_off_as_the_user_s(folder: Path) -> None:
    forged = '[[hooks.Stop]]\nof_workspace = false\norigin = "user"\nhooks = [{ command = "x", confined = false }]\n'
    (folder / "ws" / ".treadle" / "config.toml").write_text(forged)
    assert said(found(folder, trusted(folder))) == [("Stop", "x", HookOrigin.FOLDER, True)]


def test_the_hooks_of_claude_code_run_only_where_the_user_wants_them(folder: Path) -> None:
    (folder / "people" / ".claude" / "settings.json").write_text(json.dumps(CLAUDE))
    (folder / "ws" / ".claude" / "settings.local.json").write_text(json.dumps(CLAUDE))
    assert found(folder) == []
    (folder / "home" / "config.toml").write_text('hooks_from = ["claude"]')
    users = found(folder)
    assert [(one.event, one.says, one.problem) for one in users] == [
        ("PreToolUse", "lint", ""),
        ("PreToolUse", "prompt", "Treadle does not run prompt hooks"),
        ("PreToolUse", "http://localhost:9/x", ""),
        ("SubagentStop", "bell", "Treadle has no such moment"),
        ("Notification", "agent", "Treadle does not run agent hooks"),
    ]
    assert {one.origin for one in users} == {HookOrigin.USER}
    both = found(folder, trusted(folder))
    assert [one.origin for one in both] == [HookOrigin.USER] * 5 + [HookOrigin.FOLDER] * 5
    assert both[7].problem == "a folder's hooks have no network"


def test_what_does_not_run_is_named_and_what_it_would_judge_is_said_to_be_blocked(folder: Path) -> None:
    (folder / "people" / ".claude" / "settings.json").write_text(json.dumps(CLAUDE))
    (folder / "home" / "config.toml").write_text('hooks_from = ["claude"]')
    trust = session_trust(folder / "ws")
    file = folder / "people" / ".claude" / "settings.json"
    blocked = "What it would judge is blocked."
    assert found_hooks(load_settings({}), trust).notices == (
        f"The PreToolUse hook prompt in {file} does not run: Treadle does not run prompt hooks. {blocked}",
        f"The SubagentStop hook bell in {file} does not run: Treadle has no such moment.",
        f"The Notification hook agent in {file} does not run: Treadle does not run agent hooks.",
    )


def test_all_hooks_can_be_turned_off(folder: Path) -> None:
    (folder / "home" / "config.toml").write_text(f'disable_all_hooks = true\nhooks_from = ["claude"]\n{OWN}')
    (folder / "people" / ".claude" / "settings.json").write_text(json.dumps(CLAUDE))
    assert found(folder, trusted(folder)) == []
    (folder / "home" / "config.toml").write_text(f'hooks_from = ["claude"]\n{OWN}')
    (folder / "people" / ".claude" / "settings.json").write_text(json.dumps({**CLAUDE, "disableAllHooks": True}))
    assert said(found(folder)) == [USERS]


def test_a_change_of_a_folder_s_hooks_asks_again_and_one_of_its_other_settings_does_not(folder: Path) -> None:
    file = folder / "ws" / ".claude" / "settings.json"
    scripts = folder / "ws" / ".claude" / "hooks"
    scripts.mkdir()
    (scripts / "lint.sh").write_text("exit 0")
    file.write_text(json.dumps({"permissions": {}}))
    assert session_trust(folder / "ws").items == ()
    file.write_text(json.dumps(CLAUDE))
    trust = trusted(folder)
    assert [(item.path, item.kind.value) for item in trust.items] == [
        (".claude/hooks/lint.sh", "session hook"),
        (".claude/settings.json", "session hook"),
    ]
    file.write_text(json.dumps({**CLAUDE, "permissions": {"allow": ["Edit"]}}, indent=2))
    assert session_trust(folder / "ws").trusted
    (scripts / "lint.sh").write_text("exit 1")
    assert session_trust(folder / "ws").trust.changed == (".claude/hooks/lint.sh",)
    (scripts / "lint.sh").write_text("exit 0")
    file.write_text(json.dumps({**CLAUDE, "hooks": {"Stop": []}}))
    assert session_trust(folder / "ws").trust.changed == (".claude/settings.json",)


@pytest.mark.parametrize(
    "content", ['{"hooks": {"Stop": 5}}', "{", '{"hooks": []}', '{"hooks": {"Stop": [{"hooks": 1}]}}']
)
def test_hooks_that_cannot_be_read_keep_a_session_from_starting(folder: Path, content: str) -> None:
    (folder / "people" / ".claude" / "settings.json").write_text(content)
    (folder / "home" / "config.toml").write_text('hooks_from = ["claude"]')
    with pytest.raises(ConfigError) as caught:
        found(folder)
    assert caught.value.code == "config-hooks"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"PreToolUze": []}, "hooks has no event 'PreToolUze'"),
        ({"PreToolUse": [{"matcher": "(", "hooks": []}]}, "is not a regular expression"),
        ({"PreToolUse": [{"hooks": [{"command": " "}]}]}, "a command hook needs a command"),
        ({"PreToolUse": [{"hooks": [{"type": "http"}]}]}, "an http hook needs a url"),
        ({"Stop": [{"hooks": [{"command": "x", "timeout": 0}]}]}, "must be a number of seconds"),
        ({"Stop": [{"hooks": [{"command": "x", "onFailure": "no"}]}]}, "onFailure is 'no'"),
        ({"Stop": [{"hooks": [{"command": 5}]}]}, "command is not a string"),
    ],
)
def test_a_mistake_in_the_settings_is_said(tmp_path: Path, table: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match="hooks") as caught:
        list(hook_specs(table, origin=HookOrigin.USER, file="f", own=True))
    assert why in str(caught.value)
    with pytest.raises(ValueError, match="hooks"):
        Settings(hooks=table)


def test_a_mistake_in_the_settings_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[[hooks.PreToolUze]]\nhooks = []\n")
    with pytest.raises(ConfigError) as caught:
        load_settings({}, file)
    assert (caught.value.code, str(file) in caught.value.what) == ("config-value", True)
    assert "hooks has no event 'PreToolUze'" in caught.value.why


def test_how_long_a_hook_has() -> None:
    times = {event: seconds_of(event) for event in HookEvent}
    special = {HookEvent.USER_PROMPT_SUBMIT: 30.0, HookEvent.SESSION_START: 60.0, HookEvent.SESSION_END: 1.5}
    assert times == {event: special.get(event, 600.0) for event in HookEvent}
    assert (seconds_of("Stop", 5), seconds_of("SessionEnd", 60), seconds_of("Unknown")) == (5, 3.0, 600.0)
