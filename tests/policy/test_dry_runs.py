"""What git only says it would do is no change, and nothing that looks like it is taken for it."""

import pytest

from tests.policy.views import context
from treadle.policy.classify import classify_command
from treadle.policy.findings import CommandClass
from treadle.protocol.permissions import Mode

DRY = [
    "git clean -n",
    "git clean -ndx",
    "git clean -fdn",
    "git clean --dry-run -fd src",
    "git add -n .",
    "git add --dry-run -A",
    "git rm -rn src",
    "git mv -n a b",
    "git prune -n",
    "git reflog expire --dry-run --all",
]
REAL = [
    "git clean -fd",
    "git clean -fd -en",
    "git clean -fd -e -n",
    "git clean -fd --exclude -n",
    "git clean -fd --dry-run --no-dry-run",
    "git clean -fd -- -n",
    'git clean -fd "$x" -n',
    "git clean -fd $x -n",
    "git rm -r src -- -n",
    "git prune --expire -n",
    "git reflog expire --expire -n --all",
    "git commit -m --dry-run",
    "git commit -n -m x",
    "git stash drop -n",
    "git reflog -n 1 --format=%G?",
    "git reflog show -n 1 --show-signature",
]


def class_of_line(line: str) -> CommandClass:
    found = context(Mode.ASK, confines=True)
    return classify_command(line, found.roots[0], found).command_class


@pytest.mark.parametrize("line", DRY)
def test_a_dry_run_reads(line: str) -> None:
    assert class_of_line(line) is CommandClass.READ_ONLY


@pytest.mark.parametrize("line", REAL)
def test_what_only_looks_like_a_dry_run_does_more_than_read(line: str) -> None:
    assert class_of_line(line) is not CommandClass.READ_ONLY
