"""What a mode means, in the words of every screen."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.protocol.permissions import Mode

MODES_ABOUT: Mapping[Mode, str] = MappingProxyType(
    {
        Mode.PLAN: "nothing is changed",
        Mode.ASK: "Treadle asks before anything is changed; what only reads in the project, but for secrets, runs "
        "without asking, and so do commands that can change nothing",
        Mode.EDITS: "file edits run without asking; Treadle asks before anything else is changed",
        Mode.AUTO: "what stays in the project and in the sandbox runs without asking; Treadle asks about the rest",
        Mode.FULL: "Treadle asks only about what is dangerous or changes another machine",
    }
)
"""What each mode means, in a clause; the first part of it is enough where there is little room."""

WIDE_MODES = frozenset({Mode.AUTO, Mode.FULL})
"""Modes that let more run than edits: a person is asked once before one of them is chosen."""


def mode_sentence(mode: Mode) -> str:
    """Say what a mode means, as a sentence."""
    about = MODES_ABOUT[mode]
    return f"{about[0].upper()}{about[1:]}."
