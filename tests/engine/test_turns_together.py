"""The limits of a task that takes several turns: they bound all of its turns, whoever began these."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.exploring import TUI, World, decision
from treadle.engine.core import texts
from treadle.engine.core.advance import fold
from treadle.engine.core.machine_effects import StartTimer
from treadle.engine.core.sealing import written
from treadle.engine.core.state import AwaitingReply, replace
from treadle.protocol.checkpoints import Restore, Restored, Rewound
from treadle.protocol.children import ChildEnded, ChildOutcome, ChildStarted
from treadle.protocol.events import (
    GOAL,
    CallFinished,
    CallJudged,
    CallStarted,
    Prompt,
    Resumed,
    SetLimits,
    SetPresence,
    Source,
    TimerFired,
)
from treadle.protocol.goals import SetGoal
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Text
from treadle.protocol.notifications import TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.permissions import Verdict
from treadle.protocol.tools import Outcome, Preview, result_text
from treadle.protocol.usage import Usage

START = 1_800_000_000_000
SOURCES = (Source(kind="headless", id="main"), Source(kind="subagent", id="s"), Source(kind="timer", id="1"), GOAL, TUI)
TOGETHER = Limits(max_steps=5, max_seconds=10.0, counts_work=True, turns_together=True)

turns = st.lists(
    st.tuples(st.sampled_from(SOURCES), st.integers(1, 4), st.integers(0, 2_000), st.integers(0, 2_000)), max_size=5
)
"""Who begins each turn, the steps that it would make, and the milliseconds of each and of those before it."""


CHILD = ChildStarted(call_id="", session_id="c", agent="explore", task="look", background=True)


def step(world: World, *, last: bool, meanwhile: Sequence[ChildStarted] = ()) -> None:
    """Let the model make a call that runs, and begins those subagents, or answer."""
    world.take(world.ready())
    assert isinstance(world.state.activity, AwaitingReply)
    number, attempt = world.state.activity.step, world.state.activity.attempt
    if last:
        world.take(world.reply(number, attempt))
        return
    proposed = world.new_call("look")
    assert proposed is not None
    call_id = proposed.call.id
    world.take(replace(proposed, progress=""))
    world.take(CallJudged(call_id=call_id, decision=decision(Verdict.ALLOW), preview=Preview(title="t")))
    world.take(world.reply(number, attempt))
    world.take(CallStarted(call_id=call_id))
    for one in meanwhile:
        world.take(replace(one, call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=result_text(Outcome.OK, f"{world.calls}")))


def work(world: World, source: Source, steps: int, *, takes: int = 0) -> None:
    """Begin a turn that makes so many steps, unless a limit ends it before."""
    effects = world.take(Prompt(id=f"p{world.state.seq}", content=(Text(text="go"),)), source)
    timer, began = next((one for one in effects if isinstance(one, StartTimer)), None), world.at
    for number in range(steps):
        world.at += takes
        if timer is None or world.state.turn is None:
            return
        if world.at > began + timer.seconds * 1000:
            world.take(TimerFired(timer=timer.timer))
        else:
            step(world, last=number + 1 == steps)


def turn(world: World, source: Source) -> None:
    """Begin a turn, and let the model answer where a step is left."""
    world.take(Prompt(id=f"p{world.state.seq}", content=(Text(text="go"),)), source)
    if world.state.turn is not None:
        step(world, last=True)


def ended(world: World) -> list[TurnOutcome]:
    return [one.outcome for one in world.told() if isinstance(one, TurnEnded)]


def timers(world: World) -> list[float]:
    return [one.seconds for one in world.effects if isinstance(one, StartTimer)]


@given(turns)
def test_steps_and_time_are_of_all_turns_together(made: list[tuple[Source, int, int, int]]) -> None:
    world = World(limits=TOGETHER, at=START).begin()
    world.take(SetGoal(condition="it works"))
    wanted, since = 0, 0
    for source, steps, takes, pause in made:
        world.at += pause
        since = since or world.at
        known = len(ended(world))
        work(world, source, steps, takes=takes)
        wanted += steps
        total = sum(one.steps for one in ended(world))
        assert total <= 5
        (outcome,) = ended(world)[known:]
        if outcome.stop is TurnStop.END_TURN:
            assert total == wanted <= 5
        elif outcome.stop is TurnStop.MAX_TURN_REQUESTS:
            assert total == 5 < wanted
            break
        else:
            assert outcome.stop is TurnStop.TIME
            break
    begun = [event.at for event in world.log if isinstance(event.data, Prompt)]
    timed = begun[: len(timers(world))]
    assert timers(world) == [max(0.0, 10 - (at - since) / 1000) for at in timed]
    assert all(one.steps == 0 for one in ended(world)[len(timed) :])
    assert fold(world.log) == world.state


def test_each_turn_has_limits_of_its_own_where_they_are_not_together() -> None:
    world = World(limits=replace(TOGETHER, turns_together=False), at=START).begin()
    for source in SOURCES:
        work(world, source, 5, takes=100)
        world.at += 60_000
    assert [(one.stop, one.steps) for one in ended(world) if one.steps] == [(TurnStop.END_TURN, 5)] * len(ended(world))
    assert timers(world) == [10.0] * len(timers(world))


def test_a_session_that_is_opened_again_counts_anew() -> None:
    world = World(limits=TOGETHER, at=START).begin()
    work(world, TUI, 4, takes=100)
    world.at += 60_000
    world.take(Resumed(user_present=False))
    world.take(Prompt(id="again", content=(Text(text="go"),)))
    assert timers(world) == [10.0, 10.0]
    for number in range(5):
        step(world, last=number == 4)
    assert [(one.stop, one.steps) for one in ended(world)] == [(TurnStop.END_TURN, 4), (TurnStop.END_TURN, 5)]


def test_a_turn_that_goes_on_in_a_session_opened_again_has_the_steps_of_those_before_it_again() -> None:
    world = World(limits=TOGETHER, at=START).begin()
    work(world, TUI, 3)
    world.take(Prompt(id="next", content=(Text(text="go"),)))
    step(world, last=False)
    world.take(Resumed(user_present=False))
    for number in range(4):
        step(world, last=number == 3)
    assert [(one.stop, one.steps) for one in ended(world)] == [(TurnStop.END_TURN, 3), (TurnStop.END_TURN, 5)]
    assert world.state.made == 5


@pytest.mark.parametrize("together", [False, True])
def test_a_conversation_that_goes_back_leaves_the_limits_where_they_are(*, together: bool) -> None:
    world = World(limits=TOGETHER, at=START).begin()
    work(world, TUI, 3, takes=100)
    past = world.state
    if together:
        work(world, TUI, 1, takes=100)
    else:  # a person opens it
        world.at += 60_000
        world.take(Resumed(user_present=True))
        world.take(SetPresence(user_present=False))
        world.take(SetLimits(limits=replace(TOGETHER, turns_together=False)))
    world.take(Restore(files=False, conversation=True, to=past.seq))
    now = world.state
    world.take(Rewound(to=past.seq, state=written(past)))
    assert (world.state.made, world.state.since) == (now.made, now.since)
    world.take(Restored(checkpoint=0))
    work(world, TUI, 5, takes=100)
    last = ended(world)[-1]
    assert (last.stop, last.steps) == ((TurnStop.MAX_TURN_REQUESTS, 1) if together else (TurnStop.END_TURN, 5))


def test_a_turn_that_begins_with_few_steps_left_says_so() -> None:
    world = World(limits=TOGETHER, at=START).begin()
    work(world, TUI, 4)
    world.take(Prompt(id="next", content=(Text(text="go"),)))
    assert [note.text for note in world.state.notes] == [texts.steps_left(1)]


def test_a_turn_for_which_no_step_is_left_ends_and_keeps_its_message() -> None:
    world = World(limits=TOGETHER, at=START).begin()
    work(world, TUI, 5)
    world.take(Prompt(id="late", content=(Text(text="a subagent has ended"),)), SOURCES[1])
    last = ended(world)[-1]
    assert (last.stop, last.steps, last.text) == (TurnStop.MAX_TURN_REQUESTS, 0, "")
    assert [one.id for one in world.state.delivering] == ["late"]


@pytest.mark.parametrize("most", [2, 5], ids=["no step is left", "the model reads of it"])
@pytest.mark.parametrize("price", [0.25, None])
def test_the_turn_that_a_subagent_wakes_has_what_it_used_and_was_denied(most: int, price: float | None) -> None:
    world = World(limits=Limits(max_steps=most, turns_together=True)).begin()
    world.take(Prompt(id="p", content=(Text(text="go"),)))
    step(world, last=False, meanwhile=[CHILD])
    step(world, last=True)
    before, used = ended(world), Usage(input_tokens=70, output_tokens=7)
    world.take(ChildEnded(session_id="c", outcome=ChildOutcome.DONE, usage=used, cost=price, denied=2))
    assert fold(world.log) == world.state
    turn(world, SOURCES[1])
    *first, woken = ended(world)
    own = Usage(input_tokens=10, output_tokens=1) if woken.steps else Usage()
    assert first == before
    assert (woken.usage, woken.cost is None, woken.denied) == (used + own, price is None, 2)
    turn(world, TUI)
    assert ended(world)[-1].denied == 0, "it is told once"
