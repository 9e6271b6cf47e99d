"""The keys of a list to choose from. It takes them all: none of them reaches the draft or a question."""

from collections.abc import Callable

from prompt_toolkit.filters import Filter
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from treadle.tui.intents import Picked
from treadle.tui.lists.filter_list import Pick

_KEYS = {
    "up": Pick.UP,
    "down": Pick.DOWN,
    # An arrow that a slow link brings in two pieces is no Esc.
    "escape [ A": Pick.UP,
    "escape [ B": Pick.DOWN,
    "c-p": Pick.UP,
    "c-n": Pick.DOWN,
    "pageup": Pick.PAGE_UP,
    "pagedown": Pick.PAGE_DOWN,
    "left": Pick.LEFT,
    "right": Pick.RIGHT,
    "escape [ D": Pick.LEFT,
    "escape [ C": Pick.RIGHT,
    "c-h": Pick.RUB_OUT,
    "c-u": Pick.CLEAR,
    "c-w": Pick.CLEAR,
    "c-d": Pick.DEFAULT,
    "c-a": Pick.ALL,
    "tab": Pick.TAB,
    "c-o": Pick.DETAILS,
    "c-x": Pick.STOP,
    "escape": Pick.CLOSE,
    "c-c": Pick.CLOSE,
}


def add_picker_keys(
    keys: KeyBindings, picking: Filter, *, act: Callable[[Picked], None], alone: Callable[[], bool]
) -> None:
    """Let a list take every key while it is open; Enter only where it came by itself: pasted text chooses nothing."""

    def takes(key: Pick) -> Callable[[KeyPressEvent], None]:
        return lambda event: act(Picked(key, event.data))

    for name, key in _KEYS.items():
        keys.add(*name.split(), filter=picking)(takes(key))
    keys.add("enter", filter=picking)(lambda _: act(Picked(Pick.TAKE if alone() else Pick.OTHER)))
    keys.add(Keys.BracketedPaste, filter=picking)(takes(Pick.TEXT))
    keys.add(Keys.Any, filter=picking)(
        lambda event: act(Picked(Pick.TEXT if event.data.isprintable() else Pick.OTHER, event.data))
    )
