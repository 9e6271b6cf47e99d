"""What a mode means, in the words of every screen."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.protocol.permissions import Mode

MODES_ABOUT: Mapping[Mode, str] = MappingProxyType(
    {
        Mode.PLAN: "nothing is changed",
        Mode.ASK: "Treadle asks before anything is changed",
        Mode.EDITS: "file edits run without asking; Treadle asks before anything else is changed",
        Mode.AUTO: "what stays in the project and in the sandbox runs without asking; Treadle asks about the rest",
        Mode.FULL: "Treadle asks only about what is dangerous or changes another machine",
    }
)
"""What each mode means, in a clause; the first part of it is enough where there is little room."""
