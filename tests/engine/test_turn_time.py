"""The time of a turn: what a turn waits for a person does not count, whoever asks; all else does."""

import asyncio
import time
from collections.abc import Callable

import pytest

from tests.engine.exploring import World, decision
from tests.engine.test_runtime import DONE, PATIENCE, Replies, needs_yes, ok, working
from tests.fakes.engine import STARTED, FakeLog, FakeTool, calls, ports
from treadle.engine.core.advance import fold
from treadle.engine.core.machine_effects import Cancel, StartTimer, timer_work
from treadle.engine.core.state import replace
from treadle.protocol.children import ChildStarted
from treadle.protocol.events import Answer, CallJudged, CallStarted, Interrupt, Prompt, Resumed, SetPresence, TimerFired
from treadle.protocol.goals import SetGoal
from treadle.protocol.limits import Budget, Limits, Terms
from treadle.protocol.messages import Text
from treadle.protocol.notifications import TurnStop
from treadle.protocol.permissions import CallAsked, OptionKind, Question, QuestionKind, Verdict
from treadle.protocol.tools import Preview

START = 1_800_000_000_000
PREVIEW = Preview(title="t")
BOUNDED = Limits(max_seconds=10.0, counts_work=True)
TIMER = TimerFired(timer="turn-1")


def begun(limits: Limits = BOUNDED) -> World:
    """Give a turn whose first request is on its way."""
    world = World(limits=limits, at=START).begin()
    world.take(SetPresence(user_present=True))
    world.take(Prompt(id="p", content=(Text(text="go"),)))
    return world


def called(world: World, name: str, verdict: Verdict) -> str:
    """Let the model make a call, which is decided so; gives its id."""
    world.take(world.ready())
    proposed = world.new_call(name)
    assert proposed is not None
    world.take(proposed)
    world.take(world.reply(1, 1))
    world.take(CallJudged(call_id=proposed.call.id, decision=decision(verdict), preview=PREVIEW))
    return proposed.call.id


def asked_for_permission(world: World) -> None:
    called(world, "write", Verdict.REQUIRE_USER_CONFIRMATION)


def asked_by_a_running_call(world: World) -> None:
    call = called(world, "run", Verdict.ALLOW)
    world.take(CallStarted(call_id=call))
    world.take(CallAsked(call_id=call, question_id="q", text="which?"))


def asked_by_a_subagent(world: World) -> None:
    call = called(world, "agents", Verdict.ALLOW)
    world.take(CallStarted(call_id=call))
    world.take(ChildStarted(call_id=call, session_id="c", agent="worker", task="t"))
    about = Question(id="inner", kind=QuestionKind.PERMISSION, text="Run?", child="c", options=("allow_once",))
    world.take(CallAsked(call_id=call, question_id="q", text="Run?", relayed=about))


def asked_about_money(world: World) -> None:
    world.take(world.ready(terms=Terms(input_tokens=900, max_output=900, input_price=1.0, output_price=1.0)))


def asked_for_guidance(world: World) -> None:
    for step in range(1, 4):
        world.take(world.ready())
        proposed = world.new_call("look", problem="no such tool")
        assert proposed is not None
        world.take(proposed)
        world.take(world.reply(step, 1))


def timers(world: World) -> list[float]:
    return [effect.seconds for effect in world.effects if isinstance(effect, StartTimer)]


def stopped(world: World) -> int:
    return world.effects.count(Cancel(work=timer_work("turn-1")))


def answer(world: World) -> None:
    (question,) = world.state.questions
    option = OptionKind.ANSWER if question.kind is QuestionKind.GUIDANCE else OptionKind.ALLOW_ONCE
    world.take(Answer(question_id=question.id, option=option, text="so"))


ASKED: list[Callable[[World], None]] = [
    asked_for_permission,
    asked_by_a_running_call,
    asked_by_a_subagent,
    asked_about_money,
    asked_for_guidance,
]
SPENT = replace(BOUNDED, session=Budget(tokens=1_000), raisable=True, max_mistakes=3)


@pytest.mark.parametrize("ask", ASKED)
def test_the_time_for_which_a_turn_waits_for_a_person_does_not_count(ask: Callable[[World], None]) -> None:
    world = begun(SPENT)
    world.at += 4_000
    ask(world)
    assert (timers(world), stopped(world)) == ([10.0], 1)
    world.at += 3_600_000
    assert not world.try_take(TIMER)  # one that fired in the moment of the question
    answer(world)
    assert timers(world) == [10.0, 6.0]
    assert fold(world.log) == world.state
    world.at += 6_000
    world.take(TIMER)
    assert world.state.stopping is TurnStop.TIME or world.state.turn is None


@pytest.mark.parametrize("ask", ASKED)
def test_in_a_log_of_before_the_time_counts_as_it_did(ask: Callable[[World], None]) -> None:
    world = begun(Limits(max_seconds=10.0, session=SPENT.session, raisable=True))
    ask(world)
    answer(world)
    assert (timers(world), stopped(world), world.state.since, world.state.asked_at) == ([10.0], 0, 0, 0)
    world.take(TIMER)


def test_the_time_goes_on_while_something_else_of_the_turn_works() -> None:
    world = begun()
    call = called(world, "run", Verdict.ALLOW)
    world.take(CallStarted(call_id=call))
    world.take(CallAsked(call_id="call_of_before", question_id="q", text="which host?", after=True))
    assert (timers(world), stopped(world)) == ([10.0], 0)
    streaming = begun()
    streaming.take(streaming.ready())
    proposed = streaming.new_call("look")
    assert proposed is not None
    streaming.take(proposed)
    streaming.take(
        CallJudged(call_id=proposed.call.id, decision=decision(Verdict.REQUIRE_USER_CONFIRMATION), preview=PREVIEW)
    )
    assert (bool(streaming.state.questions), stopped(streaming)) == (True, 0)  # the model still writes
    streaming.take(streaming.reply(1, 1))
    assert stopped(streaming) == 1


def test_each_of_several_questions_stops_the_time_once() -> None:
    world = begun()
    world.take(world.ready())
    proposed = [world.new_call("look") for _ in range(2)]
    for one in proposed:
        assert one is not None
        world.take(one)
    world.take(world.reply(1, 1))
    for one in proposed:
        assert one is not None
        world.take(
            CallJudged(call_id=one.call.id, decision=decision(Verdict.REQUIRE_USER_CONFIRMATION), preview=PREVIEW)
        )
    first, second = world.state.questions
    world.at += 60_000
    world.take(Answer(question_id=first.id, option=OptionKind.REJECT_ONCE))
    world.at += 60_000
    assert (timers(world), stopped(world)) == ([10.0], 1)
    world.take(Answer(question_id=second.id, option=OptionKind.REJECT_ONCE))
    assert timers(world) == [10.0, 10.0]


def test_a_question_that_is_open_after_a_restart_stops_the_time_too() -> None:
    world = begun()
    asked_for_permission(world)
    again = World(limits=BOUNDED, at=world.at + 90_000, state=fold(world.log))
    again.take(Resumed(user_present=True))
    assert timers(again) == []
    again.at += 90_000
    answer(again)
    assert timers(again)[-1:] == [10.0]
    alone = World(limits=BOUNDED, at=world.at + 90_000, state=fold(world.log))
    alone.take(Resumed(user_present=False))
    assert timers(alone) == [10.0]


def test_a_turn_that_is_stopped_while_it_asks_leaves_no_time_behind() -> None:
    world = begun()
    asked_for_permission(world)
    world.take(Interrupt())
    state = world.state
    assert (state.turn, state.since, state.asked_at, timers(world)) == (None, 0, 0, [10.0])


def test_the_time_of_a_goal_stands_too() -> None:
    world = World(limits=BOUNDED, at=START).begin()
    world.take(SetPresence(user_present=True))
    world.take(SetGoal(condition="it works"))
    world.take(Prompt(id="p", content=(Text(text="go"),)))
    world.at += 3_000
    asked_for_permission(world)
    world.at += 60_000
    answer(world)
    assert world.state.goal is not None
    assert world.at - world.state.goal.since == 3_000


async def test_a_turn_of_a_moment_waits_for_a_person_as_long_as_it_takes() -> None:
    log, provider = FakeLog(), Replies(calls("write"), DONE)
    limits = Limits(max_seconds=1.0, counts_work=True)
    first = (replace(STARTED, limits=limits), SetPresence(user_present=True))
    made = ports(provider, FakeTool("write", ok), log=log, judge=needs_yes, clock=lambda: time.time_ns() // 1_000_000)
    async with working(made, log, *first) as run:
        turn = asyncio.create_task(run.prompt("write it"))
        async with asyncio.timeout(PATIENCE):
            while not run.session.state.questions:
                await asyncio.sleep(0.001)
        await asyncio.sleep(1.3)
        (question,) = run.session.state.questions
        await run.session.post(Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE))
        outcome = await turn
    assert (outcome.stop, outcome.text) == (TurnStop.END_TURN, "done")
