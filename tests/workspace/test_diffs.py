"""Differences between texts."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.workspace.files.diffs import compare

_TEXT = st.lists(st.sampled_from(["a", "b", "c", "", "dd"]), max_size=30).map("\n".join)


@settings(max_examples=200)
@given(_TEXT, _TEXT)
def test_the_hunks_turn_one_text_into_the_other(before: str, after: str) -> None:
    diff = compare(before, after)
    lines: list[str] = []
    at = 0
    for hunk in diff.hunks:
        lines += diff.old[at : hunk.old_start]
        lines += diff.new[hunk.new_start : hunk.new_end]
        at = hunk.old_end
    assert [*lines, *diff.old[at:]] == list(diff.new)


@settings(max_examples=25)
@given(_TEXT, _TEXT)
def test_the_diff_is_one_that_patch_programs_apply(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str
) -> None:
    if before == after:
        return
    directory: Path = tmp_path_factory.mktemp("patch")
    if before:
        (directory / "a.txt").write_text(before)
    diff = compare(before, after).unified("a.txt")
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=directory, input=diff.encode(), check=True)
    result = directory / "a.txt"
    assert (result.read_text() if result.exists() else "") == after


def test_a_missing_final_newline_is_shown() -> None:
    assert compare("a\nb", "a\nb\n").unified("x") == (
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    )


def test_line_ends_are_left_out_where_both_texts_use_one_kind() -> None:
    assert "\r" not in compare("a\r\nb\r\n", "a\r\nc\r\n").unified("x")
    assert compare("a\n", "a\r\n").unified("x") == "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-a\n+a\r\n"


def test_the_echo_is_bounded() -> None:
    after = "".join(f"{n}\n" for n in range(1000))
    lines = compare("x\n", after).echo().split("\n")
    assert (len(lines), lines[0]) == (201, "1 | 0")
    assert lines[-1] == "[... the other changes are not shown; use read_file]"
