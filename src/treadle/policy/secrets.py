"""Takes secrets out of text on its way to the log, the screen and the model, also when a stream cuts them apart."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from treadle.policy.shell.dangers import VARIABLES_SECRET

MIN_VALUE_LENGTH = 8
"""Shorter known values are too likely to be ordinary words."""

WINDOW = 4096
"""Characters of an endless line that are held back; no recognised secret but a key block is longer."""

MAX_BLOCK = 64 * 1024
"""Characters of a key block after which the rest is dropped until its end comes."""

MAX_MARKER = 96
"""Characters of the marker that ends a key block, at most."""

_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
_FORMATS = re.compile(
    r"""
    sk-ant-[A-Za-z0-9_-]{20,} | sk-[A-Za-z0-9_-]{20,} | gh[pousr]_[A-Za-z0-9]{36,} | github_pat_[A-Za-z0-9_]{22,}
    | glpat-[A-Za-z0-9_-]{20,} | xox[abeoprs]-[A-Za-z0-9-]{10,} | (?:AKIA|ASIA)[A-Z0-9]{16} | AIza[A-Za-z0-9_-]{35}
    | ya29\.[A-Za-z0-9_-]{20,} | npm_[A-Za-z0-9]{36} | pypi-[A-Za-z0-9_-]{32,} | hf_[A-Za-z0-9]{30,}
    | gsk_[A-Za-z0-9]{40,} | xai-[A-Za-z0-9]{40,} | (?:rk|sk|pk)_(?:live|test)_[A-Za-z0-9]{16,}
    | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    | dop_v1_[a-f0-9]{64} | shp(?:at|ss|ca)_[a-fA-F0-9]{32} | AGE-SECRET-KEY-1[A-Z0-9]{58} | dckr_pat_[A-Za-z0-9_-]{20,}
    | eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}
    """,
    re.VERBOSE,
)
_IN_URL = re.compile(r"(?<=://)([^\s/:@]{1,256}):([^\s/@]{3,256})(?=@)")
_ASSIGNED = re.compile(
    r"""(?ix)
    \b([A-Z0-9_.-]{0,64}
       (?:secret|token|passw(?:or)?d|passphrase|api_?key|access_?key|private_?key|credential)[A-Z0-9_]{0,32})
    (["']?[ \t]{0,4}[=:][ \t]{0,4}["']?)
    ([^\s"',;]{12,512})
    """
)
_BEARER = re.compile(r"(?i)(\bauthorization:[ \t]{0,4}(?:bearer|basic|token)[ \t]{1,4})([A-Za-z0-9._~+/=-]{8,2048})")
_PATTERNS = (_KEY_BLOCK, _FORMATS, _IN_URL, _BEARER, _ASSIGNED)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Knows the secrets of this run. `values` are exact texts to hide, with the name that is shown instead."""

    values: tuple[tuple[str, str], ...] = ()

    def redact(self, text: str) -> str:
        """Hide every secret in a whole text."""
        for value, name in self.values:
            text = text.replace(value, _mark(name))
        text = _KEY_BLOCK.sub(_mark("private key"), text)
        text = _FORMATS.sub(_mark("key"), text)
        text = _IN_URL.sub(rf"\1:{_mark('password')}", text)
        text = _BEARER.sub(rf"\1{_mark('authorization')}", text)
        return _ASSIGNED.sub(_hide_assigned, text)

    def stream(self) -> "RedactedStream":
        """Start to redact a text that comes in chunks."""
        return RedactedStream(self)


def _mark(name: str) -> str:
    return f"[hidden: {name}]"


def _hide_assigned(match: re.Match[str]) -> str:
    name, between, value = match.groups()
    if value.startswith(("[hidden", "$", "<", "{", "process.env", "os.environ")) or not _looks_random(value):
        return match.group()
    return f"{name}{between}{_mark('value')}"


def _looks_random(value: str) -> bool:
    """Whether a value is more like a key than like a word of code: long, and mixed of letters and digits."""
    kinds = sum(bool(re.search(kind, value)) for kind in (r"[a-z]", r"[A-Z]", r"[0-9]"))
    return kinds >= 2 and bool(re.search(r"[0-9]", value)) and not re.search(r"[()\[\]]", value)


def known_secrets(environment: Mapping[str, str], extra: Iterable[tuple[str, str]] = ()) -> Redactor:
    """Collect the values to hide: variables that are named like secrets, and `extra` pairs of value and name."""
    found = [(value, name) for name, value in environment.items() if VARIABLES_SECRET.fullmatch(name)]
    listed = {value: name for value, name in (*found, *extra) if len(value) >= MIN_VALUE_LENGTH}
    # A secret that holds another one must go first, or its rest would stay.
    return Redactor(tuple(sorted(listed.items(), key=lambda pair: -len(pair[0]))))


class RedactedStream:
    """Redacts chunks as they come, with the same result as for the whole text at once.

    Text is given out line by line, a key block as a whole. Of a line that does not end, all but the last `WINDOW`
    characters are given out, never cutting through what looks like a secret.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._in_block = False

    def feed(self, chunk: str) -> str:
        """Take a chunk; gives what can be shown by now, which may be nothing."""
        self._held += chunk
        if self._in_block and not self._leave_block():
            return ""
        cut = self._safe_cut()
        if len(self._held) - cut > MAX_BLOCK:
            self._in_block = True
            cut = len(self._held)
        ready, self._held = self._held[:cut], self._held[cut:]
        return self._redactor.redact(ready) if ready else ""

    def finish(self) -> str:
        """Give the rest; the stream has ended."""
        rest, self._held = self._held, ""
        return "" if self._in_block and _BLOCK_END.search(rest) is None else self._redactor.redact(rest)

    def _leave_block(self) -> bool:
        end = _BLOCK_END.search(self._held)
        self._held = self._held[end.end() :] if end else self._held[-MAX_MARKER:]
        self._in_block = end is None
        return end is not None

    def _safe_cut(self) -> int:
        """Give the last place where the text may be cut: behind a line, or before the window; never inside a secret."""
        cut = max(self._held.rfind("\n") + 1, len(self._held) - WINDOW)
        longest = max((len(value) for value, _ in self._redactor.values if "\n" in value), default=0)
        cut = min(cut, max(0, len(self._held) - longest))
        for start, end in sorted(self._spans(), reverse=True):
            if start < cut < end:
                cut = start
        return cut

    def _spans(self) -> list[tuple[int, int]]:
        found = [match.span() for pattern in _PATTERNS for match in pattern.finditer(self._held)]
        # A key block that has not ended goes on beyond what is here.
        found.extend(
            (match.start(), match.end() + 1)
            for match in _KEY_BLOCK.finditer(self._held)
            if _BLOCK_END.search(match.group()) is None
        )
        for value, _ in self._redactor.values:
            found.extend(match.span() for match in re.finditer(re.escape(value), self._held))
        return found
