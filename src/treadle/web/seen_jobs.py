"""What the calls of a session left in the background, as it was at the last look: one record for each screen."""

import time
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from treadle.door.reports import JobLine, output_piece, session_jobs
from treadle.protocol.errors import SessionError

_MOST_PRINTED = 20_000
"""Bytes of what one printed that stand in the conversation, its end."""


class SeenJob(Struct, frozen=True):
    """A command in the background: its line in the list, and the end of what it printed, after `begin` bytes."""

    line: JobLine
    printed: str = ""
    begin: int = 0


def look_at_jobs(session_id: str) -> Mapping[int, SeenJob]:
    """Read how the commands in the background stand, by their numbers. Takes its time."""
    return {one.number: _seen(one) for one in session_jobs(session_id, now=int(time.time() * 1000)) if one.number}


def _seen(line: JobLine) -> SeenJob:
    with suppress(SessionError):  # what it printed is not kept any more
        piece = output_piece(line.output, _MOST_PRINTED)
        return SeenJob(line, piece.text, piece.begin)
    return SeenJob(line)
