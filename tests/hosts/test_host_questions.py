"""Questions as hosts get them, and what their answers do."""

from typing import Any

import pytest

from treadle.headless.host_questions import (
    HostAnswer,
    elicitation_answer,
    elicitation_request,
    host_answer,
    permission_request,
)
from treadle.protocol.events import Answer
from treadle.protocol.permissions import (
    Allowance,
    AllowScope,
    Decision,
    OptionKind,
    Question,
    QuestionKind,
    Verdict,
)
from treadle.protocol.tools import Right, Risk, RunCommand, SandboxDenial, ToolCall, WritePath

CALL = ToolCall(id="c1", name="execute_command", arguments={"command": "npm test"})
OFFER = Allowance(id="a", argv=("npm", "test"))
DECISION = Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=Risk.EXECUTE, offers=(OFFER,))
ALWAYS = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE)


def question(**more: Any) -> Question:
    said: dict[str, Any] = {
        "id": "q1",
        "kind": QuestionKind.PERMISSION,
        "text": "Run: npm test",
        "options": ALWAYS,
        "call_id": "c1",
        "decision": DECISION,
        "accesses": (RunCommand(command="npm test", cwd="/w"),),
        "arguments": {"command": "npm test"},
    }
    return Question(**{**said, **more})


STOPPED = question(denial=SandboxDenial(right=Right.NETWORK, target="registry.example"), options=ALWAYS[::2])


def test_a_permission_names_the_tool_its_input_and_what_always_would_allow() -> None:
    request = permission_request(question(), CALL, "/w", ())
    assert (request["tool_name"], request["input"], request["tool_use_id"]) == ("Bash", {"command": "npm test"}, "c1")
    rules = [{"toolName": "Bash", "ruleContent": "npm test:*"}]
    assert request["permission_suggestions"] == [
        {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}
    ]
    assert "blocked_path" not in request


def test_a_file_outside_of_the_folder_is_named() -> None:
    asked = question(accesses=(WritePath(path="/elsewhere/x"),), options=ALWAYS[::2])
    request = permission_request(asked, CALL, "/w", ())
    assert (request["blocked_path"], request["permission_suggestions"]) == ("/elsewhere/x", [])


def test_more_than_the_sandbox_lets_is_asked_about_under_a_name_of_its_own() -> None:
    request = permission_request(STOPPED, CALL, "/w", ())
    assert request["tool_name"] == "SandboxAccess"
    assert request["input"] == {
        "tool_name": "Bash",
        "input": {"command": "npm test"},
        "right": "network",
        "target": "registry.example",
    }


def answered(said: dict[str, Any], asked: Question | None = None) -> HostAnswer:
    return host_answer(asked or question(), CALL, "/w", said)


ONCE = Answer(question_id="q1", option=OptionKind.ALLOW_ONCE)
NPM = {"toolName": "Bash", "ruleContent": "npm test:*"}
RULE = {"type": "addRules", "rules": [NPM], "behavior": "allow", "destination": "session"}
NO_RULE = "no rule is added: that takes all those of permission_suggestions, and a call that is not changed"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"behavior": "allow"}, HostAnswer(answer=ONCE)),
        ({"behavior": "allow", "updatedInput": {"command": "npm test"}}, HostAnswer(answer=ONCE)),
        (
            {"behavior": "allow", "updatedInput": {"command": "npm test -- -q"}, "updatedPermissions": [RULE]},
            HostAnswer(
                answer=Answer(question_id="q1", option=OptionKind.ALLOW_ONCE, arguments={"command": "npm test -- -q"}),
                notes=(NO_RULE,),
            ),
        ),
        (
            {"behavior": "allow", "updatedPermissions": [RULE]},
            HostAnswer(answer=Answer(question_id="q1", option=OptionKind.ALLOW_ALWAYS)),
        ),
        (
            {"behavior": "allow", "updatedPermissions": [{**RULE, "destination": "userSettings"}]},
            HostAnswer(answer=Answer(question_id="q1", option=OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER)),
        ),
        (
            {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits"}, {"type": "odd"}]},
            HostAnswer(answer=ONCE, mode="acceptEdits", notes=("the permission update odd is not done",)),
        ),
        (
            {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "dontAsk"}]},
            HostAnswer(answer=ONCE, mode="dontAsk"),
        ),
        (
            {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": ["odd"]}]},
            HostAnswer(answer=ONCE, notes=("there is no permission mode ['odd']",)),
        ),
        (
            {"behavior": "allow", "updatedPermissions": [{**RULE, "behavior": "deny"}]},
            HostAnswer(answer=ONCE, notes=("the permission update addRules deny is not done",)),
        ),
        *(
            (
                {"behavior": "allow", "updatedPermissions": [{**RULE, "rules": rules}]},
                HostAnswer(answer=ONCE, notes=(NO_RULE,)),
            )
            for rules in ([], None, [{**NPM, "ruleContent": "npm test -- -q"}], [{**NPM, "toolName": "Read"}], [3])
        ),
        ({"behavior": "allow", "updatedPermissions": 3}, HostAnswer(answer=ONCE)),
        ({}, HostAnswer(answer=Answer(question_id="q1", option=OptionKind.REJECT_ONCE))),
        ({"behavior": "ALLOW"}, HostAnswer(answer=Answer(question_id="q1", option=OptionKind.REJECT_ONCE))),
        (
            {"behavior": "deny", "message": "no", "interrupt": True},
            HostAnswer(answer=Answer(question_id="q1", option=OptionKind.REJECT_ONCE, text="no"), interrupt=True),
        ),
    ],
)
def test_only_a_plain_yes_is_one(said: dict[str, Any], wanted: HostAnswer) -> None:
    assert answered(said) == wanted


def test_a_call_that_has_run_already_cannot_be_changed() -> None:
    said = answered({"behavior": "allow", "updatedInput": {"command": "rm -rf /"}}, STOPPED)
    assert said.answer.option is OptionKind.REJECT_ONCE
    assert answered({"behavior": "allow"}, STOPPED).answer == ONCE


def test_a_rule_is_not_taken_where_always_is_not_offered() -> None:
    asked = question(options=ALWAYS[::2])
    assert answered({"behavior": "allow", "updatedPermissions": [RULE]}, asked).answer == ONCE


FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("said", "option", "arguments"),
    [
        ({"action": "accept", "content": {"name": "x"}}, OptionKind.ALLOW_ONCE, {"name": "x"}),
        ({"action": "decline", "content": {"name": "x"}}, OptionKind.REJECT_ONCE, None),
        ({}, OptionKind.REJECT_ONCE, None),
    ],
)
def test_a_form_is_filled_in_or_declined(said: dict[str, Any], option: OptionKind, arguments: Any) -> None:
    asked = Question(id="q1", kind=QuestionKind.ELICITATION, text="Who?", call_id="c1", form=FORM)
    request = elicitation_request(asked, "every")
    assert request == {
        "subtype": "elicitation",
        "mcp_server_name": "every",
        "message": "Who?",
        "mode": "form",
        "requested_schema": FORM,
    }
    assert elicitation_answer(asked, said) == Answer(question_id="q1", option=option, arguments=arguments)
