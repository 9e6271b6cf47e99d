"""What the menu under the input offers, and the keys that `?` shows."""

from treadle.protocol.permissions import Mode
from treadle.tui.commands import HELP
from treadle.tui.lines import Line, clip
from treadle.tui.menu import Entry, Menu, fitting

_MODES = {
    Mode.PLAN: "look and plan, change nothing",
    Mode.ASK: "ask before anything that changes something",
    Mode.EDITS: "edit files without asking, ask before commands",
    Mode.AUTO: "run commands without asking where there is a sandbox",
    Mode.FULL: "ask only before what is dangerous",
}


def menu_for(text: str) -> Menu:
    """Give the menu for a draft; empty for what is no slash command."""
    if not text.startswith("/") or "\n" in text:
        return Menu()
    name, blank, argument = text.partition(" ")
    if not blank:
        commands = [_command(usage, about) for usage, about in HELP]
        return Menu(entries=fitting(name[1:], commands))
    if name == "/mode":
        modes = [Entry(mode, about, f"/mode {mode}") for mode, about in _MODES.items()]
        return Menu(entries=fitting(argument.strip(), modes))
    return Menu()


def _command(usage: str, about: str) -> Entry:
    name, _, argument = usage.partition(" ")
    return Entry(name, about, f"{name} " if argument else name)


KEYS = (
    ("enter", "send, or queue"),
    ("ctrl-s", "send at the next step"),
    ("alt-enter", "new line; or \\ and enter"),
    ("esc", "stop, hold what waits"),
    ("ctrl-c", "stop, clear, quit"),
    ("ctrl-d", "quit on an empty line"),
    ("tab", "complete, answer"),
    ("shift-tab", "next mode"),
    ("↑ ↓", "earlier messages"),
    ("ctrl-r", "search them"),
    ("ctrl-o", "show all, unfolded"),
    ("ctrl-t", "to-do list"),
    ("ctrl-g", "your editor"),
    ("ctrl-z", "suspend"),
    ("ctrl-v", "attach a copied image"),
    ("!", "run a command yourself"),
    ("/", "commands"),
    ("?", "these keys"),
)
_VIM_ESC = ("esc", "vim: normal mode; stop")
_KEY, _ABOUT = 10, 25


def key_lines(width: int, *, vim: bool = False) -> list[Line]:
    """Lay the keys out in as many columns as fit, three at most; with `vim`, Esc does something first."""
    keys = [_VIM_ESC if vim and row[0] == "esc" else row for row in KEYS]
    columns = max(1, min(3, width // (_KEY + _ABOUT + 2)))
    height = -(-len(keys) // columns)
    rows: list[Line] = []
    for number in range(height):
        row: Line = ()
        for key, about in keys[number::height]:
            row = (*row, ("accent", f" {key:<{_KEY}} "), ("dim", f"{about:<{_ABOUT}}"))
        rows.append(clip(row, width - 1))
    return rows


def keys_text() -> str:
    """List the keys for the scrollback."""
    return "\n".join(f"{key:<{_KEY}} {about}" for key, about in KEYS)
