"""What a question calls a line of git: by the verbs of git, such as `Stage and commit?`."""

from treadle.protocol.patterns import regex
from treadle.protocol.permissions import Decision, Reason, Verdict
from treadle.protocol.tools import Risk

_GIT_WRITE = regex(r"git ([a-z-]+) changes the repository$")
_VERBS = frozenset(
    [
        "cherry-pick",
        "clean",
        "clone",
        "commit",
        "fetch",
        "merge",
        "pull",
        "push",
        "rebase",
        "reset",
        "restore",
        "revert",
        "tag",
    ]
)
_TITLES = {
    **{verb: verb for verb in _VERBS},
    "add": "stage",
    "branch": "change branches",
    "checkout": "check out",
    "config": "change git's settings",
    "init": "create a repository",
    "mv": "move in git",
    "remote": "change remotes",
    "rm": "remove from git",
    "stash": "change the stash",
    "submodule": "change submodules",
    "switch": "switch branches",
    "worktree": "change worktrees",
}
"""What a subcommand does, in words for a title. Any other one has no title: its name says too little."""


def git_title(decision: Decision | None) -> str:
    """Name a line by the verbs of git where it does nothing else that asks; empty where that says too little."""
    asks = [part for part in decision.parts if part.verdict is not Verdict.ALLOW] if decision is not None else []
    verbs: list[str] = []
    for part in asks:
        found = next((verb for reason in part.reasons if (verb := _verb(reason))), "")
        if found not in _TITLES or part.risk is Risk.CRITICAL:
            return ""
        verbs.append(_TITLES[found])
    named = list(dict.fromkeys(verbs))
    said = " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:])))
    return f"{said.capitalize()}?" if said else ""


def _verb(reason: Reason) -> str:
    """Give the subcommand of git that the policy has read from the words of a part; no other rule names one."""
    found = _GIT_WRITE.match(reason.text) if reason.rule == "git-write" else None
    return "" if found is None else found[1]
