"""Refusals: typed, with the real text and the places, and never a silent guess."""

import pytest

from treadle.editing import Edit, EditError, EditFormat, EditResult, ErrorCode, LineRange, apply_edit, explain_refusal

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
    assert error.message.startswith("The search text matches 2 places, at lines 2, 7.")


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


def blocks(*edits: tuple[str, str], pre: str = PRE) -> EditError:
    text = "".join(f"------- SEARCH\n{old}\n=======\n{new}\n+++++++ REPLACE\n" for old, new in edits)
    result = apply_edit(EditFormat.SEARCH_REPLACE, pre, text)
    assert isinstance(result, EditError), result
    return result


def test_every_block_that_fails_is_told_with_the_file_as_it_is() -> None:
    error = blocks(
        ("def first():", "def one():\n    log('a new first line')"),
        ("def first():\n    total = count_all(things)", "def first():\n    total = 1"),
        ("    log('a new first line')\n    more()", "y"),
        ("    total = count_all(items)", "z"),
        ("select * from users where id = 1", "w"),
        ("def third(verbose):", "def third(verbose):"),
    )

    whole = "\n".join(f"{at:>2} | {line}" for at, line in enumerate(PRE.split("\n")[:-1], 1))
    assert explain_refusal(error, "app.py") == (
        "Refused [changed_since, not_found, ambiguous, no_change]: nothing was changed in app.py. 5 of 6 blocks "
        "failed. Correct them and send all 6 blocks again.\n"
        "Block 2 [changed_since]: Line 2 of the file, within the lines to change, differs from the search text. "
        "Write the edit again from the lines as they are.\nThe file has:\n"
        "1 | def first():\n2 |     total = count_all(items)\n3 |     return total\n4 | \n"
        "Blocks 3, 5 [not_found]: Nothing like the search text is in the file, which has 14 lines. "
        f"Copy the lines to change from it.\nThe file has:\n{whole}\n"
        "Block 4 [ambiguous]: The search text matches 2 places, at lines 2, 7. Add neighbouring lines until it "
        "matches only the one you mean.\nThe file has:\n"
        "1 | def first():\n2 |     total = count_all(items)\n3 |     return total\n...\n"
        "6 | def second():\n7 |     total = count_all(items)\n8 |     return total + 1\n"
        "Block 6 [no_change]: The search text and the replacement are the same. Leave this block out, or correct it."
    )


@pytest.mark.parametrize(
    "second",
    [
        ("def one():\n    total = count_all(thing)\n    return", "x"),
        ("def first():", "def two():"),
        ("    total = count_all(items)", "x"),
    ],
)
def test_a_refusal_never_shows_what_an_earlier_block_would_have_made(second: tuple[str, str]) -> None:
    first = ("def first():\n    total = count_all(items)", "def one():\n    added = 1\n    total = count_all(items)")

    said = explain_refusal(blocks(first, second), "app.py")

    shown = [line.partition(" | ") for line in said.split("\n") if " | " in line]
    assert shown
    assert all(PRE.split("\n")[int(number) - 1] == line for number, _, line in shown)
    assert "added" not in said


def test_a_block_that_builds_on_a_refused_one_says_so() -> None:
    error = blocks(("def zeroth():", "def completely_new():"), ("def completely_new():", "def newer():"))

    assert [each.message for each in error.others] == [
        "It depends on block 1, which is refused. Correct that block first."
    ]


def test_far_fetched_text_is_not_shown() -> None:
    pre = "".join(f"value_{number} = compute({number})\n" for number in range(60))
    error = blocks(("SELECT name FROM users\nWHERE id = 7", "x"), pre=pre)

    assert error.nearest is None
    assert error.message.startswith("Nothing like the search text is in the file, which has 60 lines. Read it")


def test_many_refused_blocks_stay_readable_and_long_lines_are_cut() -> None:
    pre = "".join(f"def step_{number}(value):\n    return value * {number}\n\n\n" for number in range(40))
    pre += f"data = '{'x' * 5_000}'\n"
    error = blocks(*((f"def step_{number}(value):\n    return val * {number}", "x") for number in range(30)), pre=pre)
    said = explain_refusal(error, "app.py")

    assert said.startswith(
        "Refused [changed_since]: nothing was changed in app.py. 10 of 30 blocks failed. "
        "Blocks after 10 were not checked. Correct them and send all 30 blocks again.\nBlock"
    )
    assert said.count("\n") < 60
    one = explain_refusal(blocks(("data = 'xx'\ndef step_39(value):", "x"), pre=pre))
    assert len(one) < 1_500


def test_a_cut_block_does_not_hide_those_that_fail_before_it() -> None:
    text = "------- SEARCH\nnowhere to be found\n=======\nx\n+++++++ REPLACE\n------- SEARCH\ndef first():\n"
    error = apply_edit(EditFormat.SEARCH_REPLACE, PRE, text)

    assert isinstance(error, EditError)
    assert [(each.block, each.code) for each in (error, *error.others)] == [
        (1, ErrorCode.NOT_FOUND),
        (2, ErrorCode.TRUNCATED),
    ]


def test_text_that_is_escaped_on_purpose_is_written() -> None:
    new = "# < is written as &lt; here\nimport html"
    result = apply_edit(EditFormat.OLD_NEW, "import html\n", [Edit("import html", new)])

    assert isinstance(result, EditResult)
    assert result.text == new + "\n"
