"""The menu under the input: what a line that begins with a slash may become."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.tui.lines import Line, apart, clip, line
from treadle.tui.theme import Signs

MOST_ROWS = 8


class Entry(Struct, frozen=True):
    """One row: what it is called, what it is, and what the line becomes."""

    name: str
    about: str
    becomes: str


class Menu(Struct, frozen=True, kw_only=True):
    """The rows that fit what is typed, and the chosen one; it is empty where nothing fits."""

    entries: tuple[Entry, ...] = ()
    chosen: int = 0

    def move(self, rows: int) -> "Menu":
        """Move the choice; it goes round."""
        return replace(self, chosen=(self.chosen + rows) % max(1, len(self.entries)))

    @property
    def entry(self) -> Entry | None:
        """The chosen row."""
        return self.entries[self.chosen] if self.entries else None


def fitting(typed: str, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Choose the entries that hold the typed characters in this order; those that begin with them first."""
    found = [entry for entry in entries if _holds(_plain(entry.name), typed.casefold())]
    return tuple(sorted(found, key=lambda entry: not begins(entry, typed)))


def begins(entry: Entry, typed: str) -> bool:
    """Whether the name of an entry begins with what is typed."""
    return _plain(entry.name).startswith(typed.casefold())


def _plain(name: str) -> str:
    return name.casefold().removeprefix("/")


def _holds(name: str, typed: str) -> bool:
    rest = iter(name)
    return all(char in rest for char in typed)


def menu_lines(menu: Menu, width: int, signs: Signs) -> list[Line]:
    """Lay the menu out; of many rows those around the chosen one, and how many there are."""
    count = len(menu.entries)
    first = max(0, min(menu.chosen - MOST_ROWS // 2, count - MOST_ROWS))
    shown = menu.entries[first : first + MOST_ROWS]
    column = min(24, max((len(entry.name) for entry in shown), default=0) + 2)
    rows: list[Line] = []
    for number, entry in enumerate(shown, start=first):
        chosen = number == menu.chosen
        mark = f"{signs.chosen} " if chosen else " " * (len(signs.chosen) + 1)
        row = line(("accent" if chosen else "", f"{mark}{entry.name:<{column}}"), ("dim", entry.about))
        place = line(("dim", f"{menu.chosen + 1}/{count}" if chosen and count > MOST_ROWS else ""))
        rows.append(apart(clip(row, width - 8, signs.more), place, width - 1) or clip(row, width - 1, signs.more))
    return rows
