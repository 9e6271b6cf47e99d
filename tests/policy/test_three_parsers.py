"""The own parser against the grammar against bash: a line that they see differently is never allowed."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.policy.views import ROOT, Record, context, labelled
from treadle.policy.classify import classify_command
from treadle.policy.decide import decide
from treadle.policy.findings import CommandClass
from treadle.policy.rules import Rule, Ruleset, Scope
from treadle.policy.shell.agreement import parsers_agree
from treadle.policy.shell.grammar import grammar_commands
from treadle.policy.shell.outline import command_names
from treadle.policy.shell.parse import parse
from treadle.policy.shell.syntax import ShellSyntaxError
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Risk, RunCommand, ToolSpec, ToolTraits

_LINES = Path(__file__).parent / "lines"
_SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)
_ANYTHING = Ruleset(rules=(Rule(id="any", verdict=Verdict.ALLOW, scope=Scope.SESSION, tool="execute_command"),))

_PIECES = (
    "ls", "cat a", "echo 'x'", 'echo "y"', ";", "&&", "||", "|", "&", "\n", " ", "$(pwd)", "`pwd`", "${HOME}", "(",
    ")", "{ ", "; }", "<<E\nx\nE\n",
    "<<<x", ">/dev/null", "2>&1", "\\\n", "'", '"', "$'a'", "#", "if true; then ", "; fi", "!",
    "[ -f a ]", "[[ -f a ]]", "{a,b}", "*", "~", "$((1+1))", ";;", "for i in a; do ", "; done", "A=1 ", "\\",
)  # fmt: skip


def _own(line: str) -> list[str] | None:
    try:
        return command_names(parse(line)[0])
    except ShellSyntaxError:
        return None


def _bash_accepts(lines: list[str]) -> list[bool]:
    """Ask bash about each line; `-n` reads and never runs. One process reads them all as here-documents would not."""
    return [
        subprocess.run(["bash", "-n"], input=line.encode(), capture_output=True, check=False).returncode == 0
        for line in lines
    ]


def _random_lines(count: int) -> list[str]:
    chooser = random.Random(3)
    return ["".join(chooser.choices(_PIECES, k=chooser.randrange(1, 7))) for _ in range(count)]


def test_a_line_that_the_parsers_see_differently_is_not_allowed(record_property: Record) -> None:
    lines = [*_random_lines(3000), *(case["command"] for case in labelled("commands.jsonl"))]
    allowed = [
        line for line in lines if classify_command(line, ROOT, context()).command_class is CommandClass.READ_ONLY
    ]
    differing = {line for line in lines if grammar_commands(line) != _own(line)}
    unasked = [line for line in allowed if line in differing]
    told = f"{len(lines)} lines, {len(differing)} read differently, {len(unasked)} of them run unasked"
    record_property("figure", f"parsers, own and grammar: {told}")
    assert allowed
    assert unasked == []


def _widest(line: str) -> Verdict:
    """Decide in the widest mode, with every class of risk approved and a rule that allows every command."""
    surroundings = context(mode=Mode.FULL, rules=_ANYTHING, approved=frozenset(Risk))
    return decide(_SHELL, {}, (RunCommand(command=line, cwd=ROOT),), surroundings).verdict


def test_a_line_that_the_parsers_see_differently_asks_whatever_the_mode_and_the_rules(record_property: Record) -> None:
    differing = [line for line in _random_lines(3000) if grammar_commands(line) != _own(line)]
    unasked = [line for line in differing if _widest(line) is Verdict.ALLOW]
    record_property("figure", f"parsers, widest mode: {len(differing)} read differently, {len(unasked)} run unasked")
    assert len(differing) > 50
    assert unasked == []


@pytest.mark.parametrize(
    "line",
    ["bash -c 'coproc ls'", "bash <<'E'\ncoproc ls\nE", "eval 'coproc ls'", "echo x | xargs sh -c 'coproc ls'"],
)
def test_a_script_in_a_string_that_the_parsers_see_differently_asks(line: str) -> None:
    assert _widest(line) is Verdict.REQUIRE_USER_CONFIRMATION


def test_what_ordinary_work_runs_is_seen_alike_and_keeps_its_permission() -> None:
    lines = [line.replace("⏎", "\n") for line in (_LINES / "ordinary.txt").read_text().splitlines()]
    assert [line for line in lines if not parsers_agree(line)] == []
    told = [
        reason.rule
        for line in lines
        for reason in decide(_SHELL, {}, (RunCommand(command=line, cwd=ROOT),), context(mode=Mode.FULL)).reasons
    ]
    assert "grammar" not in told


@pytest.mark.parametrize(
    "line",
    [
        "echo \"<<'A'\"\nrm -rf x\nA\ncat <> f",
        "# <<'A'\nrm -rf x\nA\ncat <> f",
        "cat <<'A' > x; cat <> f\ntext\nA",
        "cat <<'A' <<\"B\" <> f\n1\nA\n2\nB",
    ],
)
def test_a_here_document_excuses_nothing_but_its_own_text(line: str) -> None:
    assert not parsers_agree(line)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing")
def test_a_line_that_bash_refuses_is_not_allowed() -> None:
    lines = [
        line
        for line in _random_lines(600)
        if classify_command(line, ROOT, context()).command_class is CommandClass.READ_ONLY
    ]
    assert [line for line, accepted in zip(lines, _bash_accepts(lines), strict=True) if not accepted] == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing")
def test_a_line_that_bash_and_the_own_parser_see_differently_is_not_allowed(record_property: Record) -> None:
    lines = _random_lines(400)
    differing = [
        line
        for line, accepted in zip(lines, _bash_accepts(lines), strict=True)
        if accepted is not (_own(line) is not None)
    ]
    classes = [classify_command(line, ROOT, context()).command_class for line in differing]
    unasked = classes.count(CommandClass.READ_ONLY)
    told = f"{len(lines)} lines, {len(differing)} accepted by one only, {unasked} of them run unasked"
    record_property("figure", f"parsers, own and bash: {told}")
    assert unasked == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing")
def test_the_own_parser_accepts_what_bash_accepts_in_the_labelled_lines() -> None:
    lines = [case["command"] for case in labelled("commands.jsonl")][::4]
    assert [_own(line) is not None for line in lines] == _bash_accepts(lines)


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
    ],
)
def test_what_the_grammar_hides_is_found(line: str) -> None:
    assert classify_command(line, ROOT, context()).command_class is CommandClass.DANGEROUS


def test_what_the_grammar_wrongly_accepts_is_not_allowed() -> None:
    assert classify_command("ls ;; pwd", ROOT, context()).command_class is CommandClass.NEEDS_CONFIRMATION
