"""The sessions that the user pinned: they stay in sight on the page when they are done."""

from contextlib import suppress
from pathlib import Path

import msgspec

from treadle.app.config.places import data_directory
from treadle.workspace.files.folder_lock import alone
from treadle.workspace.files.private_file import write_private

_MOST = 100


def pinned_sessions() -> tuple[str, ...]:
    """Give the ids of pinned sessions, the last pinned first; none where that cannot be read."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(_file().read_bytes(), type=tuple[str, ...])
    return ()


def pin_session(session_id: str, *, pinned: bool) -> None:
    """Pin a session, or do so no more. Raises `OSError`."""
    with alone(_file().parent):
        others = tuple(one for one in pinned_sessions() if one != session_id)
        write_private(_file(), msgspec.json.encode((session_id, *others)[:_MOST] if pinned else others), follow=False)


def _file() -> Path:
    return data_directory() / "web" / "pinned.json"
