"""Running a command with fewer rights than its user has: by bubblewrap, or by Landlock in its place."""

from treadle.workspace.sandbox.denial import Denial, find_denial
from treadle.workspace.sandbox.probe import Backend, SandboxState, probe
from treadle.workspace.sandbox.profile import Limits, Profile, Right, RightKind, allow
from treadle.workspace.sandbox.protected import HOME_SECRETS, Survey, covered_names, survey
from treadle.workspace.sandbox.wrap import prepare

__all__ = [
    "HOME_SECRETS",
    "Backend",
    "Denial",
    "Limits",
    "Profile",
    "Right",
    "RightKind",
    "SandboxState",
    "Survey",
    "allow",
    "covered_names",
    "find_denial",
    "prepare",
    "probe",
    "survey",
]
