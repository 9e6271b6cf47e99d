"""Any order of legal and illegal events: the machine stays consistent and finds its way out."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.exploring import BOUNDED, TRAITS, World, answer_to, asked_by_user, decision
from tests.engine.world import check_alive, check_messages
from treadle.engine.core.advance import fold
from treadle.engine.core.machine_effects import CallModel, Effect
from treadle.engine.core.state import Compacting, phase, replace
from treadle.protocol.codec import decode_data, encode
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallJudged,
    CallStarted,
    Compacted,
    ContextReady,
    Delivery,
    EditQueued,
    Event,
    EventData,
    Interrupt,
    Prompt,
    Resumed,
    SetMode,
    SetModel,
    SetPresence,
    TimerFired,
)
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Text
from treadle.protocol.models import ErrorKind, ModelChoice, ToolProtocol
from treadle.protocol.notifications import Phase
from treadle.protocol.permissions import Mode, OptionKind, Verdict
from treadle.protocol.sealed import Passage, PassageKind
from treadle.protocol.tools import Outcome, Preview, result_text

T = TypeVar("T")

MOVES = (
    *["work"] * 12,
    *["call"] * 6,
    *["prompt"] * 3,
    *["answer"] * 4,
    "interrupt",
    "presence",
    "resume",
    "mode",
    *["user"] * 3,
    "edit",
    "illegal",
)


LIMITS = (Limits(max_steps=8, max_retries=2), BOUNDED)


def through_codec(log: Sequence[Event]) -> list[Event]:
    """Give the events as they come back from the log."""
    return [replace(event, data=decode_data(encode(event.data))) for event in log]


class Chooser:
    """Hypothesis chooses; what it chooses shrinks."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def __call__(self, options: Sequence[T], /) -> T:
        return options[self._data.draw(st.integers(0, len(options) - 1))]


def prompt(number: int, delivery: Delivery = Delivery.QUEUE) -> Prompt:
    return Prompt(id=f"p{number}", content=(Text(text=f"do {number}"),), delivery=delivery)


def illegal(choose: Chooser) -> EventData:
    """Events that fit nothing, or something that is long gone."""
    options: list[EventData] = [
        Interrupt(),
        ContextReady(step=choose([0, 1, 2, 99]), content=(Passage(kind=PassageKind.NOTE, text="note"),)),
        Compacted(step=1, through=9, dropped=2),
        CallJudged(call_id=choose(["", "call_1_1_1"]), decision=decision(Verdict.ALLOW), preview=Preview(title="t")),
        CallStarted(call_id=choose(["", "call_1_1_1"])),
        CallFinished(call_id=choose(["", "call_1_1_1"]), result=result_text(Outcome.OK, "x")),
        TimerFired(timer=choose(["", "retry-1-1"])),
        Answer(question_id=choose(["", "q3"]), option=choose(list(OptionKind))),
        EditQueued(prompt_id=choose(["", "p1"])),
        Prompt(id="empty", content=()),
    ]
    return choose(options)


def make_move(world: World, choose: Chooser, number: int) -> None:
    match choose(MOVES):
        case "work" if world.outstanding:
            world.work_on(choose(list(world.outstanding.values())), choose)
        case "call":
            data = world.new_call(choose(list(TRAITS)), choose(["", "", "", "bad json"]))
            if data is not None and not world.try_take(data):
                world.proposed.pop()
        case "prompt":
            world.try_take(prompt(number, choose(list(Delivery))))
        case "answer" if world.state.questions:
            world.take(answer_to(choose(world.state.questions), choose))
        case "user":
            world.try_take(choose(asked_by_user(world, number, choose)))
        case "interrupt":
            world.try_take(Interrupt())
        case "presence":
            world.take(SetPresence(user_present=choose([True, False])))
        case "resume":
            world.outstanding.clear()
            world.take(Resumed(user_present=choose([True, False])))
        case "mode":
            world.take(SetMode(mode=choose(list(Mode))))
            world.take(SetModel(choice=ModelChoice(model="p/other", tool_protocol=choose(list(ToolProtocol)))))
        case "edit":
            world.try_take(EditQueued(prompt_id=f"p{number - 1}", content=choose([(), (Text(text="other"),)])))
        case "illegal":
            before = world.state
            if not world.try_take(illegal(choose)):
                assert world.state is before
        case _:
            pass


def helpful(options: Sequence[T], /) -> T:
    """Take the first thing that can happen: it is always the good one."""
    return options[0]


@settings(max_examples=120)
@given(st.data(), st.sampled_from(list(ToolProtocol)), st.sampled_from(LIMITS), st.integers(0, 60))
def test_any_order_of_events_keeps_the_machine_consistent(
    data: st.DataObject, protocol: ToolProtocol, limits: Limits, moves: int
) -> None:
    world = World(protocol, limits).begin()
    choose = Chooser(data)
    for number in range(moves):
        make_move(world, choose, number)
        check_alive(world)
        assert fold(through_codec(world.log)) == world.state
        check_messages(world.transcript.messages(ToolProtocol.NATIVE))
        check_messages(world.transcript.messages(ToolProtocol.XML))


@settings(max_examples=150)
@given(st.data(), st.sampled_from(LIMITS), st.integers(0, 40))
def test_every_state_has_a_way_out(data: st.DataObject, limits: Limits, moves: int) -> None:
    world = World(limits=limits).begin()
    choose = Chooser(data)
    for number in range(moves):
        make_move(world, choose, number)
    world.take(SetPresence(user_present=False))
    for _ in range(400):
        if not world.outstanding:
            break
        world.work_on(next(iter(world.outstanding.values())), helpful)
    assert phase(world.state) is Phase.WAITING_FOR_EVENT
    assert world.state.turn is None
    assert all(call.finished for call in world.state.calls)


@settings(max_examples=150)
@given(st.data(), st.sampled_from(LIMITS), st.integers(0, 40))
def test_an_interrupt_ends_the_turn_as_soon_as_running_work_reports(
    data: st.DataObject, limits: Limits, moves: int
) -> None:
    world = World(limits=limits).begin()
    choose = Chooser(data)
    for number in range(moves):
        make_move(world, choose, number)
    for waiting in world.state.queue:
        world.take(EditQueued(prompt_id=waiting.prompt.id))
    if not world.try_take(Interrupt()):
        assert world.state.turn is None or world.state.cancelling
    for effect in list(world.outstanding.values()):
        _report_cancelled(world, effect)
    if isinstance(world.state.activity, Compacting):  # wanted while the turn was being ended
        world.take(Interrupt())
    assert phase(world.state) is Phase.WAITING_FOR_EVENT
    assert world.state.turn is None


def unhelpful(options: Sequence[T], /) -> T:
    """Take the last thing that can happen: a running call was interrupted."""
    return options[-1]


def _report_cancelled(world: World, effect: Effect) -> None:
    if isinstance(effect, CallModel):
        world.settle("", world.failure(effect.step, effect.attempt, ErrorKind.CANCELLED))
    else:
        world.work_on(effect, unhelpful)


def test_an_interrupted_reply_whose_program_is_killed_leaves_no_result_without_its_call() -> None:
    world = World().begin()
    world.take(Prompt(id="p", content=(Text(text="do it"),)))
    world.take(world.ready())
    proposed = world.new_call("look")
    assert proposed is not None
    world.take(proposed)
    world.take(Interrupt())
    world.take(Resumed(user_present=True))
    world.take(Prompt(id="q", content=(Text(text="and now"),)))
    world.take(world.ready())
    check_messages(world.transcript.messages(ToolProtocol.NATIVE))
    assert fold(through_codec(world.log)) == world.state
