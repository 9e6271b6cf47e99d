"""How a command is run: in which sandbox, with which right that a person granted, and how hardened its git is."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from treadle.policy.classify import only_reads
from treadle.policy.context import PolicyContext
from treadle.policy.name_lists import SECRET_DIRECTORIES, SECRET_SEQUENCES
from treadle.policy.names import control_name, secret_name
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Right, SandboxDenial
from treadle.workspace.confinement import Confinement
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
_CONFINED = frozenset({Mode.AUTO, Mode.PLAN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the commands of a session run: `data` is Treadle's own folder, `private` the session's in there.

    `roots` are further folders of the workspace at `root`.
    """

    root: str
    roots: tuple[str, ...] = ()
    data: Path
    private: Path


def confines(mode: Mode) -> bool:
    """Whether commands of this mode run in a sandbox here; tries out once what there is."""
    return mode in _CONFINED and probe().backend is not None


def confine(line: str, granted: Sequence[SandboxDenial], place: Place, context: PolicyContext) -> Confinement:
    """Say how a line is run in the mode of `context`; looks at the disk. Raises `ToolError`.

    `granted` are the rights that this one run has besides; nothing is ever granted in plan mode.
    """
    variables = HARDENED_GIT if only_reads(line, place.root, context) else {}
    unsandboxed = any(one.right is Right.UNSANDBOXED for one in granted) and context.mode is not Mode.PLAN
    if unsandboxed or (not granted and not confines(context.mode)):
        return Confinement(variables=variables)
    profile = replace(workspace_profile(place), change_root=context.mode is not Mode.PLAN)
    if context.mode is Mode.PLAN:
        return Confinement(prepare(profile, probe()), variables)
    for right in granted:
        if not is_within(right.target, str(place.data)) and not _opens_more(right, profile):
            profile = allow(profile, right)
    return Confinement(prepare(profile, probe()), variables, partial(_denial, profile, probe(), place.data))


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
    if not confines(mode):
        return PLAIN
    return prepare(replace(workspace_profile(place), change_root=False), probe())


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
