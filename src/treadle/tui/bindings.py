"""Which key means what: in the draft, in a question, and in the pager."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Always, Condition, Filter, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from treadle.door.settings import key_sequence
from treadle.tui.draft.draft_line import DraftLine
from treadle.tui.intents import Intent, Pasted, Tabbed, Wish
from treadle.tui.paint.pager import PagerKey
from treadle.tui.question.dialog import Key

KeyHandler: TypeAlias = Callable[[KeyPressEvent], None]

_WISHES = (
    ("escape", Wish.ESCAPE),
    ("c-c", Wish.STOP),
    ("s-tab", Wish.NEXT_MODE),
    ("c-t", Wish.TODO),
    ("c-g", Wish.EDIT),
    ("c-o", Wish.PAGER),
    ("c-v", Wish.CLIPBOARD),
    ("?", Wish.SHOW_KEYS),
    ("!", Wish.SHELL),
    ("up", Wish.TAKE_BACK),
    ("down", Wish.SUBAGENTS),
    ("enter", Wish.SEND_HELD),
    ("c-h", Wish.DROP_HELD),
    ("tab", Wish.OPEN_PIECE),
    # The later of two that apply is taken: the menu comes first.
    ("up", Wish.MENU_UP),
    ("down", Wish.MENU_DOWN),
    ("tab", Wish.MENU_TAKE),
    ("enter", Wish.MENU_ENTER),
)

_ACTIONS = {
    "mode": Wish.NEXT_MODE,
    "pager": Wish.PAGER,
    "todo": Wish.TODO,
    "editor": Wish.EDIT,
    "model": Wish.PICK_MODEL,
    "clipboard": Wish.CLIPBOARD,
    "quit": Wish.END,
}
"""What a key of the person's own asks for; the other actions write or send."""

_LIST_KEYS = {
    "enter": Key.ENTER,
    "tab": Key.TAB,
    "s-tab": Key.SHIFT_TAB,
    "up": Key.UP,
    "down": Key.DOWN,
    # An arrow that a slow link brings in two pieces is no Esc.
    "escape [ A": Key.UP,
    "escape [ B": Key.DOWN,
    "escape": Key.ESCAPE,
    "c-c": Key.STOP,
    "c-o": Key.DETAILS,
    "c-g": Key.EDIT,
}

_PAGER_KEYS = {
    "up": PagerKey.UP,
    "escape [ A": PagerKey.UP,
    "down": PagerKey.DOWN,
    "escape [ B": PagerKey.DOWN,
    "pageup": PagerKey.PAGE_UP,
    "pagedown": PagerKey.PAGE_DOWN,
    "home": PagerKey.FIRST,
    "end": PagerKey.LAST,
    "enter": PagerKey.ENTER,
    "c-h": PagerKey.RUB_OUT,
    "escape": PagerKey.CLOSE,
    "c-o": PagerKey.CLOSE,
    "c-c": PagerKey.CLOSE,
}


def add_draft_keys(
    keys: KeyBindings,
    prompt: Filter,
    *,
    act: Callable[[Intent], None],
    can: Callable[[Wish], bool],
    alone: Callable[[], bool],
    chord: Callable[[], bool],
    enter: Callable[[bool], None],
) -> None:
    """Let the draft take its keys; `can` says whether a key means a wish now, `enter` takes whether it should steer.

    `alone` and `chord` say whether the key that came was the only one of its read, or Alt with another one.
    """

    def wishes(wish: Wish) -> KeyHandler:
        return lambda _: act(wish)

    def may(wish: Wish) -> Filter:
        return Condition(lambda: can(wish))

    keys.add("enter", filter=prompt)(lambda _: enter(False))
    keys.add("c-s", filter=prompt & ~is_searching)(lambda _: enter(True))
    keys.add("escape", "enter", filter=prompt)(lambda event: _alt_enter(event, enter, alone=alone()))
    keys.add("c-j", filter=prompt)(new_line)
    keys.add("tab", filter=prompt & ~is_searching)(lambda _: act(Tabbed(alone=alone())))
    keys.add(Keys.BracketedPaste, filter=prompt)(lambda event: act(Pasted(event.data)))
    keys.add("escape", "p", filter=prompt & ~is_searching & Condition(chord))(wishes(Wish.PICK_MODEL))
    keys.add("<sigint>")(wishes(Wish.STOP))
    for name, wish in _WISHES:
        keys.add(name, filter=prompt & ~is_searching & may(wish))(wishes(wish))
    keys.add("c-d", filter=prompt & may(Wish.END))(wishes(Wish.END))


def add_own_keys(
    keys: KeyBindings,
    prompt: Filter,
    own: Mapping[str, str],
    *,
    act: Callable[[Intent], None],
    can: Callable[[Wish], bool],
    chord: Callable[[], bool],
    enter: Callable[[bool], None],
) -> None:
    """Let the draft take the person's own keys, by their actions, beside those that the actions have anyway."""

    def wishes(wish: Wish) -> KeyHandler:
        return lambda _: act(wish)

    def may(wish: Wish) -> Filter:
        return Condition(lambda: can(wish))

    for action, key in own.items():
        sequence = key_sequence(key)
        here = prompt & ~is_searching & (Condition(chord) if len(sequence) > 1 else Always())
        wish = _ACTIONS.get(action)
        # Emacs keys have longer sequences that begin with some of these: none is waited for.
        add = partial(keys.add, *sequence, eager=len(sequence) == 1)
        if wish is not None:
            add(filter=here & may(wish))(wishes(wish))
        elif action == "send-now":
            add(filter=here)(lambda _: enter(True))
        else:
            add(filter=here)(new_line)


def _alt_enter(event: KeyPressEvent, enter: Callable[[bool], None], *, alone: bool) -> None:
    """Begin a new line; with vim's keys, Esc and then Enter is sending from normal mode."""
    if event.app.editing_mode is EditingMode.VI and alone:
        enter(False)
    else:
        new_line(event)


def add_search_keys(keys: KeyBindings, draft: DraftLine) -> None:
    """Let Enter take what a search in earlier messages has found, and Esc go back to the draft as it was."""
    keys.add("enter", filter=is_searching, eager=True)(lambda _: draft.take_found())
    for name in ("escape", "c-c", "c-g"):
        keys.add(name, filter=is_searching, eager=True)(lambda _: draft.end_search())


def add_question_keys(
    keys: KeyBindings,
    listing: Filter,
    words: Filter,
    *,
    take: Callable[[Key, KeyPressEvent], None],
    alone: Callable[[], bool],
) -> None:
    """Let a question take its keys: in its list all of them, in its line of words those that are not text."""

    def takes(key: Key) -> KeyHandler:
        return lambda event: take(key, event)

    for name, key in _LIST_KEYS.items():
        keys.add(*name.split(), filter=listing)(takes(key))
    keys.add(Keys.BracketedPaste, filter=listing)(takes(Key.PASTE))
    keys.add(Keys.Any, filter=listing)(lambda event: take(Key.TEXT if _prints(event) else Key.OTHER, event))
    for name in ("escape", "c-c", "c-o"):
        keys.add(name, filter=words)(takes(_LIST_KEYS[name]))
    keys.add("escape", "enter", filter=words)(new_line)
    keys.add("c-j", filter=words)(new_line)
    keys.add("enter", filter=words & Condition(alone))(takes(Key.ENTER))
    keys.add("enter", filter=words & ~Condition(alone))(new_line)


def add_pager_keys(keys: KeyBindings, paging: Filter, *, take: Callable[[PagerKey, str], None]) -> None:
    """Let the pager take every key while it is open; those that mean nothing in it do nothing."""

    def takes(turn: PagerKey) -> KeyHandler:
        return lambda event: take(turn, event.data)

    for name, turn in _PAGER_KEYS.items():
        keys.add(*name.split(), filter=paging)(takes(turn))
    keys.add(Keys.BracketedPaste, filter=paging)(takes(PagerKey.OTHER))
    keys.add(Keys.Any, filter=paging)(
        lambda event: take(PagerKey.TEXT if _prints(event) else PagerKey.OTHER, event.data)
    )


def _prints(event: KeyPressEvent) -> bool:
    return len(event.data) == 1 and event.data.isprintable()


def new_line(event: KeyPressEvent) -> None:
    """Begin a new line."""
    event.current_buffer.newline(copy_margin=False)
