"""What is said of the parts of a pipe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.workspace.pipes import describe_pipe


@pytest.mark.parametrize(
    ("line", "statuses", "said"),
    [
        ("pytest -q | tail", [1, 0], " (but in the pipe `pytest -q` exited 1)"),
        ("X=1 time python -m pytest tests 2>&1 | tail -5", [2, 0], " (but in the pipe `python -m pytest` exited 2)"),
        ("a | b | c", [1, 3, 0], " (but in the pipe `a` exited 1 and `b` exited 3)"),
        ("cd x && make |& tee log || x", [2, 0], " (but in the pipe `make` exited 2)"),
        ("if true; then a 2>err | b; fi\necho done", [4, 0], " (but in the pipe `a` exited 4)"),
        ("(exit 3) | cat", [3, 0], " (but in the pipe part 1 exited 3)"),
        ("a 'x | y' | b", [1, 0], " (but in the pipe `a 'x | y'` exited 1)"),
        ("f", [1, 0], " (but in the pipe part 1 exited 1)"),
        ("a | 'b", [1, 0], " (but in the pipe part 1 exited 1)"),
        ("yes | head", [141, 0], ""),
        ("a | b", [0, 1], ""),
        ("a | b", [], ""),
    ],
)
def test_a_part_that_failed_before_the_last_one_is_named(line: str, statuses: list[int], said: str) -> None:
    assert describe_pipe(line, statuses) == said


@given(st.text("ab |&;<>()'\"\\\n$`#{}\x1b", max_size=30), st.lists(st.integers(0, 255), max_size=5))
def test_no_line_is_too_strange(line: str, statuses: list[int]) -> None:
    said = describe_pipe(line, statuses)
    assert bool(said) is any(status not in (0, 141) for status in statuses[:-1])
    assert "\x1b" not in said
    assert "\n" not in said
