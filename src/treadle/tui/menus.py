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
    ("enter", "send, or queue while Treadle works"),
    ("ctrl-s", "send at the next step"),
    ("alt-enter, ctrl-j", "new line"),
    ("esc", "stop; messages that wait are held"),
    ("ctrl-c", "stop; clear the draft; twice: quit"),
    ("ctrl-d", "quit on an empty line"),
    ("tab", "complete; go to the question"),
    ("shift-tab", "next mode of plan, ask, edits"),
    ("↑ ↓ ctrl-r", "earlier messages; search them"),
    ("↑", "take the last waiting message back"),
    ("ctrl-t", "show or fold the to-do list"),
    ("ctrl-g", "write in your editor"),
    ("ctrl-z", "suspend; fg goes on"),
    ("/", "commands"),
    ("?", "these keys"),
)


def key_lines(width: int) -> list[Line]:
    """Lay the keys out in as many columns as fit, three at most."""
    column = 46
    columns = max(1, min(3, width // column))
    height = -(-len(KEYS) // columns)
    rows: list[Line] = []
    for number in range(height):
        row: Line = ()
        for key, about in KEYS[number::height]:
            text = f"{about:<{max(1, column - 20)}}" if columns > 1 else about
            row = (*row, ("accent", f" {key:<18} "), ("dim", text))
        rows.append(clip(row, width - 1))
    return rows


def keys_text() -> str:
    """List the keys for the scrollback."""
    return "\n".join(f"{key:<18} {about}" for key, about in KEYS)
