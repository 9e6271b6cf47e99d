"""A list to choose from, with a line that filters it: the models, the sessions. No clock, no I/O."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from treadle.tui.draft.menu import in_order
from treadle.tui.paint.lines import CURSOR, Line, apart, cells, clip, line
from treadle.tui.paint.theme import Signs

PICKER_ROWS = 8
_LONGEST_FILTER = 200
_LEAST_NAME = 16


class Pick(Enum):
    """A key of a picker."""

    UP = "up"
    DOWN = "down"
    PAGE_UP = "page up"
    PAGE_DOWN = "page down"
    LEFT = "left"
    RIGHT = "right"
    TAKE = "take"
    DEFAULT = "as default"
    ALL = "all"
    RUB_OUT = "rub out"
    CLEAR = "clear"
    CLOSE = "close"
    TAB = "tab"
    DETAILS = "details"
    STOP = "stop"
    TEXT = "text"
    OTHER = "other"


class PickerRow(Struct, frozen=True, kw_only=True):
    """One row: its columns, what the filter looks for, the line below while it is chosen, why it cannot be chosen.

    All texts are harmless to show. A row with a `flaw` is shown and not taken.
    """

    id: str
    columns: tuple[str, ...]
    search: str
    below: str = ""
    flaw: str = ""
    quiet: bool = False


class Shape(Struct, frozen=True, kw_only=True):
    """How columns are laid out: the one that takes the room that is left, those that end at the right.

    `dropped` are left out where there is too little room, the first of them first.
    """

    wide: int
    right: frozenset[int] = frozenset()
    dropped: tuple[int, ...] = ()


class Picker(Struct, frozen=True, kw_only=True):
    """What is shown and chosen. `rows` is None until they are known; `empty` and
    `unfit` are said where there is none, and where none fits what is typed.

    `chosen` is the place among those that fit `typed`; `keys` are said below.
    """

    title: str
    shape: Shape
    rows: tuple[PickerRow, ...] | None = None
    empty: str = "There is nothing here."
    unfit: str = "Nothing fits."
    typed: str = ""
    chosen: int = 0
    keys: tuple[str, ...] = ()
    hint: str = ""
    found: tuple[PickerRow, ...] = ()

    @property
    def row(self) -> PickerRow | None:
        """The chosen row."""
        return self.found[self.chosen] if self.found else None


def with_rows(picker: Picker, rows: Sequence[PickerRow], chosen: str = "") -> Picker:
    """Give a picker its rows; the one that was chosen stays so, else `chosen` is, else the first."""
    wanted = picker.row.id if picker.row is not None else chosen
    return _filtered(replace(picker, rows=tuple(rows)), picker.typed, wanted)


def take_key(picker: Picker, key: Pick, text: str = "") -> Picker:
    """Take a key that moves the choice or changes the filter; any other changes nothing."""
    picker = replace(picker, hint="")
    match key:
        case Pick.TEXT:
            return _filtered(picker, (picker.typed + _one_line(text))[:_LONGEST_FILTER])
        case Pick.RUB_OUT:
            return _filtered(picker, picker.typed[:-1])
        case Pick.CLEAR:
            return _filtered(picker, "")
        case Pick.UP | Pick.DOWN:
            step = 1 if key is Pick.DOWN else -1
            return replace(picker, chosen=(picker.chosen + step) % max(1, len(picker.found)))
        case Pick.PAGE_UP | Pick.PAGE_DOWN:
            step = PICKER_ROWS if key is Pick.PAGE_DOWN else -PICKER_ROWS
            return replace(picker, chosen=max(0, min(picker.chosen + step, len(picker.found) - 1)))
        case _:
            return picker


def _one_line(text: str) -> str:
    return "".join(char for char in text if char.isprintable())


def _filtered(picker: Picker, typed: str, wanted: str = "") -> Picker:
    """Choose the rows that hold each word of the filter; where none does, those with its characters in their order."""
    words = typed.casefold().split()
    rows = picker.rows or ()
    ranks = [max((_rank(word, row.search) for word in words), default=0) for row in rows]
    best = min(ranks, default=2)
    found = tuple(row for row, rank in zip(rows, ranks, strict=True) if rank == best < _NOT_AT_ALL)
    chosen = next((number for number, row in enumerate(found) if row.id == wanted), 0)
    return replace(picker, typed=typed, found=found, chosen=chosen)


_NOT_AT_ALL = 2


def _rank(word: str, text: str) -> int:
    """0 where a text holds a word, 1 where it has its characters in order, 2 where it does not."""
    return 0 if word in text else 1 if in_order(word, text) else _NOT_AT_ALL


def picker_lines(picker: Picker, width: int, signs: Signs) -> list[Line]:
    """Lay the picker out: what is typed, the rows around the chosen one, and the keys."""
    count = len(picker.found)
    begin = line(("bold", f"  {picker.title} "), ("accent", f"{signs.prompt} "), picker.typed, CURSOR)
    begin = begin if picker.typed else (*begin, ("dim", "type to filter"))
    place = line(("dim", f"{picker.chosen + 1}/{count}" if count else ""))
    head = apart(begin, place, width - 1) or clip(begin, width - 1, signs.more)
    rows = [head]
    if not count:
        none = "Reading…" if picker.rows is None else picker.unfit if picker.typed.strip() else picker.empty
        rows.append(clip(line(("dim", f"  {none}")), width - 1, signs.more))
    first = max(0, min(picker.chosen - PICKER_ROWS // 2, count - PICKER_ROWS))
    shown = picker.found[first : first + PICKER_ROWS]
    widths = _widths(shown, picker.shape, width - 3)
    for number, row in enumerate(shown, start=first):
        rows += _row(row, widths, picker, chosen=number == picker.chosen, width=width, signs=signs)
    keys = list(picker.keys)
    while len(keys) > 1 and cells(_keys(keys, signs)) > width - 1:
        keys.pop(-2)
    return [*rows, clip(line(("warn", f"  {picker.hint}")) if picker.hint else _keys(keys, signs), width - 1)]


def _keys(keys: Sequence[str], signs: Signs) -> Line:
    return line(("dim", "  " + f" {signs.dot} ".join(keys)))


def _row(
    row: PickerRow, widths: dict[int, int], picker: Picker, *, chosen: bool, width: int, signs: Signs
) -> list[Line]:
    mark = f"{signs.chosen} " if chosen else " " * (len(signs.chosen) + 1)
    drawn = line(("accent" if chosen else "", mark))
    for number, room in widths.items():
        role = "accent" if chosen else "dim" if row.quiet or row.flaw or number != picker.shape.wide else ""
        cell = clip(line((role, row.columns[number])), room, signs.more)
        blank = line(("", " " * (room - cells(cell))))
        drawn = (*drawn, *((*blank, *cell) if number in picker.shape.right else (*cell, *blank)), ("", "  "))
    rows = [clip(drawn[:-1], width - 1, signs.more)]
    below = row.flaw or row.below
    if chosen and below:
        rows.append(clip(line("    ", ("warn" if row.flaw else "dim", below)), width - 1, signs.more))
    return rows


def _widths(rows: Sequence[PickerRow], shape: Shape, width: int) -> dict[int, int]:
    """Give each column that has room its width."""
    count = max((len(row.columns) for row in rows), default=0)
    wanted = {number: max(cells(line(row.columns[number])) for row in rows) for number in range(count)}
    wanted = {number: wide for number, wide in wanted.items() if wide or number == shape.wide}
    dropped = [number for number in shape.dropped if number in wanted]
    while True:
        left = width - sum(wide + 2 for number, wide in wanted.items() if number != shape.wide)
        if left >= min(_LEAST_NAME, wanted.get(shape.wide, 0)) or not dropped:
            break
        del wanted[dropped.pop(0)]
    if shape.wide in wanted:
        wanted[shape.wide] = max(2, min(wanted[shape.wide], left))
    return wanted
