"""The person's own status line: the first line that a command of theirs prints, given facts of the session as JSON."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import treadle
from treadle.door.open_session import SessionAccess
from treadle.present.context_use import percent_full
from treadle.present.escape import printable
from treadle.present.items import NoteItem
from treadle.present.view import SessionView
from treadle.present.words import clip_text
from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.tui.paint.lines import cells, line
from treadle.tui.paint.theme import Palette, Theme

_SECONDS = 5.0
"""How long it may run."""

_PAUSE = 0.3
"""Seconds between the end of one run and the next one at least."""

_LONG_CONTEXT = 200_000
_SHOWN = 300
_COLOUR = regex(r"\x1b\[[0-9;]{0,60}m")
_SEQUENCE = regex(r"\x1b(?:\[[0-?]{0,60}[ -/]{0,8}[@-~]|[\]PX^_][^\x07\x1b]{0,4000}(?:\x07|\x1b\\|\Z)|[ -/]{0,4}[0-~])")
_RESET = "\x1b[0m"


def session_facts(live: SessionAccess, view: SessionView, context: tuple[int, int | None]) -> dict[str, Any]:
    """Give what a command is told of a session, in the form of Claude Code's; what is not known is null.

    `context` are the tokens that the conversation takes, and the model's window.
    """
    used, window = context
    folder, percent = str(live.workspace), percent_full(used, window)
    ref = view.model
    return {
        "hook_event_name": "Status",
        "session_id": live.id,
        "session_name": live.title or None,
        "cwd": folder,
        "model": {"id": ref, "display_name": ref.partition("/")[2] or ref},
        "workspace": {"current_dir": folder, "project_dir": folder, "added_dirs": list(live.roots)},
        "version": treadle.__version__,
        "permission_mode": str(view.mode),
        **({} if view.goal is None else {"goal": {"condition": view.goal.condition, "state": str(view.goal.state)}}),
        "cost": {
            "total_cost_usd": None if view.spending.unpriced else round(view.spending.total, 6),
            "total_lines_added": view.added,
            "total_lines_removed": view.removed,
        },
        "context_window": {
            "total_input_tokens": used,
            "context_window_size": window,
            "used_percentage": percent,
            "remaining_percentage": None if percent is None else 100 - percent,
        },
        "exceeds_200k_tokens": used > _LONG_CONTEXT,
    }


def harmless_line(printed: str, width: int, *, colours: bool) -> str:
    """Give the first line that shows something, at most `width` cells wide; of control sequences only colours stay."""
    for row in printed.split("\n"):
        pieces, shown, room = [], "", width
        for piece, colour in _pieces(row):
            text = piece
            if cells(line(text)) > room:
                text = _fitting(text, room)
            room -= cells(line(text))
            shown += text
            pieces += [text, colour if colours else ""]
            if text != piece:
                break
        if shown.strip():
            return f"{''.join(pieces)}{_RESET if colours else ''}"
    return ""


def _fitting(text: str, room: int) -> str:
    while text and cells(line(text)) > room:
        text = text[:-1]
    return text


def _pieces(row: str) -> list[tuple[str, str]]:
    """Cut a row at its colours; gives the text before each, and the colour."""
    found: list[tuple[str, str]] = []
    place = 0
    for colour in _COLOUR.finditer(row):
        found.append((_shown_text(row[place : colour.start()]), colour[0]))
        place = colour.end()
    return [*found, (_shown_text(row[place:]), "")]


def _shown_text(text: str) -> str:
    return printable(_SEQUENCE.sub("", text).rstrip("\r")).replace("\t", " ")


class StatusLine:
    """Runs the `command` when a fact has changed; `refresh` draws what it printed, `show` prints once why it failed.

    `known` gives the session as it is known, the tokens that the conversation takes and the model's window.
    """

    def __init__(
        self,
        command: str,
        live: SessionAccess,
        known: Callable[[], tuple[SessionView, tuple[int, int | None]]],
        *,
        refresh: Callable[[], None],
        show: Callable[..., None],
    ) -> None:
        self._command = command
        self._live = live
        self._known = known
        self._refresh = refresh
        self._show = show
        self._since = time.monotonic()
        self._changed = asyncio.Event()
        self._told: Mapping[str, Any] = {}
        self._printed = ""
        self._warned = False
        self.changed()

    def changed(self) -> None:
        """Something has happened; it is looked soon whether that is a fact that the command is told."""
        if self._command:
            self._changed.set()

    def rows(self, width: int, theme: Theme) -> list[str]:
        """Give the row to show below the status, with a blank before it; none where there is nothing to show."""
        colours = theme.palette not in (Palette.PLAIN, Palette.DUMB)
        shown = harmless_line(self._printed, width - 2, colours=colours) if self._printed else ""
        return [theme.legible(f" {shown}")] if shown else []

    async def run(self) -> None:
        """Run the command whenever a fact is another, until cancelled; that ends it."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            facts = session_facts(self._live, *self._known())
            if facts == self._told:
                await asyncio.sleep(_PAUSE)
                continue
            if not self._live.trust.trusted:
                # What it runs, such as git, goes by the files of the folder.
                self._fail("it does not run in a folder that you do not trust. /trust says how to trust it.")
                self._told = facts
                continue
            self._told = facts
            await self._run(facts)
            self._refresh()
            await asyncio.sleep(_PAUSE)

    async def _run(self, facts: Mapping[str, Any]) -> None:
        took = int((time.monotonic() - self._since) * 1000)
        given = {**facts, "cost": {**facts["cost"], "total_duration_ms": took}}
        try:
            printed = await self._live.own_shell.answer(self._command, json.dumps(given).encode(), _SECONDS)
        except ToolError as error:
            self._printed = ""
            self._fail(error.text)
            return
        self._printed = "" if printed.failed else printed.text
        if printed.failed:
            self._fail(printed.failed)

    def _fail(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            self._show(NoteItem(f"The command of your status line: {clip_text(why, _SHOWN)}", warns=True))
