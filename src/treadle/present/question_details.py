"""Why a call is asked about, for who wants to know more: which rules speak, of which part, and what the mode says."""

from collections.abc import Iterator, Sequence

from treadle.present.escape import exact, exact_line, printable
from treadle.protocol.permissions import Decision, Question, Reason, Verdict
from treadle.protocol.reasons import MODE_RULE, mode_reasons
from treadle.protocol.tools import RunCommand


def details_of_question(question: Question, decision: Decision) -> Iterator[str]:
    """Say where it runs, what it risks, and why it is asked about: each reason once, of several parts at the first."""
    for access in question.accesses:
        if isinstance(access, RunCommand):
            yield f"runs in {exact_line(access.cwd)}"
    yield f"risk: {question.risk}"
    said: set[Reason] = set()
    for part in decision.parts if len(decision.parts) > 1 else ():
        yield f"{exact(part.text)}  {'allowed' if part.verdict is Verdict.ALLOW else 'asked about'} · risk: {part.risk}"
        yield from (f"  {line}" for line in _new_reasons(part.reasons, said))
    yield from _new_reasons(decision.reasons or [one for part in decision.parts for one in part.reasons], said)
    yield from mode_reasons(decision)


def _new_reasons(reasons: Sequence[Reason], said: set[Reason]) -> Iterator[str]:
    """Give the reasons that were not `said` yet; what the mode says is said of the whole call."""
    for reason in dict.fromkeys(reasons):
        if reason.rule != MODE_RULE and reason not in said:
            said.add(reason)
            named = ", ".join(filter(None, (reason.rule, printable(reason.source))))
            yield f"rule: {named} · {printable(reason.text)}"
