"""What expressions and globs mean: the same with ripgrep and with its stand-in, or the stand-in says that it cannot."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.needed import require

from treadle.protocol.errors import ToolError
from treadle.workspace.searching.matches import Query
from treadle.workspace.searching.search import Search, find_ripgrep

_RIPGREP = find_ripgrep({})
_LINES = (
    "aLE deep",
    "AB 12",
    "ünïcode Ωmega",
    "a-b_c",
    "x[1] ^ ]",
    "  tab\tbed",
    "aa bb aa",
    "٣ Ⅷ €",
    "sub.value = {}",
)
_NAMES = ("a.py", "b.txt", "c.md", "sub/a.py", "sub/d.txt", "sub/deep/e.md", "other/sub/f.py", "other/[g].md")


@pytest.fixture(params=["ripgrep", "stand-in"])
def search(request: pytest.FixtureRequest, tmp_path: Path) -> Search:
    if request.param == "ripgrep":
        require("rg")
    return _search(tmp_path, _RIPGREP if request.param == "ripgrep" else "")


def _search(root: Path, ripgrep: str) -> Search:
    return Search(ripgrep=ripgrep, roots=(str(root),))


async def _found(search: Search, root: Path, expression: str) -> list[int]:
    (root / "lines").write_text("".join(f"{line}\n" for line in _LINES))
    found = await search.lines(Query(path=str(root), regex=expression))
    return [line.number for each in found.files for block in each.blocks for line in block]


@pytest.mark.parametrize(
    ("expression", "lines"),
    [
        ("[[:alpha:]]+LE deep", [1]),
        ("^[[:^space:]]+$", [4]),
        ("[[:upper:][:digit:]]{2}", [1, 2]),
        (r"^\p{L}+ \p{Lu}", [3]),
        (r"\pN", [2, 5, 8]),
        (r"\p{Nd}", [2, 5, 8]),
        (r"\p{Currency_Symbol}|\p{gc=Lu}{2}", [1, 2, 8]),
        (r"^[^\P{L}]{7}", [3]),
        (r"\x{3a9}|\u{20ac}", [3, 8]),
        (r"(?<w>a+) .* \k<w>", [7]),
        (r"(?P<w>a+) .* (?P=w)", [7]),
        (r"b(?i)AA|LE D|B 1", [1, 2]),
        (r"b{1,2}(?i) AA|le", [1, 7]),
        (r"x(?:(?i)A)?|a(?i:le)", [1, 5]),
        (r"\<b\w+\>", [4, 6, 7]),
        (r"\b{start}deep\b{end}", [1]),
        (r"[]^] ", [5]),
        (r"\[1\]", [5]),
        (r"^\h+tab\h", [6]),
        (r"\{\}\z", [9]),
    ],
)
async def test_expressions_of_ripgrep_are_understood(
    search: Search, tmp_path: Path, expression: str, lines: list[int]
) -> None:
    assert await _found(search, tmp_path, expression) == lines


@pytest.mark.parametrize(
    "expression", [r"\p{Greek}", "[a-z&&[^b]]", "[a[bc]]", "(?x) a b", "(?U)a+", r"a\Kb", r"\p{L}" * 20, "[[:letter:]]"]
)
async def test_the_stand_in_names_what_it_cannot_search_for(tmp_path: Path, expression: str) -> None:
    with pytest.raises(ToolError, match=r"cannot be searched for without ripgrep. Write it in another way\.$"):
        await _found(_search(tmp_path, ""), tmp_path, expression)


async def test_an_odd_expression_that_is_valid_is_no_failure(search: Search, tmp_path: Path) -> None:
    assert await _found(search, tmp_path, r"[[\]]1[||\]]") == [5]


_PIECES = (
    "a",
    "b",
    "1",
    " ",
    "[",
    "]",
    "^",
    "$",
    ".",
    "|",
    "(",
    "(?i)",
    "(?-i)",
    "(?:",
    ")",
    "*",
    "+?",
    "{2}",
    "-",
    "&&",
    "a-c",
)
_CLASSES = (
    "[:alpha:]",
    "[:^alpha:]",
    "\\p{L}",
    "\\PN",
    "\\b",
    "\\w",
    "\\d",
    "\\s",
    "\\x{41}",
    "\\]",
    "\\[",
    "[^",
    "[a",
)


@given(st.lists(st.sampled_from((*_PIECES, *_CLASSES)), min_size=1, max_size=6).map("".join))
def test_the_stand_in_finds_what_ripgrep_finds_or_says_that_it_cannot(
    tmp_path_factory: pytest.TempPathFactory, expression: str
) -> None:
    require("rg")
    root = tmp_path_factory.mktemp("searched")
    real, stand_in = [_outcome(_search(root, ripgrep), root, expression) for ripgrep in (_RIPGREP, "")]
    assert stand_in in (real, "refused") or real == "refused"


def _outcome(search: Search, root: Path, expression: str) -> list[int] | str:
    try:
        return asyncio.run(_found(search, root, expression))
    except ToolError:
        return "refused"


def _tree(root: Path) -> None:
    for name in _NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")


async def _files(search: Search, root: Path, pattern: str, below: str = "") -> list[str]:
    path = os.path.normpath(root / below)
    found = await search.lines(Query(path=path, regex="x", pattern=pattern))
    assert await search.any_file(path, pattern) is bool(found.files)
    return [each.path.removeprefix(f"{root}/") for each in found.files]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("**/sub/*", ["other/sub/f.py", "sub/a.py", "sub/d.txt"]),
        ("*.{txt,md}", ["b.txt", "c.md", "other/[g].md", "sub/d.txt", "sub/deep/e.md"]),
        ("{*.txt,sub/**/*.{md,rst}}", ["b.txt", "sub/deep/e.md"]),
        ("sub/*.py", ["sub/a.py"]),
        ("sub/**", ["sub/a.py", "sub/d.txt", "sub/deep/e.md"]),
        ("other/**/f.py", ["other/sub/f.py"]),
        ("/[ab].*", ["a.py", "b.txt"]),
        ("[!ab].??", ["c.md", "other/sub/f.py", "sub/deep/e.md"]),
        (r"\[g\].md", ["other/[g].md"]),
        ("*.py,!sub/", ["a.py"]),
        ("!*.md,!*.txt", ["a.py", "other/sub/f.py", "sub/a.py"]),
        ("!a.py,*.py", ["a.py", "other/sub/f.py", "sub/a.py"]),
        ("nothing/*", []),
    ],
)
async def test_globs_of_ripgrep_are_understood(search: Search, tmp_path: Path, pattern: str, names: list[str]) -> None:
    _tree(tmp_path)
    assert await _files(search, tmp_path, pattern) == names


async def test_globs_are_relative_to_the_workspace_below_it(search: Search, tmp_path: Path) -> None:
    _tree(tmp_path)
    assert await _files(search, tmp_path, "sub/*.py", "sub") == ["sub/a.py"]


@pytest.mark.parametrize("pattern", ["*.{py", "[a.py"])
async def test_a_glob_that_is_not_closed_is_said(search: Search, tmp_path: Path, pattern: str) -> None:
    _tree(tmp_path)
    with pytest.raises(ToolError, match=r"The search failed:.* Correct the expression or the pattern"):
        await _files(search, tmp_path, pattern)


async def test_only_regular_files_are_searched(search: Search, tmp_path: Path) -> None:
    _tree(tmp_path)
    os.mkfifo(tmp_path / "a.fifo")
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing")
    assert await _files(search, tmp_path, "*.py,*.fifo") == ["a.py", "other/sub/f.py", "sub/a.py"]
