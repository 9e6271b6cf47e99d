"""Running a command with fewer rights than its user has: by bubblewrap, or by what the system has in its place."""

from treadle.workspace.sandbox.backend import Backend, SandboxState, differences, probe
from treadle.workspace.sandbox.denial import find_denial
from treadle.workspace.sandbox.made import MadeFiles, allow_made, recover_made
from treadle.workspace.sandbox.owned import Installer, tools_of
from treadle.workspace.sandbox.profile import CommandLimits, Profile, allow
from treadle.workspace.sandbox.reading_git import AskGit, GitReader
from treadle.workspace.sandbox.survey import Survey, Surveyor
from treadle.workspace.sandbox.switching import (
    control_files_changed_by,
    fills_index,
    gives_steps,
    is_known_only_as_it_runs,
    takes_files_along,
)
from treadle.workspace.sandbox.tracked import Committed
from treadle.workspace.sandbox.usual import Surroundings, open_steps, profile_for, repositories_of, repository_parts
from treadle.workspace.sandbox.wrap import prepare

__all__ = [
    "AskGit",
    "Backend",
    "CommandLimits",
    "Committed",
    "GitReader",
    "Installer",
    "MadeFiles",
    "Profile",
    "SandboxState",
    "Surroundings",
    "Survey",
    "Surveyor",
    "allow",
    "allow_made",
    "control_files_changed_by",
    "differences",
    "fills_index",
    "find_denial",
    "gives_steps",
    "is_known_only_as_it_runs",
    "open_steps",
    "prepare",
    "probe",
    "profile_for",
    "recover_made",
    "repositories_of",
    "repository_parts",
    "takes_files_along",
    "tools_of",
]
