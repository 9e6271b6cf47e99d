"""Which control files a git command would bring into the working tree, or into the history: asked before it runs.

In the sandbox they cannot be written, and git would stop half-way between two commits. In the history they would be
written by whoever takes the files from there next; what is on the disk as it is committed was written before.
What the command names is only ever looked up as a revision, behind `--end-of-options`; all else is asked of the commits
that were found.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.variables import EMPTY_TREE
from treadle.workspace.sandbox.reading_git import AskGit
from treadle.workspace.sandbox.survey import PathFilter

_CREATE = frozenset(("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan"))
_VALUED = {
    "cherry-pick": ("mX", ("--mainline", "--strategy", "--strategy-option", "--cleanup")),
    "checkout": ("", ("--conflict",)),
    "merge": ("msFX", ("--message", "--file", "--strategy", "--strategy-option", "--cleanup", "--into-name")),
    "rebase": ("sxX", ("--exec", "--strategy", "--strategy-option")),
}
_VALUED |= {"pull": _VALUED["merge"], "revert": _VALUED["cherry-pick"], "switch": _VALUED["checkout"]}
"""The letters and names of options behind which a value stands, by subcommand."""

_BEFORE_SUBCOMMAND = frozenset(("-c", "-C"))
_FILLS_INDEX = frozenset(("am", "apply", "checkout-index", "read-tree", "reset", "restore", "update-index"))
"""Subcommands that put something else into the index than the files of the working tree, also from their input."""

_TAKES_FILES = frozenset(("add", "commit", "stage", "stash"))

_STEPS = re.compile(r"-[a-zA-Z]*[ix].*|--(exe|int|edi|con|ski).*", re.DOTALL)
_CONTINUES = re.compile(r"--(cont|resol|skip).*")
_ABORTS = re.compile(r"--abo.*")
_IN_PROGRESS = re.compile(rf"{_ABORTS.pattern}|{_CONTINUES.pattern}|--(quit|edit-todo|show-current-patch).*")
"""Git takes an option that is cut short, too."""


def _is_old(_path: str) -> bool:
    return False


def control_files_changed_by(
    words: Sequence[str], ask: AskGit, *, is_held: PathFilter, is_new: PathFilter = _is_old
) -> tuple[str, ...]:
    """Give the paths, relative to the repository, that `is_held` names and that the command would write or remove.

    A file that `is_new` stands for no path of a commit: a command that has not ended made it, and it does not stay.
    `words` are those of one plain `git` command. Where it names no commit, git itself stops before it changes anything.
    Raises `ToolError` where git cannot be asked, or does not know.
    """
    subcommand, rest = _subcommand(words)
    found: dict[str, None] = {}
    for before, after, from_base in _compared(subcommand, rest, ask):
        commits = [_commit(before, ask), _commit(after, ask)]
        if not all(commits):
            continue
        # Histories without a common commit have nothing since they parted: then all that differs is meant.
        ways = [["...".join(commits)], commits] if from_base else [commits]
        found |= dict.fromkeys(_held_in(ways, f"which files {after} would change", ask, is_held))
    if subcommand in ("commit", "am") or any(map(_CONTINUES.match, rest)):
        found |= dict.fromkeys(staged_only(ask, is_held, is_new))
    for commit in _moved_to(subcommand, rest, ask):
        found |= dict.fromkeys(_only_committed(["HEAD", commit], [commit], ask, is_held, is_new))
    return tuple(found)


def staged_only(ask: AskGit, is_held: PathFilter, is_new: PathFilter = _is_old) -> list[str]:
    """Give the held paths that the next commit would change, and not to what the file of that name holds.

    Raises `ToolError`.
    """
    return _only_committed(["--cached"], [], ask, is_held, is_new)


def fills_index(commands: Sequence[Sequence[str]]) -> bool:
    """Whether a line, by the words of its commands, puts something else into the index than files of the workspace."""
    return any(_subcommand(words)[0] in _FILLS_INDEX for words in commands)


def takes_files_along(commands: Sequence[Sequence[str]]) -> bool:
    """Whether a line, by the words of its commands, may put files of the workspace into the index or a commit."""
    return any(_subcommand(words)[0] in _TAKES_FILES for words in commands)


def commits_what_it_fills_in(commands: Sequence[Sequence[str]]) -> bool:
    """Whether a line puts something into the index and goes on with git: what that commits is known only between them.

    `commands` are the words of the line's commands.
    """
    subcommands = [_subcommand(words)[0] for words in commands if words[:1] in (("git",), ["git"])]
    return any(one in _FILLS_INDEX for one in subcommands[:-1])


def gives_steps(commands: Sequence[Sequence[str]]) -> bool:
    """Whether a line tells a rebase its steps, or goes on with them: those that run programs were asked about."""
    told = (_subcommand(words) for words in commands)
    return any(name == "rebase" and any(map(_STEPS.fullmatch, rest)) for name, rest in told)


def _subcommand(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Give the subcommand of a plain git command and its words; empty where there is none."""
    takes_value = False
    for place, word in enumerate(words[1:] if words[:1] in (("git",), ["git"]) else (), 2):
        if not takes_value and not word.startswith("-"):
            return word, words[place:]
        takes_value = not takes_value and word in _BEFORE_SUBCOMMAND
    return "", ()


def _held_in(ways: Sequence[Sequence[str]], what: str, ask: AskGit, is_held: PathFilter) -> list[str]:
    """Give the held paths that differ by the first way of comparing that git knows. Raises `ToolError`."""
    listed = next((said for way in ways if (said := _differing(way, ask)) is not None), None)
    if listed is None and ask("rev-parse", "--git-dir") is None:
        return []  # there is no repository yet
    if listed is None:
        raise ToolError(f"Git did not say {what}. Try again, or tell the user.")
    return [name for name in map(os.fsdecode, listed.split(b"\0")) if name and is_held(name)]


def _only_committed(  # noqa: PLR0917 - what is compared, and by whom
    new: Sequence[str], on_disk: Sequence[str], ask: AskGit, is_held: PathFilter, is_new: PathFilter
) -> list[str]:
    """Give the held paths that differ as `new` says, and of which the working tree has no text of before that is so."""
    what = "which control files would come into the history"
    changed = _held_in([new], what, ask, is_held)
    beside = set(_held_in([on_disk], what, ask, is_held)) if changed else set[str]()
    return [name for name in changed if name in beside or is_new(name)]


def _moved_to(subcommand: str, words: Sequence[str], ask: AskGit) -> Iterator[str]:
    """Give the commit that a branch is moved to without its files; none that is in its history already."""
    if subcommand == "reset" and "--" not in words and not {"--hard", "--merge", "--keep"} & set(words):
        commit = _commit(f"{(_operands(subcommand, words) or ['HEAD'])[0]}^{{commit}}", ask)
        if commit and ask("merge-base", "--is-ancestor", commit, "HEAD") is None:
            yield commit


def _differing(compared: Sequence[str], ask: AskGit) -> bytes | None:
    return ask("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", *compared, "--")


def _commit(revision: str, ask: AskGit) -> str:
    """Look a revision up; empty where there is none, as where it begins like an option, which no revision does."""
    if revision == EMPTY_TREE or not revision or revision.startswith("-"):
        return revision if revision == EMPTY_TREE else ""
    return (ask("rev-parse", "--verify", "--quiet", "--end-of-options", revision) or b"").decode().strip()


def _compared(subcommand: str, words: Sequence[str], ask: AskGit) -> Iterator[tuple[str, str, bool]]:
    """Give pairs of revisions to be compared, and whether what the second changed since they parted is meant."""
    told = list(_without_values(subcommand, words))
    if any(map(_IN_PROGRESS.fullmatch, told)):
        yield from (("HEAD", "ORIG_HEAD", False) for word in told if _ABORTS.fullmatch(word))
        return
    match subcommand:
        case "switch" | "checkout":
            yield from (("HEAD", revision, False) for revision in _switched_to(subcommand, words, ask))
        case "reset" if {"--hard", "--merge", "--keep"} & set(words):
            yield from (("HEAD", revision, False) for revision in _operands(subcommand, words)[:1])
        case "merge" | "pull":
            operands = _operands(subcommand, words)
            revisions = operands if subcommand == "merge" else operands[1:] if operands[:1] == ["."] else []
            yield from (("HEAD", revision, True) for revision in revisions or ["@{upstream}"])
        case "rebase":
            onto = [after for word, after in pairwise(words) if word == "--onto"]
            revisions = _operands(subcommand, [word for word in words if word not in ("--onto", *onto)])
            yield ("HEAD", (onto or revisions or ["@{upstream}"])[0], False)
            yield from (("HEAD", branch, False) for branch in revisions[1:2])
        case "stash" if words[:1] in (["pop"], ["apply"], ("pop",), ("apply",)):
            entry = (_operands(subcommand, words[1:]) or ["stash@{0}"])[0]
            entry = f"stash@{{{entry}}}" if entry.isdigit() else entry
            yield (f"{entry}^1", entry, False)
            yield (EMPTY_TREE, f"{entry}^3", False)
        case "cherry-pick" | "revert":
            yield from (_changed_in(revision) for revision in _operands(subcommand, words))
        case _:
            return


def _changed_in(revision: str) -> tuple[str, str, bool]:
    """Give what is compared for one commit, or for a range of them."""
    since, dots, until = revision.partition("..")
    return (since or "HEAD", until.lstrip(".") or "HEAD", False) if dots else (f"{revision}^", revision, False)


def _switched_to(subcommand: str, words: Sequence[str], ask: AskGit) -> list[str]:
    """Give the revision that is switched to; none where files are named, or a branch begins at the present commit."""
    operands = _operands(subcommand, words)
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


def _operands(subcommand: str, words: Sequence[str]) -> list[str]:
    return [word for word in _without_values(subcommand, words) if word == "-" or not word.startswith("-")]


def _without_values(subcommand: str, words: Sequence[str]) -> Iterator[str]:
    """Leave out the values of options, and what follows `--`."""
    letters, names = _VALUED.get(subcommand, ("", ()))
    clusters = re.compile(f"-[^-{letters}]*[{letters}]" if letters else "(?!)")
    takes_value = False
    for word in words:
        if word == "--":
            return
        if not takes_value:
            yield word
        takes_value = not takes_value and (word in names or clusters.fullmatch(word) is not None)
