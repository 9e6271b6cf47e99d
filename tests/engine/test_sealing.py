"""What the log alone tells: a version of Treadle with other words and defaults reads the same session off it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.exploring import BOUNDED, World, decision, walk
from tests.engine.world import check_messages
from tests.fakes.messages import read_transcript
from treadle.context.notified import notifications
from treadle.engine.core import copy_fate, replies, texts, turns
from treadle.engine.core.advance import fold
from treadle.engine.core.past_history import last_state, read_past
from treadle.engine.core.sealing import STEPS_BETWEEN_STATES
from treadle.engine.core.state import State, guarded
from treadle.engine.runtime import model_call, tool_call
from treadle.protocol.codec import decode_data, encode
from treadle.protocol.errors import DriftError
from treadle.protocol.events import Answer, CallFinished, CallJudged, CallStarted, Event, Prompt, SetPresence
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    ChecklistChanged,
    MessageDone,
    ModelChanged,
    Notification,
    PromptDelivered,
    QuestionAsked,
    RetryScheduled,
    TurnEnded,
    TurnStarted,
)
from treadle.protocol.permissions import OptionKind, Verdict
from treadle.protocol.sealed import StateSealed, TurnSettled
from treadle.protocol.tools import Outcome, Preview, result_text

_SHOWN = (
    CallChanged,
    ChecklistChanged,
    MessageDone,
    ModelChanged,
    PromptDelivered,
    QuestionAsked,
    RetryScheduled,
    TurnEnded,
    TurnStarted,
)


def wander(seed: int, moves: int = 80) -> World:
    """Drive a session at random."""
    jitter = random.Random(seed)
    return walk(jitter, BOUNDED if jitter.random() < 0.4 else Limits(max_steps=8, max_retries=2), longest=moves)


def stored(log: list[Event]) -> list[Event]:
    """Give the events as they come back from the log."""
    return [Event(seq=one.seq, at=one.at, source=one.source, data=decode_data(encode(one.data))) for one in log]


def shown(told: list[Notification]) -> list[Notification]:
    """What a person sees of a past session; in a call, what came of it. A question that is put again is one."""
    asked: set[str] = set()
    seen: list[Notification] = []
    for one in told:
        if isinstance(one, QuestionAsked):
            if one.question.id in asked:
                continue
            asked.add(one.question.id)
        if isinstance(one, _SHOWN) and not (isinstance(one, CallChanged) and one.status is not CallStatus.FINISHED):
            seen.append(one)
    return seen


@contextmanager
def another_version() -> Iterator[None]:
    """Have other words, delays and defaults than the session was written with."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (texts, copy_fate, tool_call, model_call, turns, replies):
            for name, value in vars(module).items():
                if isinstance(value, str) and name.isupper():
                    patch.setattr(module, name, f"other {name}")
        for name in (
            "denied",
            "asked",
            "rejected",
            "amended",
            "guidance",
            "in_a_loop",
            "more_steps",
        ):
            patch.setattr(texts, name, lambda *_, **__: "other")
        patch.setattr(copy_fate, "outcome_of_copy", lambda *_, **__: "other")
        patch.setattr(replies, "_delay", lambda *_: 99.0)
        yield


def sent(log: list[Event]) -> Any:
    return read_transcript(log).messages(ToolProtocol.NATIVE)


def comparable(state: State) -> State:
    """A state without the fingerprints of this turn's replies: of one that is not over they are of today's words."""
    return guarded(state, recent=())


@pytest.mark.parametrize("seed", range(40))
def test_another_version_reads_the_same_session(seed: int) -> None:
    world = wander(seed)
    log = stored(world.log)
    expected = (world.transcript.messages(ToolProtocol.NATIVE), shown(world.told()), comparable(world.state))
    with another_version():
        assert sent(log) == expected[0]
        assert shown(list(notifications(log))) == expected[1]
        assert comparable(fold(log)) == expected[2]
        assert comparable(read_past(log).state) == expected[2]
        check_messages(sent(log))


@pytest.mark.parametrize("seed", range(10))
def test_what_was_before_the_end_of_a_turn_is_not_needed_for_the_state(seed: int) -> None:
    log = wander(seed, moves=150).log
    ends = [index for index, event in enumerate(log) if isinstance(event.data, TurnSettled)]
    for end in ends:
        assert fold(log[end:]) == fold(log) == last_state(log)


@settings(max_examples=300)
@given(st.integers(0, 10_000), st.data())
def test_a_log_that_lacks_or_repeats_an_event_ends_in_a_typed_error_or_can_be_read(
    seed: int, data: st.DataObject
) -> None:
    log = wander(seed, moves=50).log
    at = data.draw(st.integers(0, len(log) - 1))
    match data.draw(st.sampled_from(["lost", "doubled", "moved"])):
        case "lost":
            log = [*log[:at], *log[at + 1 :]]
        case "doubled":
            log = [*log[: at + 1], log[at], *log[at + 1 :]]
        case _:
            log = [*log[:at], *log[at + 1 :], log[at]]
    list(notifications(log))
    sent(log)
    with suppress(DriftError):
        fold(log)
    with suppress(DriftError):
        read_past(log)


def test_the_error_names_the_event_that_does_not_fit() -> None:
    log = wander(20).log
    judged = next(event for event in log if isinstance(event.data, CallJudged))
    with pytest.raises(DriftError, match=rf"Event {judged.seq} .*CallJudged") as raised:
        fold([*log[: log.index(judged) - 1], judged])
    assert (raised.value.code, raised.value.seq) == ("log-drift", judged.seq)


def test_why_a_call_is_asked_about_all_the_same_is_in_the_log() -> None:
    world = World(limits=Limits(max_auto_approved=0)).begin()
    world.take(SetPresence(user_present=True))
    world.take(Prompt(id="p", content=(Text(text="go"),)))
    world.take(world.ready())
    proposed = world.new_call("write")
    assert proposed is not None
    world.take(proposed)
    world.take(world.reply(1, 1))
    judged = CallJudged(call_id=proposed.call.id, decision=decision(Verdict.ALLOW), preview=Preview(title="t"))
    world.take(judged)
    world.take(Answer(question_id=world.state.questions[0].id, option=OptionKind.ALLOW_ONCE))
    world.take(CallStarted(call_id=proposed.call.id))
    world.take(CallFinished(call_id=proposed.call.id, result=result_text(Outcome.OK, "done")))
    told = shown(world.told())
    assert shown(list(notifications(stored(world.log)))) == told
    (asked,) = [one for one in told if isinstance(one, QuestionAsked)]
    assert asked.question.decision is not None
    assert asked.question.decision.reasons[0].rule == "auto-approval-limit"


def test_a_long_turn_is_taken_up_from_the_last_state_that_the_log_holds() -> None:
    world = World(limits=Limits(max_repeats=10**6)).begin()
    world.take(Prompt(id="p", content=(Text(text="go"),)))
    for step in range(1, 2 * STEPS_BETWEEN_STATES + 3):
        world.take(world.ready())
        proposed = world.new_call("look")
        assert proposed is not None
        world.take(proposed)
        world.take(world.reply(step, 1))
        world.take(CallJudged(call_id=proposed.call.id, decision=decision(Verdict.ALLOW), preview=Preview(title="t")))
        world.take(CallStarted(call_id=proposed.call.id))
        world.take(CallFinished(call_id=proposed.call.id, result=result_text(Outcome.OK, f"{step}")))
    log = stored(world.log)
    held = [index for index, event in enumerate(log) if isinstance(event.data, StateSealed)]
    assert len(held) == 2
    for index in held:
        assert fold(log[index:]) == world.state
    assert last_state(iter(log)) == fold(log) == world.state
    assert max(len(encode(log[index].data)) for index in held) < 4_000
    assert sent(log) == world.transcript.messages(ToolProtocol.NATIVE)
    assert shown(list(notifications(log))) == shown(world.told())
