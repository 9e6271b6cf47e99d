"""Ignore files at every level, judged by git itself."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.workspace.ignore.ignore_patterns import Patterns
from treadle.workspace.ignore.ignoring import OWN_IGNORE_FILES, Ignoring, ignore_files
from treadle.workspace.searching.matches import Query
from treadle.workspace.searching.search import Search, find_ripgrep

_NAMES = ("a", "b", "ab", "a.b", "ba", "x]", "-", "!z", "#h", "s ")
_ATOMS = [
    "a",
    "b",
    ".",
    "*",
    "?",
    "[ab]",
    "[!a]",
    "[a-c]",
    "[^b]",
    "[]x]",
    "[[:alpha:]]",
    "[c-a]",
    "\\a",
    "-",
    "#",
    "!",
    " ",
]
_ATOMS += ["[b"]
_PART = st.lists(st.sampled_from(_ATOMS), min_size=1, max_size=4).map("".join).filter(lambda part: "**" not in part)
_LINE = st.builds(
    lambda negated, rooted, parts, ending: "!" * negated + "/" * rooted + "/".join(parts) + ending,
    st.booleans(),
    st.booleans(),
    # A class that is not closed would go on behind the next slash, where git and a path's parts differ.
    st.lists(_PART.filter(lambda part: "[b" not in part) | st.just("**"), min_size=1, max_size=3)
    | _PART.map(lambda part: [part]),
    st.sampled_from(["", "", "/", "\\ ", "  ", "\r"]),
)
_PATH = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4).map("/".join)
_TREE = st.dictionaries(_PATH, st.lists(_LINE, max_size=4), min_size=1, max_size=8)


def _git_hides(root: str, paths: Sequence[str]) -> set[str]:
    command = ("git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "--verbose", "--non-matching")
    asked = "\0".join(paths).encode()
    told = subprocess.run((*command, "-z", "--stdin"), cwd=root, input=asked, capture_output=True, check=False)
    words = told.stdout.decode().split("\0")
    rows = zip(words[0::4], words[2::4], words[3::4], strict=False)
    return {path for source, pattern, path in rows if source and not pattern.startswith("!")}


def _grow(root: Path, tree: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """Make a directory for each path, with a file in it; gives the directories and the files."""
    for place, lines in tree.items():
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / "f.a").touch()
        (root / place).parent.joinpath(".gitignore").write_text("".join(f"{line}\n" for line in lines), newline="")
    found = [os.path.relpath(path, root) for path in root.rglob("*") if ".git" not in path.relative_to(root).parts]
    return [path for path in found if (root / path).is_dir()], [path for path in found if (root / path).is_file()]


@settings(max_examples=30)
@given(_TREE)
def test_nested_ignore_files_hide_what_git_would(tree: Mapping[str, Sequence[str]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        subprocess.run(("git", "init", "--quiet", root), check=True)
        directories, files = _grow(Path(root), tree)
        ignoring = Ignoring(root, root, ((".gitignore",),))
        hidden = {path for path in directories if ignoring.hides_directory(path)}
        assert hidden | {path for path in files if ignoring.hides_file(path)} == _git_hides(root, directories + files)
        assert set(ignoring.shown_of(files, directories)) == {path for path in files if not ignoring.hides_file(path)}


def test_a_pattern_made_to_take_for_ever_does_not() -> None:
    patterns = Patterns(["*a" * 100 + "b", "a/**/" * 50 + "c", "[a-z]*" * 60 + "1"])
    assert patterns.hides(["a" * 255], is_directory=False) is None
    assert patterns.hides(["a"] * 300, is_directory=False) is None


def test_a_tree_may_be_as_deep_as_a_path_can_be_long(tmp_path: Path) -> None:
    (tmp_path / ".treadleignore").write_text("*.log\n")
    deep = "d/" * 1_900
    ignoring = Ignoring(str(tmp_path), str(tmp_path), (OWN_IGNORE_FILES,))
    assert [ignoring.hides_file(f"{deep}{name}") for name in ("a.log", "a.txt")] == [True, False]
    below = Ignoring(str(tmp_path), f"{tmp_path}/{deep}", (OWN_IGNORE_FILES,))
    assert [below.hides_file(name) for name in ("a.log", "a.txt")] == [True, False]


def test_what_is_named_is_shown_but_not_what_is_hidden_in_it(tmp_path: Path) -> None:
    (tmp_path / ".agentignore").write_text("/private/\n*.log\n")
    ignoring = Ignoring(str(tmp_path), f"{tmp_path}/private", (OWN_IGNORE_FILES,))
    assert (ignoring.hides_directory(""), ignoring.hides_file("a"), ignoring.hides_file("a.log")) == (
        False,
        False,
        True,
    )


def test_the_files_of_one_directory_count_as_one_and_each_family_alone(tmp_path: Path) -> None:
    (tmp_path / ".treadleignore").write_text("*.a\n")
    (tmp_path / ".clineignore").write_text("\ufeff!kept.a\n!kept.b\n")
    (tmp_path / ".gitignore").write_text("*.b\n")
    ignoring = Ignoring(str(tmp_path), str(tmp_path), ignore_files(str(tmp_path), git_is_known=False))
    assert [name for name in ("x.a", "kept.a", "kept.b", "x.c") if ignoring.hides_file(name)] == ["x.a", "kept.b"]


def test_an_ignore_file_that_cannot_be_read_hides_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".treadleignore")
    (tmp_path / ".agentignore").mkdir()
    (tmp_path / ".clineignore").symlink_to("nowhere")
    (tmp_path / ".aiderignore").write_bytes(b"*\n" * 1024 * 1024)
    assert not Ignoring(str(tmp_path), str(tmp_path), (OWN_IGNORE_FILES,)).hides_file("a")


_PROGRAMS = [pytest.param(find_ripgrep({}), id="ripgrep"), pytest.param("", id="stand-in")]


@pytest.mark.sample(4)
@pytest.mark.parametrize("program", _PROGRAMS)
@pytest.mark.parametrize("name", [*OWN_IGNORE_FILES, ".gitignore"])
async def test_ignore_files_count_at_every_level(program: str, name: str, tmp_path: Path) -> None:
    for place in ("top[1]", "deep/in", "deep/in/out", "deep/in/kept", "other"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        for file in ("a.log", "a.txt"):
            (tmp_path / place / file).write_text("two\n")
    (tmp_path / name).write_text("*.log\n/top\\[1]/\n")
    (tmp_path / "deep/in" / name).write_text("/out\n!*.log\n")
    search = Search(ripgrep=program, roots=(str(tmp_path),))
    shown = ("deep/in/a.log", "deep/in/a.txt", "other/a.txt", "deep/in/kept/a.log", "deep/in/kept/a.txt")
    listed = (await search.files(str(tmp_path), 100)).entries
    assert sorted(listed) == sorted([*shown, "deep/", "other/", "deep/in/", "deep/in/kept/"])
    found = await search.lines(Query(path=str(tmp_path), regex="two"))
    assert sorted(each.path for each in found.files) == sorted(f"{tmp_path}/{path}" for path in shown)
    assert search.shown_in(f"{tmp_path}/deep", ["a.log", "a.txt"]) == ["a.txt"]
    assert (await search.files(f"{tmp_path}/top[1]", 9)).entries == ("a.txt",), "what is named is shown"
