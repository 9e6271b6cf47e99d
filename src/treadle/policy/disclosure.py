"""Asks before a call spells out a known secret: on a command line, in a file, or in an address."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from treadle.policy.secrets import Redactor
from treadle.protocol.codec import texts_within
from treadle.protocol.permissions import Decision, Part, Reason, Verdict
from treadle.protocol.tools import Risk, ToolSpec

_ORDINARY = re.compile(r"(?!.{21})[A-Za-z]+(?:[-_. ][A-Za-z]+)*")
"""A value of plain words up to this length, such as `development`, is hidden but too common to ask about."""


def asked_for_secrets(decision: Decision, spec: ToolSpec, arguments: Mapping[str, Any], redactor: Redactor) -> Decision:
    """Make a call ask in every mode whose arguments hold a known value, also encoded; nothing else is ever lifted."""
    if spec.risk is Risk.NONE:
        return decision
    names = dict.fromkeys(name for text in texts_within(arguments) for name in _telling(redactor).known_in(text))
    if not names:
        return decision
    advice = "do not write secrets into a call: let the program read it from where it is stored"
    reason = Reason(rule="secret-in-arguments", text=f"the call contains the value of {', '.join(names)}; {advice}")
    verdict = Verdict.DENY if decision.verdict is Verdict.DENY else Verdict.REQUIRE_USER_CONFIRMATION
    part = Part(text=spec.name, verdict=verdict, risk=Risk.CRITICAL, reasons=(reason,))
    return msgspec.structs.replace(
        decision,
        verdict=verdict,
        risk=Risk.CRITICAL,
        reasons=(reason, *decision.reasons),
        parts=(*decision.parts, part),
        offers=(),
    )


@lru_cache(maxsize=8)
def _telling(redactor: Redactor) -> Redactor:
    """Give one that knows the values alone that are worth a question; a session has the same all the time."""
    return Redactor(tuple((value, name) for value, name in redactor.values if not _ORDINARY.fullmatch(value)))
