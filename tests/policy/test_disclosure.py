"""A call that spells out a known secret is asked about in every mode."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.views import context
from treadle.policy.decide import decide
from treadle.policy.disclosure import asked_for_secrets
from treadle.policy.secrets import Redactor
from treadle.protocol.permissions import Allowance, Decision, Mode, Verdict
from treadle.protocol.tools import Risk, RunCommand, ToolEffect, ToolKind, ToolSpec, ToolTraits

SECRET = "s3cret-4711-aBcD"
KNOWN = Redactor(((SECRET, "DEPLOY_TOKEN"), ("development", "APP_SECRET")))


def tool(risk: Risk) -> ToolSpec:
    traits = ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE)
    return ToolSpec(name="run", description="", parameters={}, traits=traits, risk=risk)


RUNS = tool(Risk.EXECUTE)
ALLOWED = Decision(verdict=Verdict.ALLOW, risk=Risk.EXECUTE, offers=(Allowance(id="a", tool="run"),))


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.EDITS, Mode.AUTO, Mode.FULL])
def test_a_command_with_a_known_secret_asks_in_every_mode(mode: Mode) -> None:
    line = f"ls {SECRET}"
    arguments = {"command": line}
    judged = decide(RUNS, arguments, (RunCommand(command=line, cwd="/home/user/ws"),), context(mode))
    assert judged.verdict is Verdict.ALLOW
    asked = asked_for_secrets(judged, RUNS, arguments, KNOWN)
    assert (asked.verdict, asked.risk, asked.digest) == (
        Verdict.REQUIRE_USER_CONFIRMATION,
        Risk.CRITICAL,
        judged.digest,
    )
    assert asked.reasons[0].rule == "secret-in-arguments"
    assert "DEPLOY_TOKEN" in asked.reasons[0].text
    assert SECRET not in repr(asked.reasons)


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": SECRET},
        {"a": ["x", {"b": f"x{SECRET}y"}]},
        {f"k{SECRET}": 1},
        {"a": base64.b64encode(f"user:{SECRET}".encode()).decode()},
        {"a": SECRET.encode().hex()},
        {"a": "x" * 40 + SECRET[:8] + "\n" + SECRET[8:]},
    ],
)
def test_it_is_found_wherever_it_stands_and_encoded_too(arguments: dict[str, Any]) -> None:
    asked = asked_for_secrets(ALLOWED, RUNS, arguments, KNOWN)
    assert (asked.verdict, asked.offers) == (Verdict.REQUIRE_USER_CONFIRMATION, ())


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)))
def test_a_call_without_one_is_left_as_it_was_judged(arguments: dict[str, Any]) -> None:
    assert asked_for_secrets(ALLOWED, RUNS, arguments, KNOWN) is ALLOWED


def test_a_value_of_plain_words_and_a_call_that_touches_nothing_do_not_ask() -> None:
    assert asked_for_secrets(ALLOWED, RUNS, {"a": "npm run development"}, KNOWN) is ALLOWED
    assert asked_for_secrets(ALLOWED, tool(Risk.NONE), {"a": SECRET}, KNOWN) is ALLOWED


def test_what_was_denied_stays_denied() -> None:
    denied = Decision(verdict=Verdict.DENY, risk=Risk.READ)
    assert asked_for_secrets(denied, RUNS, {"a": SECRET}, KNOWN).verdict is Verdict.DENY
