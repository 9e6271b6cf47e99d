"""What tools can make again: named by folders, by git's ignore files, and by folders that hide themselves."""

import subprocess
from pathlib import Path

import pytest

from treadle.workspace.copies import TakenBack
from treadle.workspace.copies.caches import git_ignores, hidden_by_themselves, in_inner_cache, in_output


@pytest.mark.parametrize(
    ("path", "output", "inner"),
    [
        (b"build/a", True, False),
        (b"deep/dist/inner/a", True, False),
        (b"cmake-build-debug/a", True, False),
        (b"own.egg-info/PKG-INFO", True, False),
        (b"lib/own.dist-info/RECORD", True, False),
        (b"node_modules/x/a", True, False),
        (b"node_modules/.cache/a", True, True),
        (b"node_modules/.cache", True, True),
        (b"web/node_modules/.vite/deps/a", True, True),
        (b"node_modules/x/.cache/a", True, False),
        (b".cache/node_modules", False, False),
        (b"node_modules", False, False),
        (b"build", False, False),
        (b"src/build", False, False),
        (b"src/builds/a", False, False),
        (b"src/a", False, False),
        (b"my-cmake-build-x/a", False, False),
        (b"own.egg-info.bak/a", False, False),
    ],
)
def test_outputs_and_the_caches_in_them_are_known_by_their_folders(path: bytes, output: bool, inner: bool) -> None:
    assert (in_output(path), in_inner_cache(path)) == (output, inner)


def test_a_new_folder_hides_itself_only_where_its_ignore_file_says_nothing_but_everything() -> None:
    rules = {
        b"cache": b"*\n",
        b"noted": b"# Created automatically\n*\n",
        b"kept": b"*\n!keep\n",
        b"some": b"*.log\n",
        b"empty": b"",
        b"": b"*\n",
    }
    assert hidden_by_themselves(rules) == {b"cache", b"noted"}


def test_git_ignores_folders_and_files_by_its_rules_and_nothing_outside_of_a_checkout(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("only-folders/\n*.log\n")
    names = [(b"only-folders", True), (b"only-folders", False), (b"a.log", False), (b"a.txt", False), (b"src", True)]
    outside = git_ignores(str(tmp_path))
    assert [outside(*name) for name in names] == [False] * 5
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "deep").mkdir()
    for root in (tmp_path, tmp_path / "deep"):
        ignores = git_ignores(str(root))
        assert [ignores(*name) for name in names] == [True, False, True, False, False]


@pytest.mark.parametrize(
    ("count", "named"),
    [(0, ""), (1, "'1'"), (10, ", ".join(f"'{at}'" for at in range(1, 11))), (12, "'10' and 2 more"), (1_012, "")],
)
def test_what_was_taken_back_names_at_most_ten_paths_that_somebody_changed(count: int, named: str) -> None:
    text = TakenBack(tuple(str(number) for number in range(1, count + 1))).text
    said = "Treadle was killed while it applied the changes of a command. What it had applied was undone."
    first = ", ".join(repr(str(number)) for number in range(1, min(count, 10) + 1))
    more = f" and {count - 10:,} more" if count > 10 else ""
    assert text == (f"{said} Changed since by somebody, so left as it is: {first}{more}." if count else said)
    assert named in text
