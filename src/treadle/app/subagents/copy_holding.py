"""Who has a copy: sessions that work in it share it, and whoever applies or removes it has it alone."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from treadle.app.subagents.writer_record import writer_place, writers_folder
from treadle.protocol.errors import SessionError
from treadle.workspace.files.names import shown_name


def hold_copy(child_id: str, *, alone: bool) -> Callable[[], None]:
    """Have a copy until the function that is given is called, or the program ends. Raises `SessionError`."""
    place = writer_place(child_id)
    busy = SessionError(
        "copy-busy",
        f"The copy {shown_name(child_id)} is in use.",
        why="Its subagent or session works, or its changes are being applied.",
        fix="Wait for its end. `treadle sessions --all` lists the sessions that work.",
    )
    try:
        held = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise busy from None
    try:
        fcntl.flock(held, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(held), place.stat()):
            raise OSError  # it was removed in between, and maybe made anew
    except OSError:
        os.close(held)
        raise busy from None
    return lambda: os.close(held)


def hold_copy_around(workspace: Path) -> Callable[[], None] | None:
    """Have the copy that a folder lies in, with other sessions; None where it lies in none. Raises `SessionError`."""
    folder = Path(os.path.realpath(writers_folder()))
    if not workspace.is_relative_to(folder) or workspace == folder:
        return None
    return hold_copy(workspace.relative_to(folder).parts[0], alone=False)
