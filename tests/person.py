"""A scripted person: what somebody types, pastes and presses, at the pace of hands, as the terminal brings it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

ENTER, ESCAPE, TAB, SHIFT_TAB, BACKSPACE = "\r", "\x1b", "\t", "\x1b[Z", "\x7f"
UP, DOWN, LEFT, RIGHT = "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C"
CTRL_C, CTRL_D, CTRL_G, CTRL_J, CTRL_O, CTRL_S, CTRL_Z = "\x03", "\x04", "\x07", "\n", "\x0f", "\x13", "\x1a"
CTRL_R, CTRL_V, UNDO = "\x12", "\x16", "\x1f"

ALT_P = "\x1bp"

QUIET = 0.8
"""Seconds without a key after which a question takes them, as docs/terminal.md promises."""

FASTEST, SLOWEST = 0.03, 0.4
"""Seconds from key to key while somebody types."""

WORDS = (
    "also update the changelog",
    "please stop and wait",
    "yes",
    "no",
    "y",
    "n",
    "1",
    "2 things: fix it, then test it",
    "remember the docs too",
    "always run the tests",
    "yy",
    "nnn",
    "yn 12 ny",
    "änderung 日本 ok",
    "e",
    "?",
    "a",
    "//",
    "12",
    "also 2",
    "!git status",
    "!rm -rf build",
)


@dataclass(frozen=True, slots=True)
class Stroke:
    """What reaches the program in one read, `pause` seconds after what came before it."""

    pause: float
    data: str


class Person:
    """Somebody at a keyboard; the same seed does the same things."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def jitter(self, of: float) -> bool:
        """Decide by chance."""
        return self._random.random() < of

    def pace(self) -> float:
        """The time to the next key of a piece of typing."""
        return self._random.uniform(FASTEST, SLOWEST)

    def types(self, text: str) -> Iterator[Stroke]:
        """Type key by key."""
        yield from (Stroke(self.pace(), char) for char in text)

    def bursts(self, text: str) -> Iterator[Stroke]:
        """Type on a slow link: several keys come in one read."""
        while text:
            size = self._random.randint(1, 6)
            yield Stroke(self._random.uniform(0.1, 1.5), text[:size])
            text = text[size:]

    def pastes(self, text: str, *, brackets: bool) -> Iterator[Stroke]:
        """Paste, as a terminal with or without bracketed paste brings it, in one read or in several."""
        data = f"\x1b[200~{text}\x1b[201~" if brackets else text.replace("\n", "\r")
        cut = self._random.choice((len(data), max(1, len(data) // 2)))
        yield Stroke(self.pace(), data[:cut])
        if data[cut:]:
            yield Stroke(0.001, data[cut:])

    def waits(self, seconds: float) -> Iterator[Stroke]:
        """Do nothing for a while."""
        yield Stroke(seconds, "")

    def anything(self) -> list[Stroke]:
        """Do a handful of such things in any order, with pauses of any length between them."""
        strokes: list[Stroke] = []
        for _ in range(self._random.randint(1, 5)):
            strokes += self._one_thing()
            if self._random.random() < 0.4:
                strokes += self.waits(self._random.choice((0.2, 0.5, 0.79, 0.81, 1.0, 2.0)))
        return strokes

    def _one_thing(self) -> Sequence[Stroke]:
        text = self._random.choice(WORDS)
        way = self._random.randrange(8)
        match way:
            case 0 | 1 | 2:
                return list(self.types(text))
            case 3:
                return [*self.types(text), *self.keys(ENTER)]
            case 4:
                return list(self.bursts(text))
            case 5:
                lines = self._random.choice((2, 2, 5, 7, 40))
                pasted = "\n".join([text, *self._random.choices(WORDS, k=lines - 1)])
                return list(self.pastes(pasted, brackets=self._random.random() < 0.5))
            case _:
                names = (ENTER, TAB, UP, DOWN, LEFT, SHIFT_TAB, CTRL_O, BACKSPACE, ESCAPE, CTRL_J, "1", "y", "n")
                weights = (6, 3, 2, 4, 1, 1, 1, 1, 0.5, 1, 1, 1, 1)
                return list(self.keys(*self._random.choices(names, weights, k=self._random.randint(1, 4))))

    def keys(self, *keys: str) -> Iterator[Stroke]:
        """Press keys, one after the other."""
        yield from (Stroke(self.pace(), key) for key in keys)
