"""The items of a page that change: a call through its life."""

import re
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from treadle.door.reports import JobLine
from treadle.editing.edit_results import ErrorCode
from treadle.engine.core import texts
from treadle.present.edit_words import WHY_REFUSED
from treadle.present.failure_words import advice, describe_failure
from treadle.present.items import CallItem, Placed, ProblemItem, RetryItem, SaidItem, ThoughtItem
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import CallChanged, CallStatus, MessageDone
from treadle.protocol.permissions import Decision, Reason, Verdict
from treadle.protocol.tools import (
    CallResult,
    ChangeKind,
    CopyChange,
    CopyChanges,
    CopyFate,
    EditReport,
    Outcome,
    Risk,
    ToolCall,
    ToolKind,
    result_text,
)
from treadle.protocol.usage import Usage
from treadle.web.book import SessionBook
from treadle.web.item_html import is_shown, item_html
from treadle.web.markup import inline_code, markdown, without_commands
from treadle.web.page_view import PageContent
from treadle.web.seen_jobs import SeenJob
from treadle.web.templating import span_words

ASKED = Decision(
    verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=Risk.EXECUTE, reasons=(Reason(rule="x", text="it writes"),)
)


def changed(status: CallStatus) -> CallChanged:
    return CallChanged(
        call=ToolCall(id="c", name="execute_command", arguments={}), kind=ToolKind.EXECUTE, status=status
    )


def drawn(item: CallItem) -> str:
    return item_html(Placed(position=1, version=1, seq=1, item=item), SessionView(), is_open=True)


@pytest.mark.parametrize(
    ("advice", "here"),
    [
        ("Write p/m or PROVIDER/NAME; `treadle models` lists them.", "Write p/m or PROVIDER/NAME."),
        ("Choose another name, or go there: treadle -C /w -w fix", ""),
        ("Resume without --resume-session-at. Name another message.", "Name another message."),
        ("Add -w to it, or set TREADLE_BASE_URL.", ""),
        ("Stop `npm run dev`, then delete it. `treadle jobs` lists it.", "Stop npm run dev, then delete it."),
        ("Name an existing folder.", "Name an existing folder."),
        ("", ""),
    ],
)
def test_advice_on_the_page_names_nothing_that_is_done_in_a_terminal(advice: str, here: str) -> None:
    assert without_commands(advice) == here


def test_a_call_that_starts_again_begins_without_the_output_of_its_first_run() -> None:
    ran = CallItem(changed(CallStatus.RUNNING), output="first run", above=3, since=1.0)
    assert ran.moved(changed(CallStatus.STARTING), 5.0) == CallItem(changed(CallStatus.STARTING))


def test_a_call_keeps_its_output_while_it_runs_and_has_taken_seconds_at_its_end() -> None:
    started = CallItem(changed(CallStatus.STARTING)).moved(changed(CallStatus.RUNNING), 5.0)
    running = replace(started, output="so far")
    assert (running.since, running.seconds) == (5.0, None)
    ended = running.moved(changed(CallStatus.FINISHED), 7.5)
    assert ended == CallItem(changed(CallStatus.FINISHED), seconds=2.5), "what it printed is in its result"
    assert running.moved(changed(CallStatus.FINISHED), None).seconds is None


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (
            result_text(Outcome.REJECTED, texts.rejected("")),
            '<b>Run</b> <code class="cut"></code> <span class="ends"> <span class="said-yes">you said no</span>',
        ),
        (result_text(Outcome.REJECTED, texts.rejected("use <tabs>")), "you said no: use &lt;tabs&gt;</span>"),
        (result_text(Outcome.DENIED, texts.denied(ASKED, no_user=True)), "denied: it writes; nobody was there"),
        (result_text(Outcome.SKIPPED, texts.SKIPPED), "asked, skipped"),
    ],
)
def test_a_call_that_was_not_run_says_why_to_a_person_and_not_what_the_model_is_to_do(
    result: CallResult, state: str
) -> None:
    card = CallItem(replace(changed(CallStatus.FINISHED), result=result, decision=ASKED))
    html = drawn(card)
    assert state in html
    for words in ("Ask what", "The user", "Find another way", "Continue without it", "Take that into account"):
        assert words not in html


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("variable", ["1", ""])
def test_the_page_trusts_each_folder_once_where_it_was_started_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, given: bool, variable: str
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TREADLE_TRUST", variable)
    (tmp_path / "AGENTS.md").write_text("rules\n")
    book = SessionBook(tmp_path, {}, trust=given)
    assert book.trust(tmp_path).trusted is (given or bool(variable))


def test_a_reply_that_is_done_moves_the_page_to_its_step() -> None:
    view = PageContent("/w")
    message = Message(role=Role.ASSISTANT, content=(Text(text="Done."),))
    view.take(Stamped(notification=MessageDone(step=7, message=message, usage=Usage(), cost=0.25)))
    assert view.view.step == 7


@pytest.mark.parametrize(
    ("fate", "code", "said"),
    [
        (CopyFate.KEPT, 0, "its changes were kept"),
        (CopyFate.DISCARDED, 3, 'exit 3</span> <span class="said-yes">its changes were discarded'),
        (CopyFate.NOT_APPLIED, 0, 'exit 0</span> <span class="said-yes">its changes could not be applied'),
    ],
)
def test_a_card_says_what_became_of_the_changes_of_a_copy(fate: CopyFate, code: int, said: str) -> None:
    copy = CopyChanges(changes=(CopyChange(path="/w/a", kind=ChangeKind.CHANGED),), fate=fate)
    result = CallResult(
        outcome=Outcome.OK if fate is CopyFate.KEPT else Outcome.FAILED,
        content=(Text(text=f"Exit status {code}.\n(no output)"),),
        copy=copy,
    )
    html = drawn(CallItem(replace(changed(CallStatus.FINISHED), result=result)))
    assert said in html


@pytest.mark.parametrize("kind", ErrorKind)
def test_what_to_do_about_a_failed_call_of_the_model_are_buttons_and_no_commands(kind: ErrorKind) -> None:
    error = ModelError(kind=kind, message="No.", status=400, retry_after=600.0)
    model = "anthropic/claude-sonnet-4-5"
    item = ProblemItem(describe_failure(error, model), "said: No.", advice(error, model), failed=error, model=model)
    html = item_html(Placed(position=1, version=1, seq=1, item=item), SessionView(), is_open=True, session="s")
    assert "/model" not in html
    assert "treadle " not in html
    assert ("Enter another key</a>" in html) is (kind is ErrorKind.AUTHENTICATION)
    assert html.index("#i-x") < html.index(describe_failure(error, model).removesuffix(".") + "</strong>")
    assert html.index("Choose another model</button>") < html.index("<summary"), "what is done comes before the details"
    whose = replace(error, message="No. The key comes from ACME_KEY and ends in …4f2a.")
    refuses = ProblemItem(item.what, item.why, item.fix, failed=whose, model=model)
    placed = Placed(position=1, version=1, seq=1, item=refuses)
    named = item_html(placed, SessionView(), is_open=True, session="s")
    about = "<p>The key comes from ACME_KEY and ends in …4f2a."
    refused = kind in (ErrorKind.AUTHENTICATION, ErrorKind.PERMISSION)
    assert (about in named, "Enter another key</a>" in named) == (refused, refused)
    assert "Choose another model</button>" in html
    assert "<summary" in html, "the provider's words are there for who wants them"
    closed = item_html(Placed(position=1, version=1, seq=1, item=item), SessionView(), is_open=False, session="s")
    assert "Choose another model</button>" not in closed


@pytest.mark.parametrize("code", list(ErrorCode))
def test_a_refused_edit_says_why_in_words_for_a_person(code: ErrorCode) -> None:
    text = (Text(text=f"Refused [{code}]: nothing was changed in a.txt. Leave it out."),)
    report = EditReport(path="a.txt", format="search_replace", code=code.value)
    result = CallResult(outcome=Outcome.FAILED, content=text, edits=(report,))
    call = ToolCall(id="c", name="replace_in_file", arguments={"path": "a.txt"})
    html = drawn(CallItem(CallChanged(call=call, kind=ToolKind.EDIT, status=CallStatus.FINISHED, result=result)))
    assert f'<span class="state">{WHY_REFUSED[code]}</span>' in html
    assert "Refused" not in html


@pytest.mark.parametrize(
    ("status", "said"), [(CallStatus.PROPOSED, "next"), (CallStatus.ASKING, ""), (CallStatus.STARTING, "starting")]
)
def test_a_call_says_where_it_is_and_leaves_what_is_asked_to_its_question(status: CallStatus, said: str) -> None:
    html = drawn(CallItem(changed(status)))
    assert re.findall(r'class="state">([^<]*)<', html) == ([said] if said else [])


def test_times_are_written_in_words() -> None:
    given = (0.4, 7, 59.99, 60, 120, 335, 3_600, 7_830)
    assert list(map(span_words, given)) == [
        "0.4 s",
        "7 s",
        "1 min",
        "1 min",
        "2 min",
        "5 min 35 s",
        "1 h",
        "2 h 10 min",
    ]


def test_attempts_stand_in_the_line_of_the_moment_alone_and_the_wait_for_a_limit_in_the_conversation() -> None:
    error = ModelError(kind=ErrorKind.OVERLOADED, message="Overloaded")
    for until in (0, 1):
        item = RetryItem(error, attempt=2, seconds=300, most=6, until=until)
        placed = Placed(position=1, version=1, seq=1, item=item)
        html = item_html(placed, SessionView(), is_open=True)
        assert (is_shown(placed), " hidden>" in html, "5 min" in html) == (until > 0, until == 0, until > 0)


def test_a_message_says_when_it_was_sent_and_a_thought_how_long_it_took() -> None:
    at = time.mktime((2026, 11, 27, 14, 5, 0, 0, 0, -1))
    said = item_html(Placed(position=1, version=1, seq=1, item=SaidItem("go", at=at)), SessionView(), is_open=True)
    assert '<time data-clock="1795788300000" title="2026-11-27 14:05">14:05</time>' in said
    for seconds, words in ((None, "Thought"), (0.4, "Thought"), (75.0, "Thought for 1 min 15 s")):
        thought = Placed(position=1, version=1, seq=1, item=ThoughtItem("So.", seconds=seconds))
        assert f"<summary>{words}</summary>" in item_html(thought, SessionView(), is_open=True)


@pytest.mark.parametrize(
    ("running", "is_open", "state", "said"),
    [
        (True, True, "Running.", ("spin", "in the background", True)),
        (True, False, "Running.", ("#i-term", "in the background", False)),
        (False, True, "Exit status 0.", ("#i-check", "in the background", False)),
        (False, True, "Exit status 2.", ("#i-x", "exit 2, in the background", False)),
        (False, True, "Killed by SIGTERM.", ("#i-stop", "stopped, in the background", False)),
    ],
)
def test_a_call_reads_as_the_command_that_it_left_in_the_background(
    running: bool,
    is_open: bool,
    state: str,
    said: tuple[str, str, bool],
) -> None:
    line = JobLine(
        id="a1b2c3-3",
        session="s",
        number=3,
        command="make",
        started_at=1_000,
        ended_at=61_000,
        running=running,
        state=state,
        bytes=0,
        output="",
    )
    result = result_text(Outcome.OK, "Command 3 continues in the background. Wait.\none")
    placed = Placed(1, 1, 1, CallItem(replace(changed(CallStatus.FINISHED), result=result), seconds=1.0))
    html = item_html(placed, SessionView(), is_open=is_open, job=SeenJob(line, "one\ntwo\n"))
    assert (said[0] in html, re.findall(r'class="state">([^<]*)<', html)) == (True, [said[1]])
    assert ('data-job="a1b2c3-3"' in html, "data-stop" in html) == (said[2], False)
    assert ("1 min</span>" in html, "two</pre>" in html) == (not running, is_open)
    unknown = item_html(placed, SessionView(), is_open=True)
    assert ("#i-term" in unknown, "#i-check" in unknown) == (True, False), "nothing is said that is not known"


def test_an_output_is_cut_only_where_something_of_it_is_left_out() -> None:
    for text, is_cut in (
        ("Exit status 0.\none", False),
        ("Exit status 0.\n[... 9 characters left out in /o/1 ...]", True),
    ):
        result = replace(result_text(Outcome.OK, text), full_output="/o/1")
        html = drawn(CallItem(replace(changed(CallStatus.FINISHED), result=result)))
        assert ("more above" in html, "data-item" in html) == (is_cut, is_cut)


@pytest.mark.parametrize(
    ("verdict", "reasons", "row", "opened"),
    [
        (Verdict.ALLOW, {"a": "python runs", "mode": "mode auto allows it"}, "", "python runs; mode auto allows it"),
        (Verdict.REQUIRE_USER_CONFIRMATION, {"a": "python runs", "mode": "mode ask asks"}, "",
         "python runs; mode ask: Treadle asks you"),
        (Verdict.ALLOW, {"a": "you allowed pytest"}, "allowed this session", "you allowed pytest"),
        (Verdict.ALLOW, {"pytest@f.toml:1": "tests are fine"}, "rule: pytest", "tests are fine"),
    ],
)  # fmt: skip
def test_a_call_says_what_let_it_run_without_asking(
    verdict: Verdict, reasons: dict[str, str], row: str, opened: str
) -> None:
    told = tuple(
        Reason(rule=rule.partition("@")[0], text=text, source=rule.partition("@")[2]) for rule, text in reasons.items()
    )
    decision = Decision(verdict=verdict, risk=Risk.EXECUTE, reasons=told)
    result = result_text(Outcome.OK, "Exit status 0.")
    html = drawn(CallItem(replace(changed(CallStatus.FINISHED), result=result, decision=decision)))
    assert re.findall(r'class="said-yes">([^<]*)<', html) == ([row] if row else [])
    assert f": {opened}</p>" in html


def test_own_words_between_backticks_are_code_in_a_line_and_nothing_else_is_changed() -> None:
    assert inline_code("Read `a<b>` and `c`.") == "Read <code>a&lt;b&gt;</code> and <code>c</code>."
    for text in ("a ` b", "`a\nb`", "```\n`x`\n```", "``a``"):
        assert inline_code(text) == text


def test_nothing_that_is_nested_deeply_is_left_out() -> None:
    for count in (5, 14, 25, 39, 60, 200):
        for step in (2, 4):
            lists = "\n".join(f"{' ' * (step * one)}- level{one}." for one in range(count))
            assert [one for one in range(count) if f"level{one}." not in markdown(lists)] == [], (count, step)
        quotes = "\n".join(f"{'> ' * (one + 1)}level{one}." for one in range(count))
        assert [one for one in range(count) if f"level{one}." not in markdown(quotes)] == [], count
    ruled = f"Title\n{'-' * 40}\n\n{'*' * 40}\n\n- one\n"
    assert "<li>" in markdown(ruled), "what only looks so is what it was"
