"""How long a provider asks us to wait: its headers, in the ways that vendors write times."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from treadle.protocol.patterns import regex

LONGEST_WAIT = 8 * 86_400.0
"""Seconds; the longest limits are those of a week. What is longer, or cannot be a wait, is read as this."""
_LONGEST_TEXT = 64
_UNIX_SECONDS = 1e9
"""Numbers from here on are moments, not waits: seconds since 1970, or milliseconds."""
_UNIX_MILLISECONDS = 1e11

_NUMBER = regex(r"\d+(?:\.\d*)?|\.\d+", re.ASCII)
_PART = regex(r"(\d+(?:\.\d+)?)(ns|us|µs|μs|ms|[dhms])", re.ASCII)
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_RESET = regex(r"((?:x-|anthropic-)?ratelimit-(?:.+-)?)reset(-.+)?")
"""`x-ratelimit-reset-tokens`, `anthropic-ratelimit-tokens-reset`, `ratelimit-reset` and their like."""
_CODEX = ("primary", "secondary")
"""The windows of a subscription: `x-codex-primary-used-percent` and `x-codex-primary-reset-after-seconds`."""


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds to wait as a response says, from 0 to `LONGEST_WAIT`; None where it says nothing that can be read.

    `headers` have lower-case names; `now` is seconds since 1970. `retry-after` is the answer to this request and wins;
    otherwise the limit that is used up and begins anew last.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(milliseconds):
        return min(float(milliseconds) / 1000, LONGEST_WAIT)
    wait = seconds(headers.get("retry-after", ""), now=now)
    return max(_resets(headers, now), default=None) if wait is None else wait


def used_up(headers: Mapping[str, str], *, now: float) -> Mapping[str, float] | None:
    """Give the limits of which an answer says that nothing is left, and in how many seconds each resets.

    Their names are in words: requests, tokens, input tokens. None: the answer says nothing of limits.
    """
    told = [(what, wait, left) for what, wait, left in _limits(headers, now) if left is not None]
    return {what: wait for what, wait, left in told if not left} if told else None


def _resets(headers: Mapping[str, str], now: float) -> Iterator[float]:
    """Give when each limit that is used up, or of which nothing else is said, begins anew."""
    yield from (wait for _, wait, left in _limits(headers, now) if not left)


def _limits(headers: Mapping[str, str], now: float) -> Iterator[tuple[str, float, bool | None]]:
    """Give the name of each limit in words, in how many seconds it resets, and whether anything is left; None: unsaid.

    A window of a subscription says whether it takes requests in place of what is left of them.
    """
    for name, text in headers.items():
        found = _RESET.fullmatch(name)
        wait = seconds(text, now=now) if found else None
        if found and wait is not None:
            begin, end = found[1], found[2] or ""
            state = headers.get(f"{begin}status{end}", "").strip().lower()
            left = _is_left(headers.get(f"{begin}remaining{end}", ""))
            what = begin.partition("ratelimit-")[2].strip("-") or end.strip("-") or "requests"
            yield what.replace("-", " "), wait, state.startswith("allowed") if state else left
    for window in _CODEX:
        wait = seconds(headers.get(f"x-codex-{window}-reset-after-seconds", ""), now=now)
        used = _NUMBER.fullmatch(headers.get(f"x-codex-{window}-used-percent", "").strip())
        if wait is not None and used is not None:
            yield "requests", wait, float(used[0]) < 100


def _is_left(remaining: str) -> bool | None:
    number = _NUMBER.fullmatch(remaining.strip())
    return None if number is None else float(number[0]) > 0


def seconds(text: str, *, now: float) -> float | None:
    """Read a wait (0 to `LONGEST_WAIT` seconds); None for what cannot be read.

    It is a number of seconds, unix time, a duration such as `1m30s`, or an RFC 3339 or HTTP date.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        value = float(text)
        moment = value / 1000 if value >= _UNIX_MILLISECONDS else value
        wait = moment - now if moment >= _UNIX_SECONDS else moment
    elif not text or len(text) > _LONGEST_TEXT:
        return None
    elif parts := _parts(text):
        wait = sum(float(number) * _UNITS[unit] for number, unit in parts)
    else:
        date = _date(text)
        if date is None:
            return None
        wait = date - now
    return min(max(0.0, wait), LONGEST_WAIT)


def _parts(text: str) -> list[tuple[str, str]]:
    """Split a duration into numbers and units; none where it is not one."""
    text = text.replace(" ", "").lower()
    parts = _PART.findall(text)
    return parts if "".join(number + unit for number, unit in parts) == text else []


def _date(text: str) -> float | None:
    """Read a date as seconds since 1970; one without a zone is UTC."""
    from email.utils import parsedate_to_datetime

    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None
