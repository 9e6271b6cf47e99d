"""A file of the user's own is replaced in one step, and folders of theirs are for them alone."""

import re
from pathlib import Path

import pytest

from treadle.workspace.files.private_file import make_private_folder, write_private

SOURCE = Path(__file__).parents[2] / "src" / "treadle"


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


def test_a_private_folder_is_in_private_ones_and_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    for _ in range(2):
        make_private_folder(tmp_path / "there" / "a" / "b" / "c")
    made = {str(one.relative_to(tmp_path)): one.stat().st_mode & 0o777 for one in tmp_path.rglob("*")}
    assert made == {"there": 0o755, "there/a": 0o700, "there/a/b": 0o700, "there/a/b/c": 0o700}
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_private_folder(tmp_path / "file" / "a")


def test_no_private_folder_is_made_with_open_ones_above_it() -> None:
    wrong = re.compile(r"mkdir\((?=[^)]*parents=True)[^)]*mode=")
    found = {file.name for file in SOURCE.rglob("*.py") if wrong.search(file.read_text(encoding="utf-8"))}
    assert found == {"opening_store.py", "prompt_history.py", "fleet_worker.py"}, (
        "it is the data folder itself, or beside"
    )
