"""Refusals: typed, with the real text and the places, and never a silent guess."""

import pytest

from treadle.editing import Edit, EditError, EditFormat, EditResult, ErrorCode, LineRange, apply_edit

PRE = """\
def first():
    total = count_all(items)
    return total


def second():
    total = count_all(items)
    return total + 1


def third(verbose):
    if verbose:
        print("third")
    return None
"""


def refused(*edits: tuple[str, str], pre: str = PRE) -> EditError:
    result = apply_edit(EditFormat.OLD_NEW, pre, [Edit(old, new) for old, new in edits])
    assert isinstance(result, EditError), result
    return result


def test_text_that_fits_twice_is_refused_with_its_places() -> None:
    error = refused(("    total = count_all(items)", "    total = 0"))

    assert (error.code, error.block, error.candidates) == (
        ErrorCode.AMBIGUOUS,
        1,
        (LineRange(2, 2), LineRange(7, 7)),
    )
    assert error.message.startswith("The search text fits 2 places, at lines 2, 7.")


def test_text_that_fits_twice_but_for_its_indentation_is_refused() -> None:
    error = refused(("  total = count_all(items)\n  return", "  total = 0\n  return"))

    assert error.code is ErrorCode.NOT_FOUND or error.candidates == (LineRange(2, 3), LineRange(7, 8))


def test_a_whole_line_that_is_also_part_of_another_is_refused() -> None:
    assert refused(("    return total", "    return 0")).candidates == (LineRange(3, 3), LineRange(8, 8))


def test_missing_text_is_refused_with_the_nearest_lines() -> None:
    error = refused(('    if verbose:\n        print("fourth")\n        log()', "    pass"))

    assert error.code is ErrorCode.NOT_FOUND
    assert error.nearest == (
        '10 | \n11 | def third(verbose):\n12 |     if verbose:\n13 |         print("third")\n14 |     return None'
    )


def test_one_missing_block_refuses_the_whole_edit() -> None:
    error = refused(("def first():", "def one():"), ("def fourth():", "def four():"))

    assert (error.code, error.block) == (ErrorCode.NOT_FOUND, 2)


@pytest.mark.parametrize(
    ("code", "edits"),
    [
        (ErrorCode.EMPTY_SEARCH, [("", "x = 1")]),
        (ErrorCode.EMPTY_SEARCH, [("\n\n", "x = 1")]),
        (ErrorCode.NO_CHANGE, [("def first():", "def first():")]),
        (ErrorCode.NO_CHANGE, [("def first():  ", "def first():")]),
        (ErrorCode.ALREADY_APPLIED, [('print("old")', 'print("third")')]),
        (ErrorCode.ALREADY_APPLIED, [("    if verbose:", '    if verbose:\n        print("third")')]),
        (ErrorCode.OVERLAPPING, [("def first():", "def one():"), ("def first():", "def two():")]),
        (ErrorCode.OVERLAPPING, [("def first():", "def one():"), ("def first():", "def one():")]),
        (ErrorCode.ELISION, [("def first():", "def first():\n    # ... existing code ...\n    pass")]),
        (
            ErrorCode.CHANGED_SINCE,
            [('def third(verbose):\n        print("third")', "def third():\n    log()\n    x()")],
        ),
        (ErrorCode.ESCAPED, [("    return None", "    return &quot;none&quot;")]),
        (ErrorCode.NO_MARKER, []),
    ],
)
def test_what_cannot_be_right_is_refused(code: ErrorCode, edits: list[tuple[str, str]]) -> None:
    assert refused(*edits).code is code


def test_a_users_line_inside_a_deleted_run_is_not_deleted() -> None:
    pre = PRE.replace("    if verbose:\n", "    if verbose:\n        mine = True\n")
    old = 'def third(verbose):\n    if verbose:\n        print("third")\n    return None'

    assert refused((old, "def third(verbose):\n    return None"), pre=pre).code is ErrorCode.CHANGED_SINCE


def test_a_whole_file_with_an_elision_is_refused() -> None:
    result = apply_edit(EditFormat.WHOLE, PRE, "def first():\n    # ... rest of the code ...\n")

    assert isinstance(result, EditError)
    assert result.code is ErrorCode.ELISION


def test_a_whole_file_keeps_line_ends_and_says_what_changed() -> None:
    pre = PRE.replace("\n", "\r\n")

    result = apply_edit(EditFormat.WHOLE, pre, f"```python\n{PRE.replace('None', '0')}```\n")

    assert isinstance(result, EditResult)
    assert (result.text, len(result.changes)) == (pre.replace("None", "0"), 1)
