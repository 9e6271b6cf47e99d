"""What ends a turn that does not get on, and what must not end healthy work."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.exploring import TRAITS, World, decision
from tests.engine.world import notes_of
from treadle.engine.core import texts
from treadle.engine.core.guards import repetitions
from treadle.engine.core.machine_effects import Notify
from treadle.engine.core.state import AwaitingReply, replace
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Interrupt,
    Prompt,
    ReplyFinished,
    Resumed,
    SetPresence,
    TimerFired,
)
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ErrorKind, ReplyStop, ToolProtocol
from treadle.protocol.notifications import Notification, ResultPresented, TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.permissions import OptionKind, QuestionKind, Verdict
from treadle.protocol.tools import (
    CallResult,
    FileChange,
    Outcome,
    Preview,
    RunCommand,
    ToolCall,
    result_text,
)
from treadle.protocol.usage import Usage

OK = result_text(Outcome.OK, "the same")
INVALID = result_text(Outcome.INVALID, "start_line must be an integer")
CHANGED = replace(OK, changes=(FileChange(path="/w/a.py", before="1", after="2"),))
RUNNING = replace(OK, running=True)


def begin(
    protocol: ToolProtocol = ToolProtocol.NATIVE, *, present: bool = False, limits: Limits | None = None
) -> World:
    world = World(protocol=protocol, limits=limits or Limits(reminders=1)).begin()
    world.take(SetPresence(user_present=present))
    world.take(Prompt(id="p", content=(Text(text="do it"),)))
    return world


def seal(world: World) -> AwaitingReply:
    world.take(world.ready(""))
    assert isinstance(world.state.activity, AwaitingReply)
    return world.state.activity


def step(world: World, *calls: tuple[str, CallResult], arguments: dict[str, object] | None = None) -> None:
    """One reply with these calls, each with its result."""
    activity = seal(world)
    for number, (name, _) in enumerate(calls):
        call = ToolCall(id=f"call_{activity.step}_{number}", name=name, arguments=arguments or {})
        world.take(CallProposed(step=activity.step, attempt=1, call=call, traits=TRAITS[name]))
    world.take(finished(activity.step, ReplyStop.TOOL_USE))
    for call_state in world.state.calls:
        call_id = call_state.call.id
        result = calls[int(call_id[-1])][1]
        world.take(CallJudged(call_id=call_id, decision=decision(Verdict.ALLOW), preview=Preview(title="t")))
        world.take(CallStarted(call_id=call_id))
        world.take(CallFinished(call_id=call_id, result=result))


def say(world: World, text: str, stop: ReplyStop = ReplyStop.END_TURN, hint: str = "") -> None:
    """One reply without a call."""
    world.take(replace(finished(seal(world).step, stop, text), hint=hint))


def finished(number: int, stop: ReplyStop, text: str = "now this") -> ReplyFinished:
    message = Message(role=Role.ASSISTANT, content=(Text(text=text),))
    return ReplyFinished(step=number, attempt=1, message=message, stop=stop, usage=Usage(input_tokens=5))


def told(world: World) -> list[Notification]:
    return [effect.notification for effect in world.effects if isinstance(effect, Notify)]


def outcome(world: World) -> TurnOutcome | None:
    return next((one.outcome for one in told(world) if isinstance(one, TurnEnded)), None)


def stop_of(world: World) -> TurnStop | None:
    found = outcome(world)
    return None if found is None else found.stop


def test_three_mistakes_in_one_reply_are_one_mistake_and_the_model_reads_them() -> None:
    world = begin()
    step(world, ("look", INVALID), ("look", INVALID), ("look", INVALID))
    assert stop_of(world) is None
    assert world.state.guard.mistakes == 1


def test_the_third_reply_in_a_row_that_is_a_mistake_ends_the_turn() -> None:
    world = begin()
    for number in range(3):
        assert stop_of(world) is None
        step(world, ("look", INVALID), arguments={"n": number})
    assert stop_of(world) is TurnStop.MISTAKES


def test_a_reply_of_which_something_ran_breaks_the_row_of_mistakes() -> None:
    world = begin()
    for number in range(9):
        results = (INVALID, result_text(Outcome.FAILED, "exit 1")) if number % 3 == 2 else (INVALID, INVALID)
        step(world, ("look", results[0]), ("run", results[1]), arguments={"n": number})
    assert stop_of(world) is None


def test_an_edit_and_a_check_that_prints_the_same_are_no_loop_however_often() -> None:
    world = begin()
    for _ in range(12):
        step(world, ("write", CHANGED))
        step(world, ("run", OK))
    assert stop_of(world) is None
    assert not notes_of(world)


def test_the_same_call_with_the_same_result_is_warned_of_at_the_third_and_stopped_at_the_fifth() -> None:
    world = begin()
    notes: list[tuple[str, ...]] = []
    for _ in range(5):
        assert stop_of(world) is None
        step(world, ("look", OK))
        notes.append(notes_of(world))
    assert stop_of(world) is TurnStop.LOOP
    assert notes[:4] == [(), (), (texts.repeated("look", 3),), ()]


@given(st.integers(1, 3))
def test_a_round_of_replies_that_repeats_is_stopped_within_twelve_steps(period: int) -> None:
    world = begin()
    for number in range(12):
        if stop_of(world) is not None:
            break
        step(world, ("look", OK), arguments={"n": number % period})
    assert stop_of(world) is TurnStop.LOOP


def test_looks_at_a_running_command_are_no_loop_and_the_way_to_wait_is_said() -> None:
    world = begin()
    said: list[str] = []
    for _ in range(12):
        step(world, ("run", RUNNING))
        said += notes_of(world)
    assert stop_of(world) is None
    assert said == [texts.polled(count) for count in (3, 6, 9, 12)]


def test_looking_for_ever_at_a_running_command_ends_at_last() -> None:
    world = begin()
    for _ in range(30):
        if stop_of(world) is None:
            step(world, ("run", RUNNING))
    assert stop_of(world) is TurnStop.LOOP


@given(st.lists(st.sampled_from("abc"), max_size=15), st.integers(1, 3))
def test_repetitions_are_counted_as_a_slow_reader_would(recent: Sequence[str], period: int) -> None:
    count, rest, block = 0, list(recent), list(recent[-period:])
    while len(block) == period and rest[-period:] == block:
        count, rest = count + 1, rest[:-period]
    is_shorter = period > 1 and len(set(block)) == 1
    assert repetitions(recent, period) == (0 if is_shorter else count)


def test_a_plain_answer_after_work_is_held_back_once_and_not_lost() -> None:
    world = begin()
    step(world, ("run", OK))
    say(world, "The total was wrong; it is fixed.")
    assert stop_of(world) is None
    assert notes_of(world) == (texts.UNFINISHED,)
    say(world, "That is all.")
    found = outcome(world)
    assert found is not None
    assert (found.stop, found.completed) == (TurnStop.END_TURN, False)
    assert found.text == "The total was wrong; it is fixed.\n\nThat is all."


@pytest.mark.parametrize("again", ["All is well.", "Done. All is well."])
def test_an_answer_that_is_given_again_after_the_reminder_is_shown_once(again: str) -> None:
    world = begin()
    step(world, ("run", OK))
    say(world, "All is well.")
    say(world, again)
    found = outcome(world)
    assert found is not None
    assert found.text == again


def test_a_word_in_the_middle_of_work_does_not_end_it() -> None:
    world = begin()
    step(world, ("write", CHANGED))
    say(world, "Now the tests.")
    step(world, ("run", OK))
    say(world, "All is well.")
    found = outcome(world)
    assert found is not None
    assert found.text == "All is well."


def test_a_plain_answer_to_a_question_ends_the_turn_at_once() -> None:
    world = begin()
    step(world, ("look", OK))
    say(world, "It is in a.py.")
    assert stop_of(world) is TurnStop.END_TURN


def test_an_open_checklist_is_a_reason_to_remind() -> None:
    world = begin()
    activity = seal(world)
    call = ToolCall(id="call_1_0", name="look", arguments={})
    proposed = CallProposed(step=activity.step, attempt=1, call=call, traits=TRAITS["look"], progress="- [ ] the tests")
    world.take(proposed)
    world.take(finished(activity.step, ReplyStop.TOOL_USE))
    world.take(CallJudged(call_id=call.id, decision=decision(Verdict.ALLOW), preview=Preview(title="t")))
    world.take(CallStarted(call_id=call.id))
    world.take(CallFinished(call_id=call.id, result=OK))
    say(world, "Done.")
    assert stop_of(world) is None


def test_a_reply_in_another_notation_gets_the_right_one_in_both_protocols() -> None:
    for protocol in ToolProtocol:
        world = begin(protocol)
        say(world, "<function_calls>", hint="Write it so: …")
        assert notes_of(world) == ("Write it so: …",)
        assert world.state.guard.mistakes == 1


def test_an_empty_reply_is_sent_again_once_and_then_the_model_is_told() -> None:
    world = begin()
    stops: list[tuple[str, ...]] = []
    for _ in range(12):
        if stop_of(world) is not None:
            break
        activity = seal(world)
        world.take(world.failure(activity.step, 1, ErrorKind.EMPTY_REPLY))
        world.take(TimerFired(timer=f"retry-{activity.step}-1"))
        world.take(world.failure(activity.step, 2, ErrorKind.EMPTY_REPLY))
        stops.append(notes_of(world))
    assert stop_of(world) is TurnStop.MISTAKES
    assert stops[0] == (texts.EMPTY_REPLY,)
    assert len(stops) == 3


def at_the_limit(*, present: bool) -> World:
    world = begin(present=present, limits=Limits(max_steps=4))
    notes: list[tuple[str, ...]] = []
    for number in range(4):
        step(world, ("look", OK), arguments={"n": number})
        notes.append(notes_of(world))
    assert notes[:3] == [(texts.steps_left(3),), (), ()]
    return world


def test_the_limit_of_steps_ends_the_turn_when_nobody_is_there() -> None:
    assert stop_of(at_the_limit(present=False)) is TurnStop.MAX_TURN_REQUESTS


def test_the_user_is_asked_at_the_limit_of_steps_and_may_grant_as_many_again() -> None:
    world = at_the_limit(present=True)
    question = world.state.questions[0]
    assert (question.kind, question.text) == (QuestionKind.BUDGET, texts.more_steps(4))
    assert question.more == "4 more steps"
    world.take(Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE))
    for number in range(4, 8):
        step(world, ("look", OK), arguments={"n": number})
    assert world.state.questions[0].text == texts.more_steps(8)
    world.take(Answer(question_id=world.state.questions[0].id, option=OptionKind.REJECT_ONCE))
    assert stop_of(world) is TurnStop.MAX_TURN_REQUESTS


def test_the_question_at_the_limit_of_steps_outlives_a_restart_and_ends_with_the_users_presence() -> None:
    world = at_the_limit(present=True)
    asked = world.state.questions
    effects = world.take(Resumed(user_present=True))
    assert world.state.questions == asked
    assert any("QuestionAsked" in repr(effect) for effect in effects)
    world.take(SetPresence(user_present=False))
    assert stop_of(world) is TurnStop.MAX_TURN_REQUESTS


RESULT = "The cart counts right."


def presented(verdict: Verdict, *, present: bool) -> tuple[World, str]:
    """A task that is done, whose result comes with a command that was judged so."""
    world = begin(present=present)
    proposed_in = seal(world)
    call = ToolCall(id="call_1_0", name="done", arguments={"result": RESULT, "command": "run it"})
    world.take(CallProposed(step=proposed_in.step, attempt=1, call=call, traits=TRAITS["done"]))
    world.take(finished(proposed_in.step, ReplyStop.TOOL_USE))
    preview = Preview(title="Run", text="run it", result=RESULT)
    accesses = (RunCommand(command="run it", cwd="/w"),)
    world.take(CallJudged(call_id=call.id, decision=decision(verdict), preview=preview, accesses=accesses))
    assert ResultPresented(text=RESULT) in told(world)
    return world, call.id


def test_a_no_to_the_command_of_a_result_keeps_the_result() -> None:
    world, _ = presented(Verdict.REQUIRE_USER_CONFIRMATION, present=True)
    world.take(Answer(question_id=world.state.questions[0].id, option=OptionKind.REJECT_ONCE))
    found = outcome(world)
    assert found is not None
    assert (found.stop, found.completed, found.text) == (TurnStop.END_TURN, True, RESULT)


def test_a_no_with_words_takes_the_words_to_the_model() -> None:
    world, _ = presented(Verdict.REQUIRE_USER_CONFIRMATION, present=True)
    world.take(Answer(question_id=world.state.questions[0].id, option=OptionKind.REJECT_ONCE, text="and the docs?"))
    assert stop_of(world) is None
    assert world.state.calls[0].result == result_text(Outcome.REJECTED, texts.rejected("and the docs?"))


def test_a_denied_command_of_a_result_neither_loses_it_nor_counts_as_denied() -> None:
    for verdict, why in (
        (Verdict.REQUIRE_USER_CONFIRMATION, texts.COMMAND_NEEDS_A_YES),
        (Verdict.DENY, texts.COMMAND_DENIED),
    ):
        world, _ = presented(verdict, present=False)
        found = outcome(world)
        assert found is not None
        assert (found.completed, found.denied, found.text) == (True, 0, f"{RESULT}\n\n{why}")


def test_an_interrupt_at_the_command_of_a_result_keeps_the_result() -> None:
    for runs in (False, True):
        world, call_id = presented(Verdict.ALLOW if runs else Verdict.REQUIRE_USER_CONFIRMATION, present=True)
        if runs:
            world.take(CallStarted(call_id=call_id))
        world.take(Interrupt())
        if runs:
            world.take(CallFinished(call_id=call_id, result=result_text(Outcome.INTERRUPTED, "cut")))
        found = outcome(world)
        assert found is not None
        assert (found.stop, found.text) == (TurnStop.CANCELLED, RESULT)


ENDS = Limits(reminders=1, plain_answer_ends=True)


@pytest.mark.parametrize("protocol", list(ToolProtocol))
def test_a_plain_answer_after_work_ends_the_turn_without_another_call(protocol: ToolProtocol) -> None:
    world = begin(protocol, limits=ENDS)
    step(world, ("write", CHANGED))
    say(world, "Fixed it in a.py.")
    ended = outcome(world)
    assert ended is not None
    assert (ended.stop, ended.text, ended.steps) == (TurnStop.END_TURN, "Fixed it in a.py.", 2)


@pytest.mark.parametrize("protocol", list(ToolProtocol))
def test_an_answer_that_announces_a_step_is_reminded_of_once(protocol: ToolProtocol) -> None:
    world = begin(protocol, limits=ENDS)
    say(world, "Let me look at a.py.")
    assert stop_of(world) is None
    say(world, "It is fine as it is.")
    assert stop_of(world) is TurnStop.END_TURN
