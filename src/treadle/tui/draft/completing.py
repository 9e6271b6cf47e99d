"""What is completed while the draft is written: commands, what they can be followed by, and names of files."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.door.commands import last_word, named_texts
from treadle.door.message_parts import (
    MENTION_WORDS,
    Index,
    Mention,
    PathSearch,
    complete,
    mention_at,
    mentionable_paths,
)
from treadle.door.open_session import SessionAccess
from treadle.tui.draft.mentions import mentioned
from treadle.tui.draft.menu import Menu, MenuEntry, begins, unclear_menu
from treadle.tui.draft.menus import ArgumentMenus, menu_for, named_entries
from treadle.tui.screen import Screen
from treadle.tui.session.aside import Aside

if TYPE_CHECKING:
    from treadle.door.commands import NamedText

_GOOD_FOR = 10.0
"""Seconds after which the files are listed again, when one is to be named."""

_MOMENT = 0.015
"""Seconds that a search may take before keys and drawing have their turn."""

_REMEMBERED = 50

_BEFORE_WORDS = 2
"""Characters up to which files come before the mentions that are none."""


class Files:
    """The files of a workspace, listed aside when they are wanted; `named` are those that the person named lately."""

    def __init__(self, folder: Path, *, trusted: Callable[[], bool], aside: Aside, changed: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._folder = folder
        self._trusted = trusted
        self._aside = aside
        self._changed = changed
        self._listing = False
        self._old_at = float("-inf")
        self._named: dict[str, None] = {}
        self._last: PathSearch | None = None
        self.index: Index | None = None

    def remember(self, text: str) -> None:
        """Offer first what a message names."""
        for path in mentioned(text):
            self._named.pop(path, None)
            self._named[path] = None
        self._named = dict.fromkeys(list(self._named)[-_REMEMBERED:])

    def grow_old(self) -> None:
        """List them again when one is to be named next: something was done meanwhile."""
        self._old_at = float("-inf")

    def begin(self) -> None:
        """List the files, unless that was done just now."""
        if not self._listing and self._loop.time() >= self._old_at:
            self._listing = True
            self._old_at = self._loop.time() + _GOOD_FOR
            self._aside.start(partial(_listed, str(self._folder), self._trusted()), self._take, Index(()))

    def _take(self, index: Index) -> None:
        self._listing, self.index, self._last = False, index, None
        self._changed()

    def finding(self, typed: str) -> PathSearch | None:
        """Begin to look for files; where few were left of a shorter text, among those. None until they are listed."""
        if self.index is None:
            return None
        last, within = self._last, self.index
        if last is not None and last.done and not last.more and last.typed and typed.startswith(last.typed):
            within = Index(last.paths)
        named = Index([path for path in reversed(self._named) if path in within])
        self._last = PathSearch(typed, within, named)
        return self._last


def _listed(root: str, trusted: bool) -> Index:  # noqa: FBT001 - handed over with its name by `partial`'s caller
    return Index(mentionable_paths(root, trusted=trusted))


class NamedMenu:
    """The texts that can be entered by a name, read aside when a command is typed, and what can follow them."""

    def __init__(self, live: SessionAccess, *, aside: Aside, changed: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._live = live
        self._aside = aside
        self._changed = changed
        self._old_at = float("-inf")
        self._entries: Sequence[MenuEntry] = ()
        self._prompts: Mapping[str, tuple[str, str]] = {}
        self._asked, self._wanted = "", ""
        self._following: tuple[str, Sequence[MenuEntry]] = ("", ())

    def entries(self) -> Sequence[MenuEntry]:
        """Give what is known, and read it again if that was long ago."""
        if self._loop.time() >= self._old_at:
            self._old_at = self._loop.time() + _GOOD_FOR
            none: Sequence[NamedText] = ()
            self._aside.start(lambda: named_texts(self._live.trust), self._take, none)
        return self._entries

    def _take(self, texts: "Sequence[NamedText]") -> None:
        entries = named_entries(texts)
        self._prompts = {f"/{one.name}": (one.server, one.prompt) for one in texts if one.server and not one.unused}
        changed, self._entries = entries != self._entries, entries
        if changed:
            self._changed()

    def following(self, text: str) -> Sequence[MenuEntry]:
        """Give what a draft that begins with the prompt of a server can become; the server is asked aside.

        Of what is typed while it is asked only the last is asked next. Nothing waits for its answer.
        """
        known, entries = self._following
        if known == text:
            return entries
        name, _, said = text.partition(" ")
        servers, prompt = self._live.servers, self._prompts.get(name)
        self._wanted = "" if servers is None or prompt is None else text
        if servers is not None and prompt is not None and not self._asked:
            self._asked = text
            nothing: Sequence[str] = ()
            self._aside.start(lambda: servers.complete(prompt, said), partial(self._follow, text), nothing)
        return ()

    def _follow(self, text: str, words: Sequence[str]) -> None:
        self._asked = ""
        begin = text[: last_word(text)]
        self._following = (text, [MenuEntry(word, "", f"{begin}{word}") for word in words])
        if self._wanted:  # else it is not typed any more
            self._changed()


class Completing:
    """The menu of the draft: what it offers, and what becomes of the draft with it."""

    def __init__(
        self,
        *,
        screen: Screen,
        files: Files,
        arguments: ArgumentMenus,
        named: Callable[[], Sequence[MenuEntry]] = tuple,
        following: Callable[[str], Sequence[MenuEntry]] = lambda _: (),
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._screen = screen
        self._arguments = arguments
        self._named = named
        self._following = following
        self._mention: Mention | None = None
        self._finding: PathSearch | None = None
        self._closed: tuple[str, int] = ("", -1)
        self._seen = ("", 0, True)
        self.files = files
        self.menu = Menu()

    def typed(self, *, by_hand: bool = True) -> None:
        """See what the draft has become; what was not written just now opens no menu."""
        text, cursor = self._screen.text, self._screen.cursor
        if self._seen == (text, cursor, by_hand):
            return
        self._seen = (text, cursor, by_hand)
        self._finding = None
        self._mention = mention_at(text, cursor) if by_hand else None
        if self._closed != (text, -1) and (self._mention is None or self._mention.start != self._closed[1]):
            self._closed = ("", -1)
        if self._closed != ("", -1) or not by_hand:
            self.menu, self._mention = Menu(), None
        elif self._mention is None:
            named = self._named() if text.startswith("/") else ()
            self.menu = menu_for(text, self._arguments, named, self._following)
        else:
            self._find(self._mention)

    def follow(self) -> None:
        """See what is known now of what is being typed: files or models were listed. A choice of the person stays."""
        waits = bool(self.menu.note) and not self.menu.entries
        theirs = self.menu.moved or self.menu.chosen < 0
        if waits or (not theirs and (self._mention is not None or self._screen.text.startswith("/"))):
            self._seen = ("", 0, True)
            self.typed()

    def _find(self, mention: Mention) -> None:
        self.files.begin()
        self._finding = self.files.finding(mention.path)
        self.menu = Menu(note="Listing the files…")
        self._go_on(self._finding)

    def _go_on(self, finding: PathSearch | None) -> None:
        """Search for a moment; the rest of it comes when keys and drawing had theirs."""
        if finding is None or finding is not self._finding or self._mention is None:
            return
        end = time.perf_counter() + _MOMENT
        finding.go_on(lambda: time.perf_counter() >= end)
        # A folder that is there already is followed by what is in it.
        typed = self._mention.path
        words = [MenuEntry(word, about, word) for word, about in MENTION_WORDS.items() if word.startswith(typed)]
        paths = [MenuEntry(path, "", path) for path in finding.paths if path != typed or not path.endswith("/")]
        entries = (*words, *paths) if len(typed) > _BEFORE_WORDS else (*paths, *words)
        chosen = self.menu.chosen if self.menu.moved else 0
        note = "" if finding.done else self.menu.note and "Searching…"
        self.menu = replace(self.menu, entries=entries, chosen=chosen, more=finding.more, note=note)
        if not finding.done:
            self._loop.call_soon(self._go_on, finding)
        self._screen.refresh_now()

    @property
    def takes_enter(self) -> bool:
        """Whether Enter completes the name of a file, that is, unless it is there already."""
        entry = self.menu.entry
        return self._mention is not None and entry is not None and entry.name != self._mention.path

    def move(self, rows: int) -> None:
        """Move the choice."""
        self.menu = self.menu.move(rows)

    def close(self) -> None:
        """Close the menu; it stays closed for this text, or this name of a file."""
        self._closed = (self._screen.text, -1) if self._mention is None else ("", self._mention.start)
        self.menu, self._mention = Menu(), None

    def take(self) -> None:
        """Put the chosen row into the draft."""
        entry = self.menu.entry
        if entry is None:
            self.move(1)
            return
        if self._mention is None:
            self._screen.complete(entry.becomes, len(entry.becomes))
        else:
            self._screen.complete(*complete(self._screen.text, self._mention, entry.becomes))

    def entered(self, text: str, *, steer: bool) -> str | None:
        """Give the line to do or to send; None where something has to follow it, or it is unclear what is meant."""
        menu, self.menu, self._mention = self.menu, Menu(), None
        self.files.remember(text)
        if not text.startswith("/") or steer or not menu.entries:
            return text
        entry = menu.entry
        if entry is not None and _is_meant(text, menu, entry):
            if not entry.becomes.endswith(" ") or entry.bare:
                return entry.becomes.strip()
            self._screen.complete(entry.becomes, len(entry.becomes))
            return None
        return text if self._is_clear(text, menu) else None

    def _is_clear(self, text: str, menu: Menu) -> bool:
        """Whether a line goes on as it is written; else the menu stays open, with no row chosen."""
        name, blank, _ = text.partition(" ")
        if not blank or menu.free or not menu.typed or "/" in menu.typed or name not in self._arguments:
            return True
        self._screen.complete(text, len(text))
        self.menu = unclear_menu(menu.typed, menu, self._arguments[name]() or ())
        return False


def _is_meant(text: str, menu: Menu, entry: MenuEntry) -> bool:
    """Whether Enter takes the chosen row. A name that is written whole may be one that no row has."""
    if menu.free or menu.moved:
        return menu.moved
    return menu.meant if " " in text else begins(entry, menu.typed)
