"""What a person allowed from now on, as rules, and the decision that offers it or says what would run by itself."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec

from treadle.policy.context import PolicyContext
from treadle.policy.decide import decide
from treadle.policy.findings import PathOp
from treadle.policy.rules import Rule, Ruleset, Scope
from treadle.policy.suggest import suggest_rules
from treadle.protocol.permissions import Allowance, Decision, Part, Verdict
from treadle.protocol.tools import Access, RunCommand, ToolSpec

_MOST = 3
_TRIED = 8
_LONGEST = 200
_SAYS_NOTHING = frozenset(
    {"cd", "echo", "printf", "true", "false", ":", "test", "[", "[[", "export", "set", "pwd", "&"}
)
"""Commands that nobody calls for themselves."""


def run_by_themselves(
    decision: Decision, spec: ToolSpec, accesses: Sequence[Access], context: PolicyContext
) -> tuple[str, ...]:
    """Name commands of a denied or asked line that run alone; each was judged alone, so that it is true."""
    match accesses:
        case [RunCommand(command=command, cwd=cwd)] if len(decision.parts) > 1:
            pass
        case _:
            return ()
    lines = islice(dict.fromkeys(_candidates(decision.parts, command)), _TRIED)
    allowed = (line for line in lines if _runs(line, cwd, spec, context))
    return tuple(islice(allowed, _MOST))


def _candidates(parts: Sequence[Part], command: str) -> Iterator[str]:
    """Give the allowed commands that mean the same alone: the line gives them nothing but perhaps their directory."""
    first = parts[0]
    lead = f"{first.text} && " if first.text.startswith("cd ") and first.verdict is Verdict.ALLOW else ""
    if any(part.text.startswith(("cd ", "pushd ", "popd")) for part in parts[1:]):
        return
    for part in parts:
        words = part.text.split()
        before = command.partition(part.text)[0].rstrip()
        is_fed = before.endswith("|") and not before.endswith("||")
        says_something = bool(words) and words[0] not in _SAYS_NOTHING and "$" not in part.text
        if part.verdict is Verdict.ALLOW and says_something and not is_fed:
            yield f"{lead}{part.text}"


def _runs(line: str, cwd: str, spec: ToolSpec, context: PolicyContext) -> bool:
    if len(line) > _LONGEST:
        return False
    return decide(spec, {"command": line}, (RunCommand(command=line, cwd=cwd),), context).verdict is Verdict.ALLOW


def allowance_of(rule: Rule) -> Allowance:
    """Give a rule that allows as what a person is offered."""
    said = {name: getattr(rule, name) for name in Allowance.__struct_fields__}
    return Allowance(**{**said, "op": rule.op.value if rule.op is not None else ""})


def rule_of(allowance: Allowance) -> Rule:
    """Give what a person allowed as a rule of the session. Raises `ValueError` for an `op` that there is not."""
    what = " ".join(allowance.argv) or allowance.path or allowance.host or allowance.tool
    said = {**msgspec.structs.asdict(allowance), "op": PathOp(allowance.op) if allowance.op else None}
    return Rule(verdict=Verdict.ALLOW, scope=Scope.SESSION, reason=f"you allowed {what}", **said)


def with_allowances(rules: Ruleset, allowances: Iterable[Allowance]) -> Ruleset:
    """Add what was allowed in this session. It is no other policy: a call that was judged before is still that call."""
    return replace(rules, rules=(*rules.rules, *map(rule_of, allowances)))


def decide_and_offer(
    spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], context: PolicyContext
) -> Decision:
    """Decide about one call; where it may not simply run, say what would.

    These are the narrowest allowances under which it would not ask, and the parts of it that would run by themselves.
    """
    decision = decide(spec, arguments, accesses, context)
    if decision.verdict is Verdict.ALLOW:
        return decision
    offered = suggest_rules(decision, spec, accesses, context)
    return msgspec.structs.replace(
        decision,
        offers=tuple(map(allowance_of, offered)),
        alternatives=run_by_themselves(decision, spec, accesses, context),
    )
