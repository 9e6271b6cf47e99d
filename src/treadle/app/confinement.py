"""Which sandbox a command gets: none where a person is asked, the usual one in auto, a read-only one in plan."""

import os
from dataclasses import replace
from pathlib import Path

from treadle.policy.names import control_name, secret_name
from treadle.protocol.permissions import Mode
from treadle.workspace.sandbox import Profile, Surroundings, prepare, probe, survey, usual_profile
from treadle.workspace.wrapping import PLAIN, Wrapping

_CONFINED = frozenset({Mode.AUTO, Mode.PLAN})


def confines(mode: Mode) -> bool:
    """Whether commands of this mode run in a sandbox here; tries out once what there is."""
    return mode in _CONFINED and probe().backend is not None


def confine(mode: Mode, root: str, data: Path, private: Path) -> Wrapping:
    """Give what goes around a command of this mode; looks at the disk. Raises `ToolError`."""
    if not confines(mode):
        return PLAIN
    profile = _profile(root, data, private)
    return prepare(replace(profile, change_root=mode is Mode.AUTO), probe())


def _profile(root: str, data: Path, private: Path) -> Profile:
    private.mkdir(parents=True, exist_ok=True, mode=0o700)
    (data / "locks").mkdir(parents=True, exist_ok=True, mode=0o700)
    around = Surroundings(home=str(Path.home()), data=str(data), private=str(private), variables=os.environ)
    found = survey(
        root,
        is_control=lambda path: control_name(path) is not None,
        is_secret=lambda path: secret_name(path) is not None,
    )
    return usual_profile(root, around, found)
