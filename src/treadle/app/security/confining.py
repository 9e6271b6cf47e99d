"""Whether commands can be confined on this system, and what they then do not see."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Confining:
    """Whether something confines commands; the folders that a confined one does not see as they are, or has for itself.

    `try_first`: what may change something runs in a throw-away copy, where there are copies, before anything is
    asked. `keeps`: checkpoints hold the files as they were before each command. `brokers`: a call of git in a
    command is judged by itself when it comes.
    """

    there: bool
    hidden: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    try_first: bool = True
    keeps: bool = True
    brokers: bool = False


NOTHING = Confining(there=False)
"""No backend: what may run runs as it is."""


def confining_here(*, try_first: bool, keeps: bool = True, home: Path | None = None) -> Confining:
    """Try out once what this system has; the user's settings say `try_first` and whether checkpoints are taken."""
    from treadle.workspace.sandbox import probe
    from treadle.workspace.sandbox.present import SHARED_FOLDERS, TMP

    if probe().backend is None:
        return NOTHING
    whole = brokers_git()
    return Confining(
        there=True,
        hidden=(*SHARED_FOLDERS, TMP, str(home or Path.home())),
        private=(TMP,) if whole else (),
        try_first=try_first and whole,  # only bubblewrap lays the copy over the workspace
        keeps=keeps,
        brokers=whole,
    )


def brokers_git() -> bool:
    """Whether calls of git in the middle of a command can be judged by themselves here."""
    from treadle.workspace.sandbox import Backend, probe

    return probe().backend is Backend.BUBBLEWRAP
