"""What the surroundings of the program may be missing: the current folder, or the home of the user."""

import os
import pwd

from treadle.door.program import unknown_home
from treadle.protocol.errors import ConfigError


def use_known_home() -> None:
    """Set `HOME` from the list of users where it is no absolute path: it would be another folder in each place."""
    os.environ.pop("HOME", None)
    try:
        os.environ["HOME"] = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # only some commands need one
        return


def missing_surroundings(error: Exception) -> ConfigError | None:
    """Give the error to report where one that nobody expected says that a folder is missing; None for others."""
    match error:
        case FileNotFoundError(filename=None) if _is_folder_gone():
            return ConfigError(
                "folder-gone",
                "The current folder does not exist any more.",
                why="It was deleted or replaced after this shell went there.",
                fix="Go to another folder with `cd`, and run the command again.",
            )
        case RuntimeError() if "home directory" in str(error):
            if "HOME" not in os.environ:
                return unknown_home()
            return ConfigError(
                "home-of-user",
                "A path begins with ~ and the name of a user that this computer does not have.",
                fix="Write the path in full, or with ./ before the ~.",
            )
        case _:
            return None


def _is_folder_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - a Path costs more than the look
    except FileNotFoundError:
        return True
    return False
