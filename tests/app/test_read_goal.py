"""A goal as people type it: the check first, behind the condition as on the command line, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.slash.slash_answers import read_goal

READ = {
    "all tests pass": ("all tests pass", ""),
    "--check 'make test' all tests pass": ("all tests pass", "make test"),
    "all tests pass --check 'make test'": ("all tests pass", "make test"),
    "all tests pass --check make": ("all tests pass", "make"),
    '--check="make test" all tests pass': ("all tests pass", "make test"),
    'all tests pass --check="make -j2 test"': ("all tests pass", "make -j2 test"),
    "--check make it's done": ("it's done", "make"),
    "it's done --check 'test -f a'": ("it's done", "test -f a"),
    "`ruff format --check .` is quiet": ("`ruff format --check .` is quiet", ""),
    "`ruff format --check .` is quiet --check 'ruff format --check .'": (
        "`ruff format --check .` is quiet",
        "ruff format --check .",
    ),
    "no --checks are left": ("no --checks are left", ""),
}


@pytest.mark.parametrize(("typed", "read"), READ.items(), ids=READ)
def test_a_goal_is_read_with_its_check(typed: str, read: tuple[str, str]) -> None:
    assert read_goal(typed) == read


@pytest.mark.parametrize(
    "typed",
    [
        "b.txt holds two --check grep -q two b.txt",
        "ruff format --check is quiet",
        "--check",
        "--check 'make test'",
        "all tests pass --check",
        "all tests pass --check ''",
        "all tests pass --check 'make test",
    ],
)
def test_what_would_be_a_guess_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match="check"):
        read_goal(typed)


@given(st.text(max_size=60))
def test_any_text_is_kept_whole_or_refused(typed: str) -> None:
    try:
        condition, check = read_goal(typed.strip())
    except ValueError:
        assert "--check" in typed
        return
    assert check or condition == typed.strip()
