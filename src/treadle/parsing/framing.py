"""The one line break that frames a value on each side, and how to leave it out while the value streams."""


def unframe(raw: str) -> str:
    r"""Take one line break (`\n` or `\r\n`) off the start and then one off the end; all else is kept."""
    start = _leading(raw)
    return raw[start : len(raw) - _trailing(raw, start)]


class FramedText:
    """`unframe` for a value that arrives in pieces: a line break at the end waits for what follows it."""

    __slots__ = ("_fresh", "_held")

    def __init__(self) -> None:
        self._fresh = True
        self._held = ""

    def push(self, text: str) -> str:
        """Add the next piece; returns what is certain to belong to the value."""
        if self._held:
            text = self._held + text
            self._held = ""
        if self._fresh:
            if text in {"", "\r"}:
                self._held = text
                return ""
            self._fresh = False
            text = text[_leading(text) :]
        if text.endswith(("\n", "\r")):
            cut = len(text) - (_trailing(text, 0) or 1)
            self._held = text[cut:]
            return text[:cut]
        return text

    def close(self) -> str:
        """End the value; returns what was held back and is no line break."""
        return self._held if self._held == "\r" else ""


def _leading(text: str) -> int:
    if text.startswith("\n"):
        return 1
    return 2 if text.startswith("\r\n") else 0


def _trailing(text: str, start: int) -> int:
    if text.endswith("\r\n", start):
        return 2
    return 1 if text.endswith("\n", start) else 0
