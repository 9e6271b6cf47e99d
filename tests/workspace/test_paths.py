"""Paths: located, resolved, displayed."""

from pathlib import Path

import pytest

from treadle.protocol.errors import ToolError
from treadle.workspace.files.paths import Paths


def test_a_requested_path_becomes_absolute_and_nothing_else(tmp_path: Path) -> None:
    paths = Paths(str(tmp_path))
    assert paths.locate("src/../a.py") == f"{tmp_path}/src/../a.py"
    assert paths.locate("/etc/hosts") == "/etc/hosts"
    assert paths.locate("~/x") == str(Path.home() / "x")


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_cannot_be_a_path_is_refused(path: str) -> None:
    with pytest.raises(ToolError, match="empty or has a NUL"):
        Paths("/w").locate(path)


def test_links_are_followed_and_missing_parts_stay(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    paths = Paths(str(tmp_path))
    assert paths.resolve("link/new/file") == f"{tmp_path}/real/new/file"
    assert paths.resolve("link/../x") == f"{tmp_path}/x"


def test_a_path_is_shown_relative_inside_the_workspace_and_escaped() -> None:
    paths = Paths("/w")
    assert [paths.display(path) for path in ("/w/a/../b", "/w", "/x/y", "/w/a\x1bb")] == ["b", ".", "/x/y", r"a\x1bb"]


def test_a_name_is_found_however_its_letters_are_composed(tmp_path: Path) -> None:
    paths = Paths(str(tmp_path))
    for there, asked in (
        ("e\u0301.txt", "\u00e9.txt"),
        ("\u00f1.txt", "n\u0303.txt"),
        ("at 3\u202fPM.png", "at 3 PM.png"),
    ):
        assert paths.locate(asked) == f"{tmp_path}/{asked}"
        (tmp_path / there).touch()
        assert paths.locate(asked) == f"{tmp_path}/{there}"
        (tmp_path / asked).touch()
        assert paths.locate(asked) == f"{tmp_path}/{asked}", "what is there by that very name is meant"


@pytest.mark.parametrize(
    ("path", "why"), [("a\ud800", "an incomplete character"), ("x/" * 3000, "more than a path can have")]
)
def test_what_the_system_takes_for_no_path_is_refused(path: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        Paths("/w").locate(path)


def test_a_name_is_shown_on_one_line() -> None:
    assert Paths("/w").display("/w/a\nb\tc") == "a\\nb\\tc"
