"""Throw-away copies of a workspace: a command changes its copy, and a person decides what becomes of that."""

from treadle.workspace.copies.choosing_changes import Hold, nothing_is_held
from treadle.workspace.copies.making import Copy, make_copy
from treadle.workspace.copies.outcome import (
    TakenBack,
    apply_changes,
    read_changes,
    recover_copies,
    throw_away,
)
from treadle.workspace.copies.probing import why_no_copy
from treadle.workspace.copies.running_copies import run_on_copy

__all__ = [
    "Copy",
    "Hold",
    "TakenBack",
    "apply_changes",
    "make_copy",
    "nothing_is_held",
    "read_changes",
    "recover_copies",
    "run_on_copy",
    "throw_away",
    "why_no_copy",
]
