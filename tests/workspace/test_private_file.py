"""A file of the user's own is replaced in one step."""

from pathlib import Path

import pytest

from treadle.workspace.files.private_file import write_private


def test_a_file_is_made_with_its_folder_for_the_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "er" / "file"
    write_private(file, b"one")
    write_private(file, b"two")
    assert file.read_bytes() == b"two"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [entry.name for entry in file.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("follow", [True, False])
def test_a_link_stays_only_where_it_is_followed(tmp_path: Path, follow: bool) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"before")
    link.symlink_to(target)
    write_private(link, b"after", follow=follow)
    assert link.read_bytes() == b"after"
    assert (link.is_symlink(), target.read_bytes()) == (follow, b"after" if follow else b"before")


def test_what_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_private(tmp_path / "taken", b"x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]
