"""Hooks that change the workspace after a command that was tried in a copy: all of it happens, or nothing."""

from pathlib import Path

import pytest

from tests.e2e.effects.driving import DISCARDED, KEPT, in_library
from tests.workspace.copies.copied import skip_without_copies
from treadle.library import Mode, OptionKind

LINE = "echo new > a.txt; echo n > n.txt"
FORMATS = "sed -i s/new/formatted/ a.txt"
LOGS = "mkdir -p .claude/logs; echo ran >> .claude/logs/ran.log"


def lay_out(base: Path, hook: str, event: str) -> Path:
    """Make a folder with a home beside it that has the hook."""
    (base / "home").mkdir()
    (base / "home" / "config.toml").write_text(
        f"[[hooks.{event}]]\nmatcher = 'Bash'\nhooks = [{{ command = '{hook}' }}]\n"
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
