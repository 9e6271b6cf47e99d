"""Every tool finds a file by the name that a listing or a search showed, whatever bytes the name is of."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.calls import call, text

from treadle.workspace.environment import EnvironmentBlock
from treadle.workspace.workspace import Workspace, open_workspace

NAMES = [
    b"caf\xe9.txt",
    rb"caf\xe9.txt",
    b"caf\xc3\xa9.txt",
    b"two\nlines",
    b"--\nneedle",
    b"tab\there",
    b"\x1b[31mred",
    b"-rf",
    b" blank ",
    b"~",
    b"'\"$(x)`*?[",
    rb"back\slash",
    rb"\n",
    b"\xff" * 120,
    "\u202egpj.exe".encode(),
    b'binary file matches (found "\\0" byte',
]
_BYTES = st.lists(st.sampled_from([bytes([byte]) for byte in range(1, 256)] + NAMES[:6]), min_size=1, max_size=4)
_NAMES = _BYTES.map(b"".join).map(lambda name: name.replace(b"/", b"_").lstrip(b".") or b"_")


@contextmanager
def _tree(names: list[bytes]) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for number, name in enumerate(map(os.fsdecode, names)):
            below = root / f"d\udce9\n{name}"
            below.mkdir()
            for place in (root / f"{name}!", below / name):
                place.write_text(f"needle {number}\n")
        yield root


@given(st.lists(_NAMES, min_size=1, max_size=5, unique=True))
@settings(max_examples=25)
async def test_what_is_listed_can_be_read(names: list[bytes]) -> None:
    with _tree(names) as root:
        await _check(root, len(names))


async def test_what_is_listed_can_be_read_searched_and_changed(tmp_path: Path) -> None:
    with _tree(NAMES) as root:
        workspace = await _check(root, len(NAMES))
        for name in (await text(workspace, "list_files", path=".")).split("\n"):
            if not name.endswith("/"):
                diff = "------- SEARCH\nneedle\n=======\nthread\n+++++++ REPLACE\n"
                assert f"Saved {name} " in await text(workspace, "replace_in_file", path=name, diff=diff)
                assert (await text(workspace, "search_files", path=name, regex="thread")).startswith(f"{name}\n1: ")
                assert f"Replaced {name} " in await text(workspace, "write_to_file", path=name, content="new\n")
        kept = sorted(root.glob("*!"))
        assert [path.read_text() for path in kept] == ["new\n"] * len(NAMES)
        for name in (await text(workspace, "list_files", path=".")).split("\n"):
            if name.endswith("/"):
                await call(workspace, "write_to_file", path=f"{name}new file", content="x")
                assert "new file" in await text(workspace, "list_files", path=name)


async def _check(root: Path, count: int) -> Workspace:
    """Read each file by each name that is shown for it."""
    workspace = open_workspace(root)
    flat = (await text(workspace, "list_files", path=".")).split("\n")
    deep = (await text(workspace, "list_files", path=".", recursive=True)).split("\n")
    found = (await text(workspace, "search_files", path=".", regex="needle")).split("\n\n")
    told = (await EnvironmentBlock(workspace=workspace).describe(first=True, situation=None)).split("\n")
    files = [name for name in deep if not name.endswith("/")]
    assert (len(flat), len(files), len(found)) == (2 * count, 2 * count, 2 * count + 1)
    assert set(flat) <= set(deep) <= set(told)
    assert sorted(files) == sorted(section.split("\n")[0] for section in found[:-1])
    for name in files:
        name.encode()
        shown = await text(workspace, "read_file", path=name)
        assert f"{name}\n{shown.replace(' |', ':', 1)}" in found
    return workspace


def test_the_names_differ_as_text() -> None:
    assert len({os.fsdecode(name) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", ["a" * 300, "b\\xe9" * 100, "x/" * 5000, "\\x00", "\\ud800"])
async def test_a_name_that_can_not_be_is_only_missing(tmp_path: Path, name: str) -> None:
    workspace = open_workspace(tmp_path)
    with pytest.raises(Exception, match=r"does not exist|cannot be read|more than a path"):
        await call(workspace, "read_file", path=name)
