"""What a person allowed from now on, as rules, and the decision that offers it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from treadle.policy.alternatives import run_by_themselves
from treadle.policy.context import PolicyContext
from treadle.policy.decide import decide
from treadle.policy.operations import PathOp
from treadle.policy.rules import Rule, Ruleset, Scope
from treadle.policy.suggest import suggest_rules
from treadle.protocol.permissions import Allowance, Decision, Verdict
from treadle.protocol.tools import Access, ToolSpec


def allowance_of(rule: Rule) -> Allowance:
    """Give a rule that allows as what a person is offered."""
    return Allowance(
        id=rule.id,
        tool=rule.tool,
        tool_digest=rule.tool_digest,
        argv=rule.argv,
        exact=rule.exact,
        path=rule.path,
        op="" if rule.op is None else rule.op.value,
        host=rule.host,
    )


def rule_of(allowance: Allowance) -> Rule:
    """Give what a person allowed as a rule of the session. Raises `ValueError` for an `op` that there is not."""
    what = " ".join(allowance.argv) or allowance.path or allowance.host or allowance.tool
    return Rule(
        id=allowance.id,
        verdict=Verdict.ALLOW,
        scope=Scope.SESSION,
        tool=allowance.tool,
        tool_digest=allowance.tool_digest,
        argv=allowance.argv,
        exact=allowance.exact,
        path=allowance.path,
        op=PathOp(allowance.op) if allowance.op else None,
        host=allowance.host,
        reason=f"you allowed {what}",
    )


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
