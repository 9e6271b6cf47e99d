"""The further folders of a workspace: which ones may be, and which of them the user trusts on their own."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.app.config.places import config_file, data_directory
from treadle.app.security.trusting import session_trust, shown_path
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import Event, SessionStarted


class Roots(Struct, frozen=True, kw_only=True):
    """Further folders, absolute and resolved; none lies in another. Of `untrusted` ones git's settings are not obeyed.

    `notices` say which folders were left out, and why.
    """

    folders: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def further_roots(workspace: Path, wanted: Sequence[str]) -> Roots:
    """Take the folders that a new session was given besides its workspace, which is resolved.

    Raises `ConfigError` for one that is missing, too wide, or Treadle's own.
    """
    return _settled(workspace, [_checked(path) for path in wanted], [])


def past_roots(workspace: Path, history: Iterable[Event], wanted: Sequence[str] | None) -> Roots:
    """Give a session that goes on the folders that it began with; one that is no more is left out, and that is said.

    `wanted` are those of the command line, None if it names none. Raises `ConfigError` for one that is new.
    """
    began = next((event.data for event in history if isinstance(event.data, SessionStarted)), None)
    had = began.roots if began is not None else ()
    for path in wanted or ():
        folder = _checked(path)
        if str(folder) not in had and folder != workspace:
            raise ConfigError(
                "add-dir-late",
                f"{shown_path(str(folder))} cannot be added to an existing session.",
                why="A session keeps the folders that it started with.",
                fix="Start a new session with --add-dir, or continue without it.",
            )
    kept: list[Path] = []
    gone: list[str] = []
    for path in had:
        try:
            folder = _checked(path)
        except ConfigError as error:
            gone.append(f"left out: {error.what} {error.why}")
            continue
        if str(folder) == path:
            kept.append(folder)
        else:
            gone.append(f"left out: {shown_path(path)} now points to {shown_path(str(folder))}.")
    return _settled(workspace, kept, gone)


def _settled(workspace: Path, folders: Sequence[Path], notices: Sequence[str]) -> Roots:
    """Leave out what lies in another one, and find out what the user said of the others."""
    said = list(notices)
    kept: list[Path] = []
    for folder in dict.fromkeys(folders):
        if folder == workspace:
            continue
        around = next((one for one in (workspace, *folders) if one != folder and folder.is_relative_to(one)), None)
        if around is not None:
            said.append(f"{shown_path(str(folder))} is in {shown_path(str(around))}, which already includes it.")
        elif workspace.is_relative_to(folder):
            said.append(
                f"left out: {shown_path(str(folder))} contains the workspace. Start there to work in all of it."
            )
        else:
            kept.append(folder)
    untrusted = tuple(str(folder) for folder in kept if not session_trust(folder).trusted)
    return Roots(folders=tuple(map(str, kept)), untrusted=untrusted, notices=tuple(said))


def _checked(path: str) -> Path:
    """Resolve a folder; raises `ConfigError`."""
    given = Path(path).expanduser()
    folder = given.resolve()
    if not folder.is_dir():
        raise _refused(given, "It is not a folder." if folder.exists() else "It does not exist.")
    home = Path.home().resolve()
    if folder == Path(folder.anchor) or folder in (home, *home.parents):
        raise _refused(folder, "It is too wide: everything in it could be read, and changed in the wider modes.")
    for own in (data_directory().resolve(), config_file().parent.resolve()):
        if folder.is_relative_to(own) or own.is_relative_to(folder):
            raise _refused(folder, "Treadle keeps its own files there.")
    return folder


def _refused(folder: Path, why: str) -> ConfigError:
    return ConfigError(
        "add-dir",
        f"{shown_path(str(folder))} cannot be a folder of the workspace.",
        why=why,
        fix="Name another folder, or correct add_dirs in your settings file.",
    )
