"""What is not committed, as a message is given it: each file once, those that are too many by their number."""

import subprocess
from pathlib import Path

import pytest

from treadle.app.session.mentions.git_mentions import Repository

ROOM = 1_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def repository(root: Path) -> Repository:
    """Give the repository, of which everything but secrets may be read."""
    return Repository(root=str(root), why_not=lambda path: "a secret" if "secret" in path else "")


def add(root: Path, *names: str, lines: int = 1) -> None:
    for name in names:
        (root / name).write_text("line\n" * lines)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)


@pytest.mark.parametrize(("changed", "new"), [(0, 0), (1, 0), (0, 2), (200, 50), (201, 51), (1_250, 0)])
def test_files_are_listed_up_to_a_number_and_the_others_counted(root: Path, changed: int, new: int) -> None:
    names = [f"secret-{number:04d}" for number in range(changed)]
    add(root, *names)
    for number in range(new):
        (root / f"new-{number:02d}").touch()
    rows = [f"new: new-{number:02d}" for number in range(min(new, 50))]
    rows += [f"new: {new - 50} more files"] if new > 50 else []
    rows += [f"{name} (+1 -0) [not shown: a secret]" for name in names[:200]]
    rows += [f"[{changed - 200:,} more files]"] if changed > 200 else []
    nothing = "There is nothing to commit: the working tree has no changes."
    assert repository(root).changes(ROOM) == ("\n".join(rows) or nothing)


def test_a_file_of_very_many_lines_is_named_with_their_number_and_not_shown(root: Path) -> None:
    add(root, "a.lock", lines=5_001)
    add(root, "b")
    text = repository(root).changes(ROOM)
    assert text.startswith("a.lock (+5001 -0) [too long to show]\nb (+1 -0)\n\ndiff --git a/b b/b\n")
    assert text.endswith("@@ -0,0 +1 @@\n+line")
