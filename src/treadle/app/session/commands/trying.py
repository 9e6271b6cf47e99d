"""Running a person's command on a throw-away copy of a folder, and applying what it changed if they say so."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from treadle.app.config.places import data_directory, outputs
from treadle.app.security.command_confinement import look_through, profile_of, why_held
from treadle.app.security.command_folders import CommandFolders
from treadle.app.security.trusting import session_trust
from treadle.app.session.commands.judging import policy_context
from treadle.present.trial_words import changes_of
from treadle.present.words import counted
from treadle.protocol.errors import ConfigError, ToolError
from treadle.protocol.permissions import Mode, Standing
from treadle.protocol.tools import Confinement, CopyChanges
from treadle.workspace.commands.retention import remove_ended_tries, try_folder
from treadle.workspace.commands.variables import child_variables
from treadle.workspace.copies import (
    Copy,
    Hold,
    apply_changes,
    make_copy,
    read_changes,
    recover_copies,
    run_on_copy,
    throw_away,
    why_no_copy,
)
from treadle.workspace.files.whole_folders import try_remove_tree
from treadle.workspace.sandbox import probe

_SHELL = "/bin/sh"


class Tried(Struct, frozen=True, kw_only=True):
    """How a command on a copy ended, what it changed, and whether that was applied; `problem` says why it was not."""

    status: int
    changes: CopyChanges
    applied: bool
    problem: str = ""


class TriedChange(Struct, frozen=True, kw_only=True):
    """One change as a program reads it: the path from the folder, and why it cannot be applied, if it cannot."""

    path: str
    kind: str
    held: str | None


class TriedRecord(Struct, frozen=True, kw_only=True):
    """The last line that `treadle try --json` prints: all of the changes are applied or none.

    `against` says, where they are not `whole`, why they cannot be.
    """

    changes: tuple[TriedChange, ...]
    applied: bool
    whole: bool
    against: tuple[str, ...] = ()


_NO_MORE: Mapping[str, str] = {}


def try_command(
    words: Sequence[str],
    folder: Path,
    *,
    apply: bool,
    out: Callable[[bytes], None],
    err: Callable[[bytes], None],
    variables: Mapping[str, str] = _NO_MORE,
) -> Tried:
    """Run a program, or one word as a shell line, on a copy of a folder (resolved), with `variables` besides the usual.

    Raises `ConfigError`.
    """
    data = data_directory()
    recover_copies(data)
    remove_ended_tries(outputs())
    private = try_folder(outputs())
    place = CommandFolders(root=str(folder), data=data, private=private)
    try:
        try:
            profile = profile_of(Confinement.LOOK, place, look_through(place), frozenset())
        except ToolError as error:
            raise _no_copy(folder, str(error)) from error
        trouble = why_no_copy(profile, probe(), data)
        if trouble:
            raise _no_copy(folder, f"{trouble[:1].upper()}{trouble[1:]}.")
        copy = make_copy(profile, probe(), data)
        try:
            given = {**child_variables(os.environ), **variables}
            run = partial(run_on_copy, copy, variables=given, out=out, err=err)
            return _run(copy, words, hold_in(str(folder)), apply=apply, run=run)
        finally:
            throw_away(copy)
    finally:
        try_remove_tree(private)


def _no_copy(folder: Path, why: str) -> ConfigError:
    return ConfigError(
        "copy-missing",
        f"No throw-away copy of {folder} can be made.",
        why=why,
        fix="Run the command without `treadle try`, or in a clone of the project.",
    )


def _run(
    copy: Copy, words: Sequence[str], hold: Hold, *, apply: bool, run: Callable[[Sequence[str]], tuple[int, str]]
) -> Tried:
    line = (_SHELL, "-c", *words) if len(words) == 1 else (_SHELL, "-c", 'exec "$@"', _SHELL, *words)
    status, printed = run(line)
    changes = read_changes(copy, hold, output=printed, failed=status != 0)
    nothing = not changes.changes and not changes.outputs
    if not apply or nothing or not changes.whole:
        return Tried(status=status, changes=changes, applied=False, problem=changes.trouble)
    try:
        apply_changes(copy, changes.digest, hold)
    except ToolError as error:
        return Tried(status=status, changes=changes, applied=False, problem=str(error))
    return Tried(status=status, changes=changes, applied=True)


def hold_in(root: str) -> Hold:
    """Say of a path why no command changes it: by the same check as that of the tools that edit files."""
    files = session_trust(Path(root)).hook_files
    context = policy_context(root, Standing(mode=Mode.ASK), trusted=True, hook_files=files)
    return partial(why_held, context=context)


def record_of(tried: Tried, folder: Path) -> TriedRecord:
    """Give what a program reads."""
    rows = tuple(
        TriedChange(path=os.path.relpath(change.path, folder), kind=change.kind.value, held=change.held or None)
        for change in tried.changes.changes
    )
    held = (f"{os.path.relpath(one.path, folder)}: {one.held}" for one in tried.changes.changes if one.held)
    against = (*held, *filter(None, (tried.changes.trouble,)))
    return TriedRecord(changes=rows, applied=tried.applied, whole=tried.changes.whole, against=against)


def describe_tried(tried: Tried, folder: Path, *, apply: bool) -> Iterator[str]:
    """Say for a person what a command changed in its copy and what became of that, in lines."""
    changes, outputs = tried.changes.changes, sum(one.files for one in tried.changes.outputs)
    if changes:
        yield f"The command made {counted(len(changes), 'change')} in its copy:"
    elif not outputs and not tried.changes.trouble:
        yield "The command changed nothing."
    yield from (f"  {line}" for line in changes_of(tried.changes, (str(folder),)))
    if tried.problem and tried.problem != tried.changes.trouble:
        yield tried.problem
    if tried.applied:
        ignored = f" and {counted(outputs, 'file')} that git ignores" if outputs else ""
        yield f"Applied {counted(len(changes), 'change')}{ignored}."
    elif not tried.changes.whole:
        yield "Nothing was applied. Run the command without `treadle try` to make these changes."
    elif (changes or outputs) and not apply:
        yield "Nothing was applied. To keep such changes: treadle try --apply -- COMMAND"
