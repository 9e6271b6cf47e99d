"""What may be done with a file, and what one rule says of one part of a call."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum

from msgspec import Struct, structs

from treadle.protocol.permissions import CONTROL_WRITE
from treadle.protocol.tools import Risk

_ORDER = tuple(Risk)
WRITES_GIT = "git-write"
"""The rule by which a use of git is known that changes the repository, or may."""
WITHOUT_SANDBOX = "without-sandbox"
"""The rule by which it is known that a confinement keeps a part from all that it is for."""
USES_NETWORK = "network-control"
"""The rule of what nothing but the want of a network keeps from harm."""


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

    `path` is what the part would read or change beyond what it may anyway, as far as that is known. `held`: a
    confinement that holds keeps the part from doing any harm by this, so that there it does not ask. `brokered`: what
    it needs is asked about when it is used, where somebody can be asked then.
    """

    risk: Risk
    rule: str
    text: str
    always_asks: bool = False
    path: str = ""
    held: bool = False
    brokered: bool = False


def unclear(rule: str, text: str) -> Finding:
    """Say that a part is not known to be harmless."""
    return Finding(Risk.EXECUTE, rule, text)


def unfollowed(rule: str, text: str) -> Finding:
    """Say that what a part does could not be found out at all."""
    return Finding(Risk.EXECUTE, rule, text, always_asks=True)


def dangerous(rule: str, text: str, *, path: str = "", held: bool = False) -> Finding:
    """Say that a part destroys, leaks, takes control or hides what it does."""
    return Finding(Risk.CRITICAL, rule, text, path=path, held=held)


def when_confined(findings: Sequence[Finding], *, brokers: bool, opened: AbstractSet[str]) -> tuple[Finding, ...]:
    """Give what is left of findings in a confinement that holds: what it keeps from doing harm may be tried.

    With `brokers` so may what is asked about when it is used. What the rules name that are `opened`, by a right or by
    the confinement itself, is not held. Where a part writes to a repository less is held: files of the repository
    itself can be changed there.
    """
    if any(found.rule == WRITES_GIT for found in findings):
        opened |= {CONTROL_WRITE}
    return tuple(found if found.rule in opened else _tried(found, brokers=brokers) for found in findings)


def _tried(found: Finding, *, brokers: bool) -> Finding:
    if found.brokered and brokers:
        return structs.replace(found, risk=Risk.EXECUTE)
    if not found.held or (found.risk is not Risk.CRITICAL and not found.always_asks):
        return found
    return structs.replace(found, risk=min(found.risk, Risk.EXECUTE, key=_ORDER.index), always_asks=False)


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
