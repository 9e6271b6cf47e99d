"""Takes secrets out of text on its way to the log, the screen and the model, also when a stream cuts them apart."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from treadle.policy.secret_disguises import disguised, find_all, forms, lowered
from treadle.policy.secret_formats import (
    ASSIGNED,
    BLOCK_END,
    BLOCK_START,
    FORMATS,
    HEADER,
    KEY_BLOCK,
    LONGEST_TOKEN,
    ORDINARY_VARIABLES,
    URL,
    Format,
    is_value,
    is_wordy,
)
from treadle.policy.shell.dangers import VARIABLES_SECRET
from treadle.protocol.base import SHORTEST_SECRET

WINDOW = 16 * 1024
"""Characters of an endless line that are held back; no recognised secret but a key block is longer."""

MAX_BLOCK = 64 * 1024
"""Characters of a key block after which the rest is dropped until its end comes."""

MAX_MARKER = 96
"""Characters of the marker that ends a key block, at most."""

_WRAPPED = 16
"""Characters without a blank before a line break that may stand inside a long word, as in base64."""

_BEFORE = 12
"""Characters before a secret that tell that it is one."""

_CONTEXT = 256
"""Characters of a line that were shown already, by which what comes next may be told to be a secret."""

_PREFIX = 64
"""Characters of a secret's beginning by which one is recognised that goes on in the next chunk."""

Span = tuple[int, int, str]
"""Begin and end of a secret, and the name that is shown instead."""

Match = tuple[int, int, int, str]
"""The same with the place before it where that begins by which it was recognised."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Knows the secrets of this run. `values` are texts to hide, encoded too, with the names that are shown instead."""

    values: tuple[tuple[str, str], ...] = ()

    def redact(self, text: str) -> str:
        """Hide every secret in a whole text, known values also in disguise."""
        hidden = ((start, start, end, name) for start, end, name in disguised(text, self.values))
        return _replaced(text, chain(self.matches(text), hidden))

    def matches(self, text: str) -> list[Match]:
        """Find the secrets of a text; they may overlap."""
        long_words = _long_words(text)
        return [*self._known(text, long_words), *_blocks(text), *_formats(text, long_words)]

    def known_in(self, text: str) -> list[str]:
        """Name the known values that stand in a text, encoded too."""
        return list(dict.fromkeys(name for *_, name in self._known(text, _long_words(text))))

    def open_end(self, text: str) -> int:
        """Give the place behind which a known value may have begun that goes on after the text."""
        needles = _needles(self.values)
        word, joints = _joined(text[-2 * needles.longest :])
        for start in range(max(0, len(word) - needles.longest + 1), len(word)):
            if word[start : start + _PREFIX] in needles.beginnings:
                return len(text) - len(text[-2 * needles.longest :]) + _original(start, joints)
        return len(text)

    def stream(self) -> "RedactedStream":
        """Start to redact a text that comes in chunks."""
        return RedactedStream(self)

    def _known(self, text: str, long_words: str) -> Iterator[Match]:
        needles = _needles(self.values)
        if not needles.names:
            return
        word, joints = _joined(text)
        if joints:
            long_words = _long_words(word)
        long_ones, every = _Searched(long_words), _Searched(word)
        for needle, name in needles.names.items():
            if not (long_ones if _is_long_word(needle) else every).holds(needle):
                continue
            for at in find_all(word, (needle,)):
                start, end = _original(at, joints), _original(at + len(needle) - 1, joints) + 1
                if not (_is_word(needle) and _is_inside_word(text, start, end)):
                    yield start, start, end, name


@dataclass(frozen=True, slots=True)
class _Needles:
    """All forms of all known values with their names, the beginnings of each, and the length of the longest."""

    names: dict[str, str]
    beginnings: frozenset[str]
    longest: int


@lru_cache(maxsize=8)
def _needles(values: tuple[tuple[str, str], ...]) -> _Needles:
    names: dict[str, str] = {}
    for value, name in values:
        for form in forms(value):
            names.setdefault(form.replace("\n", ""), name)
            names.setdefault(form, name)
    beginnings = frozenset(needle[:size] for needle in names for size in range(1, min(len(needle), _PREFIX + 1)))
    return _Needles(names, beginnings, max(map(len, names), default=0))


_LONG = 15
"""Characters without a blank that every recognised key has at least, but for what is given to a name."""

_SLICE = 256 * 1024


def _long_words(text: str) -> str:
    """Give the words of a text in which a key may stand: most of a text is short words, and need not be searched."""
    found: set[str] = set()
    start = 0
    while start < len(text):
        end = text.find("\n", start + _SLICE)
        end = len(text) if end < 0 else end
        found.update(word for word in set(text[start:end].split()) if len(word) >= _LONG)
        start = end
    return "\n".join(found)


class _Searched:
    """A text that many literals are looked for in, most of which have a character that it lacks."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._has: dict[str, bool] = {}

    def holds(self, literal: str) -> bool:
        """Whether a literal stands in the text. To look for one character takes next to no time."""
        for char in literal:
            found = self._has.get(char)
            if found is None:
                found = self._has[char] = char in self._text
            if not found:
                return False
        return literal in self._text


@lru_cache(maxsize=4096)
def _is_long_word(needle: str) -> bool:
    return len(needle) >= _LONG and needle.split() == [needle]


@lru_cache(maxsize=4096)
def _is_word(needle: str) -> bool:
    """Whether a value looks like one word of a language: it may be a part of others, such as `postgres`."""
    return len(needle) < _LONG and needle.isalpha() and (needle[1:].islower() or needle.isupper())


def _is_inside_word(text: str, start: int, end: int) -> bool:
    """Whether letters go on before or behind a place."""
    return text[start - 1 : start].isalpha() or text[end : end + 1].isalpha()


def _joined(text: str) -> tuple[str, list[int]]:
    """Take out the line breaks that may stand inside a long word; gives the places of those that are gone."""
    lines = text.split("\n")
    last = len(lines) - 1
    ends = ["" if len(line) >= _WRAPPED and " " not in line[-_WRAPPED:] else "\n" for line in lines]
    if "" not in ends[:last]:
        return text, []
    ends[last] = ""
    joints: list[int] = []
    at = 0
    for line, end in zip(lines[:last], ends, strict=False):
        at += len(line) + len(end)
        if not end:
            joints.append(at)
    return "".join(chain.from_iterable(zip(lines, ends, strict=True))), joints


def _original(at: int, joints: list[int]) -> int:
    """Give the place in the text of a place in its joined form."""
    return at + bisect_right(joints, at)


def _blocks(text: str) -> Iterator[Match]:
    at = text.find(BLOCK_START)
    while at >= 0:
        found = KEY_BLOCK.match(text, at)
        if found is not None:
            yield found.start(), *found.span(), "private key"
        at = text.find(BLOCK_START, found.end() if found is not None else at + len(BLOCK_START))


def _formats(text: str, long_words: str) -> Iterator[Match]:
    long_ones = _Searched(long_words)
    few = 2 * len(long_words) < len(text)
    for each in FORMATS:
        if not any(map(long_ones.holds, each.starts)):
            continue
        if few and next(_matches(long_words, long_words, each), None) is None:
            continue
        yield from _matches(text, text, each)
    yield from _addresses(text)
    small = lowered(text)
    searched = _Searched(small)
    if any(map(searched.holds, HEADER.starts)):
        yield from _matches(text, small, HEADER)
    if not any(map(searched.holds, ASSIGNED.starts)):
        return
    yield from _matches(text, small, ASSIGNED)


def _matches(text: str, searched: str, wanted: Format) -> Iterator[Match]:
    """Try a format wherever one of its beginnings stands; `searched` is the text, perhaps in small letters."""
    group = "secret" if "secret" in wanted.shape.groupindex else 0
    for start in wanted.starts:
        at = searched.find(start)
        while at >= 0:
            found = wanted.shape.match(text, at)
            if found is not None and _is_secret_match(wanted, found):
                yield _begin(text, at), *found.span(group), wanted.name
            at = searched.find(start, found.end() if found is not None else _next(text, at + len(start), start))


def _begin(text: str, at: int) -> int:
    """Give the place from which a text is needed to recognise a secret at `at`; never in the line before."""
    return max(text.rfind("\n", max(0, at - _BEFORE), at) + 1, at - _BEFORE, 0)


def _is_secret_match(wanted: Format, found: re.Match[str]) -> bool:
    if wanted is ASSIGNED:
        return is_value(found)
    return not (wanted.words and is_wordy(found[0]))


_LONG_WORD = re.compile(r"[A-Za-z0-9_-]*")


def _next(text: str, at: int, start: str) -> int:
    """Give where to look on after a beginning that led to nothing: for tokens of parts, behind the part."""
    if start != "eyJ":
        return at
    found = _LONG_WORD.match(text, at, at + LONGEST_TOKEN)
    return at if found is None else found.end()


def _addresses(text: str) -> Iterator[Match]:
    (start,) = URL.starts
    for at in find_all(text, (start,)):
        if text.find("@", at, at + 520) >= 0:
            found = URL.shape.match(text, at)
            if found is not None:
                yield found.start(), *found.span("secret"), URL.name


def _replaced(text: str, matches: Iterable[Match]) -> str:
    """Put names in the places of secrets; what overlaps goes under the name of what begins first."""
    merged: list[Span] = []
    for _, start, end, name in sorted(matches, key=lambda match: (match[1], -match[2])):
        if merged and start < merged[-1][1]:
            before = merged[-1]
            merged[-1] = (before[0], max(before[1], end), before[2])
        else:
            merged.append((start, end, name))
    pieces: list[str] = []
    done = 0
    for start, end, name in merged:
        pieces += (text[done:start], f"[hidden: {name}]")
        done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def known_secrets(environment: Mapping[str, str], extra: Iterable[tuple[str, str]] = ()) -> Redactor:
    """Collect the values to hide: variables that are named like secrets, and `extra` pairs of value and name."""
    named = (name for name in environment if name not in ORDINARY_VARIABLES and VARIABLES_SECRET.fullmatch(name))
    # A value that is a path is the place where a secret is kept.
    found = [(environment[name], name) for name in named if not environment[name].startswith("/")]
    whole = [(value, name) for value, name in (*found, *extra) if len(value) >= SHORTEST_SECRET]
    lines = [(line, name) for value, name in whole for line in _long_lines(value)]
    listed = dict([*lines, *whole])
    # Of two that begin together the one that holds the other comes first.
    return Redactor(tuple(sorted(listed.items(), key=lambda pair: -len(pair[0]))))


def _long_lines(value: str) -> Iterator[str]:
    """Give the lines of a secret that has several, such as a key: one may be printed without the others."""
    lines = value.split("\n") if "\n" in value else []
    stripped = (line.strip() for line in lines)
    return (line for line in stripped if len(line) >= _WRAPPED and not line.startswith("-----"))


class RedactedStream:
    """Redacts chunks as they come, with the same result as for the whole text at once.

    Text is given out line by line, a key block as a whole. Of a line that does not end, all but the last `WINDOW`
    characters are given out, never cutting through what looks like a secret.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._shown_before = ""
        self._in_block = False

    def feed(self, chunk: str) -> str:
        """Take a chunk; gives what can be shown by now, which may be nothing."""
        self._held += chunk
        if self._in_block and not self._leave_block():
            return ""
        if "\n" not in chunk and len(self._held) < 4 * WINDOW:
            return ""
        matches = self._matches()
        cut = self._safe_cut(matches)
        if len(self._held) - cut > MAX_BLOCK + WINDOW and _has_open_block(self._held):
            self._in_block = True
            cut = len(self._held)
        return self._give(cut, matches)

    def flush(self) -> str:
        """Give what is held back but for its last word, which may be the beginning of a secret."""
        held = self._held
        if self._in_block or not held or _has_open_block(held):
            return ""
        matches = self._matches()
        cut = len(held) if held.endswith(":") else max(held.rfind(blank) for blank in " \n\t") + 1
        frame = held.find(BLOCK_START[:5], held.rfind("\n") + 1)
        cut = cut if frame < 0 else min(cut, frame)
        return self._give(_before(min(cut, self._redactor.open_end(held[:cut])), matches), matches)

    def finish(self) -> str:
        """Give the rest; the stream has ended."""
        if self._in_block and BLOCK_END.search(self._held) is None:
            return ""
        return self._give(len(self._held), self._matches())

    def _matches(self) -> list[Match]:
        """Find the secrets in what is held, also those that are told by what was shown before in their line."""
        before = len(self._shown_before)
        found = self._redactor.matches(self._shown_before + self._held)
        return [
            (max(begin - before, 0), max(start - before, 0), end - before, name)
            for begin, start, end, name in found
            if end > before
        ]

    def _give(self, cut: int, matches: Iterable[Match]) -> str:
        """Give what is held up to a place, which lies in no secret."""
        given, self._held = self._held[:cut], self._held[cut:]
        self._shown_before = "" if self._in_block else f"{self._shown_before}{given}"[-_CONTEXT:].rpartition("\n")[2]
        return _replaced(given, [match for match in matches if match[1] < cut])

    def _leave_block(self) -> bool:
        end = BLOCK_END.search(self._held)
        self._held = self._held[end.end() :] if end else self._held[-MAX_MARKER:]
        self._in_block = end is None
        return end is not None

    def _safe_cut(self, matches: list[Match]) -> int:
        """Give the last place where the text may be cut: behind a line, or before the window; never inside a secret."""
        held = self._held
        cut = max(held.rfind("\n") + 1, len(held) - WINDOW)
        cut = min(cut, self._redactor.open_end(held[:cut]))
        if _has_open_block(held):
            matches = [(*match[:2], match[2] + (match[2] == len(held)), match[3]) for match in matches]
        return _before(cut, matches)


def _before(cut: int, matches: Iterable[Match]) -> int:
    """Move a cut out of secrets, from the last to the first: moving it before one may put it inside another."""
    for begin, _, end, _ in sorted(matches, key=lambda match: -match[2]):
        if begin < cut < end:
            cut = begin
    return cut


def _has_open_block(text: str) -> bool:
    """Whether a key block at the end of a text goes on beyond it."""
    last = text.rfind(BLOCK_START)
    return last >= 0 and KEY_BLOCK.match(text, last) is not None and BLOCK_END.search(text, last) is None
