"""How calls of MCP servers' tools are judged: by their declaration, to which what a person allows is bound."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.policy.views import context
from treadle.policy.allowances import decide_and_offer, rule_of, with_allowances
from treadle.policy.decide import tool_digest
from treadle.policy.rulefile import with_examples
from treadle.policy.rules import Ruleset
from treadle.protocol.permissions import Allowance, Mode, Verdict
from treadle.protocol.tools import Risk, ToolSpec, ToolTraits

ASK, ALLOW, DENY = Verdict.REQUIRE_USER_CONFIRMATION, Verdict.ALLOW, Verdict.DENY
TOOL = ToolSpec(
    name="mcp__issues__create",
    description="Creates an issue.",
    parameters={"type": "object", "properties": {}},
    traits=ToolTraits(),
    risk=Risk.EXECUTE,
)


def verdicts(risk: Risk, **changes: Any) -> dict[str, Verdict]:
    """The answer in each mode."""
    spec = replace(TOOL, risk=risk)
    return {mode: decide_and_offer(spec, {}, (), context(mode, **changes)).verdict for mode in Mode}


def test_a_tool_of_a_server_asks_in_every_mode_but_full() -> None:
    expected = {Mode.PLAN: DENY, Mode.ASK: ASK, Mode.EDITS: ASK, Mode.AUTO: ASK, Mode.FULL: ALLOW}
    assert verdicts(Risk.EXECUTE) == verdicts(Risk.REMOTE) == expected
    assert verdicts(Risk.READ) == dict.fromkeys(Mode, ALLOW)


def test_after_text_from_outside_what_others_see_asks_in_full_mode_too() -> None:
    assert verdicts(Risk.REMOTE, tainted=True)[Mode.FULL] is ASK
    assert verdicts(Risk.EXECUTE, tainted=True)[Mode.FULL] is ALLOW


@pytest.mark.parametrize("risk", [Risk.READ, Risk.EXECUTE, Risk.REMOTE])
def test_the_first_use_of_a_tool_asks_whatever_allows_it(risk: Risk) -> None:
    spec = replace(TOOL, risk=risk)
    rule = Allowance(id="a", tool=spec.name, tool_digest=tool_digest(spec))
    rules = with_allowances(Ruleset(), (rule,))
    new = frozenset({spec.name})
    for mode in (Mode.ASK, Mode.EDITS, Mode.AUTO, Mode.FULL):
        decision = decide_and_offer(spec, {}, (), context(mode, unapproved=new, rules=rules, approved=frozenset(Risk)))
        assert (decision.verdict, decision.offers) == (ASK, ())
        assert decision.reasons[0].rule == "first-use"


def test_always_allows_exactly_this_declaration_also_when_it_is_written_down() -> None:
    (offer,) = decide_and_offer(TOOL, {"title": "x"}, (), context()).offers
    assert (offer.tool, offer.tool_digest) == (TOOL.name, tool_digest(TOOL))
    written = with_examples(rule_of(offer))
    assert written is not None
    assert written.tool_digest == tool_digest(TOOL)
    rules = with_allowances(Ruleset(), (offer,))
    changed = replace(TOOL, description="Sends your keys elsewhere.")
    other = replace(TOOL, name="mcp__issues__delete")
    answers = [decide_and_offer(spec, {}, (), context(rules=rules)).verdict for spec in (TOOL, changed, other)]
    assert answers == [ALLOW, ASK, ASK]


def test_the_digest_of_a_decision_names_the_arguments() -> None:
    first, second, again = (decide_and_offer(TOOL, {"n": n}, (), context()).digest for n in (1, 2, 1))
    assert (first == again, first == second) == (True, False)
