"""A limit of a provider that resets late: a turn waits for it where the user agreed, and never for what is unknown."""

from collections.abc import Callable

import pytest

from tests.engine.exploring import World
from treadle.engine.core.advance import fold
from treadle.engine.core.machine_effects import CallModel, Cancel, StartTimer, timer_work
from treadle.engine.core.state import replace
from treadle.protocol.events import Answer, Interrupt, Prompt, Resumed, SetFallback, SetModel, SetPresence, TimerFired
from treadle.protocol.limits import Budget, Limits, Terms
from treadle.protocol.messages import Text
from treadle.protocol.models import ErrorKind, ModelChoice, ModelError, Spent, ToolProtocol
from treadle.protocol.notifications import Phase, RetryScheduled, TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.permissions import OptionKind, Question
from treadle.protocol.sealed import RetryPlanned

START = 1_800_000_000_000
LIMITED = ModelError(kind=ErrorKind.RATE_LIMIT, message="p limits the number of requests.", retry_after=7_500.0)
UNTIL = START + 7_500_000
AGREED, UNSAID = Limits(wait_for_reset=True), Limits(wait_for_reset=False)
OTHER = ModelChoice(model="q/other", tool_protocol=ToolProtocol.NATIVE)


def begun(limits: Limits, *, present: bool = True) -> World:
    """Give a turn whose first request is on its way."""
    world = World(limits=limits, at=START).begin()
    world.take(SetPresence(user_present=present))
    world.take(Prompt(id="p", content=(Text(text="go"),)))
    world.take(world.ready(""))
    return world


def refuse(world: World, error: ModelError = LIMITED, *, attempt: int = 1) -> World:
    world.take(replace(world.failure(1, attempt, ErrorKind.RATE_LIMIT), error=error, jitter=0.0))
    return world


def waits(world: World) -> list[RetryScheduled]:
    return [one for one in world.told() if isinstance(one, RetryScheduled)]


def sent(world: World) -> list[int]:
    return [effect.attempt for effect in world.effects if isinstance(effect, CallModel)]


def timers(world: World) -> list[float]:
    return [effect.seconds for effect in world.effects if isinstance(effect, StartTimer)]


def outcome_of(world: World) -> TurnOutcome:
    (ended,) = [one for one in world.told() if isinstance(one, TurnEnded)]
    return ended.outcome


@pytest.mark.parametrize("present", [True, False])
def test_a_turn_waits_until_the_limit_resets_where_the_user_agreed(present: bool) -> None:
    world = refuse(begun(AGREED, present=present))
    assert waits(world) == [RetryScheduled(attempt=1, seconds=7_500.0, error=LIMITED, until=UNTIL)]
    assert [event.data for event in world.log if isinstance(event.data, RetryPlanned)] == [
        RetryPlanned(attempt=1, seconds=7_500.0, most=0, until=UNTIL)
    ]
    assert (timers(world), sent(world)) == ([7_500.0], [1])
    world.at = UNTIL
    world.take(TimerFired(timer="retry-1-1"))
    assert sent(world) == [1, 2]


def test_a_restart_waits_for_what_is_left_and_says_so_and_sends_at_once_when_the_moment_has_passed() -> None:
    log = refuse(begun(AGREED)).log
    for later, left in ((7_000_000, 500.0), (7_500_000, None), (99_000_000, None)):
        world = World(limits=AGREED, at=START + later, state=fold(log))
        world.take(Resumed(user_present=False))
        if left is None:
            assert (waits(world), sent(world)) == ([], [2])
        else:
            assert waits(world) == [RetryScheduled(attempt=1, seconds=left, error=LIMITED, until=UNTIL)]
            assert (timers(world), sent(world)) == ([left], [])


def ask(world: World) -> Question:
    (question,) = world.state.questions
    return question


def test_a_user_who_is_there_is_asked_and_a_yes_waits_for_what_is_left() -> None:
    world = refuse(begun(UNSAID))
    assert ask(world).more == "wait for 2 h 5 min"
    assert ask(world).text.splitlines()[0] == "The limit of p resets in 2 h 5 min. Wait for that, and continue then?"
    assert (waits(world), timers(world)) == ([], [])
    world.at = START + 100_000
    world.take(Answer(question_id=ask(world).id, option=OptionKind.ALLOW_ONCE))
    assert waits(world) == [RetryScheduled(attempt=1, seconds=7_400.0, error=LIMITED, until=UNTIL)]


def test_a_yes_after_the_moment_sends_at_once() -> None:
    world = refuse(begun(UNSAID))
    world.at = UNTIL + 1
    world.take(Answer(question_id=ask(world).id, option=OptionKind.ALLOW_ONCE))
    assert sent(world) == [1, 2]


@pytest.mark.parametrize(
    "end",
    [
        lambda world: world.take(Answer(question_id=ask(world).id, option=OptionKind.REJECT_ONCE)),
        lambda world: world.take(SetPresence(user_present=False)),
        lambda world: world.take(Resumed(user_present=False)),
    ],
)
def test_a_no_and_nobody_there_end_the_turn_with_the_error(end: Callable[[World], object]) -> None:
    world = refuse(begun(UNSAID))
    end(world)
    assert (outcome_of(world).stop, outcome_of(world).error) == (TurnStop.ERROR, LIMITED)
    assert world.state.questions == ()


def test_the_question_is_put_again_after_a_restart() -> None:
    world = World(limits=UNSAID, at=UNTIL, state=fold(refuse(begun(UNSAID)).log))
    world.take(Resumed(user_present=True))
    assert ask(world).more == "wait for 2 h 5 min"


@pytest.mark.parametrize(
    ("limits", "present", "seconds"),
    [
        (UNSAID, False, 7_500.0),  # nobody is there to ask
        (Limits(), True, 7_500.0),  # a session of before
        (UNSAID, True, 299.0),  # trying again bridges that
        (AGREED, True, 59.0),
    ],
)
def test_otherwise_the_request_is_tried_again_as_ever(limits: Limits, present: bool, seconds: float) -> None:
    world = refuse(begun(limits, present=present), replace(LIMITED, retry_after=seconds))
    assert [(one.seconds, one.until, one.most) for one in waits(world)] == [(min(seconds, 60.0), 0, 6)]


def test_only_a_limit_is_waited_for() -> None:
    world = refuse(begun(AGREED), ModelError(kind=ErrorKind.OVERLOADED, message="busy", retry_after=7_500.0))
    assert [(one.seconds, one.until) for one in waits(world)] == [(60.0, 0)]


def test_a_limit_that_says_no_reset_is_tried_again_as_ever_and_the_error_says_why_nothing_waits() -> None:
    world, unknown = begun(replace(AGREED, max_retries=2)), replace(LIMITED, retry_after=None)
    for attempt in (1, 2, 3):
        refuse(world, unknown, attempt=attempt)
        if attempt < 3:
            world.take(TimerFired(timer=f"retry-1-{attempt}"))
    error = outcome_of(world).error
    assert error is not None
    assert error.message.endswith("The provider does not say when its limit resets, so nothing waits for that.")


def test_a_limit_that_never_resets_is_given_up() -> None:
    world, attempt = begun(AGREED), 1
    while refuse(world, attempt=attempt).state.turn is not None:
        world.take(TimerFired(timer=f"retry-1-{attempt}"))
        attempt += 1
    error = outcome_of(world).error
    assert (attempt, error) == (7, replace(LIMITED, message=f"{LIMITED.message} Its limit did not reset when it said."))


def test_the_user_and_the_time_of_a_turn_end_the_wait() -> None:
    for stop, limits in ((TurnStop.CANCELLED, AGREED), (TurnStop.TIME, replace(AGREED, max_seconds=9.0))):
        world = refuse(begun(limits))
        world.take(Interrupt() if stop is TurnStop.CANCELLED else TimerFired(timer="turn-1"))
        assert Cancel(work=timer_work("retry-1-1")) in world.effects
        assert outcome_of(world).stop is stop


def test_a_budget_is_checked_again_when_the_wait_is_over() -> None:
    world = begun(replace(AGREED, session=Budget(tokens=40_000)), present=False)
    refuse(world)
    terms = Terms(input_tokens=10_000, max_output=20_000, input_price=1.0, output_price=1.0)
    money = replace(world.state.money, terms=terms, spent=Spent(tokens=39_000))
    world.state = replace(world.state, money=money)
    world.take(TimerFired(timer="retry-1-1"))
    assert outcome_of(world).stop is TurnStop.BUDGET


def test_another_model_needs_no_wait() -> None:
    world = refuse(begun(AGREED))
    world.take(SetModel(choice=OTHER))
    assert Cancel(work=timer_work("retry-1-1")) in world.effects
    assert (sent(world), world.state.choice) == ([1, 2], OTHER)
    assert not world.try_take(TimerFired(timer="retry-1-1"))


def test_a_fallback_takes_over_before_anything_waits() -> None:
    world = begun(AGREED)
    world.take(SetFallback(choice=OTHER))
    refuse(world)
    assert (waits(world), sent(world), world.state.choice) == ([], [1, 2], OTHER)


def test_a_paced_call_is_no_failure_waits_as_long_as_it_must_and_calls_no_fallback() -> None:
    world = begun(replace(UNSAID, max_retries=0))
    world.take(SetFallback(choice=OTHER))
    paced = replace(LIMITED, retry_after=42.0, paced=True)
    for attempt in range(1, 10):
        refuse(world, paced, attempt=attempt)
        assert waits(world)[-1] == RetryScheduled(attempt=0, seconds=42.0, error=paced)
        world.take(TimerFired(timer=f"retry-1-{attempt}"))
    assert world.state.choice.model == "p/m"
    assert world.state.money.spent == Spent()
    assert Phase.WAITING_TO_RETRY.value in str(world.told())
