"""How far a rule that allows reaches: this program, this folder, this trust, and nothing beside it."""

from typing import Any

import pytest

from tests.policy.views import ROOT, context
from treadle.policy.decide import decide
from treadle.policy.rulefile import RuleFile, load_rules
from treadle.policy.rules import Scope
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import FetchUrl, Risk, RunCommand, ToolSpec, ToolTraits

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.REQUIRE_USER_CONFIRMATION, Verdict.DENY
SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)


def _rules(text: str, scope: Scope = Scope.USER) -> Any:
    loaded = load_rules([RuleFile(name="r", text=f"version = 1\n{text}", scope=scope)])
    assert loaded.problems == ()
    return loaded


def _run(line: str, rules: Any, **changes: Any) -> Verdict:
    mode = changes.pop("mode", Mode.ASK)
    return decide(SHELL, {}, (RunCommand(command=line, cwd=ROOT),), context(mode, rules=rules, **changes)).verdict


TESTS = '[[rule]]\nid="t"\nverdict="allow"\nargv=["npm","test"]\nmatch=["npm test"]\n'


@pytest.mark.parametrize("line", ["./npm test", "/tmp/npm test", "sub/npm test", "../npm test"])
def test_a_rule_that_allows_a_name_allows_no_other_program_of_that_name(line: str) -> None:
    assert _run(line, _rules(TESTS)) is ASK
    assert _run(line, _rules(TESTS.replace("allow", "deny"))) is DENY


def test_before_trust_a_rule_lets_nothing_of_the_folder_run() -> None:
    assert (_run("npm test", _rules(TESTS)), _run("npm test", _rules(TESTS), trusted=False)) == (ALLOW, ASK)
    wiki = _rules('[[rule]]\nid="w"\nverdict="allow"\nhost="example.com"\nmatch=["example.com"]')
    fetch = (FetchUrl(url="https://example.com/"),)
    assert decide(SHELL, {}, fetch, context(rules=wiki, trusted=False)).verdict is ALLOW


def test_what_was_allowed_in_this_session_or_for_this_folder_counts_before_trust_too() -> None:
    here = TESTS + f'workspace = "{ROOT}"\n'
    assert _run("npm test", _rules(TESTS, Scope.SESSION), trusted=False) is ALLOW
    assert _run("npm test", _rules(here), trusted=False) is ALLOW


def test_a_rule_for_a_folder_counts_in_that_folder_only() -> None:
    assert _run("npm test", _rules(TESTS + 'workspace = "/srv/other"\n')) is ASK
    assert _run("npm test", _rules(TESTS.replace("allow", "deny") + 'workspace = "/srv/other"\n')) is ASK


def test_no_rule_lets_the_network_change_after_text_from_outside_was_read() -> None:
    push = _rules('[[rule]]\nid="p"\nverdict="allow"\nargv=["git","push"]\nmatch=["git push"]')
    assert (_run("git push", push), _run("git push", push, tainted=True)) == (ALLOW, ASK)


@pytest.mark.parametrize(
    "line",
    ["npm test --node-options=--import=data:text/javascript,x", "npm test --script-shell=./x", "npm test --prefix /x"],
)
def test_a_rule_over_first_words_covers_no_option_that_runs_something_else(line: str) -> None:
    assert _run(line, _rules(TESTS)) is ASK
