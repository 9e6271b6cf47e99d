"""Where hooks may append: logs of the user's folder of Claude Code and of the workspace, and nothing that runs."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.workspace.sandbox.running import Box, bubblewrap, landlock
from treadle.app.config.hook_settings import HookEvent, HookOrigin, HookSpec
from treadle.app.hooks.hook_places import HookAccess, LogPlaces
from treadle.workspace.sandbox import SandboxState

ALWAYS_KEPT = (
    *("settings.json", "settings.local.json", "CLAUDE.md", ".credentials.json", "history.jsonl", "keybindings.json"),
    *("hooks/x.sh", "agents/x.md", "commands/x.md", "skills/x/SKILL.md", "plugins/x.json", "rules/x.md"),
    *("projects/x/memory/MEMORY.md", "shell-snapshots/x.sh", "statusline.sh"),
)


class Place:
    def __init__(self, base: Path) -> None:
        self.claude, self.root = base / "people" / ".claude", base / "ws"
        self.claude.mkdir(parents=True)
        (self.root / ".claude").mkdir(parents=True)
        self.logs = LogPlaces(str(self.root), self.claude)

    def open(self, command: str, **more: Any) -> HookAccess:
        return self.logs.open(HookSpec(event=HookEvent.PRE_TOOL_USE, command=command, **more))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_logs_that_a_hook_names_are_made_and_go_again_where_they_stay_empty(place: Place) -> None:
    access = place.open("echo x >> ~/.claude/bash-command-log.txt; mkdir -p ~/.claude/logs")
    log = place.claude / "bash-command-log.txt"
    assert access.writable == tuple(map(str, (place.claude / "logs", log, place.root / ".claude" / "logs")))
    assert all(map(os.path.exists, access.writable))
    again = place.open("echo x >> ~/.claude/bash-command-log.txt")
    place.logs.close(access)
    assert log.exists()  # the other run has it open
    place.logs.close(again)
    assert not log.exists()
    access = place.open("echo x >> ~/.claude/bash-command-log.txt")
    log.write_text("x\n")
    place.logs.close(access)
    assert log.read_text() == "x\n"


def test_what_the_script_names_is_made_too_and_the_script_can_be_read(place: Place) -> None:
    (place.claude / "hooks").mkdir()
    script = place.claude.parent / "check.py"
    script.write_text("open(Path.home() / '.claude' / 'mine.log', 'a')")
    access = place.open(f"python3 {script} 'a b'")
    assert access.readable == (str(script), str(place.claude / "hooks"))
    assert access.writable == (str(place.claude / "mine.log"),)


def test_a_secret_that_a_command_names_stays_hidden(place: Place) -> None:
    key = place.claude.parent / ".ssh" / "id_rsa"
    key.parent.mkdir()
    key.write_text("key")
    assert place.open(f"cat {key}").readable == ()


def test_nothing_that_runs_later_or_configures_is_ever_opened(place: Place) -> None:
    for name in ALWAYS_KEPT:
        (place.claude / name).parent.mkdir(parents=True, exist_ok=True)
        (place.claude / name).write_text("text")
    line = " ".join(f"~/.claude/{name}" for name in (*ALWAYS_KEPT, "new.json", "new.sh", "new.md"))
    assert place.open(line).writable == ()
    assert not (place.claude / "new.json").exists()


def test_no_link_leads_out(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (place.root / ".claude" / "logs").symlink_to(outside)
    (place.claude / "logs").symlink_to(outside)
    (place.claude / "a.log").symlink_to(place.claude / "settings.json")
    access = place.open("echo x >> ~/.claude/a.log; ls logs")
    assert access.writable == ()
    assert not (place.claude / "settings.json").exists()


def test_hooks_of_a_folder_have_only_logs_of_that_folder_and_those_of_a_host_nothing(place: Place) -> None:
    line = "echo x >> ~/.claude/a.log; ls logs; echo x >> .claude/b.txt; echo x >> .claude/c.json"
    assert place.open(line, origin=HookOrigin.HOST) == HookAccess()
    own = place.root / ".claude"
    assert place.open(line, origin=HookOrigin.FOLDER) == HookAccess(writable=(f"{own}/logs", f"{own}/b.txt"))
    assert list(place.claude.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        '"$CLAUDE_PROJECT_DIR"/.claude/hooks/log.sh',
        "${CLAUDE_PROJECT_DIR}/.claude/hooks/log.sh --all",
        "sh .claude/hooks/log.sh",
        "sh $TREADLE_PROJECT_DIR/.claude/hooks/log.sh",
    ],
)
@pytest.mark.parametrize("origin", [HookOrigin.USER, HookOrigin.FOLDER])
def test_a_script_of_the_folder_is_looked_into_however_it_is_named(
    place: Place, command: str, origin: HookOrigin
) -> None:
    script = place.root / ".claude" / "hooks" / "log.sh"
    script.parent.mkdir()
    script.write_text('mkdir -p "$CLAUDE_PROJECT_DIR/.claude/logs"\ndate >> "$CLAUDE_PROJECT_DIR/.claude/calls.csv"\n')
    writable = place.open(command, origin=origin).writable
    assert {f"{place.root}/.claude/logs", f"{place.root}/.claude/calls.csv"} <= set(writable)


def test_a_link_of_the_folder_makes_nothing_readable(place: Place) -> None:
    key = place.claude.parent / "notes"
    key.write_text("private")
    (place.root / "check.sh").symlink_to(key)
    assert place.open("sh check.sh; sh $CLAUDE_PROJECT_DIR/check.sh").readable == ()


def test_without_a_folder_of_claude_code_none_is_made(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    logs = LogPlaces(str(tmp_path / "ws"), tmp_path / "people" / ".claude")
    spec = HookSpec(event=HookEvent.PRE_TOOL_USE, command="echo x >> ~/.claude/a.log; ls logs")
    assert logs.open(spec) == HookAccess()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ws"]


@pytest.mark.parametrize("sandbox", [bubblewrap, landlock])
async def test_each_sandbox_opens_the_logs_and_nothing_beside_them(
    tmp_path: Path, sandbox: Callable[[], SandboxState]
) -> None:
    box = Box(tmp_path, sandbox())
    claude, own = tmp_path / "people" / ".claude", box.root / ".claude"
    for folder in (claude / "hooks", own):
        folder.mkdir(parents=True)
        (folder / "settings.json").write_text("{}")
    logs = LogPlaces(str(box.root), claude)
    names = ["a.log", "logs/b", "settings.json", "hooks/settings.json", "hooks/new.sh", "new.json", "../.bashrc"]
    line = " ".join(f"echo x 2>/dev/null >> {claude}/{name};" for name in names)
    line += " echo x >> .claude/logs/c; echo x >> .claude/settings.json; echo x >> .claude/new.md; true"
    access = logs.open(HookSpec(event=HookEvent.PRE_TOOL_USE, command=line))
    profile = replace(
        box.profile(".claude"),
        hidden=(str(claude.parent),),
        readable=access.readable,
        writable=access.writable,
    )
    await box.run(line, profile)
    logs.close(access)
    written = sorted(
        str(path.relative_to(tmp_path))
        for top in (claude.parent, own)
        for path in top.rglob("*")
        if path.is_file() and "x" in path.read_text()
    )
    assert written == ["people/.claude/a.log", "people/.claude/logs/b", "work/.claude/logs/c"]
