"""Key sequences that come in pieces: each is waited for until it is whole, and none becomes an Esc and some text."""

import re
import time
from collections.abc import Callable

PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"

NEXT_BYTE_WITHIN = 2.0
"""Seconds in which the next byte of a sequence comes, however slow the line is. What has waited longer is dropped."""

_PARAMETERS = r"[0-?]{0,32}[ -/]{0,4}"
_SEQUENCE = re.compile(rf"\x1b\[(?:\[[A-E]|M[\s\S]{{3}}|(?![\[M]){_PARAMETERS}[@-~])|\x1bO[A-Za-z]")
"""CSI with a final byte, that of the Linux console and of an old mouse too, and SS3."""

_BEGUN = re.compile(rf"\x1b(?:\[(?:\[|M[\s\S]{{0,2}}|{_PARAMETERS})|O)?\Z")
_NO_SEQUENCE = re.compile(rf"\x1b\[\[?{_PARAMETERS}")
_AFTER_ESCAPE = re.compile(r"\[20[01]~|\[[IO]\Z")
"""What nobody types in one piece: the rest of a mark of a paste, or of what is said of the focus."""


class SequenceFilter:
    """Holds back what may be the beginning of a key sequence, and takes out whole ones that are not `known`.

    Text behind the beginning of a paste is given as it is.
    """

    def __init__(self, known: Callable[[str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._known = known
        self._clock = clock
        self._held = ""
        self._at = self._let_go = float("-inf")

    def feed(self, data: str) -> str:
        """Give what of `data` is whole, with what was held back before."""
        now = self._clock()
        if self._held and now - self._at <= NEXT_BYTE_WITHIN:
            data = self._held + data
        elif now - self._let_go <= NEXT_BYTE_WITHIN and _AFTER_ESCAPE.match(data):
            data = f"\x1b{data}"
        self._held, self._at, self._let_go = "", now, float("-inf")
        given, start = [], 0
        while (at := data.find("\x1b", start)) >= 0:
            given.append(data[start:at])
            if _BEGUN.match(data, at):
                self._held = data[at:]
                return "".join(given)
            passed, start = self._next(data, at)
            given.append(passed)
            if passed == PASTE_BEGINS:
                break
        return "".join([*given, data[start:]])

    def _next(self, data: str, at: int) -> tuple[str, int]:
        """Give what the Esc at a place begins, and where that ends; nothing for what is no key."""
        whole = _SEQUENCE.match(data, at)
        if whole is not None and self._known(whole[0]):
            return whole[0], whole.end()
        none = whole if whole is not None and data[at + 1] == "[" else _NO_SEQUENCE.match(data, at)
        return ("\x1b", at + 1) if none is None else ("", none.end())

    def release(self) -> str:
        """Give an Esc that is alone: nothing followed in time."""
        if self._held != "\x1b":
            return ""
        self._held, self._let_go = "", self._clock()
        return "\x1b"
