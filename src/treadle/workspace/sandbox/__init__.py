"""Running a command with fewer rights than its user has: by bubblewrap, or by Landlock in its place."""

from treadle.workspace.sandbox.backend import Backend, SandboxState, probe
from treadle.workspace.sandbox.denial import find_denial
from treadle.workspace.sandbox.profile import Limits, Profile, allow
from treadle.workspace.sandbox.protected import Surroundings, Survey, survey, usual_profile
from treadle.workspace.sandbox.wrap import prepare

__all__ = [
    "Backend",
    "Limits",
    "Profile",
    "SandboxState",
    "Surroundings",
    "Survey",
    "allow",
    "find_denial",
    "prepare",
    "probe",
    "survey",
    "usual_profile",
]
