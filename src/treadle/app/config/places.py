"""Where Treadle keeps its things, in which folders it works, and how files there and in projects are read."""

import os
import stat
import sys
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from treadle.protocol.errors import ConfigError

SERVED_PLACE = Path("/etc/treadle-service")
"""Is there for the processes of a user of `treadle serve`, and for nobody else."""

_IN_ANOTHER = "Put it back where it was, or continue the conversation in another folder: treadle fork {} --into DIR."

_LARGEST_SETTINGS = 16 * 1024 * 1024


def data_directory() -> Path:
    """The folder for sessions and logs: `$TREADLE_HOME`, or the platform's data folder for the user."""
    return _own_folder() or _user_folder("XDG_DATA_HOME", ".local/share")


def config_file() -> Path:
    """The user's settings: `config.toml` in `$TREADLE_HOME`, or in the platform's configuration folder."""
    return (_own_folder() or _user_folder("XDG_CONFIG_HOME", ".config")) / "config.toml"


def _own_folder() -> Path | None:
    home = os.environ.get("TREADLE_HOME", "")
    if home.startswith("/"):
        return _path(home)
    return Path(home).expanduser().absolute() if home else None


def _user_folder(variable: str, usual: str) -> Path:
    """Go by the XDG variables where they are absolute; the usual place of a Mac is the same for data and settings."""
    named = os.environ.get(variable, "")
    if named.startswith("/"):
        return _path(f"{named}/treadle")
    return _path(_home()) / ("Library/Application Support" if sys.platform == "darwin" else usual) / "treadle"


@lru_cache(8)
def _path(text: str) -> Path:
    """Read a path once: these places are asked for at each step."""
    return Path(text)


def _home() -> str:
    """Find the user's folder; `HOME` as a relative path would be another folder in each place."""
    home = os.environ.get("HOME", "")
    if home.startswith("/"):
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError as error:
        raise unknown_home() from error


def unknown_home() -> ConfigError:
    """Make the error for a user without a home."""
    return ConfigError(
        "home-unknown",
        "The home folder of the user is unknown.",
        why=f"HOME is not set to an absolute path, and the user {os.getuid()} is not in the list of users.",
        fix="Set HOME to a folder of yours.",
    )


def servers_file() -> Path:
    """The user's MCP servers, in the form of `.mcp.json`: beside their settings, for them alone to read."""
    return config_file().with_name("mcp.json")


def database() -> Path:
    """The event log."""
    return data_directory() / "sessions.db"


def outputs() -> Path:
    """Where the files of long outputs are, in a folder for each session."""
    return data_directory() / "output"


def program_log() -> Path:
    """Where the details of unexpected errors are written."""
    return data_directory() / "treadle.log"


def name_for(path: Path | str, ending: str) -> str:
    """Name the file that holds what is kept of a path."""
    return f"{sha256(os.fsencode(path)).hexdigest()[:32]}{ending}"


def read_regular(file: Path | str, most: int) -> bytes | None:
    """Read a regular file, at most `most` bytes and one more, which says that it is larger. Raises `OSError`.

    None for a pipe, a device or a folder: none of them is waited for.
    """
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        return stream.read(most + 1) if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else None


def settings_text(file: Path) -> str:
    """Read a file of settings, without the mark that some editors put before UTF-8. Raises `OSError`, `ValueError`.

    The null device is a file without settings.
    """
    if str(file) == os.devnull:
        return ""
    data = read_regular(file, _LARGEST_SETTINGS)
    if data is None:
        raise ValueError("It is not a file.")
    if len(data) > _LARGEST_SETTINGS:
        raise ValueError("It is larger than 16 MiB.")
    return data.decode().removeprefix("\ufeff")


def user_agent_folders(home: str) -> tuple[str, ...]:
    """Give the user's own folders of agents, in the order in which they go before each other."""
    return (
        f"{home}/.agents/agents",
        f"{config_file().parent}/agents",
        f"{home}/.claude/agents",
        f"{home}/.config/opencode/agents",
        f"{home}/.config/opencode/agent",
        f"{home}/.gemini/agents",
    )


def check_workspace(path: Path) -> Path:
    """Resolve the folder to work in; raises `ConfigError` when it is none, or too wide to be a workspace."""
    folder = path.expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(
            "workspace-missing",
            f"There is no folder {folder} to work in.",
            why="It is not a folder." if folder.exists() else "It does not exist.",
            fix="Give an existing folder with --directory.",
        )
    resolved = folder.resolve()
    home = Path.home().resolve()
    if resolved == Path(resolved.anchor) or resolved in (home, *home.parents):
        raise ConfigError(
            "workspace-too-wide",
            f"{resolved} is too wide to be a workspace.",
            why="Everything in it could be read, and changed in the wider modes.",
            fix="Start in a project's folder, or name one with --directory.",
        )
    return resolved


def session_folder(session_id: str, workspace: Path) -> Path:
    """Resolve the folder that a session works in; raises `ConfigError` when it cannot be worked in any more.

    No flag gives a session another folder, so the error names what does.
    """
    try:
        return check_workspace(workspace)
    except ConfigError as error:
        raise ConfigError(error.code, error.what, why=error.why, fix=_IN_ANOTHER.format(session_id)) from None


def gone_folder(session_id: str, folder: str, why: str) -> ConfigError:
    """Say that a folder is gone which a session worked in."""
    what = f"The folder {folder} that the session worked in is not there."
    return ConfigError("workspace-missing", what, why=why, fix=_IN_ANOTHER.format(session_id))
