"""What holds for every edit: exact application, reversal, untouched bytes, and no exception."""

import random
from collections import Counter

from bench.drift import Commit, drift_cases, invented_commits, library_sources
from bench.edits import APPLIED, RIGHT, WRONG, Trial, outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.editing import Edit, EditError, EditFormat, EditResult, apply_edit

FEW = settings(max_examples=100)
SOURCES = library_sources(12)

lines = st.lists(st.sampled_from(["a", "b", "  a", "\tb", "", "x = 1", "x = 2", "# ...", "=======", "}"]), max_size=14)
ends = st.sampled_from(["\n", "\r\n"])
SCRAPS = (
    "------- SEARCH|=======|+++++++ REPLACE|<<<<<<< SEARCH|>>>>>>> REPLACE|```|"
    "*** Begin Patch|*** Update File: f|"
    "*** Add File: g|*** End Patch|*** End of File|@@|@@ -1,2 +1,2 @@ a|"
    "--- f|+++ f|-a|+b| a|a||  a|...|1: a| 1 | a"
)
scraps = st.lists(st.sampled_from(SCRAPS.split("|")), max_size=16).map("\n".join)


def commits(seed: int, count: int = 1) -> list[Commit]:
    return list(invented_commits(random.Random(seed), SOURCES, count))


@FEW
@given(st.integers(0, 10_000))
def test_the_edit_of_a_real_diff_applies_exactly_and_back(seed: int) -> None:
    (commit,) = commits(seed)
    edits = [spot.edit for spot in commit.spots]

    result = apply_edit(EditFormat.OLD_NEW, commit.pre, edits)

    assert isinstance(result, EditResult)
    assert result.text == commit.post
    back = [Edit(edit.new, edit.old) for edit in edits]
    if all(commit.post.count(edit.old) == 1 for edit in back):
        undone = apply_edit(EditFormat.OLD_NEW, commit.post, back)
        assert isinstance(undone, EditResult)
        assert undone.text == commit.pre


@FEW
@given(st.sampled_from(list(EditFormat)), lines, st.one_of(scraps, st.text(max_size=60)))
def test_no_text_raises(form: EditFormat, pre: list[str], text: str) -> None:
    assert isinstance(apply_edit(form, "\n".join(pre), text, file_name="f"), EditResult | EditError)


@FEW
@given(lines, st.lists(st.tuples(lines, lines), max_size=3), ends)
def test_bytes_outside_the_changed_lines_never_change(
    pre: list[str], edits: list[tuple[list[str], list[str]]], end: str
) -> None:
    text = "".join(line + end for line in pre)

    result = apply_edit(EditFormat.OLD_NEW, text, [Edit("\n".join(old), "\n".join(new)) for old, new in edits])

    if isinstance(result, EditResult):
        before, after = text.splitlines(keepends=True), result.text.splitlines(keepends=True)
        old = new = 0
        for change in result.changes:
            assert before[old : change.old.start - 1] == after[new : change.new.start - 1]
            old, new = max(old, change.old.end), max(new, change.new.end)
        assert before[old:] == after[new:]


@FEW
@given(lines, lines, ends)
def test_a_whole_file_becomes_the_given_lines(pre: list[str], new: list[str], end: str) -> None:
    text = "".join(line + end for line in pre)

    result = apply_edit(EditFormat.WHOLE, text, "".join(line + "\n" for line in new))

    if isinstance(result, EditResult):
        assert result.text == "".join(line + end for line in new) or not pre


def test_drift_lands_right_or_is_refused() -> None:
    counts: Counter[str] = Counter()
    for case in drift_cases(commits(7, 30), seed=7):
        trial = Trial("", case.kind, EditFormat.OLD_NEW, case.pre, case.edits, case.posts, case.may_refuse)
        counts[outcome(trial)] += 1

    assert counts[APPLIED] == 0
    assert counts[WRONG] <= 0.01 * counts.total()
    assert counts[RIGHT] >= 0.6 * counts.total()
