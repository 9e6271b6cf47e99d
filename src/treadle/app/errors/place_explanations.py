"""What error codes mean of folders, files and flags that cannot be used, and of hooks, and what to do about them."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.app.errors.session_explanations import Explanation

ABOUT_PLACES: Mapping[str, Explanation] = MappingProxyType(
    {
        "config-unreadable": Explanation(
            "A settings file cannot be read, because of its permissions or because it is not UTF-8.",
            "Correct the permissions or the encoding, or move the file away.",
        ),
        "workspace-missing": Explanation(
            "The folder to work in, or that a session worked in, does not exist.",
            "Name an existing one with --directory, or continue the session's conversation in one: "
            "treadle fork ID --into DIR.",
        ),
        "workspace-too-wide": Explanation(
            "Your home folder or the root of the disk cannot be the workspace.", "Start in a project's folder."
        ),
        "host-flag": Explanation(
            "With --verbose or --input-format Treadle serves a host: a program with the protocol of Claude Code. A "
            "flag of Treadle's own that hosts do not have is refused there: without it something else would be done.",
            "Leave --verbose and --input-format out, or the flag.",
        ),
        "kept-back": Explanation(
            "A hook kept a message from being sent, or a model from being used. Nothing was changed.",
            "The message has the hook's reason. `treadle hooks` lists the hooks.",
        ),
        "folder-gone": Explanation(
            "The folder from which a command was started does not exist any more.",
            "Go to another folder with `cd`, and run the command again.",
        ),
        "home-unknown": Explanation(
            "`HOME` is not set to an absolute path, and the list of users of this computer does not have the user, as "
            "in some containers. Settings, data and what a sandbox hides depend on it.",
            "Set HOME to a folder of yours.",
        ),
        "home-of-user": Explanation(
            "A path begins with ~ and a name, and no user of this computer has that name.",
            "Write the path in full. For a file whose name begins with ~ write ./ before it.",
        ),
        "config-unwritable": Explanation(
            "A setting cannot be saved: the folder of your settings file cannot be written, or its disk is full.",
            "Correct the permissions of the folder that the message names, or free space on its disk.",
        ),
    }
)
