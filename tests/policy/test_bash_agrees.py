"""The own parser against bash: a line that they see differently is never allowed."""

import random
import re
import subprocess

import pytest

from tests.needed import needs
from tests.policy.views import ROOT, Record, context, labelled
from treadle.policy.classify import classify_command
from treadle.policy.findings import CommandClass
from treadle.policy.shell.shell_parser import parse
from treadle.policy.shell.syntax import BrokenShellError, ShellSyntaxError

_PIECES = (
    "ls", "cat a", "echo 'x'", 'echo "y"', ";", "&&", "||", "|", "&", "\n", " ", "$(pwd)", "`pwd`", "${HOME}", "(",
    ")", "{ ", "; }", "<<E\nx\nE\n",
    "<<<x", ">/dev/null", "2>&1", "\\\n", "'", '"', "$'a'", "#", "if true; then ", "; fi", "!",
    "[ -f a ]", "[[ -f a ]]", "{a,b}", "*", "~", "$((1+1))", ";;", "for i in a; do ", "; done", "A=1 ", "\\",
)  # fmt: skip


def _reads(line: str) -> bool:
    try:
        parse(line)
    except ShellSyntaxError:
        return False
    return True


def _bash_accepts(lines: list[str]) -> list[bool]:
    """Ask bash about each line; `-n` reads and never runs. One process reads them all as here-documents would not."""
    return [
        subprocess.run(["bash", "-n"], input=line.encode(), capture_output=True, check=False).returncode == 0
        for line in lines
    ]


def _random_lines(count: int) -> list[str]:
    chooser = random.Random(3)
    return ["".join(chooser.choices(_PIECES, k=chooser.randrange(1, 7))) for _ in range(count)]


@needs("bash")
def test_a_line_that_bash_refuses_is_not_allowed() -> None:
    lines = [
        line
        for line in _random_lines(900)
        if classify_command(line, ROOT, context()).command_class is CommandClass.READ_ONLY
    ]
    assert [line for line, accepted in zip(lines, _bash_accepts(lines), strict=True) if not accepted] == []


def _is_told_broken(line: str) -> bool:
    try:
        parse(line)
    except BrokenShellError:
        return True
    except ShellSyntaxError:
        return False
    return False


@needs("bash")
def test_what_is_told_to_be_no_shell_is_none_for_bash(record_property: Record) -> None:
    lines = [line for line in _random_lines(1600) if "[[" not in line and _is_told_broken(line)]
    assert len(lines) > 300
    assert [line for line, accepted in zip(lines, _bash_accepts(lines), strict=True) if accepted] == []
    record_property("figure", f"no shell: {len(lines)} lines refused without a shell, all of them by bash too")


@needs("bash")
def test_a_line_that_bash_and_the_own_parser_see_differently_is_not_allowed(record_property: Record) -> None:
    lines = _random_lines(700)
    differing = [
        line for line, accepted in zip(lines, _bash_accepts(lines), strict=True) if accepted is not _reads(line)
    ]
    classes = [classify_command(line, ROOT, context()).command_class for line in differing]
    unasked = classes.count(CommandClass.READ_ONLY)
    told = f"{len(lines)} lines, {len(differing)} accepted by one only, {unasked} of them run unasked"
    record_property("figure", f"parsers, own and bash: {told}")
    assert unasked == 0


@needs("bash")
def test_the_own_parser_accepts_nothing_in_the_labelled_lines_that_bash_refuses() -> None:
    """What it refuses beyond that hides letters behind numbers."""
    lines = [case["command"] for case in labelled("commands.jsonl")][::4]
    accepted = _bash_accepts(lines)
    differing = [line for line, bash in zip(lines, accepted, strict=True) if bash is not _reads(line)]
    assert [line for line in differing if _reads(line) or not re.search(r"\\[xuU0-7]", line)] == []


@pytest.mark.parametrize(
    "line",
    [
        "A=1\rrm -rf ~",
        "A=1\vrm -rf ~",
        "$'a\\\\'; rm -rf ~",
        "echo ${x:-`rm -rf ~`}",
        "echo ${x#$(rm -rf ~)}",
        "echo ${x%$(rm -rf ~)}",
        "echo ${x^^$(rm -rf ~)}",
        "r\\\nm -rf ~",
        "[[ 'a[$(rm -rf ~)]' -eq 0 ]]",
        "[[ -n <(rm -rf ~) ]]",
        "echo ${x:-<(rm -rf ~)}",
    ],
)
def test_what_bash_runs_behind_odd_quoting_is_found(line: str) -> None:
    assert classify_command(line, ROOT, context()).command_class is CommandClass.DANGEROUS


def test_an_empty_command_is_not_allowed() -> None:
    assert classify_command("ls ;; pwd", ROOT, context()).command_class is CommandClass.DANGEROUS
