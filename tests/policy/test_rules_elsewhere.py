"""A rule that allows a command covers it where it was given, and not in surroundings that the line changed."""

import pytest

from tests.policy.views import ROOT, context
from treadle.policy.decide import decide
from treadle.policy.rules import Rule, Ruleset, Scope
from treadle.protocol.permissions import Verdict
from treadle.protocol.tools import Risk, RunCommand, ToolSpec, ToolTraits

SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)
RULES = Ruleset(rules=(Rule(id="test", verdict=Verdict.ALLOW, scope=Scope.USER, argv=("npm", "test")),))


def _verdict(line: str, cwd: str = ROOT) -> Verdict:
    return decide(SHELL, {}, (RunCommand(command=line, cwd=cwd),), context(rules=RULES)).verdict


@pytest.mark.parametrize("line", ["npm test", "npm test && npm test", "true; npm test", "npm test | tail"])
def test_the_command_is_allowed_where_the_rule_was_given(line: str) -> None:
    assert _verdict(line) is Verdict.ALLOW


@pytest.mark.parametrize("change", ["cd src", "pushd src", "cd $X", "cd ..", "cd /tmp", "cd src/../lib"])
@pytest.mark.parametrize("form", ["{} && npm test", "{}; npm test", "({}; npm test)", "if {}; then npm test; fi"])
def test_the_command_asks_in_another_folder(change: str, form: str) -> None:
    assert _verdict(form.format(change)) is not Verdict.ALLOW


@pytest.mark.parametrize("line", [
    "NODE_OPTIONS=--require=./x.js npm test", "export NODE_OPTIONS=--require=./x.js; npm test", "PATH=.:$PATH npm test",
    "alias npm=./x; npm test", "npm() { ./x; }; npm test", "export PATH=.; npm test",
])  # fmt: skip
def test_the_command_asks_where_the_line_changed_what_it_means(line: str) -> None:
    assert _verdict(line) is not Verdict.ALLOW


def test_a_call_that_runs_elsewhere_asks() -> None:
    assert _verdict("npm test", f"{ROOT}/src") is not Verdict.ALLOW
