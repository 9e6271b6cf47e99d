"""Folders are gone through however deep they lie: a command can make more of them than calls can be nested."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.app.processes.task_copies import _inner_repositories  # pyright: ignore[reportPrivateUsage]
from treadle.store.nested_rules import nested_items
from treadle.workspace.files.names import clipped_path
from treadle.workspace.files.walking import walk
from treadle.workspace.searching.matches import Query
from treadle.workspace.searching.search import Search

SOURCE = Path(__file__).parents[2] / "src" / "treadle"
DEEP, TOO_LONG = 1_300, 2_500
"""Folders in each other: more than calls can be nested, and more than a path of the system can have."""


@pytest.fixture(params=[DEEP, TOO_LONG])
def deep(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder with a file at its top, and one below many others."""
    (tmp_path / "top.txt").write_text("two")
    at = os.open(tmp_path, os.O_RDONLY)
    opened = [at]
    for _ in range(request.param):
        os.mkdir("d", dir_fd=opened[-1])
        opened.append(os.open("d", os.O_RDONLY, dir_fd=opened[-1]))
        os.close(opened.pop(-2))
    os.close(os.open("AGENTS.md", os.O_CREAT | os.O_WRONLY, dir_fd=opened[-1]))
    yield tmp_path
    os.unlink("AGENTS.md", dir_fd=opened[-1])
    for _ in range(request.param):
        opened.append(os.open("..", os.O_RDONLY, dir_fd=opened[-1]))
        os.rmdir("d", dir_fd=opened[-1])
        os.close(opened.pop(-2))
    os.close(opened.pop())


async def test_what_lies_deep_is_no_error(deep: Path) -> None:
    found = await Search(ripgrep="").lines(Query(path=str(deep), regex="two", context=0))
    assert [each.path for each in found.files] == [f"{deep}/top.txt"]
    places = [place for place, _, _ in walk(deep)]
    assert len(places) > DEEP
    assert [len(one.path) for one in nested_items(deep)] == [2 * DEEP + len("AGENTS.md")] * (len(places) == DEEP + 1)
    assert _inner_repositories(deep) == []


@pytest.mark.parametrize("kind", [str, bytes])
def test_folders_are_gone_through_as_python_does(tmp_path: Path, kind: type[str] | type[bytes]) -> None:
    for name in ("b/c/d", "a", "b/left out/x", "closed"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("b/f", "b/c/g", "a/h", "top"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("b")
    (tmp_path / "nowhere").symlink_to("gone")
    top = os.fsencode(tmp_path) if kind is bytes else str(tmp_path)

    def gone_through(found: Iterator[tuple[str, list[str], list[str]]]) -> list[tuple[str, list[str], list[str]]]:
        rows = []
        for place, folders, files in found:
            folders[:] = sorted(name for name in folders if os.fsdecode(name) != "left out")
            rows.append((place, list(folders), sorted(files)))
        return rows

    assert gone_through(walk(top)) == gone_through(os.walk(top))  # type: ignore[arg-type]
    assert list(walk(tmp_path / "not there")) == []


def test_a_folder_that_cannot_be_listed_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert list(walk(tmp_path / "file")) == []


def test_nothing_else_goes_through_folders_by_nesting_calls() -> None:
    nest = ("os.walk(", ".rmtree(", ".copytree(")
    found = {file.name for file in SOURCE.rglob("*.py") if any(one in file.read_text(encoding="utf-8") for one in nest)}
    assert found == {"running_tests.py", "__init__.py"}, "what a person has written, and what Treadle brings along"


def test_the_middle_of_a_long_path_is_left_out() -> None:
    path = f"/{'d/' * 4_000}AGENTS.md"
    assert len(clipped_path(path)) < 350
    assert clipped_path(path).startswith("/d/d/")
    assert clipped_path(path).endswith("[...]" + path[-150:])
    assert clipped_path("/usual/AGENTS.md") == "/usual/AGENTS.md"
