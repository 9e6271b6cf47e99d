"""Takes secrets out of text on its way to the log, the screen and the model, also when a stream cuts them apart."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from treadle.policy.secret_disguises import Span, Values, disguised, known, long_words, open_end
from treadle.policy.secret_formats import BLOCK_END, ORDINARY_VARIABLES, blocks_in, cut_short, keys_in
from treadle.policy.shell.dangers import VARIABLES_SECRET
from treadle.protocol.base import SHORTEST_SECRET

WINDOW = 16 * 1024
"""Characters of an endless line that are held back; no recognised secret but a key block is longer."""

_MAX_MARKER = 96
"""Characters of the marker that ends a key block, at most."""

_CONTEXT = 512
"""Characters of a line that were shown already, by which what comes next may be told to be a secret."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Knows the secrets of this run. `values` are texts to hide, encoded too, with the names that are shown instead."""

    values: Values = ()

    def redact(self, text: str) -> str:
        """Hide every secret in a whole text, known values also in disguise."""
        return _replaced(text, [*self.spans(text), *disguised(text, self.values)]) if text else text

    def spans(self, text: str) -> list[Span]:
        """Find the secrets of a text, and what a cut left of known ones; they may overlap."""
        words, values = long_words(text), self.values
        return [*known(text, words, values), *cut_short(text, values), *blocks_in(text), *keys_in(text, words)]

    def known_in(self, text: str) -> list[str]:
        """Name the known values that stand in a text, encoded too."""
        return list(dict.fromkeys(name for *_, name in known(text, long_words(text), self.values)))

    def stream(self) -> "RedactedStream":
        """Start to redact a text that comes in chunks."""
        return RedactedStream(self)


def _replaced(text: str, spans: Iterable[Span]) -> str:
    """Put names in the places of secrets; what overlaps goes under the name of what begins first."""
    pieces: list[str] = []
    done = 0
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= done:
            pieces += (text[done:start], f"[hidden: {name}]")
        done = max(done, end)
    return "".join([*pieces, text[done:]])


def known_secrets(environment: Mapping[str, str], extra: Iterable[tuple[str, str]] = ()) -> Redactor:
    """Collect the values to hide: variables that are named like secrets, and `extra` pairs of value and name."""
    named = (name for name in environment if name not in ORDINARY_VARIABLES and VARIABLES_SECRET.fullmatch(name))
    # A value that is a path is the place where a secret is kept.
    found = [(environment[name], name) for name in named if not environment[name].startswith("/")]
    whole = [(value, name) for value, name in (*found, *extra) if len(value) >= SHORTEST_SECRET]
    listed = dict([*((line, name) for value, name in whole for line in _long_lines(value)), *whole])
    # Of two that begin together the one that holds the other comes first.
    return Redactor(tuple(sorted(listed.items(), key=lambda pair: -len(pair[0]))))


def _long_lines(value: str) -> Iterator[str]:
    """Give the lines of a secret that has several, such as a key: one may be printed without the others."""
    lines = map(str.strip, value.split("\n") if "\n" in value else ())
    return (line for line in lines if len(line) >= 2 * SHORTEST_SECRET and not line.startswith("-----"))


class RedactedStream:
    """Redacts chunks as they come, with the same result as for the whole text at once.

    Text is given out line by line; of a key block nothing is kept. Of a line that does not end, all but the last
    `WINDOW` characters are given out, never cutting through what looks like a secret.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._shown_before = ""
        self._in_block = False

    def feed(self, chunk: str) -> str:
        """Take a chunk; gives what can be shown by now, which may be nothing."""
        self._held += chunk
        if self._in_block:
            end = BLOCK_END.search(self._held)
            self._held = self._held[end.end() if end else -_MAX_MARKER :]
            if end is None:
                return ""
            self._in_block, self._shown_before = False, end[0]
        if "\n" not in chunk and len(self._held) < 4 * WINDOW:
            return ""
        return self._give(max(self._held.rfind("\n") + 1, len(self._held) - WINDOW))

    def flush(self) -> str:
        """Give what is held back but for its last word, which may be the beginning of a secret."""
        if self._in_block:
            return ""
        held = self._held
        cut = len(held) if held.endswith(":") else max(held.rfind(blank) for blank in " \n\t") + 1
        frame = held.find("-----", held.rfind("\n") + 1)
        return self._give(cut if frame < 0 else min(cut, frame))

    def finish(self) -> str:
        """Give the rest, once; the stream has ended."""
        rest = "" if self._in_block else _replaced(self._held, self._spans())
        self._held = ""
        return rest

    def _spans(self) -> list[Span]:
        """Find the secrets in what is held, also those that are told by what was shown before in their line."""
        before = len(self._shown_before)
        found = self._redactor.spans(self._shown_before + self._held)
        return [(max(start - before, 0), end - before, name) for start, end, name in found if end > before]

    def _give(self, cut: int) -> str:
        """Give what is held up to a place, or to where a secret may begin before it; a block is given whole."""
        held, spans, values = self._held, self._spans(), self._redactor.values
        block = next((start for start, end, _ in spans if end > len(held)), None)
        if block is not None and open_end(held, values) > block:
            self._in_block, cut = True, len(held)
            self._held = held[max(block, cut - _MAX_MARKER) :]
        else:
            cut = min(cut, open_end(held[:cut], values))
            # From the last to the first: before one it may lie inside another.
            for start, end, _ in sorted(spans, key=lambda span: -span[1]):
                cut = start if start < cut < end else cut
            self._held = held[cut:]
        self._shown_before = f"{self._shown_before}{held[:cut]}"[-_CONTEXT:].rpartition("\n")[2]
        return _replaced(held[:cut], [span for span in spans if span[0] < cut])
