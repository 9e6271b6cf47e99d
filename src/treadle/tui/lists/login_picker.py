"""Storing a provider's key in a running session: whose it is, the key, which is never shown, and one call with it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.known_models import (
    KeyOwner,
    clean_key,
    keep_key,
    key_owner,
    key_owners,
    stored_words,
    try_key,
    where_to_get,
)
from treadle.door.settings import load_settings
from treadle.present.items import NoteItem
from treadle.protocol.errors import ConfigError
from treadle.tui.lists.filter_list import Pick, Picker, PickerRow, Shape, picker_lines, take_key, with_rows
from treadle.tui.paint.lines import Line, cells, clip, line, wrap
from treadle.tui.paint.theme import Signs
from treadle.tui.screen import Screen
from treadle.tui.session.aside import Aside
from treadle.tui.session.greeting import short_path

_MOST_DOTS = 24
_LONGEST_FILTER = 20
_OWNERS = Picker(
    title="Whose API key?",
    shape=Shape(wide=0),
    empty="No provider needs a key.",
    keys=("↑↓ enter", "esc close"),
)


class HiddenField(Struct, frozen=True, kw_only=True):
    """A line of `count` characters that is not shown; `problem` is what was wrong with the one before."""

    title: str
    text: str
    count: int = 0
    problem: str = ""


def hidden_lines(hidden: HiddenField, width: int, signs: Signs) -> list[Line]:
    """Lay a hidden line out, below what is asked for."""
    bar = line(("warn", signs.bar), " ")
    inner = width - cells(bar)
    above = wrap(line(("bold", hidden.title)), inner)
    if hidden.problem:
        above += wrap(line(("warn", f"  {hidden.problem}")), inner, line("  "))
    above += wrap(line(f"  {hidden.text}"), inner, line("  "))
    dots = min(hidden.count, _MOST_DOTS, inner // 2) * "•"
    said = f"  {hidden.count} characters" if hidden.count else ""
    field = clip(line(("accent", f"{signs.prompt} "), dots, ("dim", said)), inner, signs.more)
    hints = f"enter try it {signs.dot} ctrl-u clear {signs.dot} esc back"
    return [(*bar, *row) for row in (*above, field, clip(line(("dim", hints)), inner, signs.more))]


def waiting_lines(text: str, width: int, signs: Signs) -> list[Line]:
    """Say what is being done, and that Esc does not wait for it."""
    row = line(("accent", signs.running), f" {text}{signs.more} ", ("dim", f"{signs.dot} esc to skip"))
    return [clip(row, width - 1, signs.more)]


class LoginPicker:
    """One key; nothing of it is kept here once it is stored. `closed` is called when there is nothing to ask any more.

    `named` is the provider where the person said one, `refused` takes what was wrong that no key can correct.
    """

    def __init__(
        self,
        named: str,
        *,
        screen: Screen,
        aside: Aside,
        show: Callable[..., None],
        refused: Callable[[ConfigError], None],
        closed: Callable[[], None],
    ) -> None:
        self._screen = screen
        self._show = show
        self._refused = refused
        self._closed = closed
        self._owners: dict[str, KeyOwner] = {}
        self._owner: KeyOwner | None = None
        self._typed = self._problem = ""
        self._trying: asyncio.Task[None] | None = None
        self._picker = _OWNERS
        nobody: tuple[KeyOwner | None, tuple[KeyOwner, ...]] = (None, ())
        aside.start(partial(_owners, named), self._take_owners, nobody)

    def _take_owners(self, found: tuple[KeyOwner | None, tuple[KeyOwner, ...]]) -> None:
        self._owner, owners = found
        self._owners = {one.name: one for one in owners}
        rows = [
            PickerRow(id=one.name, columns=(one.title, one.name), search=f"{one.title} {one.name}".casefold())
            for one in owners
        ]
        self._picker = with_rows(self._picker, rows)
        self._screen.refresh_now()

    def lines(self, width: int, signs: Signs) -> list[Line]:
        """Draw what is asked for now."""
        owner = self._owner
        if owner is None:
            return picker_lines(self._picker, width, signs)
        if self._trying is not None:
            return waiting_lines(f"Trying the key with {owner.title}", width, signs)
        text = f"Paste it. It is not shown, and it is sent to {owner.title} alone. {where_to_get(owner.provider)}"
        title = f"API key of {owner.title}"
        hidden = HiddenField(title=title, text=text, count=len(self._typed), problem=self._problem)
        return hidden_lines(hidden, width, signs)

    def press(self, key: Pick, text: str = "") -> None:
        """Take a key."""
        if self._trying is not None:
            if key is Pick.CLOSE:
                self._trying.cancel()
        elif self._owner is not None:
            self._write(self._owner, key, text)
        elif key is Pick.CLOSE:
            self._closed()
        elif key is Pick.TAKE:
            self._owner = self._owners.get(self._picker.row.id) if self._picker.row is not None else None
        elif key is Pick.TEXT and (len(text) > 1 or len(self._picker.typed) >= _LONGEST_FILTER):
            # What is pasted here is likely to be the key, and this line is shown.
            self._picker = replace(
                self._picker, typed="", hint="Choose whose key it is first. It is pasted after that."
            )
            self._picker = with_rows(self._picker, self._picker.rows or ())
        else:
            self._picker = take_key(self._picker, key, text)

    def _write(self, owner: KeyOwner, key: Pick, text: str) -> None:
        match key:
            case Pick.TEXT:
                self._typed += text.strip("\r\n")
            case Pick.RUB_OUT:
                self._typed = self._typed[:-1]
            case Pick.CLEAR:
                self._typed = ""
            case Pick.CLOSE:
                self._typed = self._problem = ""
                self._owner = None
                if not self._owners:
                    self._closed()
            case Pick.TAKE if self._typed:
                self._begin(owner)
            case _:
                pass

    def _begin(self, owner: KeyOwner) -> None:
        typed, self._typed = self._typed, ""
        try:
            value = clean_key(typed)
        except ConfigError as error:
            self._problem = f"{error.what} {error.why}"
            return
        self._trying = self._screen.later(self._store(owner, value))

    async def _store(self, owner: KeyOwner, value: str) -> None:
        check = None
        try:
            settings = await asyncio.to_thread(load_settings, {})
            with suppress(asyncio.CancelledError):  # the person does not wait for the answer
                check = await try_key(settings, owner.name, value)
            self._trying = None
            place = await asyncio.to_thread(keep_key, owner.name, value, check)
            said = await asyncio.to_thread(stored_words, settings, owner.name, short_path(place), check)
        except ConfigError as error:
            self._trying = None
            if error.code != "key-refused":
                self._closed()
                self._refused(error)
                return
            self._problem = f"{error.what} {error.why} {where_to_get(owner.provider)}"
        except asyncio.CancelledError:
            self._trying = None
            self._closed()  # before there was anything to try: nothing is stored
        else:
            self._closed()
            self._show(NoteItem(said))
        self._screen.refresh_now()


def _owners(named: str) -> tuple[KeyOwner | None, tuple[KeyOwner, ...]]:
    """Find whose key it is, else all whose it can be. To be called in a thread."""
    settings = load_settings({})
    owner = key_owner(settings, named) if named else None
    return owner, () if owner is not None else tuple(key_owners(settings))
