"""A long text on a screen of its own: scrolling and searching. It answers nothing and changes nothing."""

from collections.abc import Callable, Sequence
from enum import Enum

from treadle.tui.paint.lines import Line, apart, clip, line, line_text
from treadle.tui.paint.theme import Signs

_KEYS = ("space and arrows scroll", "g G ends", "/ search", "q back")


class PagerKey(Enum):
    """A key of the pager."""

    UP = "up"
    DOWN = "down"
    PAGE_UP = "page up"
    PAGE_DOWN = "page down"
    FIRST = "first"
    LAST = "last"
    ENTER = "enter"
    RUB_OUT = "rub out"
    CLOSE = "close"
    TEXT = "text"
    OTHER = "other"


_LETTERS = {
    " ": PagerKey.PAGE_DOWN,
    "f": PagerKey.PAGE_DOWN,
    "b": PagerKey.PAGE_UP,
    "j": PagerKey.DOWN,
    "k": PagerKey.UP,
    "g": PagerKey.FIRST,
    "G": PagerKey.LAST,
    "q": PagerKey.CLOSE,
}


class Pager:
    """Shows the rows that `lay_out` makes for a width, from the first or from the last.

    `alert` is what the last line says before anything else, such as that a question waits.
    """

    def __init__(
        self,
        lay_out: Callable[[int], Sequence[Line]],
        signs: Signs,
        *,
        at_end: bool = False,
        alert: Callable[[], str] = str,
    ) -> None:
        self._lay_out = lay_out
        self._signs = signs
        self._alert = alert
        self._rows: Sequence[Line] = ()
        self._width = 0
        self._height = 1
        self._top = 10**9 if at_end else 0
        self._query = ""
        self._typed: str | None = None
        self._at: int | None = None
        self._found = True

    def draw(self, width: int, height: int) -> list[Line]:
        """Give the rows that are in sight, and the line below them."""
        self._fit(width, height)
        shown = list(self._rows[self._top : self._top + self._height])
        if self._at is not None and self._top <= self._at < self._top + self._height:
            shown[self._at - self._top] = line(("accent underline", line_text(self._rows[self._at])))
        shown += [()] * (self._height - len(shown))
        return [*shown, self._status(width)]

    def _fit(self, width: int, height: int) -> None:
        self._height = max(1, height - 1)
        if width != self._width:
            part = self._top / max(1, len(self._rows)) if self._rows else None
            self._rows, self._at = self._lay_out(width), None
            self._width = width
            if part is not None:
                self._top = round(part * len(self._rows))
        self._go(self._top)

    def _status(self, width: int) -> Line:
        if self._typed is not None:
            return clip(line("/", self._typed), width - 1, self._signs.more)
        last = min(len(self._rows), self._top + self._height)
        place = f"{self._top + 1:,}-{last:,} of {len(self._rows):,}"
        if not self._found:
            place = f"not found: {self._query}"
        begin = line(("warn", f"{alert}  ")) if (alert := self._alert()) else ()
        begin = (*begin, ("dim", place))
        keys = list(_KEYS)
        while keys:
            row = apart(begin, line(("dim", f" {self._signs.dot} ".join(keys))), width - 1)
            if row is not None:
                return row
            keys.pop(0)
        return clip(begin, width - 1, self._signs.more)

    def press(self, key: PagerKey, text: str = "") -> bool:
        """Take a key; gives whether the pager stays open."""
        if self._typed is not None:
            self._type(key, text)
            return True
        self._found = True
        if key is PagerKey.TEXT:
            key = _LETTERS.get(text, key)
        match key:
            case PagerKey.CLOSE:
                return False
            case PagerKey.TEXT if text == "/":
                self._typed = ""
            case PagerKey.TEXT if text in ("n", "N") and self._query:
                self._search(-1 if text == "N" else 1)
            case _:
                self._at = None
                self._go(self._top + self._step(key))
        return True

    def _step(self, key: PagerKey) -> int:
        page = max(1, self._height - 1)
        steps = {
            PagerKey.UP: -1,
            PagerKey.DOWN: 1,
            PagerKey.ENTER: 1,
            PagerKey.PAGE_UP: -page,
            PagerKey.PAGE_DOWN: page,
            PagerKey.FIRST: -len(self._rows),
            PagerKey.LAST: len(self._rows),
        }
        return steps.get(key, 0)

    def _go(self, top: int) -> None:
        self._top = max(0, min(top, len(self._rows) - self._height))

    def _type(self, key: PagerKey, text: str) -> None:
        """Take a key while what is searched is being typed."""
        typed = self._typed or ""
        match key:
            case PagerKey.TEXT:
                self._typed = typed + text
            case PagerKey.RUB_OUT:
                self._typed = typed[:-1] if typed else None
            case PagerKey.ENTER:
                self._typed, self._query = None, typed or self._query
                self._search(1)
            case PagerKey.CLOSE:
                self._typed = None
            case _:
                pass

    def _search(self, step: int) -> None:
        """Go to the next row that holds what is searched, large and small letters alike; after the last the first."""
        wanted, count = self._query.casefold(), len(self._rows)
        start = self._at if self._at is not None else self._top - step
        places = [(start + step * number) % count for number in range(1, count + 1)] if wanted and count else []
        self._at = next((place for place in places if wanted in line_text(self._rows[place]).casefold()), None)
        self._found = self._at is not None or not wanted
        if self._at is not None:
            self._go(self._at)
