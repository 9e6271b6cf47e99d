"""A file that no checkpoint can hold is not emptied or replaced without a question, in whatever way a line does it."""

from dataclasses import replace

import pytest

from tests.policy.views import ROOT, context
from treadle.policy.decide import decide
from treadle.policy.decision_context import PolicyContext
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import RunCommand
from treadle.tools.declarations import EXECUTE_COMMAND

LOSES = [
    "> big",
    "echo x > big",
    "echo x >| ./big",
    "make &> big",
    "python3 a.py 2> big",
    "cat a | tee big",
    "cp /dev/null big",
    "cp a big",
    "cp sub/big .",
    "mv a big",
    "mv sub/big .",
    "ln -f a big",
    "install a big",
    "rsync a big",
    "truncate -s 0 big",
    "sort -o big a",
    "sort --output=big a",
    "dd if=/dev/zero of=big count=1",
    "cd sub && cat ../a > ../big",
    "sh -c 'echo > big'",
]
KEEPS = [
    "echo x >> big",
    "cat a | tee -a big",
    "truncate -s +10 big",
    "cat big > a",
    "cp big a",
    "sort -o a big",
    "python3 big",
    "python3 a.py < big",
]


def at(mode: Mode, *, confines: bool = True) -> PolicyContext:
    found = context(mode, confines=confines)
    return replace(found, overwritten=lambda path: path == f"{ROOT}/big")


def verdict(line: str, where: PolicyContext) -> tuple[Verdict, bool]:
    decision = decide(EXECUTE_COMMAND, {}, (RunCommand(command=line, cwd=ROOT),), where)
    return decision.verdict, any(reason.rule == "data-loss" for reason in decision.reasons)


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.EDITS, Mode.AUTO, Mode.FULL])
@pytest.mark.parametrize("line", LOSES)
def test_what_is_lost_asks_in_every_mode(line: str, mode: Mode) -> None:
    assert verdict(line, at(mode)) == (Verdict.REQUIRE_USER_CONFIRMATION, True)


@pytest.mark.parametrize("line", KEEPS)
def test_what_stays_is_not_asked_about(line: str) -> None:
    assert verdict(line, at(Mode.AUTO))[1] is False


@pytest.mark.parametrize("line", LOSES)
def test_a_file_that_a_checkpoint_holds_is_not_asked_about(line: str) -> None:
    assert verdict(line, context(Mode.AUTO, confines=True))[1] is False


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.AUTO, Mode.FULL])
@pytest.mark.parametrize("line", ["git fetch . +other:main", "git fetch -f . other:main", "git pull . +other:main"])
def test_a_fetch_that_rewrites_a_branch_asks_as_its_other_spellings_do(line: str, mode: Mode) -> None:
    assert verdict(line, at(mode))[0] is Verdict.REQUIRE_USER_CONFIRMATION


def test_a_fetch_into_the_branches_of_a_remote_does_not_ask_in_full() -> None:
    line = "git fetch origin +refs/heads/main:refs/remotes/origin/main"
    assert verdict(line, at(Mode.FULL))[0] is Verdict.ALLOW
