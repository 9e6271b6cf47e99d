"""What a person and a model are shown of a change."""

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
