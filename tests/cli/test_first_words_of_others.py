"""Command lines that people of other tools type first: the one that does it here is named, and nothing is sent."""

import pytest

from tests.cli.conftest import Command
from treadle.app.errors.exits import Exit

ON_THE_COMMAND_LINE = (
    ("--dangerously-skip-permissions", "--mode full runs everything without asking but what is dangerous"),
    ("--yolo", "--mode full"),
    ("--full-auto", "--mode auto runs commands without asking, in a sandbox"),
    ("--permission-mode plan", "--mode says how much runs without asking"),
    ("--prompt hello", "-p TASK does one task and exits"),
    ("--session x", "--resume SESSION (-r) continues a session"),
    ("--cwd x", "-C DIR says the folder to work in"),
    ("-r", "`treadle sessions` lists the sessions with their ids."),
    ("--resume", "`treadle sessions` lists the sessions with their ids."),
    ("-c", "For one task in a script: treadle -p"),
    ("-c -p go", "Start one with a task"),
    ("--continue -p go", "Start one with a task"),
    ("--print hello", "treadle login PROVIDER"),
    ("exec hello", "treadle -p TASK"),
    ("run hello", "treadle -p TASK"),
    ("resume", "treadle --resume ID"),
    ("continue", "treadle --continue"),
    ("init", "treadle -p /init"),
    ("upgrade", "treadle update"),
    ("chat", "treadle start"),
    ("permissions", "treadle policy show"),
    ("list", "treadle sessions"),
)
"""Words of a command line, and the line that says what does it."""


@pytest.mark.parametrize(("words", "shown"), ON_THE_COMMAND_LINE)
def test_a_command_line_of_another_tool_is_answered_with_ours(treadle: Command, words: str, shown: str) -> None:
    said = treadle(*words.split())
    assert said.code != Exit.DONE
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0].startswith("treadle: ")
    assert any(line.startswith("  fix: ") and shown in line for line in lines), said.err


def test_update_prints_the_commands_and_runs_nothing(treadle: Command) -> None:
    said = treadle("update")
    assert (said.code, "upgrade" in said.out or "update" in said.out) == (Exit.DONE, True)
