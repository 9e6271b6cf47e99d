"""Command lines that are read without argparse: as it would read them, or not at all."""

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.cli import work
from treadle.cli.main import parser_of
from treadle.cli.plain import read_arguments

FLAGS = [name for action in parser_of("").actions for name in action.option_strings]
WORDS = st.one_of(
    st.sampled_from(FLAGS),
    st.sampled_from(["", "-", "--", "1", "0", "-1", "2.5", "ask", "json", "x/y", "a b", "--model=x/y", "-px", "--mod"]),
    st.text(max_size=4),
)


@given(st.lists(WORDS, max_size=7))
def test_what_is_plain_is_read_as_argparse_reads_it(words: list[str]) -> None:
    plain = read_arguments(work.configure, words)
    if plain is not None:
        assert vars(plain) == vars(parser_of("").read(words))


@given(st.lists(st.tuples(st.sampled_from(FLAGS), st.sampled_from(["x/y", "3", "ask", "json"])), max_size=4))
def test_flags_with_values_are_read_as_argparse_reads_them(pairs: list[tuple[str, str]]) -> None:
    words = [word for pair in pairs for word in pair]
    plain = read_arguments(work.configure, words)
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        expected = vars(parser_of("").read(words))
        assert plain is None or vars(plain) == expected
        return
    assert plain is None


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["-p", "say ok"],
        ["-p", "say ok", "--model", "anthropic/claude-sonnet-4-5", "--mode", "auto", "--trust"],
        ["--print", "ok", "-C", "/tmp", "-f", "a", "--file", "b", "--add-dir", "c", "--output-format", "stream-json"],
        ["-p", "ok", "--max-cost", "0.5", "--thinking-budget", "1000", "--base-url", "http://127.0.0.1:1"],
    ],
)
def test_the_usual_lines_are_plain(words: list[str]) -> None:
    plain = read_arguments(work.configure, words)
    assert plain is not None
    assert vars(plain) == vars(parser_of("").read(words))


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["-p"],
        ["-p", "-"],
        ["fix it"],
        ["--model=x/y"],
        ["--mode", "wild"],
        ["--thinking-budget", "many"],
        ["--max-steps", "0"],
        ["--nonsense"],
        ["--continue"],
        ["--resume"],
        ["--resume", "2026"],
    ],
)
def test_the_rest_is_left_to_argparse(words: list[str]) -> None:
    assert read_arguments(work.configure, words) is None
