"""When something of each user is due, as their processes said: the front starts them for it, after a restart, too."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from treadle.door.program import write_log, write_private

_STARTS_AGAIN = 60.0
"""Seconds until a process is started once more for what is due, where it was not done."""


class DueTimes:
    """The times (seconds since 1970) by user, in `due.json` of a folder that no user can write to."""

    def __init__(self, data: Path) -> None:
        self._file = data / "due.json"
        self._tried: dict[str, float] = {}
        try:
            self._due = msgspec.json.decode(self._file.read_bytes(), type=dict[str, float])
        except FileNotFoundError:
            self._due = {}
        except (OSError, msgspec.MsgspecError) as error:
            write_log(f"{self._file} cannot be read, so schedules of users run once these sign in: {error}")
            self._due = {}

    def note(self, user: str, due: float | None) -> None:
        """Keep when something of a user is due; None is never."""
        if self._due.get(user) == due:
            return
        if due is None:
            del self._due[user]
        else:
            self._due[user] = due
        try:
            write_private(self._file, msgspec.json.encode(self._due))
        except OSError as error:
            write_log(f"{self._file} cannot be written, so schedules may not run after a restart: {error}")

    def over(self, now: float) -> Sequence[str]:
        """Give the users of whom something is due, each once a minute at most."""
        found = [
            user for user, due in self._due.items() if due <= now and now - self._tried.get(user, 0.0) >= _STARTS_AGAIN
        ]
        self._tried |= dict.fromkeys(found, now)
        return found
