"""Control files that a call of git would commit are looked for in the repository that it works in, whichever it is."""

import subprocess
from pathlib import Path

import pytest

from tests.needed import needs
from treadle.app.security.command_confinement import confine
from treadle.app.security.command_folders import CommandFolders
from treadle.app.security.file_view import DiskView
from treadle.policy.decision_context import PolicyContext
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Confinement, Rights

pytestmark = needs("bwrap")
NAME = ".husky/pre-commit"


def git(root: Path, *words: str) -> str:
    return subprocess.run(("git", *words), cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two folders of a workspace: in the index of the second one is a control file that no folder has."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    first, second = (tmp_path.resolve() / name for name in ("first", "second"))
    for root in (first, second):
        (root / "sub").mkdir(parents=True)
        (root / "sub/a").write_text("one\n")
        for words in (("init", "-qb", "main"), ("config", "user.name", "A"), ("config", "user.email", "a@b")):
            git(root, *words)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "first")
    git(second, "update-index", "--add", "--cacheinfo", f"100644,{git(second, 'rev-parse', ':sub/a').strip()},{NAME}")
    (first / "link").symlink_to(second / "sub")
    return first, second


@pytest.mark.parametrize(
    ("line", "cwd", "refused"),
    [
        ("git commit -m x", "second", True),
        ("git commit -m x", "second/sub", True),
        ("git -C ../second commit -m x", "first", True),
        ("cd ../second/sub && git commit -m x", "first", True),
        ("cd link && git commit -m x", "first", True),
        ("cd $(cat where) && git commit -m x", "first", True),
        ("git commit -m x", "first", False),
        ("cd sub && git commit -m x", "first", False),
        ("cd .. && git log", "second/sub", False),
    ],
)
def test_a_commit_is_looked_at_where_it_is_made(
    line: str, cwd: str, refused: bool, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    first, second = folders
    place = CommandFolders(
        root=str(first), roots=(str(second),), data=tmp_path / "data", private=tmp_path / "data/session"
    )
    context = PolicyContext(
        mode=Mode.AUTO, roots=place.folders, files=DiskView(), home=str(tmp_path / "home"), confines=True, brokers=True
    )
    rights = Rights(confinement=Confinement.GIT)
    found = confine(line, rights, place, context, cwd=str(tmp_path.resolve() / cwd)).refused
    assert (found.target if found else "") == (f"{second}/{NAME}" if refused else "")
