"""Choosing a message to go back to before, or a turn to copy up to; what would be taken back, and what of it is."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.commands import ListedTurn, TurnPreview, listed_turns, preview_turn
from treadle.present.escape import exact_line
from treadle.present.words import clip_text, counted
from treadle.tui.lists.choice_list import (
    Chooser,
    Choosing,
    ListRow,
    begin,
    chooser_lines,
    due_at,
    rest,
    take,
    whole_lines,
)
from treadle.tui.lists.filter_list import Pick, picker_lines, take_key, with_rows
from treadle.tui.lists.filter_list_rows import TURNS, turn_rows
from treadle.tui.paint.diff_rows import diff_lines
from treadle.tui.paint.lines import Line, clip, line
from treadle.tui.paint.theme import Signs
from treadle.tui.question.dialog import Key, Press
from treadle.tui.session.aside import Aside
from treadle.tui.session.entered_lines import DoCommand

_NAMED = 5
"""Paths that are named in a sentence."""

_ASKED = 60

_READING = "Reading the changes of that message…"

_KEYS = {Pick.UP: Key.UP, Pick.DOWN: Key.DOWN, Pick.TAKE: Key.ENTER, Pick.CLOSE: Key.ESCAPE, Pick.DETAILS: Key.DETAILS}


class WayToGo(Struct, frozen=True):
    """What goes back, as it is offered: what `/rewind N` takes for it, and whether another model is chosen then."""

    label: str
    part: str = ""
    then_model: bool = False


_ALL_WAYS = (
    WayToGo("Conversation and files"),
    WayToGo("Conversation only", "conversation"),
    WayToGo("Files only", "files"),
    WayToGo("Conversation and files, and go on with another model", then_model=True),
)
_WITHOUT_FILES = (
    WayToGo("Conversation only", "conversation"),
    WayToGo("Conversation only, and go on with another model", "conversation", then_model=True),
)


def ways_back(preview: TurnPreview) -> Sequence[WayToGo]:
    """Give what can go back."""
    return _ALL_WAYS if any(one.what in ("write", "delete") for one in preview.paths) else _WITHOUT_FILES


def way_back(preview: TurnPreview, row: int) -> DoCommand:
    """Give the command that does what was chosen."""
    way = ways_back(preview)[row]
    return DoCommand("rewind", f"{preview.number} {way.part}".rstrip(), then_model=way.then_model)


def asking_back(preview: TurnPreview) -> Choosing:
    """Say what going back would do, and ask what of it is wanted."""
    return Choosing(
        title=f"Go back to before: {clip_text(exact_line(preview.asked), _ASKED)}",
        text=(f"{counted(preview.leaving, 'message')} would leave the conversation.", *_said_of_files(preview)),
        rows=tuple(ListRow(way.label) for way in ways_back(preview)),
        details=tuple(one.path for one in preview.paths if one.diff),
        escape=None,
        leaving="back to the list",
        approves=True,
    )


def _said_of_files(preview: TurnPreview) -> Iterator[str]:
    paths = {what: [one for one in preview.paths if one.what == what] for what in _PATHS}
    if preview.flaw:
        yield f"The files cannot be brought back. {exact_line(preview.flaw)}"
    elif not (paths["write"] or paths["delete"]):
        yield "No file would change."
    for what, found in paths.items():
        if found:
            names = [exact_line(one.path) + (f" ({exact_line(one.why)})" if one.why else "") for one in found[:_NAMED]]
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            yield f"{_PATHS[what]}: {', '.join(names)}{more}"
    if paths["write"]:
        yield "Changes that you or others have made since then are kept."


_PATHS = {
    "write": "Restored",
    "delete": "Deleted",
    "keep": "Left as it is",
    "conflict": "Left as it is, because it has been changed since then",
}
"""What is said of paths, by what would become of them."""


def back_diff(preview: TurnPreview, width: int, signs: Signs) -> list[Line]:
    """Lay out whole what would change in the files."""
    return [row for one in preview.paths if one.diff for row in diff_lines(one.diff, width, signs, whole=True)]


class TurnPicker:
    """The turns of a session, to go back to before one or to copy up to one; `command` is `rewind` or `fork`.

    `page` shows rows on a screen of their own, laid out for a width.
    """

    def __init__(
        self,
        session_id: str,
        command: str,
        *,
        aside: Aside,
        changed: Callable[[], None],
        page: Callable[[Callable[[int, Signs], Sequence[Line]]], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._id = session_id
        self._command = command
        self._aside = aside
        self._changed = changed
        self._page = page
        self.picker = TURNS[command]
        self._wanted = ""
        self._preview: TurnPreview | None = None
        self._laid_out: tuple[int, Signs, list[Line]] | None = None
        self._chooser: Chooser | None = None
        none: Sequence[ListedTurn] = ()
        aside.start(partial(listed_turns, session_id), self._take, none)

    def _take(self, turns: Sequence[ListedTurn]) -> None:
        self.picker = with_rows(self.picker, list(turn_rows(turns)))
        self._changed()

    def lines(self, width: int, rows: int, signs: Signs) -> list[Line]:
        """Draw the list, or what is asked of the message that was chosen."""
        if self._chooser is None or self._preview is None:
            return picker_lines(self.picker, width, signs)
        asked = chooser_lines(self._chooser, width, rows, signs)
        diff = self._diff(self._preview, width, signs)
        room = rows - len(asked) - 1
        if len(diff) > room:
            shown = max(0, room - 1)
            more = f"  {signs.more} {counted(len(diff) - shown, 'more line')}, ctrl-o shows all"
            diff = [*diff[:shown], clip(line(("dim", more)), width - 1, signs.more)]
        return [*diff, line(("dim", signs.rule * (width - 1))), *asked] if diff else asked

    def _diff(self, preview: TurnPreview, width: int, signs: Signs) -> list[Line]:
        """Give the diff of the message that was chosen; it is laid out anew only for another width."""
        if self._laid_out is None or self._laid_out[:2] != (width, signs):
            self._laid_out = width, signs, back_diff(preview, width, signs)
        return self._laid_out[2]

    def press(self, key: Pick, text: str = "") -> DoCommand | None:
        """Take a key; gives what is to be done once that is chosen."""
        if self._chooser is not None and self._preview is not None:
            return self._choose(self._chooser, self._preview, key, text)
        self._wanted = ""
        row = self.picker.row
        if key is not Pick.TAKE or row is None:
            self.picker = take_key(self.picker, key, text)
        elif self._command != "rewind":
            return DoCommand(self._command, row.id)
        else:
            self._wanted = row.id
            self.picker = replace(self.picker, hint=_READING)
            self._aside.start(partial(preview_turn, self._id, int(row.id)), partial(self._ask, row.id), None)
        return None

    @property
    def closes(self) -> bool:
        """Whether Esc closes all of it; else it goes back to the list."""
        return self._chooser is None

    def _ask(self, turn: str, preview: TurnPreview | None) -> None:
        if turn != self._wanted:
            return  # something else was pressed meanwhile
        hint = "" if preview is not None else "The changes of that message could not be read."
        self.picker = replace(self.picker, hint=hint)
        if preview is not None:
            self._preview, self._laid_out = preview, None
            self._follow(begin(asking_back(preview), self._loop.time()))
        self._changed()

    def _choose(self, chooser: Chooser, preview: TurnPreview, key: Pick, text: str) -> DoCommand | None:
        if key is Pick.DETAILS:
            head = replace(chooser.choosing, details=())
            self._page(lambda width, signs: [*whole_lines(head, width), *back_diff(preview, width, signs)])
            return None
        pressed = Press(_KEYS.get(key, Key.TEXT if key is Pick.TEXT else Key.OTHER), text, alone=len(text) <= 1)
        taken = take(chooser, pressed, self._loop.time())
        if isinstance(taken, Chooser):
            self._follow(taken)
            return None
        self._chooser = self._preview = None
        return None if taken.row is None else way_back(preview, taken.row)

    def _follow(self, chooser: Chooser) -> None:
        """Show how far the choice is, and see later that nobody types."""
        self._chooser = chooser
        if (at := due_at(chooser)) is not None:
            self._loop.call_at(max(at, self._loop.time()), self._rest)

    def _rest(self) -> None:
        if self._chooser is not None and (at := due_at(self._chooser)) is not None and at <= self._loop.time() + 0.001:
            self._follow(rest(self._chooser, self._loop.time()))
            self._changed()
