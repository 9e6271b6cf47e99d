"""What is said of the parts of a pipe."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.workspace.commands.launcher import Launcher
from treadle.workspace.commands.pipes import describe_pipes


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
    assert describe_pipes(line, [statuses]) == said


@pytest.mark.parametrize(
    ("line", "told", "said"),
    [
        ("a | b; c | d", [[1, 0], [0, 0]], " (but in pipes `a` exited 1)"),
        ("a | b; c | d", [[1, 0], [2, 0]], " (but in pipes `a` exited 1 and `c` exited 2)"),
        ("a | b && c | d", [[1, 3]], " (but in the pipe part 1 exited 1)"),
        ("a | b | c; d | e; f", [[0, 7, 0], [0, 0], [0]], " (but in pipes `b` exited 7)"),
    ],
)
def test_each_pipe_of_a_line_is_looked_at(line: str, told: list[list[int]], said: str) -> None:
    assert describe_pipes(line, told) == said


LINES = {
    "false | tail; true | cat; echo hi": "Exit status 0 (but in pipes `false` exited 1).",
    "false | tail; false | tail": "Exit status 0 (but in pipes `false` exited 1).",
    "(exit 3) | cat && (exit 4) | cat": "Exit status 0 (but in pipes part 1 exited 3 and part 1 exited 4).",
    'set -x; false | cat; echo "${PIPESTATUS[@]}"; true | cat': "Exit status 0 (but in pipes part 1 exited 1).",
    "for n in 1 2; do false | cat; done; true | cat": "Exit status 0.",
    "set -e; true | false; echo no | cat": "Exit status 1.",
}


@pytest.mark.parametrize(("line", "said"), LINES.items())
async def test_real_pipes_are_told_of(tmp_path: Path, line: str, said: str) -> None:
    launcher = Launcher(shell="/bin/bash", directory=str(tmp_path), variables=os.environ, spool=tmp_path)
    command = launcher.start(line)
    try:
        await command.finish(30)
        output = command.take_output()
    finally:
        await command.close()
        launcher.close()
    assert command.describe() == said, output
    assert "_treadle" not in output
    assert "PIPESTATUS" not in line or "1 0\n" in output


@given(
    st.text("ab |&;<>()'\"\\\n$`#{}\x1b", max_size=30), st.lists(st.lists(st.integers(0, 255), max_size=5), max_size=3)
)
def test_no_line_is_too_strange(line: str, told: list[list[int]]) -> None:
    said = describe_pipes(line, told)
    assert bool(said) is any(status not in (0, 141) for statuses in told for status in statuses[:-1])
    assert "\x1b" not in said
    assert "\n" not in said
