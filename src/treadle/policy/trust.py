"""What a folder would activate, and whether the user's yes to it still holds."""

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum

from treadle.protocol.base import Record


class TrustState(StrEnum):
    """What is known about a folder; anything but `trusted` acts like untrusted."""

    UNKNOWN = "unknown"
    TRUSTED = "trusted"
    REFUSED = "refused"
    CHANGED = "changed"


class Activation(Record, frozen=True, kw_only=True):
    """One thing that a folder would activate: a rule file, hook, server or setting; `digest` is SHA-256 in hex."""

    kind: str
    path: str
    digest: str


class TrustGrant(Record, frozen=True, kw_only=True):
    """The user's answer for a folder and everything that it would activate at that time."""

    folder: str
    trusted: bool
    activations: tuple[Activation, ...] = ()


def activation(kind: str, path: str, content: bytes) -> Activation:
    """Describe one thing by what is in it."""
    return Activation(kind=kind, path=path, digest=hashlib.sha256(content).hexdigest())


def trust_state(folder: str, found: Iterable[Activation], grants: Mapping[str, TrustGrant]) -> TrustState:
    """Say whether a folder (resolved) is trusted: the same folder, and nothing in it new or changed since the yes."""
    grant = grants.get(folder)
    if grant is None:
        return TrustState.UNKNOWN
    if not grant.trusted:
        return TrustState.REFUSED
    return TrustState.TRUSTED if set(found) <= set(grant.activations) else TrustState.CHANGED


def what_changed(found: Iterable[Activation], grant: TrustGrant) -> tuple[Activation, ...]:
    """List what the user has not said yes to, in the order found."""
    known = set(grant.activations)
    return tuple(item for item in found if item not in known)
