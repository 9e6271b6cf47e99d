"""How a command is run: in which sandbox, with which right that a person granted, and how hardened its git is."""

import os
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from msgspec import structs

from treadle.app.config.places import config_file
from treadle.app.security.command_folders import CommandFolders, is_control, is_secret
from treadle.app.security.command_settling import CommandSettling, settle_with_index
from treadle.app.security.file_view import DiskView
from treadle.app.security.given_rights import denial_in, give_rights, lines_not_given, why_no_right
from treadle.app.security.trial_copies import Copies
from treadle.policy.classify import commands_of, only_reads, places_of
from treadle.policy.decision_context import PolicyContext
from treadle.policy.findings import PathOp
from treadle.policy.path_check import Where, check_path, refusal
from treadle.policy.repository import is_inert, runs_untrusted
from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Mode
from treadle.protocol.protected_names import control_name, installed_name, secret_name
from treadle.protocol.tools import Confinement, Right, Rights, SandboxDenial
from treadle.workspace.commands.confinement import Setup
from treadle.workspace.commands.variables import HARDENED_GIT, path_outside
from treadle.workspace.commands.wrapping import UNWRAPPED, Wrapping
from treadle.workspace.copies import Hold, why_no_copy
from treadle.workspace.files.names import clipped_path
from treadle.workspace.files.private_file import make_private_folder
from treadle.workspace.sandbox import (
    Backend,
    Installer,
    MadeFiles,
    Profile,
    Surroundings,
    Survey,
    control_files_changed_by,
    fills_index,
    gives_steps,
    open_steps,
    prepare,
    probe,
    profile_for,
    recover_made,
    repositories_of,
    repository_parts,
    takes_files_along,
    tools_of,
)
from treadle.workspace.sandbox.git_excludes import excludes_for
from treadle.workspace.sandbox.made_beforehand import recover_opened
from treadle.workspace.sandbox.profile import is_within


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherAccess:
    """What a program of the user's own may read and write beside what every command may; absolute, resolved paths.

    `copies` take its throw-away copy, where that is not the one of the session's commands.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    copies: Copies | None = None


NO_FURTHER_ACCESS = FurtherAccess()


def confine(
    line: str,
    rights: Rights,
    place: CommandFolders,
    context: PolicyContext,
    *,
    background: bool = False,
    access: FurtherAccess = NO_FURTHER_ACCESS,
    cwd: str = "",
) -> Setup:
    """Set up the run of a line under its rights, whatever the mode is by now; looks at the disk. Raises `ToolError`.

    It runs in `cwd`, or else in the workspace itself. A line of git that would change control files without the right
    to is refused: it would stop half-way.
    """
    place = replace(place, namespaces=place.shared(context.mode), cwd=cwd or place.root)
    if missing := _control_files(line, rights, place, context):
        return Setup(refused=missing)
    reads = only_reads(line, place.cwd, context)
    place.known.notes += lines_not_given(line, rights, place.cwd, context) if access is NO_FURTHER_ACCESS else []
    commands = commands_of(line, place.cwd, context)
    beside = bool(place.known.running)
    found = confine_as(
        rights.confinement,
        line,
        place,
        granted=rights.granted,
        commands=commands,
        hold=None if background else partial(why_held, context=context),
        access=access,
    )
    if rights.confinement is Confinement.GIT and context.trusted and (beside or fills_index(commands)):
        entries = [place.index_entries(folder) for folder in _worked_in(line, place, context)]
        found = structs.replace(found, settle=partial(settle_with_index, found.settle, entries))
    is_hardened = reads or not context.trusted or runs_untrusted(place.cwd, context)
    variables = dict(HARDENED_GIT) if is_hardened else {}
    if reads:  # a program of the folder is no reader, whatever its name
        variables["PATH"] = path_outside(os.environ.get("PATH", os.defpath), *place.folders)
    return structs.replace(found, variables=variables)


def _control_files(line: str, rights: Rights, place: CommandFolders, context: PolicyContext) -> SandboxDenial | None:
    """Find the control files that a line would bring from another commit, such as AGENTS.md of another branch."""
    if rights.confinement is not Confinement.GIT or not context.trusted:
        return None
    granted = {path for right in rights.granted if right.right is Right.WRITE for path in (right.target, *right.also)}
    found: dict[str, str] = {}
    commands = commands_of(line, place.cwd, context)
    for folder in _worked_in(line, place, context) if any(words[:1] == ("git",) for words in commands) else ():
        look = partial(
            control_files_changed_by, ask=place.reader(folder), is_held=place.kept(folder), is_new=place.is_new(folder)
        )
        brought = (name for words in commands for name in look(words))
        found |= {f"{folder}/{name}": name for name in brought}
    paths = [path for path in found if path not in granted]
    if not paths:
        return None
    named = ", ".join(found.values())
    text = f"It would change control files: {named}"
    return SandboxDenial(right=Right.WRITE, target=paths[0], also=tuple(paths[1:]), text=text, unrun=True)


def _worked_in(line: str, place: CommandFolders, context: PolicyContext) -> list[str]:
    """Give the folders of the workspace in which the commands of a line run; where one runs is not always known."""
    places = places_of(line, place.cwd, context)
    resolved = [os.path.realpath(one) if one.startswith("/") else "" for one in places]
    return [folder for folder in place.folders if any(not one or is_within(one, folder) for one in resolved)]


def why_held(path: str, /, context: PolicyContext, *, made: bool = False) -> str:
    """Say why no command changes a path: by the same check as that of the tools that edit files; empty where it may.

    An environment or a folder of packages that is new as a whole replaces nothing that was installed before.
    """
    checked = check_path(path, PathOp.WRITE, context.roots[0], context)
    name = next((os.path.relpath(path, root) for root in context.roots if is_within(path, root)), path)
    if made and installed_name(name) and not (control_name(name) or secret_name(name) or refusal(path)):
        return ""
    return "" if checked.where is Where.INSIDE else "; ".join(reason.text for reason in checked.reasons)


def confine_as(
    kind: Confinement,
    line: str,
    place: CommandFolders,
    *,
    granted: Sequence[SandboxDenial] = (),
    hold: Hold | None = None,
    access: FurtherAccess = NO_FURTHER_ACCESS,
    commands: Sequence[Sequence[str]] | None = None,
) -> Setup:
    """Set up a run in one confinement, with rights that this run has besides; looks at the disk.

    `commands` are those of a line whose rights somebody granted; without it they are named by the user's own settings.
    With `hold` what only looks gets a throw-away copy, where one can be made. Raises `ToolError`.
    """
    if kind is Confinement.OPEN:
        return Setup()
    state = probe()
    holder = place.holder() if state.backend is Backend.BUBBLEWRAP else None
    surveys = look_through(place)
    profile = replace(profile_of(kind, place, surveys, tools_of(commands or ())), cwd=place.cwd)
    profile, opened, refused = give_rights(profile, granted, place.known.opened(place.data), commands)
    place.known.notes += refused
    profile = replace(
        profile,
        replaced=(*profile.replaced, *(place.placed if holder is not None else ())),
        readable=(*profile.readable, *access.readable),
        writable=(*profile.writable, *access.writable),
    )
    unread = _reading_empty(profile, surveys) if state.backend is Backend.BUBBLEWRAP else []
    if kind is Confinement.GIT:
        left_out = [pair for root in place.folders for pair in excludes_for(root, unread, profile.private)]
        profile = replace(profile, replaced=(*profile.replaced, *left_out))
    settle = CommandSettling(
        line=line,
        place=place,
        opened=opened,
        hidden=profile.hidden,
        empty=unread,
        replaced=[path for path, shown in profile.instead if os.path.isdir(shown)],  # noqa: PTH112 - loads fast
        commits=kind is Confinement.GIT and takes_files_along(commands or ()),
        unlisted=tuple(path for found in surveys for path in found.unlisted),
    )
    setup = Setup(
        find_denial=partial(denial_in, profile=profile, state=state),
        why_never=partial(why_no_right, profile=profile),
        settle=settle,
        unsaid=place.known.say_next,
        meanwhile=partial(place.known.tell_user, line),
    )
    if not profile.change_root:
        if hold is not None and not why_no_copy(profile, state, place.data):
            return _on_copy(setup, profile, place, access=access, hold=hold)
        return structs.replace(setup, wrapping=prepare(profile, state, holder))
    if place.sleep is not None:
        setup = structs.replace(setup, started=place.sleep.begin)
    made = _made_files(kind, place, surveys, allowed=profile.writable, commands=commands or ())
    place.known.note_running(made, ended=False)
    return structs.replace(setup, wrapping=prepare(profile, state, holder), settle=replace(settle, made=made))


def _made_files(
    kind: Confinement,
    place: CommandFolders,
    surveys: Sequence[Survey],
    *,
    allowed: Sequence[str],
    commands: Sequence[Sequence[str]],
) -> MadeFiles:
    repositories = [one for root in place.folders for one in repositories_of(root)] if kind is Confinement.GIT else []
    steps = open_steps(repositories) if gives_steps(commands) else ()
    return MadeFiles(
        place.data,
        place.surveyors,
        surveys,
        is_inert=_is_inert,
        repositories=repositories,
        allowed=(*allowed, *steps),
        sleep=None if place.sleep is None else place.sleep.mark,
    )


def _on_copy(setup: Setup, profile: Profile, place: CommandFolders, *, access: FurtherAccess, hold: Hold) -> Setup:
    """Let a run change a throw-away copy; in one of its own, what it may write besides is written all the same."""
    copies = place.known.copies
    if access.copies is not None:
        copies, kept = access.copies, tuple((path, path) for path in access.writable)
        profile = replace(profile, scratch=(*profile.scratch, *kept))
    copy = copies.make(profile, probe(), place.data, place.holder())
    return structs.replace(setup, wrapping=copy.wrapping, changes=partial(copies.read, hold))


def look_through(place: CommandFolders) -> list[Survey]:
    """Look through the folders. Raises `ToolError` where it is not known what is to be kept from a command."""
    for path in (path for made in place.known.made for path in made.remaining()):
        raise ToolError(
            f"The command was not started: {clipped_path(path)} was made or closed by an earlier command, may "
            "change what tools do, and could not be moved away or looked into. Tell the user to look at it, and to "
            "remove or open it."
        )
    surveys = [surveyor.look() for surveyor in place.surveyors]
    for folder, found in zip(place.folders, surveys, strict=True):
        if folder in found.unlisted:
            raise ToolError(
                f"The command was not started: {folder} cannot be listed whole, so it is not known which files in it "
                "hold secrets. Tell the user to let it be listed (`chmod u+rwx`), or to work in a smaller folder."
            )
    return surveys


def _reading_empty(profile: Profile, surveys: Sequence[Survey]) -> list[str]:
    """Give the files that read as empty: secrets that the last commit does not have."""
    shown = {path for path, _ in profile.instead}
    return [path for found in surveys for path in found.secrets if path in profile.masked and path not in shown]


def recover_control_files(data: Path) -> tuple[str, ...]:
    """Move away the control files of commands whose Treadle was killed, and say so; also what it made beforehand."""
    recover_opened(data)
    return recover_made(data, is_control=is_control, is_secret=is_secret, is_inert=_is_inert)


def _is_inert(path: str) -> bool:
    return is_inert(path, DiskView())


def confine_server(mode: Mode, place: CommandFolders) -> Wrapping:
    """Give what goes around a program that stays while commands come and go; it changes nothing in the workspace.

    Looks at the disk. Raises `ToolError`.
    """
    if mode is Mode.FULL or probe().backend is None:
        return UNWRAPPED
    surveys = look_through(place)
    return prepare(profile_of(Confinement.LOOK, place, surveys, frozenset()), probe())


def profile_of(
    kind: Confinement, place: CommandFolders, surveys: Sequence[Survey], owned: AbstractSet[Installer]
) -> Profile:
    """Give what a command may do in a confinement but OPEN; `surveys` are those of the folders, in their order."""
    make_private_folder(place.private)
    around = Surroundings(
        home=os.path.realpath(Path.home()),
        data=str(place.data),
        private=str(place.private),
        variables=os.environ,
        settings=str(config_file().parent),
    )
    instead = [
        pair
        for root, found in zip(place.folders, surveys, strict=True)
        for pair in place.committed(root).instead(found.secrets, folders=kind is Confinement.GIT)
    ]
    found = profile_for(kind, place.folders, around, surveys, instead=instead, owned=owned)
    acting = [path for survey in surveys for path in survey.repositories if not _is_inert(path)]
    return replace(found, devices=place.devices, protected=(*found.protected, *repository_parts(acting)))
