"""What deleting a path would lose: whatever checkpoints do not hold, and whatever cannot be told."""

import os
from pathlib import Path

import pytest

from treadle.workspace.checkpoints import unkept
from treadle.workspace.checkpoints.trees import LARGEST_KEPT
from treadle.workspace.checkpoints.unkept import Unkept


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in (
        "src/deep",
        "data",
        "build/sub",
        "node_modules/x",
        "__pycache__",
        "mixed/inner",
        ".git",
        "vendor/.git",
    ):
        (root / name).mkdir(parents=True)
    (root / ".gitignore").write_text("data/\n*.log\nbuild/\nnode_modules/\n__pycache__/\nmixed/inner/\n.env\n")
    for name in (
        *("src/a.py", "src/deep/b.py", "src/run.log", "data/db.sqlite3", "build/sub/out.o", "node_modules/x/a.js"),
        *("__pycache__/a.pyc", "mixed/a.py", "mixed/inner/kept.bin", "vendor/a.c", ".git/HEAD", "vendor/.git/HEAD"),
    ):
        (root / name).write_text("x")
    return root


@pytest.mark.parametrize(
    ("name", "loses"),
    [
        ("src/a.py", False),
        ("src/deep", False),
        ("src/run.log", True),
        ("src", True),
        ("data", True),
        ("data/db.sqlite3", True),
        ("build", False),
        ("build/sub/out.o", False),
        ("node_modules", False),
        ("__pycache__", False),
        ("mixed/a.py", False),
        ("mixed", True),
        (".git", True),
        (".git/HEAD", True),
        ("vendor", True),
        ("nothing/there", False),
        ("src/a.py/below", False),
        ("../other", False),
    ],
)
def test_what_git_ignores_and_builds_do_not_make_is_lost_and_so_is_a_repository(
    root: Path, name: str, *, loses: bool
) -> None:
    assert Unkept((str(root),))(str(root / name)) is loses


def test_a_link_is_a_link_and_what_it_leads_to_stays(root: Path) -> None:
    (root / "link").symlink_to(root / "data")
    assert not Unkept((str(root),))(str(root / "link"))


def test_what_is_outside_and_the_root_itself_is_not_held(root: Path) -> None:
    (root.parent / "other").write_text("x")
    found = Unkept((str(root),))
    assert [found(str(path)) for path in (root, root.parent / "other", root.parent)] == [True, True, True]


def test_without_git_nothing_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / ".gitignore").write_text("data/\n")
    (tmp_path / "data" / "db").write_text("x")
    assert not Unkept((str(tmp_path),))(str(tmp_path / "data"))


def test_what_is_too_much_or_too_large_to_look_at_may_be_lost(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unkept, "_MOST", 1)
    assert Unkept((str(root),))(str(root / "src" / "deep")) is False
    (root / "src" / "deep" / "c.py").write_text("x")
    assert Unkept((str(root),))(str(root / "src" / "deep")) is True
    os.truncate(root / "src" / "a.py", 200 * 1024 * 1024)
    assert Unkept((str(root),))(str(root / "src" / "a.py")) is True


@pytest.mark.parametrize(
    ("name", "size", "loses"),
    [
        ("src/run.log", LARGEST_KEPT, False),
        ("src/run.log", LARGEST_KEPT + 1, True),
        ("src/a.py", LARGEST_KEPT + 1, True),
        ("link", LARGEST_KEPT + 1, True),
        ("build/sub/out.o", LARGEST_KEPT + 1, False),
        ("__pycache__/a.pyc", LARGEST_KEPT + 1, False),
        ("../other", LARGEST_KEPT + 1, False),
        ("src", 0, False),
        ("nothing", 0, False),
    ],
)
def test_a_file_that_is_written_anew_is_lost_where_it_is_too_large(
    root: Path, name: str, size: int, *, loses: bool
) -> None:
    (root / "link").symlink_to("src/run.log")
    if size:
        with (root / name).open("ab") as file:
            file.truncate(size)
    assert Unkept((str(root),)).by_overwriting(str(root / name)) is loses


@pytest.mark.skipif(os.geteuid() == 0, reason="modes do not bind root: `make test-user` runs it")
@pytest.mark.parametrize("mode", [0, 0o111, 0o311, 0o600])
def test_a_folder_that_cannot_be_looked_into_may_lose_something(root: Path, mode: int) -> None:
    (root / "src" / "deep").chmod(mode)
    try:
        assert Unkept((str(root),))(str(root / "src" / "deep")) is True
    finally:
        (root / "src" / "deep").chmod(0o755)
