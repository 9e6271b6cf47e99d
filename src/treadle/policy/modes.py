"""What each mode lets run without asking."""

from collections.abc import Mapping

from treadle.policy.context import PolicyContext
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Risk

_HARMLESS = frozenset({Risk.NONE, Risk.READ})
_ALLOWED: Mapping[Mode, frozenset[Risk]] = {
    Mode.PLAN: _HARMLESS,
    Mode.ASK: _HARMLESS,
    Mode.EDITS: _HARMLESS | {Risk.WRITE},
    Mode.AUTO: _HARMLESS | {Risk.WRITE},
    Mode.FULL: frozenset(Risk) - {Risk.CRITICAL},
}


def verdict_for(risk: Risk, context: PolicyContext) -> tuple[Verdict, str]:
    """Give the mode's answer to a risk, and that answer in words."""
    mode = context.mode
    if mode is Mode.PLAN and risk not in _HARMLESS:
        return Verdict.DENY, "plan mode changes nothing and stays in the workspace"
    if risk is Risk.REMOTE and context.tainted:
        return Verdict.REQUIRE_USER_CONFIRMATION, "text from outside was read in this turn, so network changes ask"
    if risk in context.approved and risk is not Risk.CRITICAL:
        return Verdict.ALLOW, f"your setting approve lets {risk} run"
    if risk in _ALLOWED[mode] or (mode is Mode.AUTO and risk is Risk.EXECUTE and context.sandboxed):
        return Verdict.ALLOW, f"mode {mode} allows it"
    return Verdict.REQUIRE_USER_CONFIRMATION, f"mode {mode} asks{_way_out(risk, mode)}"


def _way_out(risk: Risk, mode: Mode) -> str:
    """Say what would change the answer, where something would."""
    if risk is Risk.CRITICAL:
        return "; no mode allows it"
    if mode is Mode.AUTO and risk is Risk.EXECUTE:
        return "; in a sandbox it would run"
    return "; mode edits would allow it" if mode is Mode.ASK and risk is Risk.WRITE else ""
