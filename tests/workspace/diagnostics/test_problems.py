"""Problems: read from output, compared, told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.workspace.diagnostics.problems import Diagnostic, Severity, new_problems, read_output, report


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "a.py:3:5: F821 Undefined name `x`",
            Diagnostic(path="/w/a.py", line=3, column=5, message="F821 Undefined name `x`"),
        ),
        ("/x/a.py:3: error: Bad  [misc]", Diagnostic(path="/x/a.py", line=3, message="Bad  [misc]")),
        (
            "src/a.c:1:2: warning: odd",
            Diagnostic(path="/w/src/a.c", line=1, column=2, severity=Severity.WARNING, message="odd"),
        ),
        ("a.ts(4,2): error TS2304: Cannot", Diagnostic(path="/w/a.ts", line=4, column=2, message="TS2304: Cannot")),
        ("\x1b[1ma.go:9:1:\x1b[0m missing", Diagnostic(path="/w/a.go", line=9, column=1, message="missing")),
        ("app/(auth)/page.tsx:2:1: odd", Diagnostic(path="/w/app/(auth)/page.tsx", line=2, column=1, message="odd")),
        ("(a)/b.tsx(2,1): odd", Diagnostic(path="/w/(a)/b.tsx", line=2, column=1, message="odd")),
        ("x (copy).tsx:2: odd", Diagnostic(path="/w/x (copy).tsx", line=2, message="odd")),
        ("x (copy).tsx(2,1): odd", Diagnostic(path="/w/x (copy).tsx", line=2, column=1, message="odd")),
        ("a.ts(4,2): see b.ts:3: there", Diagnostic(path="/w/a.ts", line=4, column=2, message="see b.ts:3: there")),
        ("(4,2): no path", None),
        ("a.py:3: note: see there", None),
        ("Found 3 errors.", None),
        ("10:30: not a path at noon", None),
        ("", None),
    ],
)
def test_lines_of_linters_are_read(line: str, expected: Diagnostic | None) -> None:
    found = read_output(f"some words\n{line}\n", "/w", "")
    assert found == ([expected] if expected else [])


def problem(message: str, line: int = 1, severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(path="/w/a.py", line=line, message=message, severity=severity, source="lint")


def test_a_problem_that_moved_is_not_new_and_a_second_one_of_its_kind_is() -> None:
    before = [problem("a", 1), problem("b", 2)]
    after = [problem("a", 5), problem("a", 9), problem("c", 3, Severity.WARNING), problem("d", 1, Severity.HINT)]
    assert new_problems(before, after) == [problem("a", 9), problem("c", 3, Severity.WARNING)]


PROBLEMS = st.lists(st.builds(problem, st.sampled_from("abc"), st.integers(1, 5)))


@settings(max_examples=100)
@given(PROBLEMS, PROBLEMS)
def test_as_many_are_new_as_came(before: list[Diagnostic], more: list[Diagnostic]) -> None:
    assert new_problems(before, before) == []
    assert len(new_problems(before, [*before, *more])) == len(more)


def test_few_are_shown_and_the_rest_counted() -> None:
    shown = report([problem(f"m{number}\n\x1b", number + 1) for number in range(4)], lambda path: path[3:], most=2)
    assert shown == "a.py:1: error: m0 \\x1b (lint)\na.py:2: error: m1 \\x1b (lint)\n[2 more]"
