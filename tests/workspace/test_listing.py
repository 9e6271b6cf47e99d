"""A folder is listed, or it is none, or what it holds is not known: three answers that are never mixed up."""

import os
from pathlib import Path

import pytest
from tests.normal_user import MODES, normal_user

from treadle.workspace.files.paths import (
    FolderEntry,
    Listed,
    NoFolder,
    Unlisted,
    first_closed,
    list_folder,
    may_be_there,
)


def test_a_folder_is_listed_by_name_with_what_stands_there(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_text("")
    (tmp_path / "c").symlink_to("b")
    found = list_folder(tmp_path)
    assert isinstance(found, Listed)
    assert found.entries == (
        FolderEntry("a", False, False),
        FolderEntry("b", True, False),
        FolderEntry("c", False, True),
    )
    facts = tmp_path.stat()
    assert found.stamp == (facts.st_dev, facts.st_ino, facts.st_ctime_ns)


def test_what_is_no_folder_is_not_an_unknown_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to(".")
    for name in ("missing", "file", "loop", "link", "file/below", "missing/below"):
        assert list_folder(tmp_path / name) == NoFolder(), name
    assert isinstance(list_folder(tmp_path / "link", follow=True), Listed)


@normal_user
@pytest.mark.parametrize("mode", MODES)
def test_only_what_can_be_listed_and_searched_is_listed(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    folder.chmod(mode)
    known = mode & 0o500 == 0o500
    assert isinstance(list_folder(folder), Listed if known else Unlisted)
    assert first_closed(str(tmp_path), "folder/below/name") == ("" if mode & 0o100 else str(folder))
    if not mode & 0o100:
        assert isinstance(list_folder(folder / "below"), Unlisted), (
            "below a closed folder nothing is known to be missing"
        )
    folder.chmod(0o755)


@pytest.mark.parametrize("name", ["folder", "folder/file", "loop", "nowhere"])
def test_what_is_there_may_be_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("missing")
    assert may_be_there(tmp_path / name)
    assert not may_be_there(tmp_path / name / "missing")


@normal_user
@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_be_looked_at_may_be_there(mode: int, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(mode)
    found = may_be_there(tmp_path / "folder/missing")
    (tmp_path / "folder").chmod(0o755)
    assert found is not bool(mode & 0o100)


def test_a_system_without_room_for_another_file_gives_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", full)
    assert list_folder(tmp_path) == Unlisted("Too many open files")
