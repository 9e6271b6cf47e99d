"""What can be set of the terminal app: colours and keys."""

from enum import StrEnum


class Colours(StrEnum):
    """Which colours the terminal app uses; `auto` goes by the terminal's background."""

    AUTO = "auto"
    DARK = "dark"
    LIGHT = "light"
    ANSI = "ansi"


class Editing(StrEnum):
    """Which keys edit the input line."""

    EMACS = "emacs"
    VIM = "vim"
