"""Which control files a git command would bring into the working tree: asked of git before it runs.

In the sandbox they cannot be written, and git would stop half-way between two commits. What the command names is only
ever looked up as a revision, behind `--end-of-options`; all else is asked of the commits that were found.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.variables import EMPTY_TREE
from treadle.workspace.sandbox.reading_git import AskGit
from treadle.workspace.sandbox.survey import PathFilter

_CREATE = frozenset(("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan"))
_VALUED = frozenset(
    ("-s", "--strategy", "-X", "--strategy-option", "-m", "-F", "--file", "--message", "--conflict", "-x", "--exec")
)
_IN_PROGRESS = frozenset(("--abort", "--continue", "--skip", "--quit", "--edit-todo", "--show-current-patch"))
_BEFORE = {"--abort": "ORIG_HEAD"}


def control_files_changed_by(words: Sequence[str], ask: AskGit, *, is_held: PathFilter) -> tuple[str, ...]:
    """Give the paths, relative to the repository, that `is_held` names and that the command would write or remove.

    `words` are those of one plain `git` command. Where it names no commit, git itself stops before it changes anything.
    Raises `ToolError` where git cannot be asked, or does not know.
    """
    if len(words) < 2 or words[0] != "git":
        return ()
    found: dict[str, None] = {}
    for before, after, from_base in _compared(words[1], words[2:], ask):
        commits = [_commit(before, ask), _commit(after, ask)]
        if not all(commits):
            continue
        # Histories without a common commit have nothing since they parted: then all that differs is meant.
        ways = [["...".join(commits)], commits] if from_base else [commits]
        listed = next((said for way in ways if (said := _differing(way, ask)) is not None), None)
        if listed is None:
            raise ToolError(f"Git did not say which files {after} would change. Try again, or tell the user.")
        found |= dict.fromkeys(name for name in map(os.fsdecode, listed.split(b"\0")) if name and is_held(name))
    return tuple(found)


def _differing(compared: Sequence[str], ask: AskGit) -> bytes | None:
    return ask("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", *compared, "--")


def _commit(revision: str, ask: AskGit) -> str:
    """Look a revision up; empty where there is none, as where it begins like an option, which no revision does."""
    if revision == EMPTY_TREE or not revision or revision.startswith("-"):
        return revision if revision == EMPTY_TREE else ""
    return (ask("rev-parse", "--verify", "--quiet", "--end-of-options", revision) or b"").decode().strip()


def _compared(subcommand: str, words: Sequence[str], ask: AskGit) -> Iterator[tuple[str, str, bool]]:
    """Give pairs of revisions to be compared, and whether what the second changed since they parted is meant."""
    if _IN_PROGRESS & set(words):
        yield from (("HEAD", _BEFORE[word], False) for word in words if word in _BEFORE)
        return
    match subcommand:
        case "switch" | "checkout":
            yield from (("HEAD", revision, False) for revision in _switched_to(subcommand, words, ask))
        case "reset" if {"--hard", "--merge", "--keep"} & set(words):
            yield from (("HEAD", revision, False) for revision in _operands(words)[:1])
        case "merge" | "pull":
            revisions = _operands(words) if subcommand == "merge" else ["@{upstream}"]
            yield from (("HEAD", revision, True) for revision in revisions or ["@{upstream}"])
        case "rebase":
            onto = [after for word, after in pairwise(words) if word == "--onto"]
            revisions = _operands([word for word in words if word not in ("--onto", *onto)])
            yield ("HEAD", (onto or revisions or ["@{upstream}"])[0], False)
            yield from (("HEAD", branch, False) for branch in revisions[1:2])
        case "stash" if words[:1] in (["pop"], ["apply"], ("pop",), ("apply",)):
            entry = (_operands(words[1:]) or ["stash@{0}"])[0]
            entry = f"stash@{{{entry}}}" if entry.isdigit() else entry
            yield (f"{entry}^1", entry, False)
            yield (EMPTY_TREE, f"{entry}^3", False)
        case "cherry-pick" | "revert":
            yield from (_changed_in(revision) for revision in _operands(words))
        case _:
            return


def _changed_in(revision: str) -> tuple[str, str, bool]:
    """Give what is compared for one commit, or for a range of them."""
    since, dots, until = revision.partition("..")
    return (since or "HEAD", until.lstrip(".") or "HEAD", False) if dots else (f"{revision}^", revision, False)


def _switched_to(subcommand: str, words: Sequence[str], ask: AskGit) -> list[str]:
    """Give the revision that is switched to; none where files are named, or a branch begins at the present commit."""
    operands = _operands(words)
    if _CREATE & set(words):
        return operands[1:2]
    if subcommand == "checkout" and ("--" in words or "-p" in words or len(operands) > 1):
        return operands[:1] if "--" in words and operands and words.index("--") > words.index(operands[0]) else []
    named = ["@{-1}" if name == "-" else name for name in operands[:1]]
    if named and not _commit(f"{named[0]}^{{commit}}", ask):
        # A branch of a remote is made a branch of one's own by its bare name.
        wanted = f"refs/remotes/*/{named[0]}"
        remotes = ask("for-each-ref", "--format=%(refname)", "--end-of-options", wanted) or b""
        return remotes.decode(errors="surrogateescape").split()[:1]
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
