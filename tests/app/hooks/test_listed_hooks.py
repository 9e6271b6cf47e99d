"""What `treadle hooks` names: hooks in every shape of settings, whose they are, and why one does not run."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.app.config.hook_settings import OTHER_EVENTS, POLICY_EVENTS, HookEvent
from treadle.app.config.layers import load_settings
from treadle.app.config.sections import Settings
from treadle.app.hooks.matching_hooks import matches_any
from treadle.app.hooks.opening_hooks import found_hooks
from treadle.app.reports.hook_list import HookLine, list_hooks
from treadle.app.security.trusting import session_trust

RUN = {"type": "command", "command": "x"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / "work").mkdir()
    return (tmp_path / "work").resolve()


def put(folder: Path, name: str, content: Any) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def settings(folder: Path, *, wanted: bool = True) -> Settings:
    return replace(load_settings({}, workspace=folder), hooks_from=("claude",) if wanted else ())


def lines(folder: Path, *, wanted: bool = True, trusted: bool = True) -> list[HookLine]:
    return list(list_hooks(settings(folder, wanted=wanted), session_trust(folder, once=trusted)))


def test_every_event_of_claude_code_runs_or_says_why_not(folder: Path) -> None:
    events = [*HookEvent, *sorted(OTHER_EVENTS), "NewEvent"]
    put(folder, ".claude/settings.json", {"hooks": {event: [{"hooks": [RUN]}] for event in events}})
    found = {line.event: (line.active, line.why_not) for line in lines(folder)}
    assert list(found) == events
    assert {event for event, (active, _) in found.items() if active} == set(HookEvent)
    assert {why for active, why in found.values() if not active} == {"Treadle has no such moment"}


MATCHERS: list[tuple[Any, list[str], list[str]]] = [
    (None, ["Bash", "Edit"], []),
    ("", ["Bash", "Edit"], []),
    ("*", ["Bash", "Edit"], []),
    ("Bash", ["Bash"], ["Edit", "BashOutput", "bash"]),
    ("Edit|Write", ["Edit", "Write"], ["MultiEdit"]),
    ("Edit, Write", ["Edit", "Write"], ["Bash"]),
    (".*", ["Bash", "Edit"], []),
    ("^(Edit|Write)$", ["Edit"], ["MultiEdit"]),
    ("mcp__.*", ["mcp__a__b"], ["Bash"]),
    ("Notebook.*", ["NotebookEdit"], ["Bash"]),
]


@pytest.mark.parametrize(("matcher", "fit", "others"), MATCHERS)
def test_a_matcher_is_read_as_claude_code_reads_it(
    folder: Path, matcher: Any, fit: list[str], others: list[str]
) -> None:
    group = {"hooks": [RUN]} if matcher is None else {"matcher": matcher, "hooks": [RUN]}
    put(folder, ".claude/settings.json", {"hooks": {"PreToolUse": [group]}})
    (spec,) = found_hooks(settings(folder), session_trust(folder, once=True)).specs
    assert spec.problem == ""
    assert [name for name in (*fit, *others) if matches_any(spec.matcher, [name])] == fit


WRONG: list[tuple[Any, str]] = [
    ([{"matcher": {}, "hooks": [RUN]}], "matcher is not a string"),
    ([{"matcher": {"tools": ["Grep"]}, "hooks": [RUN]}], "matcher is not a string"),
    ([{"matcher": ["Bash"], "hooks": [RUN]}], "matcher is not a string"),
    ([{"matcher": "(", "hooks": [RUN]}], "is not a regular expression"),
    ({"matcher": "Bash", "hooks": [RUN]}, "hooks.PreToolUse is not a list"),
    ("~/check.sh", "hooks.PreToolUse is not a list"),
    (["~/check.sh"], "hooks.PreToolUse[1] is not a table"),
    ([{"matcher": "Bash", "command": "x"}], "hooks.PreToolUse[1].hooks is not a list"),
    ([{"hooks": RUN}], "hooks.PreToolUse[1].hooks is not a list"),
    ([{"hooks": ["x"]}], "hooks.PreToolUse[1].hooks is not a table"),
    ([{"hooks": [{"type": "command"}]}], "a command hook needs a command"),
    ([{"hooks": [{**RUN, "timeout": "10s"}]}], "timeout is '10s'"),
    ([{"hooks": [{"type": "prompt", "prompt": "p"}]}], "Treadle does not run prompt hooks"),
    ([{"hooks": [{"type": "agent", "prompt": "p"}]}], "Treadle does not run agent hooks"),
    ([{"hooks": [{"type": "mcp_tool", "server": "s"}]}], "Treadle does not run mcp_tool hooks"),
    ([{"hooks": [{"type": "http", "url": "http://x"}]}], "a folder's hooks have no network"),
    ([{"hooks": [{**RUN, "shell": "powershell"}]}], "Treadle does not run hooks in powershell"),
    ([{"hooks": [{"type": "wasm", "command": "x"}]}], "'wasm' is not a kind of hook"),
]


@pytest.mark.parametrize(("groups", "says"), WRONG)
def test_one_wrong_entry_ends_no_start_and_is_named_and_blocks_what_it_would_judge(
    folder: Path, groups: Any, says: str
) -> None:
    put(folder, ".claude/settings.json", {"hooks": {"PreToolUse": groups, "Stop": [{"hooks": [RUN]}]}})
    found = found_hooks(settings(folder), session_trust(folder, once=True))
    assert len(found.notices) == 1
    assert says in found.notices[0]
    assert "What it would judge is blocked." in found.notices[0]
    wrong, stop = lines(folder)
    assert (wrong.active, wrong.blocks, stop.active) == (False, True, True)
    assert says in wrong.why_not
    assert HookEvent.PRE_TOOL_USE in POLICY_EVENTS


@pytest.mark.parametrize("hooks", [None, {}])
def test_no_hooks_are_no_mistake(folder: Path, hooks: Any) -> None:
    put(folder, ".claude/settings.json", {"hooks": hooks})
    put(folder.parent / "person", ".claude/settings.json", {"hooks": hooks})
    assert lines(folder) == []


OTHERS: list[tuple[str, Any, list[tuple[str, str, str]]]] = [
    (
        ".cursor/hooks.json",
        {"hooks": {"beforeShellExecution": [{"command": "a"}], "preToolUse": [{"command": "b", "matcher": "Shell"}]}},
        [("beforeShellExecution", "*", "a"), ("preToolUse", "Shell", "b")],
    ),
    (".cursor/hooks.json", {"hooks": {"stop": [{"type": "prompt", "prompt": "p"}]}}, [("stop", "*", "p")]),
    (".cursor/hooks.json", {"version": 1, "hooks": {}}, []),
    (".cursor/hooks.json", '{"hooks": ', [("?", "*", "")]),
    (".clinerules/hooks/PreToolUse", "#!/bin/sh\n", [("PreToolUse", "*", "PreToolUse")]),
    (".clinerules/hooks/TaskStart.ps1", "x", [("TaskStart", "*", "TaskStart.ps1")]),
    (".clinerules/hooks/PreToolUse.example", "x", []),
    (
        ".github/hooks/a.json",
        {"version": 1, "hooks": {"sessionEnd": [{"type": "command", "bash": "a"}]}},
        [("sessionEnd", "*", "a")],
    ),
    (
        ".gemini/settings.json",
        {"hooks": {"BeforeTool": [{"matcher": "m", "hooks": [{"command": "a"}, {"command": "b"}]}]}},
        [("BeforeTool", "m", "a"), ("BeforeTool", "m", "b")],
    ),
    (".gemini/settings.json", {"theme": "t"}, []),
    (".codex/hooks.json", {"hooks": {"PreToolUse": [{"hooks": [{"command": "a"}]}]}}, [("PreToolUse", "*", "a")]),
    (".codex/config.toml", '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = "a"\n', [("Stop", "*", "a")]),
    (".opencode/plugin/a.ts", "export", [("a", "*", "a.ts")]),
    (".kiro/hooks/a.kiro.hook", "{}", [("a", "*", "a.kiro.hook")]),
    (".windsurf/hooks.json", {"hooks": {"pre_run_command": [{"command": "a"}]}}, [("pre_run_command", "*", "a")]),
]


@pytest.mark.parametrize(("name", "content", "shown"), OTHERS)
def test_hooks_of_other_programs_are_named_and_never_run(
    folder: Path, name: str, content: Any, shown: list[tuple[str, str, str]]
) -> None:
    put(folder, name, content)
    found = lines(folder)
    assert [(line.event, line.matcher, line.command) for line in found] == shown
    assert all(line.file == name and not line.active and line.why_not.startswith("a hook of ") for line in found)
    assert found_hooks(settings(folder), session_trust(folder, once=True)).specs == ()


def test_hooks_that_nobody_wants_or_trusts_are_named_with_that(folder: Path) -> None:
    put(folder, ".claude/settings.json", {"hooks": {"Stop": [{"hooks": [RUN]}]}})
    assert [line.why_not for line in lines(folder)] == [""]
    assert [line.why_not for line in lines(folder, trusted=False)] == ["the folder is not trusted"]
    assert [line.why_not for line in lines(folder, wanted=False)] == ['your setting hooks_from does not name "claude"']
    off = replace(settings(folder), disable_all_hooks=True)
    assert [line.why_not for line in list_hooks(off, session_trust(folder, once=True))] == ["disable_all_hooks is set"]


@pytest.mark.parametrize(
    ("content", "why"), [("{", "it is not valid JSON"), ('{"hooks": [1]}', "its hooks are no table")]
)
def test_settings_that_cannot_be_read_are_named(folder: Path, content: str, why: str) -> None:
    put(folder, ".claude/settings.local.json", content)
    (line,) = lines(folder, wanted=False)
    assert (line.file, line.command) == (".claude/settings.local.json", "the hooks of this file")
    assert line.why_not.startswith(why)
