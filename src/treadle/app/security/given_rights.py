"""Which rights beyond its confinement a command is given: those to exactly what was named, and why not another."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from treadle.policy.classify import classify_command
from treadle.policy.decision_context import PolicyContext
from treadle.policy.marks import UNKNOWN
from treadle.policy.modes import paths_not_given
from treadle.protocol.opened_paths import NAME_IT, is_plain_folder
from treadle.protocol.tools import Confinement, Right, Rights, SandboxDenial
from treadle.workspace.sandbox import Profile, SandboxState, allow, find_denial
from treadle.workspace.sandbox.made_beforehand import OpenedPaths
from treadle.workspace.sandbox.outside import entries_of
from treadle.workspace.sandbox.profile import is_within

_HOST = 'needs: ["host"] for a run without the sandbox.'
_MAKE_FOLDERS = frozenset({("mkdir",), ("git", "clone"), ("git", "init"), ("git", "worktree")})


def give_rights(
    profile: Profile, granted: Sequence[SandboxDenial], opened: OpenedPaths, commands: Iterable[Sequence[str]] | None
) -> tuple[Profile, tuple[str, ...], list[str]]:
    """Give a profile the rights that were granted, with the paths made for it and why it lacks others; makes files.

    `commands` are those of the line: what one of them makes as a folder is one beforehand. Without it the user's own
    settings name the rights, and what they name is opened whatever lies there.
    """
    if commands is None:
        return _allow_named(profile, granted), (), []
    refused: list[str] = []
    missing: list[str] = []
    folders = set(_made_folders(commands, profile.cwd or profile.root))
    for right in granted:
        for target in (right.target, *right.also):
            path = os.path.normpath(target) if target.startswith("/") else target
            one = structs.replace(right, target=path, also=())
            names_path = right.right in (Right.READ, Right.WRITE)
            if names_path and (why := _why_not(path, profile)):
                refused.append(f"No right to {right.right} {path} was given: {why}. {NAME_IT}")
                continue
            if names_path and _opens_more(one, profile):
                continue
            if right.right is Right.WRITE and not profile.root_of(path) and not os.path.lexists(path):
                missing.append(path)
                folders.update([path] if target.endswith("/") else ())
            profile = allow(profile, one)
    folders.update(path for path in missing if any(is_within(other, path) for other in missing if other != path))
    outer = [path for path in missing if not any(is_within(path, other) for other in missing if other != path)]
    made: list[str] = []
    for path in outer:
        try:
            opened.make((path,), folders=folders)
        except OSError as error:
            refused.append(f"No right to write {path} was given: it cannot be made beforehand ({error.strerror}).")
            profile = replace(profile, writable=tuple(one for one in profile.writable if not is_within(one, path)))
        else:
            made.append(path)
    return profile, tuple(made), refused


def lines_not_given(line: str, rights: Rights, cwd: str, context: PolicyContext) -> list[str]:
    """Say which paths that a line names no right opens: it runs without them, whatever somebody said."""
    if rights.confinement is Confinement.OPEN:
        return []
    context = replace(context, confines=True, hidden=(context.home,))
    found = paths_not_given(classify_command(line, cwd, context).every, context)
    return [f"No right to {verb} {path} was given: {why}. {NAME_IT}" for (verb, path), why in found.items()]


def _allow_named(profile: Profile, granted: Sequence[SandboxDenial]) -> Profile:
    """Give what settings name, also beside them: a program of the user's may lie there. It is nothing of the data."""
    data, *_ = profile.own
    for right in granted:
        if not is_within(right.target, data) and not _opens_more(right, profile):
            profile = allow(profile, right)
    return profile


def _why_not(path: str, profile: Profile) -> str:
    """Say why a path is not opened: also where a link stands by now on the way to what was named.

    What the sandbox masks by its name may be a link, as /var/mail is.
    """
    if profile.root_of(path):
        return "it is Treadle's own" if any(is_within(path, place) for place in profile.own) else ""
    real = os.path.realpath(path)
    if why := profile.why_never_opened(path) or profile.why_never_opened(real):
        return why
    return "" if real == path or path in profile.masked else "a link is on the way to it"


def _made_folders(commands: Iterable[Sequence[str]], cwd: str) -> Iterator[str]:
    """Give the paths that commands make as folders, and words of theirs that are none."""
    for words in commands:
        if tuple(words[:1]) in _MAKE_FOLDERS or tuple(words[:2]) in _MAKE_FOLDERS:
            for word in words[1:]:
                if UNKNOWN in word:  # what a variable or a substitution gives is not known
                    continue
                yield os.path.realpath(Path(cwd, os.path.expanduser(word)))  # noqa: PTH111 - may be any text


def _opens_more(right: SandboxDenial, profile: Profile) -> bool:
    """Whether the sandbox could give a right only with a whole folder that it keeps, which nobody was asked about.

    What is there can be changed by itself; for something new its folder would have to be opened.
    """
    match right.right:
        case Right.READ:
            kept = profile.masked
        case Right.WRITE if not os.path.lexists(right.target):
            kept = profile.protected
        case _:
            return False
    return right.target not in kept and any(is_within(right.target, entry) for entry in kept)


def denial_in(output: str, *, profile: Profile, state: SandboxState) -> SandboxDenial | None:
    """Find what the sandbox stopped."""
    return None if state.backend is None else find_denial(output, profile, state.backend)


def why_no_right(denial: SandboxDenial, *, profile: Profile) -> str:
    """Say why nobody is asked to open what the sandbox stopped, with the way on; empty where somebody can be.

    A folder that is hidden and was to be made holds things that nobody named.
    """
    path = denial.target
    if denial.right not in (Right.READ, Right.WRITE) or not path:
        return ""
    why = _why_not(os.path.normpath(path), profile)
    if not why and denial.right is Right.WRITE and ".git" in path.split("/") and not profile.root_of(path):
        top = path[: f"{path}/".index("/.git/")]
        return f" It is git's, for {top}. Tell the user to start Treadle there, or ask with {_HOST}"
    hidden = any(is_within(path, folder) for folder in profile.hidden) and not profile.root_of(path)
    if not why and denial.right is Right.WRITE and hidden and Path(path).is_dir():
        why = "" if is_plain_folder(path, entries_of, kept=profile.kept) else "other things are in it"
    return f" No yes to that opens it: {why}. {NAME_IT}" if why else ""
