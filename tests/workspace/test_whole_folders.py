"""Folders are removed and copied with all that is in them, however deep, and nothing beside them."""

import os
import stat
from pathlib import Path

import pytest
from tests.normal_user import normal_user

from treadle.workspace.copies.staging import remove_folder
from treadle.workspace.files.whole_folders import copy_tree, remove_tree, try_remove_tree
from treadle.workspace.sandbox.moving import copy_over

DEEP, TOO_LONG = 1_300, 2_500
"""Folders in each other: more than calls can be nested, and more than a path of the system can have."""


def make_deep(top: Path, depth: int) -> None:
    """Make folders in each other, each with a file and a link out of all of them."""
    top.mkdir()
    at = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=at)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        os.symlink("/", "out", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


@pytest.mark.parametrize("depth", [1, DEEP, TOO_LONG])
@pytest.mark.parametrize("remove", [remove_tree, try_remove_tree, remove_folder])
def test_a_folder_is_removed_however_deep_it_is(tmp_path: Path, depth: int, remove: object) -> None:
    make_deep(tmp_path / "top", depth)
    assert callable(remove)
    remove(tmp_path / "top")
    assert list(tmp_path.iterdir()) == []


def test_nothing_beside_it_is_removed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "f").touch()
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "top" / "d").mkdir(parents=True)
    (tmp_path / "top" / "d" / "link").symlink_to(tmp_path / "kept")
    for name in ("top", "link", "not there"):
        remove_tree(tmp_path / name)
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")) == ["kept", "kept/f"]


@normal_user
@pytest.mark.parametrize("mode", [0, 0o500, 0o300])
def test_a_folder_that_is_write_protected_is_removed(tmp_path: Path, mode: int) -> None:
    make_deep(tmp_path / "top", 3)
    for name in ("top/d/d", "top/d", "top"):
        (tmp_path / name).chmod(mode)
    remove_tree(tmp_path / "top")
    assert list(tmp_path.iterdir()) == []


@normal_user
def test_what_cannot_be_removed_is_an_error_that_names_it_and_the_rest_goes(tmp_path: Path) -> None:
    (tmp_path / "above" / "top").mkdir(parents=True)
    (tmp_path / "above" / "top" / "f").touch()
    (tmp_path / "above").chmod(0o500)
    with pytest.raises(PermissionError):
        remove_tree(tmp_path / "above" / "top")
    try_remove_tree(tmp_path / "above" / "top")
    (tmp_path / "above").chmod(0o700)
    assert list((tmp_path / "above").rglob("*")) == [tmp_path / "above" / "top"]


def test_a_copy_has_all_that_is_there_with_its_modes_and_times(tmp_path: Path) -> None:
    source = tmp_path / "a"
    make_deep(source, 2)
    (source / "d" / "f").write_text("text")
    (source / "d" / "folder").symlink_to("d")
    (source / "d" / "f").chmod(0o640)
    os.utime(source / "d", ns=(10**18, 10**18))
    (source / "d").chmod(0o555)
    copy_tree(source, tmp_path / "b")

    def described(top: Path) -> list[tuple[str, str, int, str]]:
        rows = []
        for one in (top, *sorted(top.rglob("*"))):
            kind = one.lstat()
            text = str(one.readlink()) if one.is_symlink() else one.read_text() if one.is_file() else ""
            at = 0 if one.is_symlink() else kind.st_mtime_ns
            rows.append((str(one.relative_to(top)), stat.filemode(kind.st_mode), at, text))
        return rows

    assert described(tmp_path / "b") == described(source)


def test_a_folder_is_moved_by_a_copy_however_deep_it_is(tmp_path: Path) -> None:
    make_deep(tmp_path / "top", DEEP)
    copy_over(tmp_path / "top", tmp_path / "moved")
    assert not (tmp_path / "top").exists()
    assert (tmp_path / "moved" / "/".join("d" * DEEP)).is_dir()
    remove_tree(tmp_path / "moved")
