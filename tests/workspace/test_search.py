"""Searching and listing, with ripgrep and with its stand-in."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.needed import require

from treadle.protocol.errors import ToolError
from treadle.workspace.ignore.ignoring import OWN_IGNORE_FILES, Ignoring
from treadle.workspace.searching.matches import FoundIn, Matches, MatchLine, Query, globs_of
from treadle.workspace.searching.search import Listing, Search, Shallowest, find_ripgrep

_RIPGREP = find_ripgrep({})


@pytest.fixture(params=["ripgrep", "stand-in"])
def search(request: pytest.FixtureRequest) -> Search:
    if request.param == "ripgrep":
        require("rg")
    return Search(ripgrep=_RIPGREP if request.param == "ripgrep" else "")


def _tree(root: Path) -> None:
    (root / "src/deep").mkdir(parents=True)
    (root / ".hidden").mkdir()
    (root / "src/a.py").write_text("one\ntwo\nthree\nfour\nfive\ntwo\n")
    (root / "src/deep/b.txt").write_bytes(b"two: \xff\r\n")
    (root / "z.bin").write_bytes(b"two\0two\n")
    (root / ".hidden/c.py").write_text("two\n")


async def test_matches_come_by_file_with_context_in_blocks(search: Search, tmp_path: Path) -> None:
    _tree(tmp_path)
    found = await search.lines(Query(path=str(tmp_path), regex="tw.", context=1))
    first = (MatchLine(1, "one", False), MatchLine(2, "two", True), MatchLine(3, "three", False))
    second = (MatchLine(5, "five", False), MatchLine(6, "two", True))
    assert found == Matches(
        files=(
            FoundIn(f"{tmp_path}/src/a.py", (first, second)),
            FoundIn(f"{tmp_path}/src/deep/b.txt", ((MatchLine(1, "two: \ufffd", True),),)),
        ),
        count=3,
        in_files=2,
    )


async def test_a_glob_narrows_the_search(search: Search, tmp_path: Path) -> None:
    _tree(tmp_path)
    found = await search.lines(Query(path=str(tmp_path), regex="two", pattern="*.txt"))
    assert ([each.path for each in found.files], found.more) == ([f"{tmp_path}/src/deep/b.txt"], False)


async def test_one_file_can_be_searched(search: Search, tmp_path: Path) -> None:
    _tree(tmp_path)
    found = await search.lines(Query(path=f"{tmp_path}/src/a.py", regex="four", context=0))
    assert found == Matches(
        files=(FoundIn(f"{tmp_path}/src/a.py", ((MatchLine(4, "four", True),),)),), count=1, in_files=1
    )


async def test_more_matches_than_the_limit_are_said_to_be_there(search: Search, tmp_path: Path) -> None:
    (tmp_path / "many").write_text("x\n" * 200_000)
    found = await search.lines(Query(path=str(tmp_path), regex="x", context=0, limit=5))
    assert (sum(len(block) for each in found.files for block in each.blocks), found.more) == (5, True)


@pytest.mark.sample(1)
@pytest.mark.parametrize("regex", ["needle", "x", "needle\\n"])
async def test_a_line_of_any_length_is_searched_in_bounded_memory(tmp_path: Path, regex: str) -> None:
    require("rg")
    with (tmp_path / "line").open("wb") as file:
        for _ in range(150):
            file.write(b"x" * 1_000_000)
        file.write(b"needle\n")
    (tmp_path / "other").write_text("x needle\n")
    bounded = tmp_path / "rg"
    bounded.write_text(f'#!/bin/sh\nulimit -d 100000\nexec "{_RIPGREP}" "$@"\n')
    bounded.chmod(0o755)
    found = await Search(ripgrep=str(bounded)).lines(Query(path=str(tmp_path), regex=regex, pattern="{line,other}"))
    assert (found.count, found.in_files, found.unread) == (2, 2, False)
    assert all(len(line.text) < 400 for each in found.files for block in each.blocks for line in block)


async def test_an_invalid_expression_is_said(search: Search, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="The search failed:"):
        await search.lines(Query(path=str(tmp_path), regex="(unclosed"))


async def test_an_expression_that_looks_like_an_option_is_searched_for(search: Search, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("--pre=evil\n")
    found = await search.lines(Query(path=str(tmp_path), regex="--pre=evil"))
    assert [each.path for each in found.files] == [f"{tmp_path}/a"]


async def test_the_program_that_searches_gets_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rg").write_text(f"#!/bin/sh\nenv > {tmp_path}/variables\n")
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.setenv("SOME_API_KEY", "sk-something-secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    await Search(ripgrep=str(tmp_path / "rg")).lines(Query(path=str(tmp_path), regex="x"))
    given = (tmp_path / "variables").read_text()
    assert ("LANG=C.UTF-8" in given, "secret" in given) == (True, False)


async def test_secret_files_are_not_searched(search: Search, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/id_rsa", "b"):
        (tmp_path / name).write_text("two\n")
    guarded = Search(ripgrep=search.ripgrep, is_secret=lambda path: path == "a/id_rsa")
    found = await guarded.lines(Query(path=str(tmp_path), regex="two", limit=1))
    assert ([each.path for each in found.files], found.more) == ([f"{tmp_path}/b"], False)
    named = await guarded.lines(Query(path=f"{tmp_path}/a/id_rsa", regex="two"))
    assert [each.path for each in named.files] == [f"{tmp_path}/a/id_rsa"], "what is named itself was judged by itself"


async def test_files_are_listed_breadth_first_with_their_directories(search: Search, tmp_path: Path) -> None:
    _tree(tmp_path)
    entries = ("src/", "z.bin", "src/a.py", "src/deep/", "src/deep/b.txt")
    assert await search.files(str(tmp_path), 10) == Listing(entries=entries, more=False, count=3)
    assert await search.files(str(tmp_path), 2) == Listing(entries=entries[:2], more=True, count=3)


async def test_ignore_files_are_honoured(tmp_path: Path) -> None:
    require("rg")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("out/\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a").touch()
    (tmp_path / "kept").touch()
    assert (await Search(ripgrep=_RIPGREP).files(str(tmp_path), 10)).entries == ("kept",)


async def test_each_root_has_ignore_files_of_its_own(tmp_path: Path) -> None:
    require("rg")
    for name, ignored in (("first", "a"), ("second", "b")):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / ".agentignore").write_text(f"/deep/{ignored}\n")
        for file in "ab":
            (tmp_path / name / "deep" / file).write_text("two\n")
    search = Search(ripgrep=_RIPGREP, roots=(str(tmp_path / "first"), str(tmp_path / "second")))
    for name, kept in (("first", "b"), ("second", "a")):
        assert (await search.files(f"{tmp_path}/{name}", 9)).entries == ("deep/", f"deep/{kept}")
        found = await search.lines(Query(path=f"{tmp_path}/{name}/deep", regex="two"))
        assert [each.path for each in found.files] == [f"{tmp_path}/{name}/deep/{kept}"]


async def test_ignore_files_of_agents_are_honoured_relative_to_the_root(tmp_path: Path) -> None:
    require("rg")
    for name in OWN_IGNORE_FILES:
        (tmp_path / name).write_text(f"/{name[1:]}/\n")
        for place in (tmp_path / name[1:], tmp_path / "below" / name[1:]):
            place.mkdir(parents=True)
            (place / "a.txt").write_text("two\n")
    search = Search(ripgrep=_RIPGREP, roots=(str(tmp_path),))
    below = tuple(f"below/{name}" for name in sorted(f"{name[1:]}/" for name in OWN_IGNORE_FILES))
    listed = (await search.files(str(tmp_path), 100)).entries
    assert listed == ("below/", *below, *(f"{name}a.txt" for name in below))
    found = await search.lines(Query(path=str(tmp_path), regex="two"))
    assert [each.path for each in found.files] == [f"{tmp_path}/{name}a.txt" for name in below]
    inside = await search.lines(Query(path=f"{tmp_path}/agentignore/a.txt", regex="two"))
    assert [each.path for each in inside.files] == [f"{tmp_path}/agentignore/a.txt"]
    assert (await search.files(f"{tmp_path}/below", 100)).entries[:1] == ("agentignore/",)


async def test_an_expression_over_several_lines_finds_them(search: Search, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("zero\none\ntwo\nthree\n")
    for regex in (r"one\ntwo", "one\ntwo", "(?s)on.*tw", r"one[\s\S]two"):
        found = await search.lines(Query(path=str(tmp_path), regex=regex, context=0))
        both = (MatchLine(2, "one", True), MatchLine(3, "two", True))
        assert found == Matches(files=(FoundIn(f"{tmp_path}/a", (both,)),), count=2, in_files=1), regex
    assert (await search.lines(Query(path=str(tmp_path), regex=r"one\\ntwo"))) == Matches(files=())


async def test_a_match_far_to_the_right_is_said_to_be_there(search: Search, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"{'x' * 1000}here\n")
    found = await search.lines(Query(path=str(tmp_path), regex="here", context=0))
    ((line,),) = found.files[0].blocks
    assert (line.number, line.column, line.text[:300]) == (1, 1001, "x" * 300)


@pytest.mark.parametrize("given", ["a\0b", "\ud800"])
async def test_what_no_program_can_be_given_is_refused(search: Search, tmp_path: Path, given: str) -> None:
    for query in (Query(path=str(tmp_path), regex=given), Query(path=str(tmp_path), regex="a", pattern=given)):
        with pytest.raises(ToolError, match="cannot be searched for"):
            await search.lines(query)


@pytest.mark.parametrize(
    ("pattern", "globs"),
    [
        ("*.py", ["*.py"]),
        ("*.py, *.ts", ["*.py", "*.ts"]),
        ("*.{py,ts},a[,]b", ["*.{py,ts}", "a[,]b"]),
        ("{a,", ["{a,"]),
        ("", []),
        (",", []),
    ],
)
def test_globs_are_parted_at_commas(pattern: str, globs: list[str]) -> None:
    assert list(globs_of(pattern)) == globs


async def test_an_expression_that_is_too_complex_is_told(tmp_path: Path) -> None:
    require("rg")
    (tmp_path / "a").write_text(f"{'x' * 40}zy\n")
    assert await Search(ripgrep=_RIPGREP).lines(Query(path=str(tmp_path), regex="(?=(x+x+)+y)")) == Matches(
        files=(), unread=True
    )


async def test_a_match_in_a_binary_file_is_told_when_it_is_named(tmp_path: Path) -> None:
    require("rg")
    (tmp_path / "a").write_bytes(b"two\0two\n")
    assert await Search(ripgrep=_RIPGREP).lines(Query(path=f"{tmp_path}/a", regex="two")) == Matches(
        files=(), binary=True
    )


_NOTHING = Ignoring("/", "/", ())
_PATHS = st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=5).map("/".join), max_size=12)


@given(st.lists(_PATHS, max_size=6), st.integers(1, 9))
def test_few_of_many_paths_are_the_first_of_all(batches: list[list[str]], limit: int) -> None:
    everything = Shallowest(1000, _NOTHING)
    few = Shallowest(limit, _NOTHING)
    few._slack = 0
    for some in batches:
        everything.add([f"{name}.txt" for name in some])
        few.add([f"{name}.txt" for name in some])
    whole = everything.listing().entries
    count = sum(len(some) for some in batches)
    assert few.listing() == Listing(entries=whole[:limit], more=len(whole) > limit, count=count)


def test_ripgrep_is_found_by_setting_then_path(tmp_path: Path) -> None:
    for name in ("mine", "rg"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    assert find_ripgrep({"TREADLE_RG": str(tmp_path / "mine"), "PATH": str(tmp_path)}) == str(tmp_path / "mine")
    assert find_ripgrep({"PATH": str(tmp_path)}) == str(tmp_path / "rg")
    assert find_ripgrep({"TREADLE_RG": "/no/such/rg", "PATH": str(tmp_path)}) == ""
