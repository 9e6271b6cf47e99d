"""How a branch is handed on: pushed to its remote, and offered as a pull request."""

from msgspec import Struct


class HandingOn(Struct, frozen=True, kw_only=True):
    """Where a branch goes: `remote` is empty where there is none, and `tracked` says that it follows a branch already.

    `requests` says that a pull request can be opened: the program for it is there. `ahead` counts the commits that the
    remote does not have, as far as that is known here.
    """

    branch: str
    remote: str
    tracked: bool
    requests: bool
    ahead: int


def push_line(way: HandingOn) -> tuple[str, ...]:
    """Give the command that brings the branch to its remote; one that follows another branch goes on following it."""
    follow = () if way.tracked else ("--set-upstream",)
    return ("git", "push", *follow, "--", way.remote, way.branch)


def request_line(title: str, body: str, base: str, branch: str) -> tuple[str, ...]:
    """Give the command that opens a pull request."""
    into = ("--base", base) if base else ()
    return ("gh", "pr", "create", "--title", title, "--body", body, *into, "--head", branch)
