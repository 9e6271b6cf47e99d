"""Which control files a git command would bring into the working tree: asked of git before it runs.

In the sandbox they cannot be written, and git would stop half-way between two commits.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

from treadle.workspace.sandbox.survey import PathFilter
from treadle.workspace.sandbox.tracked import run_git

_CREATE = frozenset(("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan"))
_VALUED = frozenset(
    ("-s", "--strategy", "-X", "--strategy-option", "-m", "-F", "--file", "--message", "--conflict", "-x", "--exec")
)
_IN_PROGRESS = frozenset(("--abort", "--continue", "--skip", "--quit", "--edit-todo", "--show-current-patch"))
_BEFORE = {"--abort": "ORIG_HEAD"}


def control_files_changed_by(root: str, words: Sequence[str], *, is_held: PathFilter) -> tuple[str, ...]:
    """Give the paths, relative to the repository, that `is_held` names and that the command would write or remove.

    `words` are those of one plain `git` command with literal revisions. Git is asked outside of the sandbox, hardened,
    for two seconds at most; what it cannot tell is left out.
    """
    if len(words) < 2 or words[0] != "git":
        return ()
    found: dict[str, None] = {}
    for compared in _compared(root, words[1], words[2:]):
        listed = run_git(root, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", *compared, "--")
        found |= dict.fromkeys(name for name in map(os.fsdecode, listed.split(b"\0")) if name and is_held(name))
    return tuple(found)


def _compared(root: str, subcommand: str, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Give what is to be compared: two revisions, or one range."""
    if _IN_PROGRESS & set(words):
        yield from (("HEAD", _BEFORE[word]) for word in words if word in _BEFORE)
        return
    match subcommand:
        case "switch" | "checkout":
            yield from (("HEAD", revision) for revision in _switched_to(root, subcommand, words))
        case "reset" if {"--hard", "--merge", "--keep"} & set(words):
            yield from (("HEAD", revision) for revision in _operands(words)[:1])
        case "merge" | "pull":
            revisions = _operands(words) if subcommand == "merge" else ["@{upstream}"]
            yield from ((f"HEAD...{revision}",) for revision in revisions or ["@{upstream}"])
        case "rebase":
            onto = [after for word, after in pairwise(words) if word == "--onto"]
            revisions = _operands([word for word in words if word not in ("--onto", *onto)])
            yield ("HEAD", (onto or revisions or ["@{upstream}"])[0])
            yield from (("HEAD", branch) for branch in revisions[1:2])
        case "stash" if words[:1] in (["pop"], ["apply"], ("pop",), ("apply",)):
            entry = (_operands(words[1:]) or ["stash@{0}"])[0]
            entry = f"stash@{{{entry}}}" if entry.isdigit() else entry
            yield (f"{entry}^1", entry)
            yield (_EMPTY_TREE, f"{entry}^3")
        case "cherry-pick" | "revert":
            yield from ((f"{revision}^", revision) for revision in _operands(words))
        case _:
            return


_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def _switched_to(root: str, subcommand: str, words: Sequence[str]) -> list[str]:
    """Give the revision that is switched to; none where files are named, or a branch begins at the present commit."""
    operands = _operands(words)
    if _CREATE & set(words):
        return operands[1:2]
    if subcommand == "checkout" and ("--" in words or "-p" in words or len(operands) > 1):
        return operands[:1] if "--" in words and operands and words.index("--") > words.index(operands[0]) else []
    named = ["@{-1}" if name == "-" else name for name in operands[:1]]
    if named and not run_git(root, "rev-parse", "--verify", "--quiet", f"{named[0]}^{{commit}}"):
        # A branch of a remote is made a branch of one's own by its bare name.
        remotes = run_git(root, "for-each-ref", "--format=%(refname)", f"refs/remotes/*/{named[0]}").decode().split()
        return remotes[:1]
    return named


def _operands(words: Sequence[str]) -> list[str]:
    """Leave out options and their values, and what follows `--`."""
    found: list[str] = []
    takes_value = False
    for word in words:
        if word == "--":
            break
        if takes_value or (word.startswith("-") and word != "-"):
            takes_value = not takes_value and word in _VALUED
            continue
        found.append(word)
    return found
