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

_LONG = "[a-z-]*"
_VALUED = {
    "cherry-pick": f"-[^-mX]*[mX]|--(m|str|cl){_LONG}",
    "checkout": f"-[^-bB]*[bB]|--(con|or){_LONG}",
    "merge": f"-[^-msFX]*[msFX]|--(m|fi|str|cl|int){_LONG}",
    "rebase": f"-[^-sxXC]*[sxXC]|--(ex|str|o|emp|w){_LONG}",
    "switch": f"-[^-cC]*[cC]|--(con|or|cr|force-){_LONG}",
}
_VALUED |= {"pull": _VALUED["merge"], "revert": _VALUED["cherry-pick"]}
"""Options behind which a value stands, by subcommand. Git takes one that is cut short, too."""

_ONTO = re.compile(rf"--o{_LONG}(=(?P<value>.*))?", re.DOTALL)
_BEFORE_SUBCOMMAND = frozenset(
    ("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--attr-source", "--config-env", "--super-prefix")
)
_TAKES_COMMITS = frozenset(("switch", "checkout", "reset", "merge", "pull", "rebase", "stash", "cherry-pick", "revert"))
"""Subcommands of which it is looked up before they run which commits they take from."""

_BRINGS_NOTHING = frozenset(
    ("add", "commit", "mv", "push", "stage", "blame", "describe", "diff", "log", "ls-files", "merge-base", "show")
) | {"grep", "rev-list", "rev-parse", "shortlog", "status"}
"""Subcommands after which a name stands for the commit that it stood for before, or for one with the files as they are.
"""

_UNKNOWN = re.compile("[\0-\10]")
"""What words hold in the place of what is not known (`policy/marks.py`); no argument of a program has it."""

_FILLS_INDEX = frozenset(("am", "apply", "checkout-index", "read-tree", "reset", "restore", "update-index"))
"""Subcommands that put something else into the index than the files of the working tree, also from their input."""

_TAKES_FILES = frozenset(("add", "commit", "stage", "stash"))

_STEPS = re.compile(r"-[a-zA-Z]*[ix].*|--(exe|int|edi|con|ski).*", re.DOTALL)
_CONTINUES = re.compile(r"--(cont|resol|skip).*")
_ABORTS = re.compile(r"--abo.*")
_RESETS_FILES = re.compile(r"--(h|me|k).*")
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
    subcommand, rest = git_subcommand(words)
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
    return any(git_subcommand(words)[0] in _FILLS_INDEX for words in commands)


def takes_files_along(commands: Sequence[Sequence[str]]) -> bool:
    """Whether a line, by the words of its commands, may put files of the workspace into the index or a commit."""
    return any(git_subcommand(words)[0] in _TAKES_FILES for words in commands)


def is_known_only_as_it_runs(commands: Sequence[Sequence[str]]) -> bool:
    """Whether what a line of git brings is known only while it runs.

    So it is where a word is not known before, where one command commits what another one put into the index, and where
    one takes from a commit whose name another one may give away; in which order they run is not known, as of a loop.
    `commands` are the words of the line's commands.
    """
    calls = [git_subcommand(words) for words in commands if words[:1] in (("git",), ["git"])]
    if any(name not in _BRINGS_NOTHING and any(map(_UNKNOWN.search, (name, *rest))) for name, rest in calls):
        return True
    subcommands = [name for name, _ in calls]
    moving = [one for one in subcommands if one not in _BRINGS_NOTHING]
    fills = len(subcommands) > 1 and not _FILLS_INDEX.isdisjoint(subcommands)
    return fills or (len(moving) > 1 and not _TAKES_COMMITS.isdisjoint(moving))


def gives_steps(commands: Sequence[Sequence[str]]) -> bool:
    """Whether a line tells a rebase its steps, or goes on with them: those that run programs were asked about."""
    told = (git_subcommand(words) for words in commands)
    return any(name == "rebase" and any(map(_STEPS.fullmatch, rest)) for name, rest in told)


def git_subcommand(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Give the subcommand of a plain git command and the words behind it; empty where there is none."""
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
    if subcommand == "reset" and "--" not in words[:-1] and not any(map(_RESETS_FILES.fullmatch, words)):
        commit = _commit(f"{(_operands(subcommand, words) or ['HEAD'])[0]}^{{commit}}", ask)
        if commit and ask("merge-base", "--is-ancestor", commit, "HEAD") is None:
            yield commit


def _differing(compared: Sequence[str], ask: AskGit) -> bytes | None:
    return ask("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", *compared, "--")


def _commit(revision: str, ask: AskGit) -> str:
    """Look a revision up; empty where there is none, as where it begins like an option, which no revision does.

    Raises `ToolError` where it is not known before the command runs, as what a substitution gives is not.
    """
    if _UNKNOWN.search(revision):
        raise ToolError(
            "The command was not started: it is not known before it runs which commit git takes, and whether control "
            "files come with it. Name the commit."
        )
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
        case "reset" if any(map(_RESETS_FILES.fullmatch, words)):
            yield from (("HEAD", revision, False) for revision in _operands(subcommand, words)[:1])
        case "merge" | "pull":
            operands = _operands(subcommand, words)
            own = operands[operands.index(".") + 1 :] if "." in operands else []
            pulled = [word.lstrip("+").partition(":")[0] for word in own]
            revisions = operands if subcommand == "merge" else pulled
            yield from (("HEAD", revision, True) for revision in revisions or ["@{upstream}"])
        case "rebase":
            onto, revisions = _onto(words), _operands(subcommand, words)
            yield ("HEAD", (onto or revisions or ["@{upstream}"])[0], False)
            yield from (("HEAD", branch, False) for branch in revisions[1:2])
        case "stash" if "".join(words[:1]) in ("pop", "apply", "branch"):
            named = _operands(subcommand, words[1:])[words[0] == "branch" :]
            entry = (named or ["stash@{0}"])[0]
            entry = f"stash@{{{entry}}}" if entry.isdigit() else entry
            yield (f"{entry}^1", entry, False)
            yield (EMPTY_TREE, f"{entry}^3", False)
        case "cherry-pick" | "revert":
            yield from (_changed_in(revision) for revision in _operands(subcommand, words))
        case _:
            return


def _onto(words: Sequence[str]) -> list[str]:
    """Give what a rebase is told to go on from, whether it stands in one word with its option or behind it."""
    told = ((found, after) for word, after in pairwise((*words, "")) if (found := _ONTO.fullmatch(word)))
    return [after if found["value"] is None else found["value"] for found, after in told]


def _changed_in(revision: str) -> tuple[str, str, bool]:
    """Give what is compared for one commit, or for a range of them."""
    since, dots, until = revision.partition("..")
    return (since or "HEAD", until.lstrip(".") or "HEAD", False) if dots else (f"{revision}^", revision, False)


def _switched_to(subcommand: str, words: Sequence[str], ask: AskGit) -> list[str]:
    """Give the revision that is switched to; none where files are named, or a branch begins at the present commit."""
    operands = _operands(subcommand, words)
    if subcommand == "checkout" and ("--" in words or "-p" in words or len(operands) > 1):
        return operands[:1] if "--" in words else []
    named = operands[:1]
    if named and not _commit(f"{named[0]}^{{commit}}", ask):
        # A branch of a remote is made a branch of one's own by its bare name.
        wanted = f"refs/remotes/*/{named[0]}"
        remotes = ask("for-each-ref", "--format=%(refname)", "--end-of-options", wanted) or b""
        return remotes.decode(errors="surrogateescape").split()[:1]
    return named


def _operands(subcommand: str, words: Sequence[str]) -> list[str]:
    """Leave out options, too; `-` is the branch before this one."""
    told = ("@{-1}" if word == "-" else word for word in _without_values(subcommand, words))
    return [word for word in told if not word.startswith("-")]


def _without_values(subcommand: str, words: Sequence[str]) -> Iterator[str]:
    """Leave out the values of options, and what follows `--`."""
    valued = re.compile(_VALUED.get(subcommand, "(?!)"))
    takes_value = False
    for word in words:
        if word == "--":
            return
        if not takes_value:
            yield word
        takes_value = not takes_value and valued.fullmatch(word) is not None
