"""Which paths the ignore files for agents keep from being read or changed without a yes."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from treadle.workspace.ignore.access_lists import AccessLists
from treadle.workspace.ignore.ignoring import ACCESS_FILES, Ignoring, access_files


def reason(root: Path, path: str) -> str:
    return AccessLists((str(root),)).reason(f"{root}/{path}")


def listed(root: Path, *paths: str) -> list[bool]:
    return [bool(reason(root, path)) for path in paths]


@pytest.mark.parametrize("name", ACCESS_FILES)
def test_the_reason_names_the_file_and_the_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / name).write_text("# ours\n\nsecrets/\n")
    (tmp_path / "sub" / name).write_text("*.key\n")
    assert reason(tmp_path, "secrets/a/b") == f"secrets is listed in {name}, line 3"
    assert reason(tmp_path, "sub/x.key") == f"sub/x.key is listed in sub/{name}, line 1"
    assert listed(tmp_path, "a", "sub/a", "x.key", "mysecrets/a") == [False] * 4


def test_only_files_that_guard_access_do(tmp_path: Path) -> None:
    for name in (".gitignore", ".aiderignore", ".dockerignore"):
        (tmp_path / name).write_text("*\n")
    assert listed(tmp_path, "a", "b/c") == [False, False]


def test_a_later_line_and_an_inner_file_have_the_last_word_but_not_below_what_is_listed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / ".clineignore").write_text("*.csv\n!open.csv\nprivate/\n!private/open.csv\n")
    (tmp_path / "data" / ".clineignore").write_text("!all.csv\n")
    assert listed(tmp_path, "a.csv", "open.csv", "data/a.csv", "data/all.csv") == [True, False, True, False]
    assert listed(tmp_path, "private/open.csv") == [True]


def test_another_spelling_is_listed_too_and_only_the_same_one_is_taken_out(tmp_path: Path) -> None:
    (tmp_path / ".clineignore").write_text("Secrets/\n*.Key\n!Open.key\ncaf\u00e9.txt\n")
    assert listed(tmp_path, "secrets/a", "SECRETS/a", "a.KEY", "cafe\u0301.txt", "CAF\u00c9.TXT") == [True] * 5
    assert listed(tmp_path, "Open.key", "open.KEY", "OPEN.key") == [False, True, True]


def test_a_directory_that_is_not_there_yet_is_listed(tmp_path: Path) -> None:
    (tmp_path / ".clineignore").write_text("new/\n")
    (tmp_path / "old").mkdir()
    assert listed(tmp_path, "new", "new/a", "old", "old/new") == [True, True, False, True]
    (tmp_path / "new").write_text("a file, which the line is not about")
    assert listed(tmp_path, "new") == [False]


def test_a_file_that_cannot_be_used_keeps_everything_below_it(tmp_path: Path) -> None:
    for name in ("large", "many", "fine"):
        (tmp_path / name).mkdir()
    (tmp_path / "large" / ".clineignore").write_text("#" * 70_000)
    (tmp_path / "many" / ".agentignore").write_text("x\n" * 3_000)
    (tmp_path / "fine" / ".clineignore").mkdir()
    (tmp_path / "fine" / ".agentignore").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fine" / ".treadleignore")
    assert reason(tmp_path, "large/a") == "large/a may be listed in large/.clineignore, which cannot be used"
    assert listed(tmp_path, "large/a", "many/deep/a", "fine/a", "a") == [True, True, False, False]


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    (tmp_path / ".clineignore").write_text("a\n")
    assert listed(tmp_path, "a", "b") == [True, False]
    (tmp_path / ".clineignore").write_text("b\n#\n")
    assert listed(tmp_path, "a", "b") == [False, True]
    (tmp_path / ".clineignore").unlink()
    assert listed(tmp_path, "a", "b") == [False, False]


def test_each_folder_has_lists_of_its_own_and_nothing_above_one_counts(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / ".clineignore").write_text("*\n")
    (tmp_path / "one" / ".clineignore").write_text("a\n")
    lists = AccessLists((f"{tmp_path}/one", f"{tmp_path}/two"))
    assert [bool(lists.reason(f"{tmp_path}/{path}")) for path in ("one/a", "two/a", "three/a", "one")] == [
        True,
        False,
        False,
        False,
    ]
    assert (access_files(f"{tmp_path}/one"), access_files(f"{tmp_path}/two")) == ([".clineignore"], [])


def test_a_path_as_deep_as_it_can_be_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / ".clineignore").write_text("**/x/**/y\n*.log\n")
    deep = "d/" * 1_900
    assert listed(tmp_path, f"{deep}a.log", f"{deep}a") == [True, False]


_NAMES = st.sampled_from(["a", "b", "A", "a.b", "caf\u00e9"])
_LINES = st.sampled_from(["a", "b/", "/a", "*", "!a", "!b", "a/b", "**/a", "*.b", "!*.b", "# x", "", "A/", "!a/"])


@settings(max_examples=60)
@example(files={"": ["a", "!a/"], "a/": []}, path=["a"])
@given(
    files=st.dictionaries(st.sampled_from(["", "a/", "b/"]), st.lists(_LINES, max_size=4), max_size=3),
    path=st.lists(_NAMES, min_size=1, max_size=4),
)
def test_what_searches_hide_is_never_read_without_a_yes(files: Mapping[str, list[str]], path: list[str]) -> None:
    with TemporaryDirectory() as folder:
        for place, lines in files.items():
            Path(folder, place).mkdir(exist_ok=True)
            Path(folder, place, ".clineignore").write_text("\n".join(lines))
        searches, named = Ignoring(folder, folder, (ACCESS_FILES,)), "/".join(path)
        hides = searches.hides_directory if Path(folder, named).is_dir() else searches.hides_file
        assert not hides(named) or AccessLists((folder,)).reason(f"{folder}/{named}")
