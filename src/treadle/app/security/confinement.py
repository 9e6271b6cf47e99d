"""How a command is run: in which sandbox, with which right that a person granted, and how hardened its git is."""

import os
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from treadle.policy.classify import only_reads
from treadle.policy.context import PolicyContext
from treadle.policy.name_lists import SECRET_DIRECTORIES, SECRET_SEQUENCES
from treadle.policy.names import control_name, secret_name
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Confinement, Right, Rights, SandboxDenial
from treadle.workspace.confinement import Setup
from treadle.workspace.sandbox import (
    Profile,
    SandboxState,
    Surroundings,
    Survey,
    allow,
    find_denial,
    prepare,
    probe,
    survey,
    usual_profile,
)
from treadle.workspace.sandbox.profile import is_within
from treadle.workspace.variables import HARDENED_GIT
from treadle.workspace.wrapping import PLAIN, Wrapping

_MOST_NAMES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the commands of a session run: `data` is Treadle's own folder, `private` the session's in there.

    `roots` are further folders of the workspace at `root`.
    """

    root: str
    roots: tuple[str, ...] = ()
    data: Path
    private: Path


def confine(line: str, rights: Rights, place: Place, context: PolicyContext) -> Setup:
    """Set up the run of a line under its rights, whatever the mode is by now; looks at the disk. Raises `ToolError`."""
    hardened = not context.trusted or only_reads(line, place.root, context)
    variables = HARDENED_GIT if hardened else {}
    if rights.confinement is Confinement.OPEN:
        return Setup(variables=variables)
    profile = _profile_for(rights.confinement, place)
    for right in rights.granted:
        if not is_within(right.target, str(place.data)) and not _opens_more(right, profile):
            profile = allow(profile, right)
    return Setup(prepare(profile, probe()), variables, partial(_denial, profile, probe(), place.data))


def _profile_for(confinement: Confinement, place: Place) -> Profile:
    profile = replace(workspace_profile(place), change_root=confinement is not Confinement.LOOK)
    if confinement is not Confinement.GIT:
        return profile
    whole = [f"{root}/.git/" for root in profile.folders]
    kept = [f"{folder}{name}" for folder in whole for name in ("hooks/", "config", "config.worktree", "info/")]
    return replace(profile, protected=(*(path for path in profile.protected if path not in whole), *kept))


def _opens_more(right: SandboxDenial, profile: Profile) -> bool:
    """Whether the sandbox could give a right only with a whole folder that it keeps, which nobody was asked about."""
    match right.right:
        case Right.READ:
            kept = profile.masked
        case Right.WRITE:
            kept = tuple(entry.rstrip("/") for entry in profile.protected)
        case _:
            return False
    return right.target not in kept and any(is_within(right.target, entry) for entry in kept)


def confine_server(mode: Mode, place: Place) -> Wrapping:
    """Give what goes around a program that stays while commands come and go; it changes nothing in the workspace.

    Looks at the disk. Raises `ToolError`.
    """
    if mode is Mode.FULL or probe().backend is None:
        return PLAIN
    return prepare(_profile_for(Confinement.LOOK, place), probe())


def _denial(profile: Profile, state: SandboxState, data: Path, output: str) -> SandboxDenial | None:
    """Find what the sandbox stopped; what is Treadle's own is never opened."""
    if state.backend is None:
        return None
    denial = find_denial(output, profile, state.backend)
    return None if denial is not None and is_within(denial.target, str(data)) else denial


def workspace_profile(place: Place) -> Profile:
    """Build the profile of commands that change the workspace; looks at the disk."""
    place.private.mkdir(parents=True, exist_ok=True, mode=0o700)
    (place.data / "locks").mkdir(parents=True, exist_ok=True, mode=0o700)
    around = Surroundings(home=str(Path.home()), data=str(place.data), private=str(place.private), variables=os.environ)
    found = [
        survey(
            root,
            is_control=lambda path: control_name(path) is not None,
            is_secret=lambda path: secret_name(path) is not None,
        )
        for root in (place.root, *place.roots)
    ]
    roots = (place.root, *place.roots)
    home = tuple(path for path in home_secrets(around.home) if not any(is_within(root, path) for root in roots))
    found.append(Survey(protected=(), masked=home, complete=True))
    return usual_profile(place.root, around, *found, roots=place.roots)


def home_secrets(home: str) -> list[str]:
    """Name the known places of secrets in a home directory, and what looks like one near its top."""
    places = [*SECRET_DIRECTORIES, *map("/".join, SECRET_SEQUENCES)]
    named = [f"{home}/{place}" for place in places if place.startswith(".") and "*" not in place]
    hidden = [name for name in _names_in(home) if name.startswith(".")]
    inner = [f"{folder}/{name}" for folder in (".config", ".local/share") for name in _names_in(f"{home}/{folder}")]
    there = [*_names_in(home), *(f"{at}/{name}" for at in (*hidden, *inner) for name in _names_in(f"{home}/{at}"))]
    return list(dict.fromkeys([*filter(os.path.lexists, named), *(f"{home}/{at}" for at in there if secret_name(at))]))


def _names_in(folder: str) -> list[str]:
    """List the first names in a folder; none when it is none."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, _MOST_NAMES)]
    except OSError:
        return []
