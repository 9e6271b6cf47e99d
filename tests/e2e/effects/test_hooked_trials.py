"""Hooks that change the workspace after a command that was tried in a copy: all of it happens, or nothing."""

import json
import shlex
from pathlib import Path

import pytest

from tests.e2e.effects.driving import DISCARDED, KEPT, Surface, Told, in_editor, in_library
from tests.e2e.faults.driving import run, script
from tests.e2e.process import Program
from tests.e2e.running import model
from tests.workspace.copies.copied import skip_without_copies
from treadle.library import Mode, OptionKind
from treadle.providers.scripted.scripted_server import ScriptedServer

LINE = "echo new > a.txt; echo n > n.txt"
FORMATS = "sed -i s/new/formatted/ a.txt"
LOGS = "mkdir -p .claude/logs; echo ran >> .claude/logs/ran.log"


def lay_out(base: Path, hook: str, event: str) -> Path:
    """Make a folder with a home beside it that has the hook."""
    (base / "home").mkdir()
    (base / "home" / "config.toml").write_text(
        f"[[hooks.{event}]]\nmatcher = 'Bash'\nhooks = [{{ command = {json.dumps(hook)} }}]\n"
    )
    (base / "ws" / ".claude").mkdir(parents=True)
    (base / "ws" / "a.txt").write_text("old\n")
    return base / "ws"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    skip_without_copies(tmp_path)
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "people"))  # logs that a hook names are opened there
    (tmp_path / "people" / ".claude").mkdir(parents=True)
    return tmp_path


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("line", [LINE, f"{LINE}; false"])
@pytest.mark.parametrize(
    ("hook", "after"),
    [
        ("echo fmt >> a.txt; echo ran >> hooks.txt", {"a.txt": "new\nfmt\n", "n.txt": "n\n", "hooks.txt": "ran\n"}),
        (FORMATS, {"a.txt": "formatted\n", "n.txt": "n\n"}),
        ("rm -f a.txt; echo mine > n.txt", {"n.txt": "mine\n"}),
    ],
)
async def test_what_a_hook_changes_keeps_no_trial_from_being_applied(
    base: Path, line: str, hook: str, after: dict[str, str]
) -> None:
    folder = lay_out(base, hook, "PostToolUseFailure" if line.endswith("false") else "PostToolUse")
    told = await in_library(line, folder, base / "home", Mode.ASK, OptionKind.ALLOW_ONCE)
    assert KEPT.search(told.text), told.text
    assert texts(folder) == after


async def test_a_hook_leaves_nothing_of_a_trial_that_is_discarded_but_its_log(base: Path) -> None:
    folder = lay_out(base, f"echo fmt >> a.txt; echo ran >> hooks.txt; {LOGS}", "PostToolUse")
    told = await in_library(LINE, folder, base / "home", Mode.ASK, OptionKind.REJECT_ONCE)
    assert DISCARDED.search(told.text), told.text
    assert texts(folder) == {"a.txt": "old\n"}
    assert (folder / ".claude" / "logs" / "ran.log").read_text() == "ran\n"
    assert not list((base / "home" / "copies").iterdir())


async def test_a_hook_changes_the_workspace_where_a_command_ran_for_real(base: Path) -> None:
    folder = lay_out(base, FORMATS, "PostToolUse")
    await in_library(LINE, folder, base / "home", Mode.ASK, OptionKind.RUN_FOR_REAL)
    assert texts(folder)["a.txt"] == "formatted\n"


def says(event: str, decision: str) -> str:
    """Give the command of a hook that answers so."""
    word: dict[str, object] = {"permissionDecision": decision, "permissionDecisionReason": "my rule"}
    if event == "PermissionRequest":
        word = {"decision": {"behavior": decision, "message": "my rule"}}
    return f"echo {shlex.quote(json.dumps({'hookSpecificOutput': {'hookEventName': event, **word}}))}"


async def in_script(line: str, folder: Path, home: Path, mode: Mode, answer: OptionKind) -> Told:
    """Nobody is there."""
    del answer
    async with ScriptedServer(script(run(line))) as server:
        flags = ("-p", "go", *model(server), "--mode", mode.value, "-C", str(folder), "--trust")
        ended = await Program(home).run(*flags)
        content = str(server.requests[-1].body["messages"][-1])
    return Told(content, ended.code != 0, 0)


@pytest.mark.parametrize("surface", [in_library, in_editor, in_script])
@pytest.mark.parametrize(
    ("event", "decision"), [("PreToolUse", "allow"), ("PermissionRequest", "allow"), ("PermissionRequest", "deny")]
)
async def test_the_hook_of_a_user_answers_for_a_trial_on_every_surface(
    base: Path, surface: Surface, event: str, decision: str
) -> None:
    folder = lay_out(base, says(event, decision), event)
    told = await surface(LINE, folder, base / "home", Mode.ASK, OptionKind.RUN_FOR_REAL)
    allowed = decision == "allow"
    assert (told.asked, told.is_error) == (0, False)
    assert texts(folder) == ({"a.txt": "new\n", "n.txt": "n\n"} if allowed else {"a.txt": "old\n"})
    assert ("A hook allowed its changes" if allowed else "A hook denied its changes: my rule") in told.text


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_a_hook_of_the_folder_gives_no_yes_to_a_trial(base: Path, event: str) -> None:
    folder = lay_out(base, says(event, "allow"), event)
    (folder / ".treadle").mkdir()
    (base / "home" / "config.toml").rename(folder / ".treadle" / "config.toml")
    told = await in_library(LINE, folder, base / "home", Mode.ASK, OptionKind.REJECT_ONCE)
    assert (told.asked, texts(folder)["a.txt"]) == (1, "old\n")


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
@pytest.mark.parametrize("line", ["sh -c 'mkdir -p .git/hooks; echo x > .git/hooks/post-commit'", "echo x > AGENTS.md"])
async def test_a_hook_applies_no_control_file(base: Path, event: str, line: str) -> None:
    folder = lay_out(base, says(event, "allow"), event)
    before = sorted(path.name for path in folder.rglob("*"))
    await in_script(line, folder, base / "home", Mode.ASK, OptionKind.REJECT_ONCE)
    assert sorted(path.name for path in folder.rglob("*")) == before
