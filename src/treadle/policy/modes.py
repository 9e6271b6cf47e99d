"""What each mode lets run without asking."""

from collections.abc import Mapping

from treadle.policy.context import PolicyContext
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Risk

_HARMLESS = frozenset({Risk.NONE, Risk.READ})
_IN_A_COPY = _HARMLESS | {Risk.READ_OUTSIDE, Risk.WRITE, Risk.EXECUTE}
"""What can do no harm in a throw-away copy: it reads what is not hidden, and has no network."""

_ALLOWED: Mapping[Mode, frozenset[Risk]] = {
    Mode.PLAN: _HARMLESS,
    Mode.ASK: _HARMLESS,
    Mode.EDITS: _HARMLESS | {Risk.WRITE},
    Mode.AUTO: _HARMLESS | {Risk.WRITE},
    Mode.FULL: frozenset(Risk) - {Risk.CRITICAL},
}


def verdict_for(
    risk: Risk, context: PolicyContext, *, can_try: bool = False, publishes: bool = False
) -> tuple[Verdict, str]:
    """Give the mode's answer to a risk, and that answer in words.

    `can_try`: it is a command that runs confined, in a throw-away copy where the mode lets it change nothing.
    `publishes`: others see what it does, which a rule or the setting `approve` may allow, but no mode.
    """
    mode = context.mode
    if can_try and risk in _IN_A_COPY and (context.try_first or mode in (Mode.PLAN, Mode.AUTO)):
        return Verdict.ALLOW, f"mode {mode} runs it confined"
    if mode is Mode.PLAN and risk not in _HARMLESS:
        return Verdict.DENY, "plan mode changes nothing and stays in the workspace"
    if risk is Risk.REMOTE and context.tainted:
        return Verdict.REQUIRE_USER_CONFIRMATION, "text from outside was read in this turn, so network changes ask"
    if risk in context.approved and risk is not Risk.CRITICAL:
        return Verdict.ALLOW, f"your setting approve lets {risk} run"
    if publishes and risk in _ALLOWED[mode]:
        return Verdict.REQUIRE_USER_CONFIRMATION, "publishing and deploying ask in every mode"
    if risk in _ALLOWED[mode]:
        return Verdict.ALLOW, f"mode {mode} allows it"
    return Verdict.REQUIRE_USER_CONFIRMATION, f"mode {mode} asks{_way_out(risk, mode)}"


def _way_out(risk: Risk, mode: Mode) -> str:
    """Say what would change the answer, where something would."""
    if risk is Risk.CRITICAL:
        return "; no mode allows it"
    if mode is Mode.AUTO and risk is Risk.EXECUTE:
        return "; in a sandbox it would run"
    return "; mode edits would allow it" if mode is Mode.ASK and risk is Risk.WRITE else ""
