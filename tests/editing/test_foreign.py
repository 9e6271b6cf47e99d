"""New lines that are indented, or escaped, otherwise than the whole file."""

import pytest

from treadle.editing import EditFormat, EditResult, apply_edit

TABS = "".join(f"\tline {number}\n" for number in range(1, 25))
FOURS, TWOS = TABS.replace("\t", "    "), TABS.replace("\t", "  ")
FEW = TABS[: TABS.index("\tline 20\n")]


@pytest.mark.parametrize(
    ("file", "new", "written"),
    [
        (TABS, "    if a:\n        b\n", "\tif a:\n\t\tb\n"),
        (TABS, "  if a:\n    b\n", "\tif a:\n\t\tb\n"),
        (TABS, "    a\n      b\n", "\t\ta\n\t\t\tb\n"),
        (TABS, "top\n", "top\n"),
        (TABS, " * a\n", " * a\n"),
        (TABS, "\ta\n", "\ta\n"),
        (FOURS, "\tif a:\n\t\tb\n", "    if a:\n        b\n"),
        (TWOS, "\tif a:\n\t\tb\n", "  if a:\n    b\n"),
        (TWOS, "\tif a:\n  c\td\n", "  if a:\n  c\td\n"),
        (FOURS, "    a\n", "    a\n"),
        (FEW, "    a\n", "    a\n"),
        (FEW.replace("\t", "    "), "\ta\n", "\ta\n"),
        (f"{TABS}    line 25\n", "    a\n", "    a\n"),
        (f"{FOURS}\tline 25\n", "\ta\n", "\ta\n"),
    ],
)
def test_new_lines_are_indented_as_a_file_that_is_indented_in_one_way_throughout(
    file: str, new: str, written: str
) -> None:
    result = apply_edit(EditFormat.APPLY_PATCH, f"start:\n{file}", _inserting(new), file_name="a.py")

    assert isinstance(result, EditResult)
    assert result.text == f"start:\n{written}{file}"


def _inserting(new: str) -> str:
    added = "".join(f"+{line}\n" for line in new.splitlines())
    return f"*** Begin Patch\n*** Update File: a.py\n start:\n{added}*** End Patch\n"
