"""The menu under the input: what the word at the cursor may become."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace
from prompt_toolkit.utils import get_cwidth

from treadle.tui.paint.lines import Line, apart, clip, line
from treadle.tui.paint.theme import Signs

MENU_ROWS = 8
_NEAREST = 3
_WORDS = re.compile(r"[^\W_]+")


class MenuEntry(Struct, frozen=True):
    """One row: what it is called, what it is, and what the line becomes.

    `bare` says of a command with an argument that it can be entered without one. `group`: what it is one of.
    `quiet`: it is shown where no other fits what is typed, or where it is exactly that.
    """

    name: str
    about: str
    becomes: str
    bare: bool = False
    group: str = ""
    quiet: bool = False


class Menu(Struct, frozen=True, kw_only=True):
    """The rows that fit what is `typed`, and the chosen one; it is empty where nothing fits.

    `more` says that others fit, too, `moved` that the person chose the row, `meant` that what is typed names it. A
    `chosen` below 0 is none. `note` stands above the rows. `free`: what is typed may be something else than any row.
    """

    entries: tuple[MenuEntry, ...] = ()
    chosen: int = 0
    typed: str = ""
    more: bool = False
    moved: bool = False
    meant: bool = False
    note: str = ""
    free: bool = False

    def move(self, rows: int) -> "Menu":
        """Move the choice; it goes round, and from none to the first or the last."""
        chosen = self.chosen if self.chosen >= 0 else min(-rows, 0)
        return replace(self, chosen=(chosen + rows) % max(1, len(self.entries)), moved=True)

    @property
    def entry(self) -> MenuEntry | None:
        """The chosen row."""
        return self.entries[self.chosen] if self.entries and self.chosen >= 0 else None


def fitting(typed: str, entries: Sequence[MenuEntry]) -> tuple[MenuEntry, ...]:
    """Choose the entries that hold the typed characters in this order; the one of this name is first.

    Behind it are those that begin with them: Enter behind a whole name does what has it.
    """
    typed = typed.casefold()
    found = [entry for entry in entries if in_order(typed, _plain(entry.name))]
    return tuple(sorted(found, key=lambda entry: (_plain(entry.name) != typed, not begins(entry, typed))))


def fitting_arguments(typed: str, entries: Sequence[MenuEntry]) -> tuple[MenuEntry, ...]:
    """Choose the entries that hold what is typed, or its characters in order; they stay in their own order."""
    typed = typed.casefold()
    found = [(_plain(entry.name), entry) for entry in entries]
    ranked = [(0 if typed == name else 1 if typed in name else 2, entry) for name, entry in found]
    kept = [(rank, entry) for (rank, entry), (name, _) in zip(ranked, found, strict=True) if in_order(typed, name)]
    kept = [(rank, entry) for rank, entry in kept if not rank or not entry.quiet] or kept
    return tuple(entry for _, entry in sorted(kept, key=lambda one: one[0]))


def argument_menu(typed: str, entries: Sequence[MenuEntry]) -> Menu:
    """Offer the entries that fit; the one that is meant is chosen."""
    fit = fitting_arguments(typed, entries)
    meant = meant_entry(typed, fit)
    return Menu(entries=fit, typed=typed, meant=meant is not None, chosen=fit.index(meant) if meant is not None else 0)


def meant_entry(typed: str, entries: Sequence[MenuEntry]) -> MenuEntry | None:
    """Give the one entry that has this name, whose last part is it, begins with it, or else holds it.

    None where that is said of several or of none.
    """
    typed = typed.casefold()
    names = [(entry, _plain(entry.name)) for entry in entries]
    own = [(entry, name.rpartition("/")[2]) for entry, name in names]
    for found in (
        [entry for entry, name in names if name == typed],
        [entry for entry, name in own if name == typed],
        [entry for entry, name in own if typed and name.startswith(typed)],
        [entry for entry, name in own if typed and typed in name],
    ):
        if found:
            return found[0] if len(found) == 1 else None
    return None


def unclear_menu(typed: str, menu: Menu, entries: Sequence[MenuEntry]) -> Menu:
    """Leave the choice to the person: those that hold what is typed, or else those that are spelled most like it."""
    holding = [entry for entry in menu.entries if typed.casefold() in _plain(entry.name)]
    rows = tuple(holding) or _alike(typed, [entry for entry in entries if not entry.quiet] or entries) or menu.entries
    note = f"Several have {typed} in their name." if len(holding) > 1 else f"No name has {typed} in it."
    if len(holding) == 1:
        note = f"{typed} alone is no name."
    return replace(menu, entries=rows, typed=typed, chosen=-1, moved=False, meant=False, note=f"{note} ↑↓ choose")


def _alike(typed: str, entries: Sequence[MenuEntry]) -> tuple[MenuEntry, ...]:
    """Give the entries of which a word is spelled like what is typed, the nearest first."""
    typed = typed.casefold()
    words = {entry: _WORDS.findall(_plain(entry.name)) for entry in entries}
    near = get_close_matches(typed, {word for of in words.values() for word in of}, n=_NEAREST)
    return tuple(dict.fromkeys(entry for word in near for entry, of in words.items() if word in of))


def begins(entry: MenuEntry, typed: str) -> bool:
    """Whether the name of an entry begins with what is typed."""
    return _plain(entry.name).startswith(typed.casefold())


def _plain(name: str) -> str:
    return name.casefold().removeprefix("/")


def in_order(typed: str, text: str) -> bool:
    """Whether a text has the typed characters in this order, with others between them."""
    rest = iter(text)
    return all(char in rest for char in typed)


def menu_lines(menu: Menu, width: int, signs: Signs) -> list[Line]:
    """Lay the menu out; of many rows those around the chosen one, and how many there are."""
    count = len(menu.entries)
    rows = [clip(line(("dim", f"  {menu.note}")), width - 1, signs.more)] if menu.note else []
    first = max(0, min(menu.chosen - MENU_ROWS // 2, count - MENU_ROWS))
    shown = menu.entries[first : first + MENU_ROWS]
    longest = max((get_cwidth(entry.name) for entry in shown), default=0)
    column = min(24 if width < _WIDE else width // 2, longest + 2)
    for number, entry in enumerate(shown, start=first):
        chosen = number == menu.chosen
        mark = f"{signs.chosen} " if chosen else " " * (len(signs.chosen) + 1)
        place = f"{menu.chosen + 1}/{count}{'+' if menu.more else ''}" if chosen and count > MENU_ROWS else ""
        begins_group = width >= _WIDE and (number == first or menu.entries[number - 1].group != entry.group)
        label = f" {signs.dot} ".join(filter(None, (entry.group if begins_group else "", place)))
        name = _shortened(entry.name, column - 2 if entry.about else width - 12, signs)
        name += " " * (column - get_cwidth(name)) if entry.about else ""
        row = line(("accent" if chosen else "", f"{mark}{name}"), ("dim", entry.about))
        right = line(("dim", label))
        room = width - max(8, get_cwidth(label) + 3)
        rows.append(apart(clip(row, room, signs.more), right, width - 1) or clip(row, width - 1, signs.more))
    return rows


_WIDE = 60


def _shortened(path: str, room: int, signs: Signs) -> str:
    """Leave out the beginning of a path that is too wide."""
    if get_cwidth(path) <= room:
        return path
    kept = path[-room:]
    while kept and get_cwidth(kept) > room - len(signs.more):
        kept = kept[1:]
    return signs.more + kept
