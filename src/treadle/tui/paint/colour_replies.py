"""What a terminal answers about its colours: the question, the answer, and taking late answers out of what is typed."""

import re

ASK = "\x1b]11;?\x07"
"""Asks for the background (OSC 11)."""

_COLOUR = r"[rgba:/0-9a-fA-F]{0,40}"
_REPLY = re.compile(rf"\x1b\]1[01];({_COLOUR})(?:\x07|\x1b\\)")
_CUT_OFF = re.compile(rf"\x1b\]1[01];{_COLOUR}(?=\x1b\])")
"""A reply whose end never came, before the next one."""

_BEGINS = re.compile(rf"\x1b(?:\](?:1(?:[01](?:;{_COLOUR}\x1b?)?)?)?)?\Z")
_PARTS = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_SURE = len("\x1b]11;")
"""From this length on the beginning of a reply cannot be keys."""


def is_dark(text: str) -> bool | None:
    """Whether the first reply in a text names a dark colour; None where there is no whole reply."""
    reply = _REPLY.search(text)
    colour = _PARTS.match(reply[1]) if reply is not None else None
    if colour is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in colour.groups())
    return bool(0.299 * red + 0.587 * green + 0.114 * blue < 0.5)


class ReplyFilter:
    """Takes replies out of what a terminal sends, however it is cut; what may be the beginning of one is held back."""

    def __init__(self) -> None:
        self._held = ""
        self._released = ""
        self.dark: bool | None = None
        """What the last reply says of the background, until somebody takes it away."""

    def feed(self, data: str) -> str:
        """Give what is left of `data`."""
        before = self._released if _goes_on(self._released, data) else self._held
        self._held = self._released = ""
        whole = _CUT_OFF.sub("", before + data)
        left = _REPLY.sub("", whole)
        if left != whole:
            self.dark = is_dark(whole)
        if len(before) >= _SURE and left.startswith(before) and not _BEGINS.match(left):
            left = left[len(before.removesuffix("\x1b")) :]  # its end never came
        begin = _BEGINS.search(left)
        if begin is not None:
            left, self._held = left[: begin.start()], begin[0]
        return left

    def rest(self) -> str:
        """Give what was held back, whatever it is."""
        held, self._held = self._held, ""
        return held

    def release(self) -> str:
        """Give what was held back if it seems to be no reply, as nothing followed in time."""
        if len(self._held) >= _SURE:
            return ""
        self._released = self.rest()
        return self._released


def _goes_on(released: str, data: str) -> bool:
    """Whether a reply began with what was taken for keys, and goes on here: a person types one key at a time."""
    whole = released + data
    begins = _BEGINS.match(whole) and len(whole) >= _SURE
    return bool(released) and len(data) > 1 and bool(begins or _REPLY.match(whole))
