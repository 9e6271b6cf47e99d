"""What may be done with a file, and what one rule says of one part of a call."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from treadle.protocol.tools import Risk

_ORDER = tuple(Risk)


class PathOp(StrEnum):
    """What is to be done: `list` shows names and facts, never contents."""

    LIST = "list"
    READ = "read"
    WRITE = "write"


class CommandClass(StrEnum):
    """How a shell line is treated by default, mildest first; no mode runs a dangerous one without asking."""

    READ_ONLY = "read_only"
    NEEDS_CONFIRMATION = "needs_confirmation"
    DANGEROUS = "dangerous"


class Finding(Struct, frozen=True):
    """One rule that spoke: how risky it finds the part, and why; no mode lifts the question of what `always_asks`.

    `path` is what the part would read or change beyond what it may anyway, as far as that is known.
    """

    risk: Risk
    rule: str
    text: str
    always_asks: bool = False
    path: str = ""


def unclear(rule: str, text: str) -> Finding:
    """Say that a part is not known to be harmless."""
    return Finding(Risk.EXECUTE, rule, text)


def unfollowed(rule: str, text: str) -> Finding:
    """Say that what a part does could not be found out at all."""
    return Finding(Risk.EXECUTE, rule, text, always_asks=True)


def dangerous(rule: str, text: str, *, path: str = "") -> Finding:
    """Say that a part destroys, leaks, takes control or hides what it does."""
    return Finding(Risk.CRITICAL, rule, text, path=path)


def worst(findings: Iterable[Finding]) -> Risk:
    """Give the highest risk; nothing found is no risk."""
    return max((finding.risk for finding in findings), key=_ORDER.index, default=Risk.NONE)


def is_plain(findings: Iterable[Finding]) -> bool:
    """Whether nothing was found but reading."""
    return all(finding.risk in (Risk.NONE, Risk.READ) for finding in findings)


def class_of(findings: Iterable[Finding]) -> CommandClass:
    """Map findings to the class of a shell line."""
    listed = tuple(findings)
    risk = worst(listed)
    if risk is Risk.CRITICAL:
        return CommandClass.DANGEROUS
    if risk in (Risk.NONE, Risk.READ) and not any(finding.always_asks for finding in listed):
        return CommandClass.READ_ONLY
    return CommandClass.NEEDS_CONFIRMATION
