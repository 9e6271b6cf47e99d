import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.tui.asked import DIFF, EDIT, FOLLOWUP, RUN
from treadle.engine.core.texts import rejected
from treadle.present.spending import Spending
from treadle.present.words import CallName
from treadle.protocol.events import Answer
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import (
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    ChecklistChanged,
    ContextCompacted,
    MessageDone,
    ModeChanged,
    Notification,
    Phase,
    PhaseChanged,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    ReplyDropped,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import Flow, Outcome, Preview, ToolCall, ToolKind, result_text
from treadle.protocol.usage import Usage
from treadle.tui.items import (
    CallDone,
    DiffItem,
    NoticeItem,
    ProblemItem,
    Prose,
    Reads,
    Said,
    ScreenItem,
    Thought,
    Todos,
    Tone,
    TurnDone,
)
from treadle.tui.reply import LiveCall, Reply
from treadle.tui.view import Retry, View, answered, held_back, update

ERROR = ModelError(kind=ErrorKind.OVERLOADED, message="Too busy.")
LS = CallName("Run", "ls")
CALL = ToolCall(id="c1", name="run", arguments={"command": "ls"})
RAN = CallChanged(call=CALL, kind=ToolKind.EXECUTE, status=CallStatus.RUNNING, preview=Preview(title="Run", text="ls"))


def tell(*told: Notification, view: View | None = None, at: float | None = None) -> tuple[View, list[ScreenItem]]:
    view = view or View()
    items: list[ScreenItem] = []
    for one in told:
        view, more = update(view, one, at)
        items += more
    return view, items


def done(text: str = "", cost: float | None = 0.5) -> MessageDone:
    message = Message(role=Role.ASSISTANT, content=(Text(text=text),))
    return MessageDone(step=1, message=message, usage=Usage(input_tokens=7, output_tokens=3), cost=cost)


def finished(outcome: Outcome, text: str = "out", *, call: ToolCall = CALL, diff: str = "") -> CallChanged:
    preview = Preview(title="Edit x", text=diff, is_diff=True) if diff else RAN.preview
    kind = ToolKind.EDIT if diff else ToolKind.EXECUTE
    return CallChanged(
        call=call, kind=kind, status=CallStatus.FINISHED, preview=preview, result=result_text(outcome, text)
    )


def question(name: str, kind: QuestionKind = QuestionKind.PERMISSION) -> Question:
    return Question(id=name, kind=kind, text=name)


def test_finished_blocks_are_printed_and_the_rest_stays_living() -> None:
    view, items = tell(TextDelta(text="one\n\ntw"), TextDelta(text="o\n"))
    assert items == [Prose("one\n\n")]
    assert view.reply.text == "two\n"
    assert tell(done("one\n\ntwo\n"), view=view)[1] == [Prose("two\n")]


def test_a_message_that_was_not_streamed_is_printed_whole() -> None:
    view, items = tell(done("from the log"))
    assert items == [Prose("from the log")]
    assert view.reply == Reply()
    assert view.tokens == 10


def test_thinking_is_collapsed_when_the_answer_begins() -> None:
    view, items = tell(ThinkingDelta(text="first this"), ThinkingDelta(text=", then that"), TextDelta(text="So"))
    assert items == [Thought()]
    assert view.reply.text == "So"


def test_a_dropped_reply_is_withdrawn_silently_while_nothing_of_it_is_printed() -> None:
    assert tell(TextDelta(text="half"), ReplyDropped()) == (View(), [])


def test_a_dropped_reply_is_taken_back_in_words_when_a_part_is_printed() -> None:
    view, items = tell(TextDelta(text="one\n\ntwo\n"), ReplyDropped())
    assert items == [
        Prose("one\n\n"),
        NoticeItem("The reply broke off. The part of it above is not used.", Tone.WARNING),
    ]
    assert view == View()


def test_what_the_user_cut_stays() -> None:
    told = (TextDelta(text="half"), PhaseChanged(phase=Phase.CANCELLING), ReplyDropped())
    assert tell(*told)[1] == [Prose("half")]


def test_a_call_is_shown_while_it_is_written_and_runs_and_printed_with_its_output_when_done() -> None:
    view, items = tell(CallDelta(index=0, name="run"), CallDelta(index=0, name="run", parameter="command", text="ls"))
    assert view.reply.writing == LiveCall(index=0, name="run", parameter="command", argument="ls", size=2)
    view, more = tell(RAN, CallOutput(call_id="c1", text="a\n"), CallOutput(call_id="c1", text="b\n"), view=view)
    assert (items, more) == ([], [])
    assert view.reply.writing is None
    assert [(call.changed, call.output) for call in view.calls] == [(RAN, "a\nb\n")]
    view, items = tell(finished(Outcome.OK), view=view)
    assert items == [CallDone(name=LS, kind=ToolKind.EXECUTE, outcome=Outcome.OK, output="a\nb\n")]
    assert view.calls == ()


def test_output_is_bounded() -> None:
    view, _ = tell(RAN, *[CallOutput(call_id="c1", text="x" * 1000) for _ in range(50)])
    assert len(view.calls[0].output) == 4_000


def test_a_failed_call_says_why() -> None:
    assert tell(finished(Outcome.FAILED, "no such file at all\nsome more"))[1] == [
        CallDone(name=LS, kind=ToolKind.EXECUTE, outcome=Outcome.FAILED, note="no such file at all")
    ]


def test_a_failed_call_does_not_say_its_output_twice() -> None:
    view, _ = tell(RAN, CallOutput(call_id="c1", text="no way\n"))
    assert tell(finished(Outcome.FAILED, "Exit status 1.\nno way"), view=view)[1] == [
        CallDone(name=LS, kind=ToolKind.EXECUTE, outcome=Outcome.FAILED, note="exit 1", output="no way\n")
    ]


def test_the_diff_of_an_edit_is_printed_only_when_it_was_not_asked_about() -> None:
    edit = finished(Outcome.OK, diff="+new")
    asking = CallChanged(call=CALL, kind=ToolKind.EDIT, status=CallStatus.ASKING, preview=edit.preview)
    silent = CallDone(name=CallName("Edit", "x"), kind=ToolKind.EDIT, outcome=Outcome.OK, diff="+new")
    assert tell(edit)[1] == [silent]
    assert tell(asking, edit)[1] == [CallDone(name=CallName("Edit", "x"), kind=ToolKind.EDIT, outcome=Outcome.OK)]


def test_a_tool_whose_text_is_the_answer_has_no_line_of_its_own() -> None:
    call = ToolCall(id="c1", name="attempt_completion", arguments={})
    assert tell(replace(finished(Outcome.OK, call=call), flow=Flow.END_TURN))[1] == []
    outcome = TurnOutcome(stop=TurnStop.END_TURN, text="All done.", completed=True)
    assert tell(TurnEnded(outcome=outcome))[1] == [Prose("All done."), TurnDone(outcome)]


def test_questions_are_shown_one_after_the_other() -> None:
    edit = Preview(title="Edit x", text="+new", is_diff=True)
    first, second = (replace(question(name), preview=edit) for name in "ab")
    view, items = tell(QuestionAsked(question=first), QuestionAsked(question=second))
    assert items == [DiffItem("+new")]
    view, items = tell(QuestionClosed(question_id="a", option=OptionKind.ALLOW_ONCE), view=view)
    assert items == [DiffItem("+new")]
    assert view.questions == (second,)
    assert tell(QuestionClosed(question_id="b"), view=view)[1] == []


def test_a_question_leaves_nothing_but_the_diff_before_it() -> None:
    assert tell(QuestionAsked(question=RUN))[1] == []
    assert tell(QuestionAsked(question=EDIT))[1] == [DiffItem(DIFF)]


@pytest.mark.parametrize(
    ("scope", "line"),
    [
        (AllowScope.SESSION, "Allowed this session: python3 -m unittest … · /approvals"),
        (AllowScope.USER, "Rule saved, for this project: python3 -m unittest … · treadle policy show"),
    ],
)
def test_a_lasting_yes_leaves_one_line(scope: AllowScope, line: str) -> None:
    view, _ = tell(QuestionAsked(question=RUN))
    closed = QuestionClosed(question_id="q", option=OptionKind.ALLOW_ALWAYS, scope=scope)
    assert tell(closed, view=view)[1] == [NoticeItem(line)]


@pytest.mark.parametrize(
    ("answer", "outcome", "said"),
    [
        (Answer(question_id="q", option=OptionKind.ALLOW_ONCE), Outcome.OK, "you allowed it"),
        (Answer(question_id="q", option=OptionKind.ALLOW_ALWAYS), Outcome.OK, "you allowed it for this session"),
        (
            Answer(question_id="q", option=OptionKind.ALLOW_ONCE, arguments={"command": "x"}),
            Outcome.OK,
            "you allowed it with your change",
        ),
        (Answer(question_id="q", option=OptionKind.REJECT_ONCE), Outcome.REJECTED, "you said no"),
        (
            Answer(question_id="q", option=OptionKind.REJECT_ONCE, text="keep\nit"),
            Outcome.REJECTED,
            "you said no: keep it",
        ),
    ],
)
def test_the_line_of_a_call_says_what_the_person_said(answer: Answer, outcome: Outcome, said: str) -> None:
    asked = replace(question("q"), call_id="c1")
    view, _ = tell(replace(RAN, status=CallStatus.ASKING), QuestionAsked(question=asked))
    (shown,) = tell(finished(outcome), view=answered(view, asked, answer))[1]
    assert shown == CallDone(name=LS, kind=ToolKind.EXECUTE, outcome=outcome, said=said)


@pytest.mark.parametrize(("comment", "said"), [("", "you said no"), ("keep\nit", "you said no: keep it")])
def test_the_line_of_a_call_says_what_the_person_said_elsewhere_or_before(comment: str, said: str) -> None:
    (shown,) = tell(finished(Outcome.REJECTED, rejected(comment)))[1]
    assert shown == CallDone(name=LS, kind=ToolKind.EXECUTE, outcome=Outcome.REJECTED, said=said)


def test_reads_in_a_row_become_one_line_when_something_else_follows() -> None:
    def read(name: str) -> CallChanged:
        call = ToolCall(id=name, name="read_file", arguments={})
        preview = Preview(title=f"Read {name}")
        result = result_text(Outcome.OK, "a\nb")
        return CallChanged(call=call, kind=ToolKind.READ, status=CallStatus.FINISHED, preview=preview, result=result)

    view, items = tell(read("a.py"), read("b.py"))
    assert items == []
    assert held_back(view) == (Reads(view.reads),)
    view, (reads, done) = tell(finished(Outcome.OK), view=view)
    assert isinstance(reads, Reads)
    assert [one.name.about for one in reads.done] == ["a.py", "b.py"]
    assert isinstance(done, CallDone)
    assert (view.reads, held_back(view)) == ((), ())


def test_a_call_counts_its_own_seconds_and_the_turn_what_the_person_took() -> None:
    view, _ = tell(TurnStarted(turn=1), at=0.0)
    view, _ = tell(QuestionAsked(question=RUN), view=view, at=10.0)
    view, _ = tell(QuestionClosed(question_id="q", option=OptionKind.ALLOW_ONCE), view=view, at=50.0)
    view, _ = tell(RAN, view=view, at=51.0)
    view, (call,) = tell(finished(Outcome.OK), view=view, at=55.0)
    assert isinstance(call, CallDone)
    assert call.seconds == 4.0
    _, (done,) = tell(TurnEnded(outcome=TurnOutcome(stop=TurnStop.END_TURN)), view=view, at=60.0)
    assert done == TurnDone(TurnOutcome(stop=TurnStop.END_TURN), 20.0, waited=40.0)


def test_the_checklist_is_printed_once_when_all_of_it_is_done() -> None:
    view, items = tell(TurnStarted(turn=1), ChecklistChanged(text="- [x] a\n- [ ] b\n"))
    assert (items, view.progress) == ([], "2/2 b")
    view, items = tell(ChecklistChanged(text="- [x] a\n- [x] b\n"), view=view)
    assert (items, view.progress) == ([Todos("- [x] a\n- [x] b\n")], "")
    assert tell(ChecklistChanged(text="- [x] a\n- [x] b\n"), view=view)[1] == []


def test_a_question_of_the_model_is_printed_with_its_answer() -> None:
    view, items = tell(QuestionAsked(question=FOLLOWUP))
    assert items == []
    assert tell(QuestionClosed(question_id="q", option=OptionKind.ANSWER), view=view)[1] == [Prose("Which colour?")]


def test_a_question_that_is_asked_again_is_shown_once() -> None:
    view, _ = tell(QuestionAsked(question=question("a")))
    assert tell(QuestionAsked(question=question("a")), view=view) == (view, [])


def test_a_retry_is_told_and_counted_down_until_the_next_attempt() -> None:
    waiting = PhaseChanged(phase=Phase.WAITING_TO_RETRY)
    view, items = tell(RetryScheduled(attempt=1, seconds=5.0, error=ERROR), waiting, at=100.0)
    assert items == []
    assert view.retry == Retry(error=ERROR, at=105.0)
    assert tell(PhaseChanged(phase=Phase.AWAITING_LLM_RESPONSE), view=view)[0].retry is None


def test_the_end_of_a_turn_says_how_long_it_took_and_adds_its_cost() -> None:
    view, _ = tell(TurnStarted(turn=1), at=10.0)
    view, _ = tell(done("x", cost=0.5), view=view)
    assert view.spending == Spending(turn=0.5)
    outcome = TurnOutcome(stop=TurnStop.END_TURN, cost=0.75)
    view, items = tell(TurnEnded(outcome=outcome), view=view, at=12.5)
    assert items == [TurnDone(outcome, 2.5)]
    assert view.spending == Spending(ended=0.75)
    assert not view.busy


def test_an_unknown_price_is_remembered() -> None:
    view, _ = tell(done("x", cost=None), TurnEnded(outcome=TurnOutcome(stop=TurnStop.END_TURN, cost=None)))
    assert view.spending == Spending(unpriced=True)


def test_an_error_says_what_to_do() -> None:
    outcome = TurnOutcome(stop=TurnStop.ERROR, error=replace_error(request_id="r1", status=529))
    _, items = tell(TurnEnded(outcome=outcome), view=View(model="p/m"))
    assert items == [
        ProblemItem(
            "p is overloaded (529).",
            "Too busy. (HTTP 529, request r1)",
            "Wait a while and say how to continue, or use another model: /model PROVIDER/NAME.",
        ),
        TurnDone(outcome),
    ]


def replace_error(*, request_id: str, status: int) -> ModelError:
    return ModelError(kind=ERROR.kind, message=ERROR.message, request_id=request_id, status=status)


def test_prompt_mode_and_compaction_are_told() -> None:
    told = (
        PromptDelivered(prompt_id="p", content=(Text(text="go"),)),
        ModeChanged(mode=Mode.EDITS),
        ContextCompacted(dropped=4),
    )
    view, items = tell(*told)
    assert view == replace(View(), mode=Mode.EDITS)
    assert items == [
        Said("go"),
        NoticeItem("4 older messages removed to make room.", Tone.WARNING),
    ]


STREAMED = st.one_of(
    st.builds(TextDelta, text=st.text("ab\n`", max_size=8)),
    st.builds(ThinkingDelta, text=st.text("t", min_size=1, max_size=3)),
    st.just(RAN),
    st.just(finished(Outcome.OK)),
)


@settings(max_examples=150)
@given(st.lists(STREAMED, max_size=20))
def test_the_scrollback_holds_every_word_of_the_answer_in_order(told: list[Notification]) -> None:
    _, items = tell(*told, done())
    streamed = "".join(one.text for one in told if isinstance(one, TextDelta))
    printed = "".join(item.markdown for item in items if isinstance(item, Prose))
    assert printed.split() == [] or "".join(printed.split()) == "".join(streamed.split())
    assert bool(printed.strip()) == bool(streamed.strip())


def test_the_end_of_an_edit_is_kept_while_it_streams() -> None:
    told = [CallDelta(index=0, name="edit", parameter="path", text="a.py")]
    told += [CallDelta(index=0, name="edit", parameter="diff", text=f"line {number}\n") for number in range(500)]
    view, _ = tell(*told)
    assert view.reply.writing is not None
    assert view.reply.writing.argument == "a.py"
    assert view.reply.writing.body.endswith("line 498\nline 499\n")
    assert len(view.reply.writing.body) == 2_000


def test_a_second_run_of_a_call_begins_with_an_empty_output() -> None:
    again = CallChanged(call=CALL, kind=ToolKind.EXECUTE, status=CallStatus.STARTING)
    view, _ = tell(RAN, CallOutput(call_id="c1", text="denied\n"), again, CallOutput(call_id="c1", text="fine\n"))
    assert [call.output for call in view.calls] == ["fine\n"]
