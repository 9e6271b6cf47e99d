"""A path is read exactly as it was judged."""

import os
from pathlib import Path

import pytest

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import ReadPath
from treadle.workspace.files.judged import judge_path
from treadle.workspace.files.text_files import read_bytes

CHANGED = "changed after this call was checked"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "sub").mkdir(parents=True)
    (tmp_path / "ws" / "sub" / "a").write_text("plain")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a").write_text("secret")
    return tmp_path


def test_both_the_path_and_where_it_leads_are_judged(tree: Path) -> None:
    (tree / "ws" / "link").symlink_to("sub/a")
    plain, link = str(tree / "ws" / "sub" / "a"), str(tree / "ws" / "link")
    assert judge_path(plain).accesses() == (ReadPath(path=plain),)
    assert judge_path(link).accesses(listing=True) == (
        ReadPath(path=link, listing=True),
        ReadPath(path=plain, listing=True),
    )
    assert read_bytes(judge_path(link), "link") == b"plain"


def test_a_link_put_in_the_place_of_the_file_is_not_followed(tree: Path) -> None:
    file = tree / "ws" / "sub" / "a"
    place = judge_path(str(file))
    file.unlink()
    file.symlink_to(tree / "secret" / "a")
    with pytest.raises(ToolError, match=CHANGED):
        read_bytes(place, "a")


def test_a_link_put_in_the_place_of_a_folder_is_not_followed(tree: Path) -> None:
    place = judge_path(str(tree / "ws" / "sub" / "a"))
    (tree / "ws" / "sub").rename(tree / "ws" / "old")
    (tree / "ws" / "sub").symlink_to(tree / "secret")
    with pytest.raises(ToolError, match=CHANGED):
        read_bytes(place, "a")


def test_a_link_that_leads_elsewhere_now_still_gives_what_was_judged(tree: Path) -> None:
    link = tree / "ws" / "link"
    link.symlink_to("sub/a")
    place = judge_path(str(link))
    link.unlink()
    link.symlink_to(tree / "secret" / "a")
    assert read_bytes(place, "link") == b"plain"


def test_another_name_of_a_file_elsewhere_is_not_read(tree: Path) -> None:
    file = tree / "ws" / "sub" / "a"
    place = judge_path(str(file))
    file.unlink()
    os.link(tree / "secret" / "a", file)
    with pytest.raises(ToolError, match=CHANGED):
        read_bytes(place, "a")
    assert read_bytes(judge_path(str(file)), "a") == b"secret"


def test_a_file_that_was_only_written_again_is_read(tree: Path) -> None:
    file = tree / "ws" / "sub" / "a"
    place = judge_path(str(file))
    file.unlink()
    file.write_text("new")
    assert read_bytes(place, "a") == b"new"


def test_a_link_that_always_led_nowhere_is_said_to_be_one(tree: Path) -> None:
    (tree / "ws" / "loop").symlink_to("loop")
    with pytest.raises(ToolError, match="loop cannot be read: Too many levels of symbolic links"):
        read_bytes(judge_path(str(tree / "ws" / "loop")), "loop")


def test_a_place_that_changes_while_a_program_reads_it_is_noticed(tree: Path) -> None:
    place = judge_path(str(tree / "ws" / "sub"))
    with place.unchanged("sub"):
        (tree / "ws" / "sub" / "b").write_text("more")
    with pytest.raises(ToolError, match=CHANGED), place.unchanged("sub"):  # noqa: PT012 - the end of the block raises
        (tree / "ws" / "sub").rename(tree / "ws" / "old")
        (tree / "ws" / "sub").mkdir()


def test_the_root_itself_can_be_named() -> None:
    place = judge_path("/")
    with place.unchanged("/"):
        assert place.accesses() == (ReadPath(path="/"),)
