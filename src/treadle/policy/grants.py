"""The rights beyond the sandbox that a call needs by what it says, so that a yes gives them before it runs."""

import posixpath
from collections.abc import Iterable, Iterator

from treadle.policy.context import FileKind, PolicyContext
from treadle.policy.findings import Finding
from treadle.protocol.permissions import Mode, Reason
from treadle.protocol.tools import Right, Risk, SandboxDenial

_NETWORK = frozenset({"network", "download", "upload", "private-host"})
_READS = frozenset({"secret-read", "read-outside"})
_WRITES = frozenset({"control-write", "write-outside"})


def rights_beyond(
    findings: Iterable[Finding], hosts: Iterable[str], context: PolicyContext
) -> tuple[SandboxDenial, ...]:
    """Name the rights that a confinement would refuse; none where there is none, or where it never opens."""
    if not context.confined or context.mode is Mode.PLAN:
        return ()
    named = ", ".join(dict.fromkeys(hosts))
    return tuple(dict.fromkeys(right for found in findings for right in _needs(found, named, context)))


def _needs(found: Finding, hosts: str, context: PolicyContext) -> Iterator[SandboxDenial]:
    if found.risk is Risk.REMOTE or found.rule in _NETWORK:
        yield SandboxDenial(right=Right.NETWORK, target=hosts)
    if found.path and found.rule in _READS and (found.rule != "read-outside" or context.is_hidden(found.path)):
        yield SandboxDenial(right=Right.READ, target=found.path)
    if found.path and found.rule in _WRITES and (place := _to_open(found.path, context)):
        yield SandboxDenial(right=Right.WRITE, target=place)


def _to_open(path: str, context: PolicyContext) -> str:
    """Name what is opened so that a path can be changed: what is there, or its folder; never what holds a home."""
    while (facts := context.files.facts(path)) is None and path != "/":
        path = posixpath.dirname(path)
    if facts is None or facts.kind not in (FileKind.FILE, FileKind.DIRECTORY):
        return ""
    kept = (context.home, *context.state, *context.own)
    too_wide = path == "/" or any(f"{keep}/".startswith(f"{path}/") for keep in kept if keep)
    return "" if too_wide else path


def granting(rights: Iterable[SandboxDenial]) -> tuple[Reason, ...]:
    """Say what a yes gives."""
    said = [_said(right) for right in rights]
    return (Reason(rule="grants", text=f"approving also lets it {', '.join(said)}"),) if said else ()


def _said(right: SandboxDenial) -> str:
    match right.right:
        case Right.NETWORK:
            return f"reach the network ({right.target})" if right.target else "reach the network"
        case Right.READ:
            return f"read {right.target}"
        case Right.WRITE:
            return f"change {right.target}"
        case Right.UNSANDBOXED:
            return "run outside the sandbox"
