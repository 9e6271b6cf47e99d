"""How a command is run: in which sandbox, with which right that a person granted, and how hardened its git is."""

import os
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from msgspec import structs

from treadle.app.security.copies import Copies
from treadle.policy.classify import commands_of, only_reads
from treadle.policy.context import PolicyContext
from treadle.policy.findings import PathOp
from treadle.policy.paths import Where, check_path
from treadle.protocol.permissions import Mode
from treadle.protocol.protected_names import control_name, secret_name
from treadle.protocol.tools import Confinement, Right, Rights, SandboxDenial
from treadle.workspace.confinement import Setup
from treadle.workspace.copies import Hold, why_no_copy
from treadle.workspace.sandbox import (
    Backend,
    Committed,
    Installer,
    MadeFiles,
    Profile,
    SandboxState,
    Surroundings,
    Survey,
    Surveyor,
    allow,
    find_denial,
    prepare,
    probe,
    profile_for,
    recover_made,
    repositories_of,
    tools_of,
)
from treadle.workspace.sandbox.profile import is_within
from treadle.workspace.variables import HARDENED_GIT, path_outside
from treadle.workspace.wrapping import UNWRAPPED, Wrapping


@dataclass(slots=True)
class _Known:
    """What is kept of a session's folders from one command to the next.

    `notes` go with the next result; of the `copies` the last one's changes wait for an answer.
    """

    surveyors: dict[str, Surveyor] = field(default_factory=dict)
    committed: dict[str, Committed] = field(default_factory=dict)
    said_empty: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    copies: Copies = field(default_factory=Copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFolders:
    """Where the commands of a session run: `data` is Treadle's own folder, `private` the session's in there.

    `roots` are further folders of the workspace at `root`. One place serves all commands of a session: what is known
    of the folders is kept current, not looked for again.
    """

    root: str
    roots: tuple[str, ...] = ()
    data: Path
    private: Path
    known: _Known = field(default_factory=_Known)

    @property
    def folders(self) -> tuple[str, ...]:
        """The workspace and its further folders."""
        return (self.root, *self.roots)

    @property
    def surveyors(self) -> list[Surveyor]:
        """What looks through each folder."""
        kept = self.known.surveyors
        for folder in self.folders:
            if folder not in kept:
                kept[folder] = Surveyor(folder, is_control=is_control, is_secret=is_secret)
        return [kept[folder] for folder in self.folders]

    def committed(self, root: str) -> Committed:
        """What reads the committed text of a folder's files."""
        return self.known.committed.setdefault(root, Committed(root, str(self.private / "sandbox")))


def is_control(path: str) -> bool:
    """Whether a file of this name makes tools do something."""
    return control_name(path) is not None


def is_secret(path: str) -> bool:
    """Whether a file of this name holds secrets."""
    return secret_name(path) is not None


def confine(
    line: str, rights: Rights, place: CommandFolders, context: PolicyContext, *, background: bool = False
) -> Setup:
    """Set up the run of a line under its rights, whatever the mode is by now; looks at the disk. Raises `ToolError`."""
    reads = only_reads(line, place.root, context)
    found = confine_as(
        rights.confinement,
        line,
        place,
        granted=rights.granted,
        owned=tools_of(commands_of(line, place.root, context)),
        hold=None if background else partial(why_held, context=context),
    )
    variables = dict(HARDENED_GIT) if reads or not context.trusted else {}
    if reads:  # a program of the folder is no reader, whatever its name
        variables["PATH"] = path_outside(os.environ.get("PATH", os.defpath), *place.folders)
    return structs.replace(found, variables=variables)


def why_held(path: str, context: PolicyContext) -> str:
    """Say why no command changes a path: by the same check as that of the tools that edit files; empty where it may."""
    checked = check_path(path, PathOp.WRITE, context.roots[0], context)
    return "" if checked.where is Where.INSIDE else "; ".join(reason.text for reason in checked.reasons)


def confine_as(
    kind: Confinement,
    line: str,
    place: CommandFolders,
    *,
    granted: Sequence[SandboxDenial] = (),
    owned: AbstractSet[Installer] = frozenset(),
    hold: Hold | None = None,
) -> Setup:
    """Set up a run in one confinement, with rights that this run has besides; looks at the disk.

    `owned` names the tools of the line that install programs. With `hold` what only looks gets a throw-away copy, where
    one can be made. Raises `ToolError`.
    """
    if kind is Confinement.OPEN:
        return Setup()
    state = probe()
    surveys = [surveyor.look() for surveyor in place.surveyors]
    profile = profile_of(kind, place, surveys, owned)
    for right in granted:
        if not is_within(right.target, str(place.data)) and not _opens_more(right, profile):
            profile = allow(profile, right)
    denial = partial(_denial, profile, state, place.data)
    settle = _Settling(
        line, place, None, _reading_empty(profile, surveys) if state.backend is Backend.BUBBLEWRAP else ()
    )
    if not profile.change_root:
        if hold is not None and not why_no_copy(profile, state, place.data):
            copy = place.known.copies.make(profile, state, place.data)
            return Setup(
                copy.wrapping, find_denial=denial, settle=settle, changes=partial(place.known.copies.read, hold)
            )
        return Setup(prepare(profile, state), find_denial=denial, settle=settle)
    repositories = [one for root in place.folders for one in repositories_of(root)] if kind is Confinement.GIT else []
    made = MadeFiles(place.data, place.surveyors, surveys, repositories=repositories, allowed=profile.writable)
    return Setup(prepare(profile, state), find_denial=denial, settle=replace(settle, made=made))


@dataclass(frozen=True, slots=True)
class _Settling:
    """Looks at what one command did: the control files that it made, and the secrets that read as `empty`."""

    line: str
    place: CommandFolders
    made: MadeFiles | None
    empty: Sequence[str]

    def __call__(self, output: str, *, ended: bool) -> tuple[str, ...]:
        """Move away what was made, and say once which secrets read as empty, if the command had to do with them."""
        known = self.place.known
        notes, known.notes = known.notes, []
        made = () if self.made is None else self.made.end() if ended else self.made.check()
        return (*notes, *made, *self._reading_empty(f"{self.line}\n{output}"))

    def _reading_empty(self, text: str) -> Iterator[str]:
        said = self.place.known.said_empty
        for path in map(Path, self.empty):
            if path.name in text and str(path) not in said:
                said.add(str(path))
                name = os.path.relpath(path, self.place.root)
                yield f"{name} reads as empty for commands, because it may hold secrets."


def _reading_empty(profile: Profile, surveys: Sequence[Survey]) -> list[str]:
    """Give the files that read as empty: secrets that the last commit does not have."""
    shown = {path for path, _ in profile.instead}
    return [path for found in surveys for path in found.secrets if path in profile.masked and path not in shown]


def recover_control_files(data: Path) -> tuple[str, ...]:
    """Move away the control files of commands whose Treadle was killed, and say so."""
    return recover_made(data, is_control=is_control, is_secret=is_secret)


def _opens_more(right: SandboxDenial, profile: Profile) -> bool:
    """Whether the sandbox could give a right only with a whole folder that it keeps, which nobody was asked about."""
    match right.right:
        case Right.READ:
            kept = profile.masked
        case Right.WRITE:
            kept = profile.protected
        case _:
            return False
    return right.target not in kept and any(is_within(right.target, entry) for entry in kept)


def confine_server(mode: Mode, place: CommandFolders) -> Wrapping:
    """Give what goes around a program that stays while commands come and go; it changes nothing in the workspace.

    Looks at the disk. Raises `ToolError`.
    """
    if mode is Mode.FULL or probe().backend is None:
        return UNWRAPPED
    surveys = [surveyor.look() for surveyor in place.surveyors]
    return prepare(profile_of(Confinement.LOOK, place, surveys, frozenset()), probe())


def _denial(profile: Profile, state: SandboxState, data: Path, output: str) -> SandboxDenial | None:
    """Find what the sandbox stopped; what is Treadle's own is never opened."""
    if state.backend is None:
        return None
    denial = find_denial(output, profile, state.backend)
    return None if denial is not None and is_within(denial.target, str(data)) else denial


def profile_of(
    kind: Confinement, place: CommandFolders, surveys: Sequence[Survey], owned: AbstractSet[Installer]
) -> Profile:
    place.private.mkdir(parents=True, exist_ok=True, mode=0o700)
    around = Surroundings(
        home=os.path.realpath(Path.home()), data=str(place.data), private=str(place.private), variables=os.environ
    )
    instead = [
        pair
        for root, found in zip(place.folders, surveys, strict=True)
        for pair in place.committed(root).instead(found.secrets)
    ]
    return profile_for(kind, place.folders, around, surveys, instead=instead, owned=owned)
