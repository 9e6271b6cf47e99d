"""The first lines of a session and the last one: version, model, mode, folders, the session before; what is kept."""

import time
from pathlib import Path

from treadle import __version__
from treadle.door.open_session import SessionAccess
from treadle.present.escape import printable
from treadle.present.items import NoteItem
from treadle.present.view import SessionView
from treadle.present.words import ago, clip_text, counted
from treadle.tui.paint.printed_items import Greeting, PrintedItem

_TITLE = 60
"""Characters of the title of the session before."""


def first_items(live: SessionAccess, view: SessionView, branch: str, *, left_out: int = 0) -> list[PrintedItem]:
    """Say what the session begins with, what the person has to know of it, and how many items came before."""
    folders = [short_path(str(folder)) for folder in (live.workspace, *live.roots)]
    first = Greeting(__version__, view.model, view.mode, ", ".join(folders), branch, _last(live))
    earlier = (
        [f"… {counted(left_out, 'earlier item')} of this session: ctrl-o shows more of them …"] if left_out else []
    )
    return [first, *(NoteItem(notice, warns=True) for notice in live.notices), *map(NoteItem, earlier)]


def _last(live: SessionAccess) -> str:
    if live.before is None:
        return ""
    title, at = live.before
    return f"{clip_text(title, _TITLE)}, {ago(time.time() - at / 1000)}"


def kept_line(title: str, view: SessionView, turns: int) -> str:
    """Say what is kept of a session in which there were turns, and how many subagents go on only when it does."""
    changed = f"+{view.added} -{view.removed}" if view.added or view.removed else ""
    paused = f"{counted(len(view.children), 'subagent')} paused until it is resumed" if view.children else ""
    facts = (printable(title), counted(turns, "turn"), changed, view.spending.words, paused)
    return f"Session kept: {' · '.join(filter(None, facts))}"


def short_path(folder: str) -> str:
    """Write a path as people do: `~` for the home directory."""
    home = str(Path.home())
    return f"~{folder.removeprefix(home)}" if folder == home or folder.startswith(f"{home}/") else folder
