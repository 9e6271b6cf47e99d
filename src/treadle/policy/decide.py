"""The one decision: may this call run, must a person say yes, or may it not run at all."""

import hashlib
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

import msgspec

from treadle.protocol.permissions import Decision, Mode, Part, Reason, Verdict
from treadle.protocol.tools import Access, FetchUrl, ReadPath, Risk, RunCommand, ToolSpec, WritePath

_STRICTNESS = (Verdict.ALLOW, Verdict.REQUIRE_USER_CONFIRMATION, Verdict.DENY)
_RISKS = tuple(Risk)


class FileView(Protocol):
    """The only look at files that a decision may take."""

    def resolve(self, path: str) -> str:
        """Give the absolute path with every link followed; parts that do not exist stay as they are."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyContext:
    """What a decision depends on besides the call. `roots` are resolved absolute paths."""

    mode: Mode
    roots: tuple[str, ...]
    files: FileView


def decide(
    spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], context: PolicyContext
) -> Decision:
    """Decide about one call: the strictest of its parts wins; a call that touches nothing is judged by its tool."""
    parts = tuple(_judge(access, context) for access in accesses) or (_judge_tool(spec, context),)
    return Decision(
        verdict=max((part.verdict for part in parts), key=_STRICTNESS.index),
        risk=max((part.risk for part in parts), key=_RISKS.index),
        reasons=tuple(reason for part in parts for reason in part.reasons),
        parts=parts,
        digest=_digest(spec, arguments, accesses, context),
    )


def _digest(spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], context: PolicyContext) -> str:
    canonical = msgspec.json.encode((spec.name, arguments, tuple(accesses), context.roots), order="deterministic")
    return hashlib.sha256(canonical).hexdigest()


def _judge_tool(spec: ToolSpec, context: PolicyContext) -> Part:
    if spec.risk is Risk.NONE:
        return _part(spec.name, Risk.NONE, Verdict.ALLOW, rule="no-effect", why="touches nothing")
    return _gated(spec.name, spec.risk, context.mode, rule="tool-risk", why=f"a tool of risk class {spec.risk}")


def _judge(access: Access, context: PolicyContext) -> Part:
    match access:
        case ReadPath(path=path):
            if _inside(path, context):
                return _part(path, Risk.READ, Verdict.ALLOW, rule="read-inside", why="reads inside the workspace")
            return _gated(path, Risk.READ_OUTSIDE, context.mode, rule="read-outside", why="reads outside the workspace")
        case WritePath(path=path):
            if _inside(path, context):
                return _gated(
                    path, Risk.WRITE, context.mode, rule="write-inside", why="changes a file of the workspace"
                )
            return _gated(
                path, Risk.CRITICAL, context.mode, rule="write-outside", why="changes a file outside the workspace"
            )
        case RunCommand(command=command):
            return _gated(command, Risk.EXECUTE, context.mode, rule="run-command", why="runs a command")
        case FetchUrl(url=url):
            return _gated(url, Risk.REMOTE, context.mode, rule="fetch-url", why="sends a request to the network")
        case _:
            assert_never(access)


_ALLOWED_BY_MODE: Mapping[Mode, frozenset[Risk]] = {
    Mode.PLAN: frozenset(),
    Mode.ASK: frozenset(),
    Mode.EDITS: frozenset({Risk.WRITE}),
    Mode.AUTO: frozenset({Risk.WRITE}),
    Mode.FULL: frozenset(Risk) - {Risk.CRITICAL},
}
_CHANGES = frozenset({Risk.WRITE, Risk.EXECUTE, Risk.REMOTE, Risk.CRITICAL})


def _gated(text: str, risk: Risk, mode: Mode, *, rule: str, why: str) -> Part:
    if mode is Mode.PLAN and risk in _CHANGES:
        return _part(text, risk, Verdict.DENY, rule="plan-mode", why=f"{why}; plan mode changes nothing")
    if risk in _ALLOWED_BY_MODE[mode]:
        return _part(text, risk, Verdict.ALLOW, rule=rule, why=f"{why}; mode {mode} allows it")
    return _part(text, risk, Verdict.REQUIRE_USER_CONFIRMATION, rule=rule, why=f"{why}; mode {mode} asks")


def _part(text: str, risk: Risk, verdict: Verdict, *, rule: str, why: str) -> Part:
    return Part(text=text, verdict=verdict, risk=risk, reasons=(Reason(rule=rule, text=why),))


def _inside(path: str, context: PolicyContext) -> bool:
    resolved = context.files.resolve(path)
    return any(resolved == root or resolved.startswith(posixpath.join(root, "")) for root in context.roots)
