"""What a person and a model are shown of a change."""

import pytest

from treadle.editing import Edit, EditFormat, EditResult, apply_edit, display_diff, final_text

PRE = "".join(f"line {number}\n" for number in range(1, 31))


def test_the_diff_has_right_line_numbers() -> None:
    assert display_diff("a\nb\nc\n", "a\nx\nc\n", path="f.py", context=1) == (
        "--- f.py\n+++ f.py\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c"
    )


def test_the_final_text_shows_each_change_with_its_surroundings() -> None:
    result = apply_edit(EditFormat.OLD_NEW, PRE, [Edit("line 4\n", "four\n"), Edit("line 25\n", "")])

    assert isinstance(result, EditResult)
    assert final_text(result) == (
        "2 | line 2\n3 | line 3\n4 | four\n5 | line 5\n6 | line 6\n"
        "...\n"
        "23 | line 23\n24 | line 24\n25 | line 26\n26 | line 27"
    )


@pytest.mark.parametrize("between", range(1, 12))
def test_changes_are_shown_together_where_at_most_six_lines_stand_between(between: int) -> None:
    second = 11 + between
    edits = [Edit("line 10\n", "ten\n"), Edit(f"line {second}\n", "second\n")]
    result = apply_edit(EditFormat.OLD_NEW, PRE, edits)
    lines = [*PRE.replace("line 10\n", "ten\n").replace(f"line {second}\n", "second\n").splitlines()]

    def shown(first: int, last: int) -> str:
        return "\n".join(f"{at:>2} | {lines[at - 1]}" for at in range(first, last + 1))

    assert isinstance(result, EditResult)
    assert final_text(result) == (
        shown(8, second + 2) if between <= 6 else f"{shown(8, 12)}\n...\n{shown(second - 2, second + 2)}"
    )


@pytest.mark.parametrize(
    ("line", "head"),
    [
        (1, "@@ -1,2 +1,2 @@"),
        (2, "@@ -1,3 +1,3 @@ class One"),
        (3, "@@ -2,3 +2,3 @@ def first"),
        (6, "@@ -5,3 +5,3 @@ class One"),
        (7, "@@ -6,3 +6,3 @@ def second"),
        (9, "@@ -8,2 +8,2 @@ def second"),
    ],
)
def test_the_head_of_a_part_names_what_its_first_change_is_in(line: int, head: str) -> None:
    code = [
        "class One:",
        "  def first(x):",
        "    a",
        "    b",
        "class One:",
        "  def second(x):",
        "    c",
        "    d",
        "    e",
    ]
    changed = [*code[: line - 1], "changed", *code[line:]]

    diff = display_diff("\n".join(code) + "\n", "\n".join(changed) + "\n", context=1)

    assert diff.splitlines()[2] == head
