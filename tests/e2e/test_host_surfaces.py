"""A question about a host on every surface: once, for the session, always, and no, by the means of that surface."""

import re

import pytest
from msgspec.structs import replace

from tests.web.test_question_cards import answers_of, html_of
from treadle.acp.client_questions import answer_of_choice, put_question
from treadle.acp.shapes import ChosenOption
from treadle.app.security.op_effects import Reach
from treadle.app.session.files.answer_effects import answer_effect
from treadle.headless.host_questions import host_answer, permission_request
from treadle.library.approving import answer_of
from treadle.mcp_server.wording import form_answer, given_answer, question_form
from treadle.protocol.events import Answer
from treadle.protocol.permissions import COMMAND_HOSTS, Allowance, AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import ToolCall
from treadle.tui.question.asked import GivenAnswer, Stage, ask, choices, confirm, pick
from treadle.web.answering import GivenOnPage, _arguments  # pyright: ignore[reportPrivateUsage]

HOSTS = tuple(Allowance(id=host, tool=COMMAND_HOSTS, host=host) for host in ("pypi.org", "files.pythonhosted.org"))
ASKED = Question(
    id="q",
    kind=QuestionKind.ELICITATION,
    text="Let commands connect to pypi.org and files.pythonhosted.org? Looked up by: pip install x",
    options=(OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE),
    call_id="c1",
    offers=HOSTS,
)
BEHIND = replace(ASKED, call_id="")
ONCE = Answer(question_id="q", option=OptionKind.ALLOW_ONCE)
SESSION = Answer(question_id="q", option=OptionKind.ALLOW_ALWAYS)
ALWAYS = Answer(question_id="q", option=OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER)
NO = Answer(question_id="q", option=OptionKind.REJECT_ONCE)
EVERY = (ONCE, SESSION, ALWAYS, NO)
LABELS = [
    "Yes, for this command",
    "Yes, and don't ask again this session for: pypi.org, files.pythonhosted.org",
    "Always in every project: pypi.org, files.pythonhosted.org",
    "No",
]


def ways_of(html: str) -> list[str]:
    """How far a yes can go on the page."""
    return re.findall(r'<input type="radio"[^>]* data-act="(\w+)"', html)


@pytest.mark.parametrize(("row", "answer"), [*enumerate(EVERY)])
def test_the_terminal_offers_a_row_for_each(row: int, answer: Answer) -> None:
    asking = ask(ASKED, Mode.AUTO)
    assert [one.label for one in choices(asking)] == LABELS
    chosen = pick(asking, str(row + 1))
    assert chosen is not None
    given = confirm(chosen)
    if answer is ALWAYS:  # what is written down is confirmed by itself
        assert not isinstance(given, GivenAnswer)
        assert given.stage is Stage.RULE  # type: ignore[union-attr]
        saved = pick(given, "y")  # type: ignore[arg-type]
        assert saved is not None
        given = confirm(saved)
    assert given == GivenAnswer(answer)


def test_the_page_offers_the_same_and_asks_before_it_saves() -> None:
    html = html_of(ASKED, Mode.AUTO)
    assert [label for _, label in answers_of(html)] == [LABELS[0], LABELS[-1]]
    assert ways_of(html) == ["allow", "session", "always"]
    assert html.count("<code>pypi.org, files.pythonhosted.org</code>") == 2
    assert "Save this setting?" in html
    assert "connections of commands to pypi.org" in html
    posted = GivenOnPage(question_id="q", option=OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER, fields={})
    assert _arguments(posted, ASKED) == {}


def test_a_paired_device_cannot_answer_always() -> None:
    assert [answer_effect(one, ASKED) for one in EVERY] == [Reach.WORK, Reach.WORK, Reach.POLICY, Reach.WORK]

    def refused(op: object) -> Reach | None:
        effect = answer_effect(op, ASKED) if isinstance(op, Answer) else Reach.WORK
        return None if effect is Reach.WORK else effect

    html = html_of(ASKED, Mode.AUTO, refused)
    assert [act for act, _ in answers_of(html)] == ["allow", "reject"]
    assert ways_of(html) == ["allow", "session"]


@pytest.mark.parametrize(("row", "answer"), [*enumerate(EVERY)])
def test_an_editor_chooses_among_the_same(row: int, answer: Answer) -> None:
    put = put_question(ASKED, ("/work",), Mode.AUTO)
    assert put is not None
    assert [one.name for one in put.choices] == LABELS
    chosen = ChosenOption(outcome="selected", option_id=put.choices[row].option_id)
    assert answer_of_choice(ASKED, chosen) == answer


@pytest.mark.parametrize("question", [ASKED, BEHIND])
@pytest.mark.parametrize("answer", EVERY)
def test_a_host_program_is_asked_for_a_right_with_the_rules_that_it_may_add(question: Question, answer: Answer) -> None:
    call = ToolCall(id="c1", name="execute_command", arguments={"command": "pip install x"})
    request = permission_request(question, call, "/work", ())
    assert (request["tool_name"], request["title"]) == ("SandboxAccess", ASKED.text)
    (suggestion,) = request["permission_suggestions"]
    assert [one["ruleContent"] for one in suggestion["rules"]] == ["domain:pypi.org", "domain:files.pythonhosted.org"]
    said: dict[str, object] = {"behavior": "allow", "updatedInput": request["input"]}
    if answer is SESSION:
        said["updatedPermissions"] = [suggestion]
    elif answer is ALWAYS:
        said["updatedPermissions"] = [{**suggestion, "destination": "userSettings"}]
    elif answer is NO:
        said = {"behavior": "deny"}
    given = host_answer(question, call, "/work", said)
    assert (given.answer, given.notes) == (answer, ())


def test_a_host_program_changes_nothing_of_what_is_asked() -> None:
    call = ToolCall(id="c1", name="execute_command", arguments={"command": "pip install x"})
    said = {"behavior": "allow", "updatedInput": {"target": "evil.org"}}
    assert host_answer(ASKED, call, "/work", said).answer.option is OptionKind.REJECT_ONCE


@pytest.mark.parametrize(
    ("said", "answer"),
    [(True, ONCE), (OptionKind.ALLOW_ALWAYS, SESSION), (ALWAYS, ALWAYS), (False, NO), (OptionKind.REJECT_ONCE, NO)],
)
def test_a_program_answers_by_the_library(said: object, answer: Answer) -> None:
    given = answer_of(ASKED, said)
    assert isinstance(given, Answer)
    assert replace(given, arguments=None) == answer


def test_a_client_of_the_mcp_server_decides_with_the_same_options() -> None:
    form = question_form(ASKED, ASKED.options)
    for answer in (ONCE, SESSION, NO):
        assert given_answer(ASKED, answer.option, "") == answer
        assert form_answer(ASKED, form(decision=answer.option.value)) == answer
