"""Keys of a person's own for what the terminal app does: which actions and keys there are, and which clash. Pure."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType

KEY_ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "send-now": "ctrl-s",
        "new-line": "alt-enter",
        "mode": "shift-tab",
        "pager": "ctrl-o",
        "todo": "ctrl-t",
        "editor": "ctrl-g",
        "model": "alt-p",
        "clipboard": "ctrl-v",
        "quit": "ctrl-d",
    }
)
"""What a key can be given to, and the key that it has anyway."""

_FIXED: Mapping[str, str] = MappingProxyType(
    {
        **{key: f"the key of {action}" for action, key in KEY_ACTIONS.items()},
        "ctrl-c": "the key that stops",
        "ctrl-h": "Backspace to a terminal",
        "ctrl-i": "Tab to a terminal",
        "ctrl-j": "a line feed to a terminal",
        "ctrl-m": "Enter to a terminal",
        "ctrl-r": "the key that searches earlier messages",
        "ctrl-z": "the key that suspends",
    }
)
_KEY = re.compile(r"(ctrl)-([a-z])|(alt)-([a-z0-9])|(f(?:[1-9]|1[0-9]|2[0-4]))")


def key_sequence(key: str) -> tuple[str, ...]:
    """Give a key as prompt_toolkit names what comes from the terminal; empty for one that there is not."""
    found = _KEY.fullmatch(key)
    if found is None:
        return ()
    if found[1]:
        return (f"c-{found[2]}",)
    return ("escape", found[4]) if found[3] else (found[5],)


def wrong_keys(keys: Mapping[str, str]) -> Sequence[str]:
    """Say what is wrong with keys by their actions, a sentence without its full stop each."""
    wrong = [said for action, key in keys.items() if (said := _wrong_key(action, key))]
    for key in dict.fromkeys(keys.values()):
        same = [action for action, one in keys.items() if one == key]
        if len(same) > 1:
            wrong.append(f"keys: {key} is given to {' and '.join(same)}, and one press can do one thing only")
    return wrong


def _wrong_key(action: str, key: str) -> str:
    if action not in KEY_ACTIONS:
        near = get_close_matches(action, KEY_ACTIONS, n=1)
        known = f"the nearest is {near[0]}" if near else f"the actions are {', '.join(KEY_ACTIONS)}"
        return f"keys.{action} is no action: {known}"
    if key in _FIXED:
        return f"keys.{action} cannot be {key}: that is {_FIXED[key]}"
    if not key_sequence(key):
        return f"keys.{action} cannot be {key!r}: write ctrl- and a letter, alt- and a letter or digit, or f1 to f24"
    return ""
