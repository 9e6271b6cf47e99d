"""Commits what a session changed with the person's own git, and hands it on: each line is shown before it runs."""

import os
import shlex
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.checkpoints.reviewing import FileToReview
from treadle.app.security.file_view import DiskView
from treadle.app.session.mentions.repository_state import git_answer, in_repository, programs_of_git
from treadle.app.slash.commit_digests import require_shown, shown_digest
from treadle.app.slash.pushing import HandingOn
from treadle.app.slash.shown_commands import GitRun, require_allowed, require_text, run_program
from treadle.policy.repository import surprising_settings
from treadle.present.figures import path_order
from treadle.protocol.errors import ConfigError
from treadle.workspace.commands.variables import find_outside
from treadle.workspace.files.names import shown_name

_LOOK_SECONDS = 10.0
_SUBJECTS = 8
_STATUS = (
    "status",
    "--porcelain=v1",
    "-z",
    "--untracked-files=all",
    "--no-renames",
    "--ignore-submodules=all",
    "--",
    ".",
)
_KINDS: Mapping[str, str] = MappingProxyType({"?": "added", "A": "added", "D": "deleted"})
_UNKNOWN = "??"
_BRANCH = ("symbolic-ref", "--quiet", "--short", "HEAD")
_REFERENCE = ("symbolic-ref", "--quiet", "HEAD")
_HEAD = ("rev-parse", "--verify", "--quiet", "HEAD")
_DIFFERS = ("diff", "--name-only", "--no-renames", "--ignore-submodules=all", "-z")
_STAGED = (*_DIFFERS, "--cached")
_LISTED = ("--pathspec-from-file=-", "--pathspec-file-nul")
_CONFLICTS = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})
_UNFINISHED: Mapping[str, str] = MappingProxyType(
    {"REBASE_HEAD": "rebase", "MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"}
)
"""What git keeps while it is in the middle of something; the first that is there names it."""


class CommitFile(Struct, frozen=True, kw_only=True):
    """A file that differs from the last commit, by its shown name from the session's folder.

    `own`: the session changed it since it began, by `figures` lines; `mixed`: others changed lines of it, too;
    `accepted`: a person has accepted each of its changes. `digest` is that of the file as it is listed here.
    """

    path: str
    kind: str
    own: bool
    mixed: bool = False
    accepted: bool = False
    figures: tuple[int, int] | None = None
    digest: str = ""


class LastCommit(Struct, frozen=True):
    """A commit that nothing has but the branch that is checked out: it can be replaced."""

    id: str
    message: str


class CommitPlan(Struct, frozen=True, kw_only=True):
    """What there is to commit, and on which branch, if any: `programs` are what the repository makes git run.

    `last` is the last commit, if it can be amended; `own` says that the files have changes of the session, committed or
    not.
    """

    branch: str
    files: tuple[CommitFile, ...]
    programs: tuple[str, ...]
    last: LastCommit | None = None
    own: bool = False


def plan_commit(
    root: str, changed: Sequence[FileToReview], accepted: Collection[str] = (), *, copied: str = ""
) -> CommitPlan:
    """Find what can be committed in a trusted folder of what the session `changed`, and beside it.

    `accepted` are the files of which a person accepted each change, `copied` is the folder that this one is a copy of,
    if any. Takes seconds at most; raises `ConfigError`.
    """
    own = {file.path: file for file in changed if file.own and file.root == 0}
    before = _before(root)
    files = [
        replace(_planned(shown_name(path), state, own, accepted), digest=shown_digest(root, path, before))
        for path, state in _status(root).items()
    ]
    return CommitPlan(
        branch=_asked(root, *_BRANCH),
        files=tuple(sorted(files, key=lambda file: (not file.own, path_order(file.path)))),
        programs=commit_programs(root),
        last=_last_commit(root, copied),
        own=bool(own),
    )


def _before(root: str) -> str:
    """Say to what a commit would be added: the branch and its last commit."""
    return f"{_asked(root, *_REFERENCE)} {_asked(root, *_HEAD)}"


def _last_commit(root: str, copied: str) -> LastCommit | None:
    """Give the last commit where it has one parent at most, and is known to be of the present branch alone.

    It is not where the folder that was `copied` has it, too.
    """
    commit, *parents = _asked(root, "rev-list", "--parents", "-n", "1", "HEAD").split() or [""]
    if not commit or len(parents) > 1:
        return None
    kinds = ("refs/heads", "refs/remotes", "refs/tags")
    holders = _asked(root, "for-each-ref", "--contains", commit, "--format=%(refname)", *kinds).split()
    if holders != [_asked(root, *_REFERENCE)] or (copied and _asked(copied, "cat-file", "-t", commit)):
        return None
    return LastCommit(commit, _asked(root, "log", "-1", "--format=%B", commit))


def commit_programs(root: str) -> tuple[str, ...]:
    """List what the repository makes git run when it commits, such as its hooks. Raises `ConfigError`."""
    return (*surprising_settings(root, DiskView()), *_hooks_in_folder(root))


def _hooks_in_folder(root: str) -> list[str]:
    """List hooks that the user's own settings look for in the repository itself: their folder is named relatively."""
    for scope in ("--global", "--system"):
        named = _asked(root, "config", scope, "--includes", "--type=path", "--get", "core.hooksPath")
        if not named:
            continue
        top = _asked(root, "rev-parse", "--show-toplevel")
        folder = Path(os.path.realpath(Path(top, named)))
        if not folder.is_relative_to(os.path.realpath(top)):
            return []
        with suppress(OSError):
            return [f"the hook {hook.relative_to(os.path.realpath(top))}" for hook in sorted(folder.iterdir())]
        return []
    return []


def last_subjects(root: str) -> tuple[str, ...]:
    """Give the subjects of the last commits. Raises `ConfigError`."""
    return tuple(_asked(root, "log", f"-{_SUBJECTS}", "--format=%s").splitlines())


def last_message(root: str) -> str:
    """Give the message of the last commit. Raises `ConfigError`."""
    return _asked(root, "log", "-1", "--format=%B")


def handing_on(root: str) -> HandingOn:
    """Find where the branch of a trusted folder goes, as git itself would. Raises `ConfigError`."""
    branch = _asked(root, *_BRANCH)
    follows = _asked(root, "config", f"branch.{branch}.remote")
    remotes = _asked(root, "remote").split("\n")
    named = (_asked(root, "config", f"branch.{branch}.pushRemote"), _asked(root, "config", "remote.pushDefault"))
    usual = "origin" if "origin" in remotes else remotes[0]
    remote = next((one for one in (*named, follows) if one in remotes), usual)
    leads = bool(branch and remote)
    ahead = _asked(root, "rev-list", "--count", "HEAD", "--not", f"--remotes={remote}") if leads else ""
    return HandingOn(
        branch=branch,
        remote=remote,
        tracked=bool(follows),
        requests=leads and bool(find_outside("gh", root)),
        ahead=int(ahead or 0),
    )


def _planned(path: str, state: str, own: Mapping[str, FileToReview], accepted: Collection[str]) -> CommitFile:
    kind = _KINDS.get(state.strip()[:1], "changed")
    if (file := own.get(path)) is None:
        return CommitFile(path=path, kind=kind, own=False)
    figures = (file.added, file.removed)
    return CommitFile(path=path, kind=kind, own=True, mixed=file.mixed, accepted=file.path in accepted, figures=figures)


def _status(root: str) -> dict[str, str]:
    """Give what differs from the last commit, named from the folder, with its two letters of git."""
    _require_git(root)
    entries = _entries(root, _STATUS)
    begun = [name for head, name in _UNFINISHED.items() if _asked(root, "rev-parse", "--verify", "--quiet", head)]
    prefix = _asked(root, "rev-parse", "--show-prefix")
    found: dict[str, str] = {}
    for entry in map(os.fsdecode, entries):
        state, path = entry[:2], entry[3:]
        if state in _CONFLICTS:
            whose = f" of a {begun[0]}" if begun else ""
            raise ConfigError(
                "commit-merge", f"{path} has a conflict{whose}.", fix="Settle it in a terminal or an editor."
            )
        if path.startswith(prefix):
            found[path.removeprefix(prefix)] = state
    if begun not in ([], ["rebase"]):  # a rebase alone waits for commits
        raise ConfigError(
            "commit-merge",
            f"A {begun[0]} is not finished here.",
            why="In the middle of it no commit of chosen files is made.",
            fix="Finish it in a terminal, or give it up there.",
        )
    return found


def _require_git(root: str) -> None:
    """Raise `ConfigError` where there is no repository, and where git is not to run in it, with what it has."""
    if not in_repository(root):
        raise ConfigError(
            "commit-git", "This folder is in no repository.", fix="The session's checkpoints keep its files."
        )
    if named := programs_of_git(root):
        raise ConfigError(
            "commit-git",
            "git does not run here: what the repository has could make it run a program.",
            why=f"It has {', '.join(named)}.",
            fix="Commit in a terminal. The session's checkpoints keep its files.",
        )


def _slow(arguments: Sequence[str]) -> ConfigError:
    return ConfigError(
        "commit-slow",
        f"git did not answer in {_LOOK_SECONDS:.0f} seconds: git {shlex.join(arguments)}",
        fix="Try again when the disk has less to do.",
    )


def _answer(root: str, arguments: Sequence[str]) -> bytes | None:
    """Give what git says, None where it says no. Raises `ConfigError` where it does not answer."""
    try:
        status, said = git_answer(root, arguments, seconds=_LOOK_SECONDS) or (None, b"")
    except subprocess.TimeoutExpired as error:
        raise _slow(arguments) from error
    return said if status == 0 else None


def _entries(root: str, arguments: Sequence[str]) -> list[bytes]:
    """Give what git lists with a zero after each. Raises `ConfigError`."""
    said = _answer(root, arguments)
    if said is None:
        raise ConfigError(
            "commit-git",
            "git gives no changes for this folder.",
            why="It may belong to another user, or be no repository that git can read.",
            fix="git status in a terminal says why. The session's checkpoints keep its files.",
        )
    return [entry for entry in said.split(b"\0") if entry]


def _asked(root: str, *arguments: str) -> str:
    """Give what git says as text, empty where it says nothing or no. Raises `ConfigError` where it does not answer."""
    return (_answer(root, arguments) or b"").decode(errors="replace").strip()


def commit_files(
    root: str,
    shown: Mapping[str, str],
    message: str,
    *,
    branch: str = "",
    amends: str = "",
    pass_on: Sequence[str] = (),
    copied: str = "",
) -> GitRun:
    """Commit all of each file on the branch or a new one; what is staged besides stays so.

    `shown` has the digests that the files were listed with, by their shown names. With `amends` the last commit, which
    has this id, is replaced by one that has them, too. Hooks run, with the variables of a session's commands, `pass_on`
    besides the usual ones; their failure is the commit's. Raises `ConfigError` where nothing is run, or nothing says
    what came of it.
    """
    if not message.strip():
        raise ConfigError("commit-message", "The commit has no message.", fix="Write one.")
    require_text(message, branch)
    status = _status(root)
    chosen = _chosen(status, shown, none=bool(amends))
    if amends:
        _require_last(root, amends, branch, copied)
    words = ("commit", *(("--amend",) if amends else ()))
    require_allowed(root, shlex.join(("git", *words)))
    require_shown(root, {path: shown[shown_name(path)] for path in chosen}, _before(root))
    reference, commit = _asked(root, *_REFERENCE), _asked(root, *_HEAD)
    own = _from_top(root, chosen)
    others = {*_entries(root, _STAGED)} - own
    git = partial(run_program, root, "git", pass_on=pass_on)
    if branch:
        switched = git(("switch", "--create", branch))
        if switched.status != 0:
            return switched
    new = _null_separated(path for path in chosen if status[path] == _UNKNOWN)
    made = git(("add", "--intent-to-add", *_LISTED), given=new) if new else None
    if made is None or made.status == 0:
        listed = _LISTED if chosen else ()
        made = git((*words, "--only", "--message", message.strip(), *listed), given=_null_separated(chosen))
    if made.status == 0 or _head_after(root, made) != commit:  # a hook took too long after it
        return replace(made, status=0, output=made.output + _unstage(root, git, (own, others), commit))
    if new:
        git(("reset", "--quiet", *_LISTED), given=new)
    back = ("symbolic-ref", "HEAD", reference) if reference else ("update-ref", "--no-deref", "HEAD", commit)
    if branch and git(back).status == 0:  # from the new branch, which has no commits; no file changes
        git(("branch", "--quiet", "-d", "--", branch))
    return made


def _chosen(status: Mapping[str, str], paths: Collection[str], *, none: bool) -> list[str]:
    """Give the files of these shown names that differ, at least one unless `none` will do. Raises `ConfigError`."""
    known = {shown_name(path): path for path in status}
    gone = [path for path in paths if path not in known]
    if gone or not (paths or none):
        what = f"{gone[0]} does not differ from the last commit any more." if gone else "No file is chosen."
        raise ConfigError("commit-gone", what, fix="Open the commit again, and choose its files.")
    return [known[path] for path in paths]


def _from_top(root: str, paths: Iterable[str]) -> set[bytes]:
    prefix = _asked(root, "rev-parse", "--show-prefix")
    return {os.fsencode(prefix + path) for path in paths}


def _unstage(root: str, git: Callable[..., GitRun], paths: tuple[set[bytes], set[bytes]], last: str) -> str:
    """Bring what is staged of a commit to it, the first on `last`; gives what is to be said, most often nothing.

    Git keeps it as it was before the hooks ran: what they put into the commit would be taken back by the next one. The
    `paths` are those that were chosen, and others that were staged, all from the top.
    """
    chosen, others = paths
    in_commit = (*_DIFFERS, last, "HEAD") if last else ("ls-tree", "-r", "--name-only", "--full-tree", "-z", "HEAD")
    try:
        left = ({*_entries(root, in_commit)} | chosen).intersection(_entries(root, _STAGED)) - others
        top = _asked(root, "rev-parse", "--show-cdup") or "."
        names = b"".join(path + b"\0" for path in left)
        done = git(("-C", top, "reset", "--quiet", *_LISTED), given=names) if left else None
    except ConfigError as unknown:
        return f"\n{unknown.what}"
    if done is None or done.status == 0:
        return ""
    return f"\nWhat hooks changed is in the commit, and is staged as it was before.\n{done.output}"


def _null_separated(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _require_last(root: str, commit: str, branch: str, copied: str) -> None:
    """Raise `ConfigError` unless a commit is the last one, and may be replaced where it is."""
    last = _last_commit(root, copied)
    if branch or last is None or last.id != commit:
        raise ConfigError(
            "commit-gone",
            "The last commit cannot be amended.",
            why="It is amended on its own branch."
            if branch
            else "Another branch, a remote, a tag or the folder of this copy has it, or it is another one.",
            fix="Open the commit again, and make a commit of its own.",
        )


def _head_after(root: str, made: GitRun) -> str:
    """Give the commit that is checked out after one that went wrong."""
    try:
        return _asked(root, *_HEAD)
    except ConfigError as slow:
        raise ConfigError(
            "commit-unknown",
            "Nothing says whether the commit was made.",
            why="\n".join(filter(None, (made.output, slow.what))),
            fix="Look with git log in a terminal.",
        ) from slow
