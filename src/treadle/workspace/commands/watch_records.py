"""What will wake a session, in a file beside its output, so that other processes can list and end it."""

from pathlib import Path

import msgspec
from msgspec import Struct

from treadle.workspace.files.owners import Owner
from treadle.workspace.files.private_file import write_private

WATCHERS_FILE = "watchers.json"
ENDED_FILE = "watchers-ended.json"
"""What was armed when its session was closed."""


class Armed(Struct, frozen=True, kw_only=True):
    """One thing that will wake the session. `number` is the command's, 0 for a timer; `at` is when a timer is up.

    `text` is the expression or the timer's note, `owner` the Treadle that is woken. Times are milliseconds since 1970.
    `id` is `1` for a command, `t1` for a timer.
    """

    id: str
    text: str
    number: int = 0
    owner: Owner
    set_at: int
    at: int = 0


def write_armed(file: Path, armed: tuple[Armed, ...]) -> None:
    """Keep what a session has armed. Raises `OSError`."""
    write_private(file, msgspec.json.encode(armed))


def read_armed(file: Path) -> tuple[Armed, ...]:
    """Read what a session has armed; what cannot be read is nothing."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=tuple[Armed, ...])
    except (OSError, msgspec.DecodeError):
        return ()


def take_out(file: Path, armed_id: str) -> bool:
    """Take one thing out of the list of another process; says whether it was there. Raises `OSError`."""
    armed = read_armed(file)
    left = tuple(one for one in armed if one.id != armed_id)
    if len(left) == len(armed):
        return False
    write_private(file, msgspec.json.encode(left))
    return True
