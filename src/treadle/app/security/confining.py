"""Whether commands can be confined on this system, and what they then do not see."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Confining:
    """Whether something confines commands, and which folders a confined one does not see as they are.

    `try_first`: what may change something runs in a throw-away copy before anything is asked.
    """

    there: bool
    hidden: tuple[str, ...] = ()
    try_first: bool = True


NOTHING = Confining(there=False)
"""No backend: what may run runs as it is."""


def confining_here(*, try_first: bool, home: Path | None = None) -> Confining:
    """Try out once what this system has; the user's settings say `try_first`."""
    from treadle.workspace.sandbox import probe
    from treadle.workspace.sandbox.present import SHARED_FOLDERS, TMP

    if probe().backend is None:
        return NOTHING
    return Confining(there=True, hidden=(*SHARED_FOLDERS, TMP, str(home or Path.home())), try_first=try_first)
