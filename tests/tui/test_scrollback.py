"""What is printed of a session, when, and that it is the same when the session is taken up again."""

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.present.test_told_once import told, wander
from tests.tui.asked import DIFF, EDIT, FOLLOWUP, RUN
from treadle.engine.core.texts import rejected
from treadle.present.items import (
    CallItem,
    ChecklistItem,
    Item,
    ModeItem,
    NoteItem,
    ProseItem,
    SaidItem,
    ThoughtItem,
    TurnItem,
)
from treadle.present.view import SessionView
from treadle.protocol.attach import SessionStatus, Stamped
from treadle.protocol.checkpoints import Restored
from treadle.protocol.events import Resumed
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ErrorKind, ModelError, ToolProtocol
from treadle.protocol.notifications import (
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    ChecklistChanged,
    ContextCompacted,
    ConversationRewound,
    FilesRestored,
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notice,
    Notification,
    Phase,
    PhaseChanged,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    QueuedPrompt,
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
from treadle.protocol.tools import Outcome, Preview, ToolCall, ToolKind, result_text
from treadle.protocol.usage import Usage
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.printed_items import CallLine, DiffItem, PrintedItem, ReadsLine
from treadle.tui.paint.printed_lines import item_lines
from treadle.tui.paint.scrollback import Scrollback
from treadle.tui.paint.theme import Signs

HERE = "tui:main"
CALL = ToolCall(id="c", name="run", arguments={"command": "ls"})
RAN = CallChanged(call=CALL, kind=ToolKind.EXECUTE, status=CallStatus.RUNNING, preview=Preview(title="Run", text="ls"))
ASKING = replace(RAN, status=CallStatus.ASKING)
EDITING = CallChanged(
    call=ToolCall(id="c", name="edit", arguments={}),
    kind=ToolKind.EDIT,
    status=CallStatus.ASKING,
    preview=Preview(title="Edit x.py", text=DIFF, is_diff=True),
)
OUTCOME = TurnOutcome(stop=TurnStop.END_TURN)
CALLS_CUT = NoteItem("The reply was stopped. What its calls above brought is not used.", warns=True)
BROKE_OFF = NoteItem("The reply broke off. The part of it above is not used.", warns=True)


def scrollback(*heard: Notification, at: int = 0) -> tuple[Scrollback, list[PrintedItem]]:
    one = Scrollback(SessionView(root="/ws"), HERE)
    return one, hear(one, *heard, at=at)


def hear(one: Scrollback, *heard: Notification, at: int = 0) -> list[PrintedItem]:
    return [item for notification in heard for item in one.take(Stamped(notification=notification, at=at))]


def done(text: str = "") -> MessageDone:
    return MessageDone(
        step=1, message=Message(role=Role.ASSISTANT, content=(Text(text=text),)), usage=Usage(), cost=0.5
    )


def finished(outcome: Outcome = Outcome.OK, text: str = "out", of: CallChanged = RAN) -> CallChanged:
    return replace(of, status=CallStatus.FINISHED, result=result_text(outcome, text))


def read(name: str) -> CallChanged:
    return CallChanged(
        call=ToolCall(id=name, name="read_file", arguments={}),
        kind=ToolKind.READ,
        status=CallStatus.FINISHED,
        preview=Preview(title=f"Read {name}"),
        result=result_text(Outcome.OK, "a\nb"),
    )


def lines(*items: PrintedItem) -> list[str]:
    """What they look like; the model's prose has no such lines."""
    return [
        line_text(row) for item in items if not isinstance(item, ProseItem) for row in item_lines(item, 99, Signs())
    ]


def below(one: Scrollback) -> list[object]:
    return list(one.unprinted)


def test_finished_blocks_are_printed_and_the_rest_stays_below() -> None:
    one, items = scrollback(TextDelta(text="one\n\ntw"), TextDelta(text="o\n"))
    assert items == [ProseItem("one\n\n")]
    assert below(one) == [ProseItem("two\n", growing=True)]
    assert hear(one, done("one\n\ntwo\n")) == [ProseItem("two\n")]


def test_a_message_that_nobody_heard_streaming_is_printed_in_the_same_blocks() -> None:
    assert scrollback(done("one\n\ntwo\n"))[1] == [ProseItem("one\n\n"), ProseItem("two\n")]


def test_a_thought_is_one_line_when_the_answer_begins() -> None:
    one, _ = scrollback(ThinkingDelta(text="first this"), at=1_000)
    assert hear(one, TextDelta(text="So"), at=6_000) == [ThoughtItem("first this", seconds=5.0)]


def test_a_dropped_reply_is_withdrawn_silently_while_nothing_of_it_is_printed() -> None:
    one, items = scrollback(ThinkingDelta(text="hm"), TextDelta(text="half"), ReplyDropped())
    assert items == [ThoughtItem("hm")]
    assert below(one) == []


def test_a_dropped_reply_is_taken_back_in_words_when_a_part_is_printed() -> None:
    one, items = scrollback(TextDelta(text="one\n\ntwo\n"), ReplyDropped(), TextDelta(text="anew"), done("anew"))
    assert items == [ProseItem("one\n\n"), BROKE_OFF, ProseItem("anew")]
    assert hear(one, ReplyDropped()) == [], "what is whole stays"


def test_a_read_of_a_dropped_reply_that_is_held_back_is_not_printed() -> None:
    heard = (TextDelta(text="half"), replace(read("a.py"), status=CallStatus.PROPOSED, result=None), read("a.py"))
    one, items = scrollback(*heard)
    assert items == [ProseItem("half")]
    assert [type(item) for item in below(one)] == [ReadsLine]
    assert hear(one, ReplyDropped()) == [BROKE_OFF]
    assert one.rest() == []


def test_what_the_user_cut_stays() -> None:
    kept = Message(role=Role.ASSISTANT, content=(Text(text="half"),))
    heard = (TextDelta(text="half"), PhaseChanged(phase=Phase.CANCELLING), ReplyDropped(kept=kept))
    assert scrollback(*heard)[1] == [ProseItem("half")]


def test_a_call_is_below_while_it_is_written_and_runs_and_printed_with_its_output_when_done() -> None:
    one, items = scrollback(CallDelta(index=0, name="run"), CallDelta(index=0, name="run", parameter="x", text="ls"))
    items += hear(one, replace(RAN, status=CallStatus.PROPOSED), RAN, CallOutput(call_id="c", text="a\nb\n"))
    assert items == []
    (call,) = below(one)
    assert isinstance(call, CallItem)
    assert call.output == "a\nb\n"
    assert lines(*hear(one, finished(Outcome.FAILED, "Exit status 3.\na\nb"))) == ["✗ Run ls  exit 3", "  a", "  b"]
    assert below(one) == []


def test_calls_are_printed_in_their_order_and_what_waits_for_one_is_below() -> None:
    second = replace(RAN, call=replace(CALL, id="d"))
    one, items = scrollback(RAN, second, finished(of=second), Notice(text="meanwhile"))
    assert items == []
    first, line, note = below(one)
    assert isinstance(first, CallItem)
    assert isinstance(line, CallLine)
    assert note == NoteItem("meanwhile", warns=True)
    assert [type(item) for item in hear(one, finished())] == [CallLine, CallLine, NoteItem]


def test_the_diff_of_an_edit_stands_above_its_question_and_once() -> None:
    asked = replace(EDIT, call_id="c")
    one, items = scrollback(EDITING, QuestionAsked(question=asked))
    assert items == [DiffItem(DIFF)]
    items = hear(one, QuestionClosed(question_id=asked.id, option=OptionKind.ALLOW_ONCE, by=HERE), finished(of=EDITING))
    assert [(item.answer, item.diff) for item in items if isinstance(item, CallLine)] == [("you allowed it", "")]
    assert len(items) == 1


def test_the_diff_of_an_edit_that_nobody_was_asked_about_is_below_its_line() -> None:
    (item,) = scrollback(finished(of=EDITING))[1]
    assert isinstance(item, CallLine)
    assert item.diff == DIFF


def test_an_edit_that_was_changed_in_its_question_shows_what_became_of_it() -> None:
    asked, now = replace(EDIT, call_id="c"), Preview(title="Edit x.py", text="+other", is_diff=True)
    one, _ = scrollback(EDITING, QuestionAsked(question=asked))
    closed = QuestionClosed(question_id=asked.id, option=OptionKind.ALLOW_ONCE, amended=True)
    (item,) = hear(one, closed, finished(of=replace(EDITING, preview=now)))
    assert isinstance(item, CallLine)
    assert (item.answer, item.diff) == ("you allowed it with your change", "+other")


def test_questions_are_shown_one_after_the_other() -> None:
    edit = Preview(title="Edit x", text="+new", is_diff=True)
    first, second = (Question(id=name, kind=QuestionKind.PERMISSION, text=name, preview=edit) for name in "ab")
    one, items = scrollback(QuestionAsked(question=first), QuestionAsked(question=second))
    assert items == [DiffItem("+new")]
    assert hear(one, QuestionAsked(question=first)) == [], "it is open already"
    assert hear(one, QuestionClosed(question_id="a")) == [DiffItem("+new")]
    assert one.view.questions == (second,)
    assert hear(one, QuestionClosed(question_id="b")) == []


def test_a_question_about_a_command_leaves_nothing() -> None:
    assert scrollback(QuestionAsked(question=RUN))[1] == []


@pytest.mark.parametrize(
    ("scope", "line"),
    [
        (AllowScope.SESSION, "Allowed this session: python3 -m unittest … · /approvals"),
        (AllowScope.USER, "Rule saved, for this project: python3 -m unittest … · treadle policy show"),
    ],
)
def test_a_lasting_yes_leaves_one_line(scope: AllowScope, line: str) -> None:
    one, _ = scrollback(ASKING, QuestionAsked(question=replace(RUN, call_id="c")))
    closed = QuestionClosed(question_id="q", option=OptionKind.ALLOW_ALWAYS, scope=scope)
    assert hear(one, closed) == []
    assert hear(one, finished())[1:] == [NoteItem(line)]


@pytest.mark.parametrize(
    ("closed", "outcome", "said"),
    [
        (QuestionClosed(question_id="q", option=OptionKind.ALLOW_ONCE), Outcome.OK, "you allowed it"),
        (QuestionClosed(question_id="q", option=OptionKind.ALLOW_ONCE, by=HERE), Outcome.OK, "you allowed it"),
        (
            QuestionClosed(question_id="q", option=OptionKind.ALLOW_ONCE, by="tui:terminal 2"),
            Outcome.OK,
            "you allowed it in terminal 2",
        ),
        (
            QuestionClosed(question_id="q", option=OptionKind.ALLOW_ALWAYS),
            Outcome.OK,
            "you allowed it for this session",
        ),
        (
            QuestionClosed(question_id="q", option=OptionKind.REJECT_ONCE, text="keep\nit"),
            Outcome.REJECTED,
            "you said no: keep it",
        ),
    ],
)
def test_the_line_of_a_call_says_what_the_person_said(closed: QuestionClosed, outcome: Outcome, said: str) -> None:
    one, _ = scrollback(ASKING, QuestionAsked(question=replace(RUN, call_id="c", decision=None)))
    call = next(item for item in hear(one, closed, finished(outcome)) if isinstance(item, CallLine))
    assert call.answer == said


@pytest.mark.parametrize(("comment", "said"), [("", "you said no"), ("keep\nit", "you said no: keep it")])
def test_the_line_of_a_call_says_no_also_where_nobody_heard_the_answer(comment: str, said: str) -> None:
    (call,) = scrollback(finished(Outcome.REJECTED, rejected(comment)))[1]
    assert isinstance(call, CallLine)
    assert call.answer == said


def test_reads_in_a_row_become_one_line_when_something_else_follows() -> None:
    one, items = scrollback(read("a.py"), read("b.py"))
    assert items == []
    assert [type(item) for item in below(one)] == [ReadsLine]
    reads, other = hear(one, finished())
    assert lines(reads) == ["✓ Read a.py, b.py  4 lines"]
    assert isinstance(other, CallLine)
    assert (below(one), one.rest()) == ([], [])


def test_what_is_held_back_is_printed_at_the_end() -> None:
    one, _ = scrollback(read("a.py"))
    assert lines(*one.rest()) == ["✓ Read a.py  2 lines"]


def test_a_call_counts_its_own_seconds_and_the_turn_what_the_person_took() -> None:
    one, _ = scrollback(TurnStarted(turn=1), at=1_000)
    hear(one, QuestionAsked(question=RUN), at=11_000)
    hear(one, QuestionClosed(question_id="q"), at=51_000)
    hear(one, RAN, at=52_000)
    assert lines(*hear(one, finished(text="Exit status 0.\n(no output)"), at=56_000)) == ["✓ Run ls  4 s"]
    assert hear(one, TurnEnded(outcome=OUTCOME), at=61_000) == [TurnItem(OUTCOME, (), 20.0, waited=40.0, turn=1)]


def test_the_checklist_is_printed_once_when_all_of_it_is_done() -> None:
    ended = TurnEnded(outcome=OUTCOME)
    one, items = scrollback(TurnStarted(turn=1), ChecklistChanged(text="- [x] a\n- [ ] b\n"), ended)
    assert items == [TurnItem(OUTCOME, turn=1)]
    items = hear(one, TurnStarted(turn=2), ChecklistChanged(text="- [x] a\n- [x] b\n"), ended, ended)
    assert items == [ChecklistItem("- [x] a\n- [x] b\n"), TurnItem(OUTCOME, turn=2), TurnItem(OUTCOME, turn=2)]


def test_a_question_of_the_model_is_printed_when_it_is_answered() -> None:
    one, items = scrollback(QuestionAsked(question=FOLLOWUP))
    assert items == []
    assert hear(one, QuestionClosed(question_id="q", option=OptionKind.ANSWER)) == [ProseItem("Which colour?")]


@pytest.mark.parametrize(
    ("kind", "closed", "items"),
    [
        (
            QuestionKind.GUIDANCE,
            QuestionClosed(question_id="q", option=OptionKind.ANSWER, text="use tabs", by=HERE),
            [NoteItem("So?", warns=True), SaidItem("use tabs")],
        ),
        (
            QuestionKind.GUIDANCE,
            QuestionClosed(question_id="q", option=OptionKind.ANSWER, text="use tabs", by="web:phone"),
            [NoteItem("So?", warns=True), NoteItem("Answered on phone:"), SaidItem("use tabs")],
        ),
        (
            QuestionKind.BUDGET,
            QuestionClosed(question_id="q", option=OptionKind.ALLOW_ONCE, by="tui:terminal 2"),
            [NoteItem("So? Answered in terminal 2: yes.")],
        ),
        (
            QuestionKind.BUDGET,
            QuestionClosed(question_id="q", option=OptionKind.REJECT_ONCE, by=HERE),
            [NoteItem("So? Answered: no.")],
        ),
        (QuestionKind.BUDGET, QuestionClosed(question_id="q"), []),
    ],
)
def test_a_question_about_no_call_leaves_what_was_asked_and_answered(
    kind: QuestionKind, closed: QuestionClosed, items: list[PrintedItem]
) -> None:
    one, _ = scrollback(QuestionAsked(question=Question(id="q", kind=kind, text="So?")))
    assert hear(one, closed) == items


def test_prompts_models_and_compaction_are_printed_and_modes_and_retries_are_not() -> None:
    error = ModelError(kind=ErrorKind.OVERLOADED, message="Too busy.")
    heard = (
        PromptDelivered(prompt_id="p", content=(Text(text="go"),), by="mcp:cursor 3"),
        ModeChanged(mode=Mode.EDITS),
        RetryScheduled(attempt=1, seconds=5.0, error=error),
        ContextCompacted(dropped=4),
        ModelChanged(model="p/m", why="the other is gone"),
    )
    assert scrollback(*heard)[1] == [
        NoteItem("From cursor 3, over MCP:"),
        SaidItem("go", by="mcp:cursor 3", prompt_id="p"),
        NoteItem("4 older messages removed to make room.", warns=True),
        NoteItem("Model: p/m (the other is gone)"),
    ]


STREAMED = st.one_of(
    st.builds(TextDelta, text=st.text("ab\n`", max_size=8)),
    st.builds(ThinkingDelta, text=st.text("t", min_size=1, max_size=3)),
    st.just(RAN),
    st.just(finished(Outcome.OK)),
)


@settings(max_examples=150)
@given(st.lists(STREAMED, max_size=20))
def test_the_scrollback_holds_every_word_of_the_answer_in_order(heard: list[Notification]) -> None:
    _, items = scrollback(*heard, done(), finished(), TurnEnded(outcome=OUTCOME))
    streamed = "".join(one.text for one in heard if isinstance(one, TextDelta))
    printed = "".join(item.markdown for item in items if isinstance(item, ProseItem))
    assert printed.split() == [] or "".join(printed.split()) == "".join(streamed.split())
    assert bool(printed.strip()) == bool(streamed.strip())


def test_only_the_newest_items_are_kept_for_the_pager() -> None:
    one, items = scrollback(*(Notice(text=str(number)) for number in range(1_000)))
    assert len(items) == 1_000
    assert [placed.item for placed in one.newest] == items[-400:]


# Taken up again


WAITING = (QueuedPrompt(id="p", content=(Text(text="later"),)),)
STATUS = SessionStatus(
    phase=Phase.ASSEMBLING_CONTEXT,
    mode=Mode.EDITS,
    model="p/m",
    tool_protocol=ToolProtocol.XML,
    turn_active=True,
    questions=(EDIT,),
    queue=WAITING,
)


def turn(number: int) -> Iterator[Stamped]:
    said = PromptDelivered(prompt_id=str(number), content=(Text(text=f"prompt {number}"),))
    heard: tuple[Notification, ...] = (said, done(f"answer {number}"), TurnEnded(outcome=OUTCOME))
    for offset, one in enumerate(heard):
        yield Stamped(notification=one, seq=10 * number + offset, at=1_000)


def printed(*numbers: int) -> list[PrintedItem]:
    items: list[PrintedItem] = []
    for number in numbers:
        said = SaidItem(f"prompt {number}", prompt_id=str(number), at=1.0)
        items += [said, ProseItem(f"answer {number}"), TurnItem(OUTCOME)]
    return items


def test_a_session_that_is_taken_up_stands_as_it_says_and_its_question_is_asked() -> None:
    one = Scrollback(SessionView(root="/ws"), HERE)
    assert one.take_past(turn(1)) == printed(1)
    assert one.begin(STATUS) == [DiffItem(DIFF)]
    assert one.begin(STATUS) == []
    view = one.view
    assert (view.phase, view.mode, view.model, view.active) == (STATUS.phase, STATUS.mode, "p/m", True)
    assert (view.queue, view.questions) == (WAITING, (EDIT,))


def test_turns_that_left_the_conversation_are_one_line() -> None:
    back = [
        Stamped(notification=FilesRestored(restored=Restored(checkpoint=1), conversation=True), seq=50),
        Stamped(notification=ConversationRewound(to=19), seq=51),
    ]
    one = Scrollback(SessionView(root="/ws"), HERE)
    past = [*turn(1), *turn(2), *turn(3), *back, *turn(6)]
    assert one.take_past(past) == [*printed(1), NoteItem("2 turns left the conversation."), *printed(6)]


def test_words_that_nobody_sees_are_read_aloud_of_the_past_only() -> None:
    one = Scrollback(SessionView(root="/ws"), HERE)
    mode = Stamped(notification=ModeChanged(mode=Mode.PLAN))

    def aloud(item: Item) -> str:
        return f"mode {item.mode}" if isinstance(item, ModeItem) else ""

    assert one.take_past([mode], aloud) == [NoteItem("mode plan")]
    assert one.take(mode) == []


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    "seed", [*range(60), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(60, 1_000))]
)
def test_a_session_taken_up_again_has_the_lines_that_were_printed(seed: int, streams: bool) -> None:
    world = wander(seed, streams=streams)
    killed = any(isinstance(event.data, Resumed) for event in world.log)
    notices = {one.notification.text for one in world.stamped if isinstance(one.notification, Notice)}
    live, again = (
        printed_lines(map(with_diff, stamped), killed=killed, without=notices)
        for stamped in (world.stamped, told(world))
    )
    assert again == live


def with_diff(stamped: Stamped) -> Stamped:
    """Let each edit have a diff of its own, and the question about it too."""
    match stamped.notification:
        case CallChanged(call=call, kind=ToolKind.EDIT, preview=Preview()) as changed:
            preview = Preview(title=f"Edit {call.id}", text=f"+{call.id} {call.arguments}", is_diff=True)
            return replace(stamped, notification=replace(changed, preview=preview))
        case QuestionAsked(question=Question(preview=Preview(), copy=None, arguments=arguments) as asked):
            preview = Preview(title="Edit", text=f"+{asked.call_id} {arguments}", is_diff=True)
            return replace(stamped, notification=QuestionAsked(question=replace(asked, preview=preview)))
        case _:
            return stamped


def printed_lines(stamped: Iterable[Stamped], *, killed: bool, without: set[str]) -> list[str]:
    """The lines of what was printed, but for notices, which no log has, and items of replies that were withdrawn."""
    one = Scrollback(SessionView(root="/w"), HERE)
    items = [item for heard in stamped for item in one.take(heard)]
    items += one.rest()
    there = {id(placed.item) for placed in one.newest}
    assert one.view.places <= 400
    shown: list[str] = []
    for item in items:
        for part in item.reads if isinstance(item, ReadsLine) else (item,):
            match part:
                case CallLine(item=call) if id(call) not in there:
                    continue
                case ProseItem() | ThoughtItem() if id(part) not in there:
                    continue
                case NoteItem(text=text) if text in {*without, BROKE_OFF.text, CALLS_CUT.text}:
                    continue
                case ProseItem(markdown=markdown):
                    shown.append(markdown)
                case ThoughtItem():
                    shown += lines(ThoughtItem(part.text))
                case TurnItem() if killed:
                    shown += lines(replace(part, seconds=None, waited=0.0))
                case _:
                    shown += lines(part)
    return shown


def test_a_task_that_is_said_to_be_done_with_an_open_checklist_ends_with_what_is_open() -> None:
    claimed = TurnOutcome(stop=TurnStop.END_TURN, completed=True, steps=1)
    open_list, whole = "- [x] a\n- [ ] b\n", "- [x] a\n- [x] b\n"
    one, items = scrollback(TurnStarted(turn=1), ChecklistChanged(text=open_list), TurnEnded(outcome=claimed))
    assert items == [TurnItem(claimed, left_open="1 of 2 to-do items is open", turn=1)]
    assert lines(*items) == ["■ Done · 1 of 2 to-do items is open · 1 step · $0.00"]
    items = hear(one, TurnStarted(turn=2), ChecklistChanged(text=whole), TurnEnded(outcome=claimed))
    assert items[-1] == TurnItem(claimed, turn=2)
