"""Control files that a command made are moved away, also when Treadle was killed while it ran."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from treadle.protocol.protected_names import control_name, secret_name
from treadle.protocol.rebase_steps import OPEN_STEPS
from treadle.workspace.sandbox import MadeFiles, Surveyor, allow_made, recover_made


def is_control(path: str) -> bool:
    return control_name(path) is not None


def is_secret(path: str) -> bool:
    return secret_name(path) is not None


def is_empty(path: str) -> bool:
    return not any(Path(path).iterdir())


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / ".gitattributes").write_text("before")
    return folder


def begin(work: Path, **more: Any) -> MadeFiles:
    surveyor = Surveyor(str(work), is_control=is_control, is_secret=is_secret)
    return MadeFiles(work.parent / "data", [surveyor], [surveyor.look()], is_inert=is_empty, **more)


def quarantined(work: Path) -> dict[str, str]:
    """Give the text of what was moved, by its path in the workspace."""
    files = [path for path in (work.parent / "data/quarantine").rglob("*") if path.is_file() or path.is_symlink()]
    return {"/".join(path.relative_to(work.parent / "data/quarantine").parts[1:]): path.read_text() for path in files}


MADE = ("AGENTS.md", "agents.MD", "new/deep/.envrc", ".git/hooks/pre-commit", ".github/workflows/x.yml", "sub/.npmrc")


@pytest.mark.parametrize("name", MADE)
def test_what_was_made_is_moved_and_said(name: str, work: Path) -> None:
    run = begin(work)
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    (work / name).write_text("evil")
    (said,) = run.end()
    assert not (work / name).exists()
    assert quarantined(work) == {name: "evil"}
    assert said.endswith(
        f"was made while the command ran. It can change what tools do, so it was moved to {said.split()[-1]}"
    )
    assert run.end() == ()
    assert (work / ".gitattributes").read_text() == "before"


def test_many_are_said_in_a_few_lines(work: Path) -> None:
    run = begin(work)
    for number in range(40):
        (work / f"d{number}").mkdir()
        (work / f"d{number}/AGENTS.md").write_text("evil")
    said = run.end()
    assert (len(said), len(quarantined(work))) == (6, 40)
    assert said[-1].startswith("35 more such files were moved to ")


def test_a_link_keeps_its_target_and_comes_back(work: Path) -> None:
    (work / "CLAUDE.md").symlink_to("README")
    (work / "GEMINI.md").symlink_to("README")
    run = begin(work)
    (work / "CLAUDE.md").unlink()
    (work / "CLAUDE.md").write_text("evil")
    (work / "GEMINI.md").unlink()
    said = run.end()
    assert len(said) == 2
    assert [(work / name).readlink() for name in ("CLAUDE.md", "GEMINI.md")] == [Path("README")] * 2
    assert quarantined(work) == {"CLAUDE.md": "evil"}


def test_what_somebody_allowed_stays(work: Path) -> None:
    run = begin(work, allowed=(f"{work}/sub/.envrc",))
    for name in ("sub/.envrc", "AGENTS.md"):
        (work / name).write_text("wanted")
    allow_made(work.parent / "data", f"{work}/AGENTS.md")
    assert run.check() == ()
    assert run.end() == ()
    assert (work / "AGENTS.md").read_text() == "wanted"


def test_of_a_new_folder_that_controls_tools_what_somebody_allowed_stays_and_the_rest_is_moved(work: Path) -> None:
    run = begin(work, allowed=(f"{work}/.vscode/tasks.json", f"{work}/sub/.github/workflows/w.yml", f"{work}/.idea/x"))
    for name in (".vscode/tasks.json", ".vscode/settings.json", "sub/.github/workflows/w.yml", ".claude/settings.json"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
    (work / ".vscode/launch.json").symlink_to("/etc/passwd")
    (work / ".idea").mkdir()
    assert len(run.end()) == 3
    assert [path.name for path in (work / ".vscode").iterdir()] == ["tasks.json"]
    assert (work / "sub/.github/workflows/w.yml").read_text() == "x"
    assert (work / ".idea").is_dir(), "an empty one, in the middle of what was allowed"
    assert not (work / ".claude").exists()


def test_what_one_command_may_make_stays_while_another_runs(work: Path) -> None:
    server = begin(work)
    other = begin(work, allowed=(f"{work}/AGENTS.md", f"{work}/.vscode/tasks.json"))
    (work / "AGENTS.md").write_text("wanted")
    (work / ".vscode").mkdir()
    (work / ".vscode/tasks.json").write_text("wanted")
    (work / "CLAUDE.md").write_text("evil")
    assert server.check()[0].startswith("CLAUDE.md was made while the command ran.")
    assert other.end() == ()
    assert server.end() == ()
    assert (work / ".vscode/tasks.json").exists()


def test_parts_of_a_repository_that_make_git_run_something_are_moved(work: Path) -> None:
    (work / ".git/hooks").mkdir(parents=True)
    run = begin(work, repositories=(f"{work}/.git",))
    (work / ".git/commondir").write_text("/evil")
    (work / ".git/index").write_text("fine")
    (work / ".git/info").mkdir()
    (work / ".git/info/attributes").write_text("* diff=evil")
    assert len(run.end()) == 2
    assert sorted(path.name for path in (work / ".git").iterdir()) == ["hooks", "index", "info"]
    assert list((work / ".git/info").iterdir()) == []


@pytest.mark.parametrize("place", [".git", ".git/worktrees/other"])
def test_steps_of_a_rebase_are_moved_where_they_run_programs(place: str, work: Path) -> None:
    steps = work / place / OPEN_STEPS
    steps.parent.mkdir(parents=True)
    for before, after, moved in (
        ("pick a\n", "pick a\nexec sh x\n", True),
        ("pick a\n", "pick b exec\n# x sh x\nreword c\n", False),
        ("x sh x\n", "pick a\nx sh x\n", False),  # a person's own, with which git goes on
        ("", "\tx sh x", True),
    ):
        steps.write_text(before)
        run = begin(work, repositories=(f"{work}/.git",))
        steps.write_text(after)
        said = run.end()
        assert (len(said), steps.exists()) == (moved, not moved), (before, after, said)
    run = begin(work, repositories=(f"{work}/.git",), allowed=(str(steps),))
    steps.write_text("exec sh x")
    assert run.end() == ()


def test_a_folder_that_became_a_link_leads_nowhere(work: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/AGENTS.md").write_text("of the user")
    run = begin(work)
    (work / "sub").rmdir()
    (work / "sub").symlink_to(tmp_path / "elsewhere")
    assert run.end() == ()
    assert (tmp_path / "elsewhere/AGENTS.md").read_text() == "of the user"


def test_an_inert_repository_of_the_folder_itself_stays_as_long_as_it_is_inert(work: Path) -> None:
    run = begin(work)
    for name in (".git", "sub/.git"):
        (work / name).mkdir()
    (said,) = run.check()
    assert said.startswith("sub/.git was made while the command ran.")
    assert recover_made(work.parent / "data", is_control=is_control, is_secret=is_secret, is_inert=is_empty) == ()
    (work / ".git/hooks").mkdir()
    (said,) = run.end()
    assert said.startswith(".git was made while the command ran.")
    assert not (work / ".git").exists()


def test_a_repository_that_was_there_before_is_no_new_one(work: Path) -> None:
    (work / ".git").symlink_to("sub")
    run = begin(work)
    (work / ".git").unlink()
    (work / ".git").mkdir()
    (said,) = run.end()
    assert said.startswith(".git was replaced while the command ran.")


KILLED = """
import os, signal
from pathlib import Path
from tests.workspace.sandbox.test_made import begin
work = Path({work!r})
run = begin(work)
(work / "AGENTS.md").write_text("evil")
(work / ".git").mkdir()
(work / "free.txt").write_text("fine")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_command_of_a_killed_treadle_made_is_found_later(work: Path) -> None:
    data = work.parent / "data"
    repository = Path(__file__).parents[3]
    done = subprocess.run((sys.executable, "-c", KILLED.format(work=str(work))), cwd=repository, check=False)
    assert done.returncode == -9
    still = begin(work)
    (said,) = recover_made(data, is_control=is_control, is_secret=is_secret, is_inert=is_empty)
    assert said.startswith("AGENTS.md was made while the command ran.")
    assert sorted(path.name for path in work.iterdir()) == [".git", ".gitattributes", "free.txt", "sub"]
    assert recover_made(data, is_control=is_control, is_secret=is_secret, is_inert=is_empty) == ()
    (work / "sub/.envrc").write_text("evil")
    assert recover_made(data, is_control=is_control, is_secret=is_secret, is_inert=is_empty) == (), (
        "a command that still runs is not killed"
    )
    assert len(still.end()) == 1
    assert list((data / "running").iterdir()) == []
