"""The task's checklist as a Markdown file that the user may edit: written when it changes, read before each step."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from treadle.app.config.places import data_directory
from treadle.context.focus import parse_checklist, render_checklist, rewrite
from treadle.protocol.events import EditChecklist, Event
from treadle.protocol.sealed import ChecklistUpdated

_LONGEST = 64 * 1024
_TITLE = "# Checklist\n\n"


def checklist_file(session_id: str) -> Path:
    """Say where the checklist of a session is kept."""
    return data_directory() / "checklists" / f"{session_id}.md"


def remove_checklist(session_id: str) -> None:
    """Delete the file of a session's checklist; one that cannot be deleted stays."""
    file = checklist_file(session_id)
    for one in (file, _mark(file)):
        with suppress(OSError):
            one.unlink()


class ChecklistFile(Struct, frozen=True, kw_only=True):
    """The file of a session's checklist, kept in step with it. `checklist` gives the one that is in force.

    Beside the file stands the hash of what was last written to it: another content is the user's.
    """

    file: Path
    checklist: Callable[[], str]

    async def before_step(self) -> EditChecklist | None:
        """Take over what the user wrote into the file."""
        if not self.checklist():
            return None
        found = await asyncio.to_thread(_users_version, self.file)
        return None if found is None else EditChecklist(text=found)

    async def observe(self, events: Sequence[Event], /) -> None:
        """Write the file if the list was changed."""
        if any(isinstance(event.data, ChecklistUpdated | EditChecklist) for event in events):
            await asyncio.to_thread(_write, self.file, self.checklist())


def _users_version(file: Path) -> str | None:
    """Give what is in the file if the user wrote it."""
    found = _read(file)
    return None if found is None or _hash(found) == _read(_mark(file)) else found


def _write(file: Path, checklist: str) -> None:
    """Put the list into the file and leave the user's other lines; a file that cannot be written breaks no turn."""
    from treadle.workspace.files.private_file import write_private

    found = _read(file)
    if found is not None and render_checklist(parse_checklist(found)) == checklist:
        text = found
    else:
        text = rewrite(found or _TITLE, parse_checklist(checklist))
    with suppress(OSError):
        if text != found:
            write_private(file, text.encode())
        write_private(_mark(file), _hash(text).encode())


def _read(file: Path) -> str | None:
    try:
        with file.open("rb") as stream:
            return stream.read(_LONGEST).decode(errors="replace")
    except OSError:
        return None


def _mark(file: Path) -> Path:
    return file.with_name(f".{file.name}.sha256")


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
