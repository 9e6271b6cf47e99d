"""Hooks as they are written: in Treadle's settings, in those of Claude Code, by the user and by a folder."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from treadle.app.config.hook_settings import POLICY_EVENTS, HookEvent, HookOrigin, HookSpec, hook_specs, seconds_of
from treadle.app.config.layers import Layer, load_settings, merge_layers
from treadle.app.config.sections import Settings
from treadle.app.hooks.hook_commands import HookPlace
from treadle.app.hooks.hook_places import LogPlaces
from treadle.app.hooks.opening_hooks import found_hooks, hook_rows
from treadle.app.security.hook_files import HookFiles
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


@pytest.mark.parametrize("content", ["{", '{"hooks": []}'])
def test_a_file_without_a_table_of_hooks_keeps_a_session_from_starting(folder: Path, content: str) -> None:
    (folder / "people" / ".claude" / "settings.json").write_text(content)
    (folder / "home" / "config.toml").write_text('hooks_from = ["claude"]')
    with pytest.raises(ConfigError) as caught:
        found(folder)
    assert caught.value.code == "config-hooks"


@pytest.mark.parametrize(
    "content",
    [
        '{\n  // what the team wants\n  "hooks": HOOKS\n}',
        '{"hooks": HOOKS, /* no more */}',
        '\ufeff{"hooks": HOOKS,\n}\n// the end\n',
        '{"note": "// no comment, [1,]", "hooks": HOOKS}',
    ],
)
def test_settings_with_comments_and_commas_at_the_end_are_read(folder: Path, content: str) -> None:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo '// x, ]'"}]}]}
    (folder / "people" / ".claude" / "settings.json").write_text(content.replace("HOOKS", json.dumps(hooks)))
    (folder / "home" / "config.toml").write_text('hooks_from = ["claude"]')
    assert [spec.command for spec in found(folder)] == ["echo '// x, ]'"]


RIGHT = {"matcher": "Edit", "hooks": [{"type": "command", "command": "lint"}]}


def handler(**said: Any) -> dict[str, Any]:
    return {"matcher": "Bash", "hooks": [{"command": "x", **said}]}


WRONG: list[tuple[Any, str, str]] = [
    # the groups, what is judged then, and what is said
    ([{"matcher": {}, "hooks": [{"command": "x"}]}], "", "hooks.EVENT[1]: matcher is not a string"),
    ([{"matcher": 5, "hooks": [{"command": "x"}]}], "", "hooks.EVENT[1]: matcher is not a string"),
    ([{"matcher": "(", "hooks": [{"command": "x"}]}], "", "is not a regular expression"),
    (5, "", "hooks.EVENT is not a list"),
    ("x", "", "hooks.EVENT is not a list"),
    ({"matcher": "Bash", "hooks": [{"command": "x"}]}, "", "hooks.EVENT is not a list"),
    (["x"], "", "hooks.EVENT[1] is not a table"),
    ([{"matcher": "Bash"}], "Bash", "hooks.EVENT[1].hooks is not a list"),
    ([{"matcher": "Bash", "command": "x"}], "Bash", "hooks.EVENT[1].hooks is not a list"),
    ([{"matcher": "Bash", "hooks": 1}], "Bash", "hooks.EVENT[1].hooks is not a list"),
    ([{"matcher": "Bash", "hooks": ["x"]}], "Bash", "hooks.EVENT[1].hooks is not a table"),
    ([handler(command=" ")], "Bash", "a command hook needs a command"),
    ([handler(command=5)], "Bash", "command is not a string"),
    ([handler(type="http")], "Bash", "an http hook needs a url"),
    ([handler(type="htpp")], "Bash", "'htpp' is not a kind of hook"),
    ([handler(timeout=0)], "Bash", "must be a number of seconds"),
    ([handler(timeout="5")], "Bash", "must be a number of seconds"),
    ([handler(onFailure="no")], "Bash", "onFailure is 'no'"),
    ([handler(**{"if": 5})], "Bash", "if is not a string"),
    ([handler(args="x")], "Bash", "args is not a list"),
    ([handler(headers=5)], "Bash", "is not a table"),
    ([handler(shell="fish")], "Bash", "does not run hooks in fish"),
]


@pytest.mark.parametrize("event", [*sorted(POLICY_EVENTS), "Stop"])
@pytest.mark.parametrize(("groups", "matcher", "why"), WRONG)
@pytest.mark.parametrize("own", [True, False])
def test_a_wrong_entry_blocks_what_it_would_judge_and_the_start_and_the_others_go_on(
    folder: Path, event: str, groups: Any, matcher: str, why: str, own: bool
) -> None:
    table = {event: groups, "PostToolUse": [RIGHT]}
    if own:
        settings = msgspec.convert({"hooks": table}, Settings)
        merged = merge_layers([Layer(origin="config.toml", values={"hooks": table})])
        specs = list(found_hooks(merged, session_trust(folder / "ws")).specs)
        assert list(hook_specs(settings.hooks, origin=HookOrigin.USER, file="f", own=True))
    else:
        specs = list(hook_specs(table, origin=HookOrigin.USER, file="config.toml", own=False))
    wrong, right = specs
    assert (wrong.event, wrong.matcher, wrong.file, right.says) == (event, matcher, "config.toml", "lint")
    assert why.replace("EVENT", event) in wrong.problem
    assert wrong.origin is HookOrigin.USER
    place = HookPlace(
        launcher=_never,
        confine=None,
        logs=LogPlaces("", Path()),
        private=Path(),
        root="",
        session_id="",
        tell=print,
        files=HookFiles(Path(), ()),
    )
    rows = hook_rows(specs, place)
    assert [row.matcher for row in rows if row.blocks] == ([matcher] if event in POLICY_EVENTS else [])


def _never() -> Any:
    raise AssertionError("nothing of it runs")


def test_the_notice_names_the_entry_and_that_calls_are_blocked(folder: Path) -> None:
    (folder / "home" / "config.toml").write_text('[[hooks.PreToolUse]]\nmatcher = {}\nhooks = [{ command = "x" }]\n')
    (notice,) = found_hooks(load_settings({}), session_trust(folder / "ws")).notices
    place = f"The PreToolUse hook hooks.PreToolUse[1] in {folder / 'home' / 'config.toml'}"
    why = "hooks.PreToolUse[1]: matcher is not a string"
    assert notice == f"{place} does not run: {why}. What it would judge is blocked."


@pytest.mark.parametrize(
    ("said", "own", "event", "problem"),
    [
        ("PreToolUze", True, "PreToolUse", "Treadle has no event 'PreToolUze'; PreToolUse is probably meant"),
        ("pretooluse", False, "PreToolUse", "Treadle has no event 'pretooluse'; PreToolUse is probably meant"),
        ("PreToolUse2", False, "PreToolUse2", "Treadle has no such moment"),
        ("Unheard", True, "Unheard", "Treadle has no such moment"),
        ("SubagentStop", True, "SubagentStop", "Treadle has no such moment"),
    ],
)
def test_an_event_that_is_nearly_one_that_decides_is_taken_for_it(
    said: str, own: bool, event: str, problem: str
) -> None:
    (spec,) = hook_specs({said: [RIGHT]}, origin=HookOrigin.USER, file="f", own=own)
    assert (spec.event, spec.matcher, spec.problem) == (event, "Edit", problem)


def test_a_wrong_entry_that_shall_not_block_does_not(folder: Path) -> None:
    (spec,) = hook_specs(
        {"PreToolUse": [handler(timeout=0, onFailure="continue")]}, origin=HookOrigin.USER, file="f", own=True
    )
    assert spec.on_failure == "continue"


def test_how_long_a_hook_has() -> None:
    times = {event: seconds_of(event) for event in HookEvent}
    special = {HookEvent.USER_PROMPT_SUBMIT: 30.0, HookEvent.SESSION_START: 60.0, HookEvent.SESSION_END: 1.5}
    assert times == {event: special.get(event, 600.0) for event in HookEvent}
    assert (seconds_of("Stop", 5), seconds_of("SessionEnd", 60), seconds_of("Unknown")) == (5, 3.0, 600.0)
