"""What the menu under the input offers, and the keys that `?` shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from treadle.door.commands import SLASH_TABLE
from treadle.door.known_models import EFFORT_BUDGETS, OfferedModel
from treadle.door.settings import KEY_ACTIONS, Colours
from treadle.present.escape import exact, printable
from treadle.present.mode_words import MODES_ABOUT
from treadle.present.words import clip_text, describe_allowance, plain
from treadle.protocol.notifications import QueuedPrompt
from treadle.protocol.permissions import Allowance
from treadle.tui.draft.menu import Menu, MenuEntry, argument_menu, fitting
from treadle.tui.lists.filter_list_rows import model_rows
from treadle.tui.paint.lines import Line, clip

if TYPE_CHECKING:
    from treadle.door.commands import NamedText

ArgumentMenus: TypeAlias = Mapping[str, Callable[[], Sequence[MenuEntry] | None]]
"""What each command can be followed by; None while that is being read."""

_ABOUT_LENGTH = 200

_COLOURS = {
    Colours.AUTO: "by the terminal's background",
    Colours.DARK: "for a dark background",
    Colours.LIGHT: "for a light background",
    Colours.ANSI: "the terminal's own 16 colours",
}


def menu_for(
    text: str,
    arguments: ArgumentMenus,
    named: Sequence[MenuEntry] = (),
    following: Callable[[str], Sequence[MenuEntry]] = lambda _: (),
) -> Menu:
    """Give the menu for a draft; empty for what is no slash command. `named` can be entered besides the commands.

    `following` gives what a draft that begins with one of those can become.
    """
    if not text.startswith("/") or "\n" in text:
        return Menu()
    name, blank, argument = text.partition(" ")
    if not blank:
        commands = [_command(row.usage, row.about_in_terminal, row.group) for row in SLASH_TABLE]
        return Menu(entries=fitting(name[1:], [*commands, *named]), typed=name[1:])
    if name not in arguments:
        return Menu(entries=tuple(following(text)), typed=argument, free=True)
    entries, argument = arguments[name](), argument.strip()
    if entries is None:
        return Menu(note="Reading…", typed=argument)
    return argument_menu(argument, entries)


def _command(usage: str, about: str, group: str) -> MenuEntry:
    name, _, argument = usage.partition(" ")
    return MenuEntry(name, about, f"{name} " if argument else name, bare=argument.startswith("["), group=group)


def named_entries(texts: "Sequence[NamedText]") -> Sequence[MenuEntry]:
    """Give the texts that can be entered by their names, with where they come from."""
    shown = [
        (one, printable(f"{clip_text(one.about, _ABOUT_LENGTH)} ({one.origin})")) for one in texts if not one.unused
    ]
    return [MenuEntry(f"/{one.name}", about, f"/{one.name} ", bare=True) for one, about in shown]


def effort_entries() -> Sequence[MenuEntry]:
    """Give what `/effort` can be followed by."""
    return [MenuEntry(effort, f"{budget:,} tokens", f"/effort {effort}") for effort, budget in EFFORT_BUDGETS.items()]


def mode_entries() -> Sequence[MenuEntry]:
    """Give what `/mode` can be followed by."""
    return [MenuEntry(mode, about, f"/mode {mode}") for mode, about in MODES_ABOUT.items()]


def colour_entries() -> Sequence[MenuEntry]:
    """Give what `/theme` can be followed by."""
    return [MenuEntry(colours, about, f"/theme {colours}") for colours, about in _COLOURS.items()]


def queue_entries(command: str, queue: Sequence[QueuedPrompt]) -> Sequence[MenuEntry]:
    """Give what a command on a message that waits can be followed by."""
    texts = [printable(clip_text(plain(one.content), _ABOUT_LENGTH)) for one in queue]
    return [MenuEntry(str(number), text, f"{command} {number}") for number, text in enumerate(texts, start=1)]


def allowance_entries(allowed: Sequence[Allowance]) -> Sequence[MenuEntry]:
    """Give what `/revoke` can be followed by."""
    texts = [exact(describe_allowance(one)) for one in allowed]
    return [MenuEntry(str(number), text, f"/revoke {number}") for number, text in enumerate(texts, start=1)]


def model_entries(models: Sequence[OfferedModel], now: str) -> Sequence[MenuEntry]:
    """Give what `/model` can be followed by."""
    return [
        MenuEntry(row.id, " · ".join(filter(None, row.columns[2:])), f"/model {row.id}", quiet=row.quiet)
        for row in model_rows(models, now)
    ]


KEYS = (
    ("enter", "send, or queue"),
    ("ctrl-s", "send at the next step"),
    ("alt-enter", "new line; or \\ and enter"),
    ("esc", "stop, hold what waits"),
    ("esc esc", "clear; empty: go back"),
    ("ctrl-c", "stop, clear, quit"),
    ("ctrl-d", "quit on an empty line"),
    ("tab", "complete, answer"),
    ("shift-tab", "next mode"),
    ("↑ ↓", "earlier messages"),
    ("↓", "subagents that work"),
    ("ctrl-r", "search them"),
    ("ctrl-o", "show all, unfolded"),
    ("ctrl-t", "to-do list"),
    ("ctrl-g", "your editor"),
    ("alt-p", "choose the model"),
    ("ctrl-z", "suspend"),
    ("ctrl-v", "attach a copied image"),
    ("!", "run a command yourself"),
    ("/", "commands"),
    ("@", "name a file"),
    ("?", "these keys"),
)
_VIM_ESC = ("esc", "vim: normal mode; stop")
_KEY, _ABOUT = 10, 25


def _with_own(own: Mapping[str, str]) -> list[tuple[str, str]]:
    """Give all keys, those of the person's own too; each does what the usual key of its action does."""
    abouts = dict(KEYS)
    return [*KEYS, *((key, abouts[KEY_ACTIONS[action]]) for action, key in own.items())]


def key_lines(width: int, own: Mapping[str, str], *, vim: bool = False) -> list[Line]:
    """Lay the keys out in as many columns as fit, three at most; with `vim`, Esc does something first."""
    keys = [_VIM_ESC if vim and row[0] == "esc" else row for row in _with_own(own)]
    columns = max(1, min(3, width // (_KEY + _ABOUT + 2)))
    height = -(-len(keys) // columns)
    rows: list[Line] = []
    for number in range(height):
        row: Line = ()
        for key, about in keys[number::height]:
            row = (*row, ("accent", f" {key:<{_KEY}} "), ("dim", f"{about:<{_ABOUT}}"))
        rows.append(clip(row, width - 1))
    return rows


def keys_text(own: Mapping[str, str]) -> str:
    """List the keys for the scrollback."""
    return "\n".join(f"{key:<{_KEY}} {about}" for key, about in _with_own(own))
