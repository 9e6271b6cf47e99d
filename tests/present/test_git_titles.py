"""The title of a question about a line of git says what git does, or that a command runs."""

import pytest

from treadle.present.git_titles import git_title
from treadle.protocol.permissions import Decision, Part, Reason, Verdict
from treadle.protocol.tools import Risk


def asked(*subcommands: str, risk: Risk = Risk.EXECUTE) -> Decision:
    parts = [
        Part(
            text=f"git {name}",
            verdict=Verdict.REQUIRE_USER_CONFIRMATION,
            risk=risk,
            reasons=(Reason(rule="git-write", text=f"git {name} changes the repository"),),
        )
        for name in subcommands
    ]
    return Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=risk, parts=tuple(parts))


@pytest.mark.parametrize(
    ("subcommands", "title"),
    [
        (("add", "commit"), "Stage and commit?"),
        (("add", "commit", "push"), "Stage, commit and push?"),
        (("commit", "commit"), "Commit?"),
        (("remote",), "Change remotes?"),
        (("stash",), "Change the stash?"),  # also of `git stash pop`
        (("switch", "cherry-pick"), "Switch branches and cherry-pick?"),
        (("update-index",), ""),
        (("notes",), ""),
        (("bundle",), ""),
        (("commit", "update-index"), ""),
        ((), ""),
    ],
)
def test_a_line_of_git_is_named_by_what_it_does(subcommands: tuple[str, ...], title: str) -> None:
    assert git_title(asked(*subcommands)) == title


def test_what_is_dangerous_is_a_command_that_is_shown() -> None:
    assert git_title(asked("commit", risk=Risk.CRITICAL)) == ""
