"""Matchers and conditions, as Claude Code reads them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.hooks.matching_hooks import condition_holds, matches_any


@pytest.mark.parametrize(
    ("matcher", "names"),
    [
        ("", ("Bash",)),
        ("*", ("Bash",)),
        ("Bash", ("Bash",)),
        ("Edit|Write", ("Write",)),
        ("Edit, Write", ("Write",)),
        ("mcp__memory__.*", ("mcp__memory__read",)),
        ("^Wri", ("Write",)),
        ("ri.e$", ("Write",)),
        ("execute_command", ("Bash", "execute_command")),
        ("(", ("Bash",)),
    ],
)
def test_a_matcher_matches(matcher: str, names: tuple[str, ...]) -> None:
    assert matches_any(matcher, names)


@pytest.mark.parametrize(
    ("matcher", "name"),
    [
        ("Wri", "Write"),
        ("write", "Write"),
        ("mcp__memory", "mcp__memory__read"),
        ("Edit|Write", "MultiEdit"),
        ("^rite", "Write"),
    ],
)
def test_a_matcher_does_not_match(matcher: str, name: str) -> None:
    assert not matches_any(matcher, (name,))


NAMES = st.text(alphabet="ABab_-9", min_size=1, max_size=6)


@given(NAMES, st.lists(NAMES, min_size=1, max_size=4), st.sampled_from(["|", ",", " | ", ", "]))
def test_a_list_of_names_matches_exactly_those(name: str, listed: list[str], between: str) -> None:
    assert matches_any(between.join(listed), (name,)) is (name in listed)


@given(NAMES, st.text(alphabet="ABab.^$", min_size=1, max_size=5).filter(lambda text: re.search(r"[.^$]", text)))
def test_anything_else_is_a_regular_expression_anywhere_in_the_name(name: str, pattern: str) -> None:
    assert matches_any(pattern, (name,)) is bool(re.search(pattern, name))


def bash(condition: str, line: str) -> bool:
    return condition_holds(condition, ("Bash", "execute_command"), {"command": line})


def test_a_condition_names_a_tool_and_the_beginning_of_a_command() -> None:
    assert bash("Bash(git push *)", "git push origin")
    assert bash("Bash(git push:*)", "cd sub && git push")
    assert bash("Bash", "ls")
    assert not bash("Bash(git push *)", "git pull")
    assert not bash("Edit(*.py)", "git push")


@pytest.mark.parametrize("line", ["$(echo git) push", "g\\it push", "'git' push", "X=1 git push", "`x`", "(git push)"])
def test_a_line_that_may_run_anything_is_never_left_out(line: str) -> None:
    assert bash("Bash(git push *)", line)


def test_a_condition_on_a_file_takes_a_glob() -> None:
    assert condition_holds("Edit(*.py)", ("Edit",), {"file_path": "/ws/a.py"})
    assert condition_holds("Edit(./src/**)", ("Edit",), {"file_path": "/ws/src/a.py"})
    assert not condition_holds("Edit(*.py)", ("Edit",), {"file_path": "/ws/a.js"})
