"""The life of a call, case by case."""

from treadle.engine.explore import World, decision
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallJudged,
    CallStarted,
    ContextReady,
    Prompt,
    Resumed,
    SetMode,
    SetPresence,
)
from treadle.protocol.messages import Text
from treadle.protocol.notifications import CallStatus
from treadle.protocol.permissions import Mode, OptionKind, Verdict
from treadle.protocol.tools import Outcome, Preview, result_text


def asking_world(name: str = "run") -> tuple[World, str]:
    """A turn in which one call waits for a yes; gives its id."""
    world = World().begin()
    world.take(SetPresence(user_present=True))
    world.take(Prompt(id="p", content=(Text(text="do it"),)))
    world.take(ContextReady(step=1))
    proposed = world.new_call(name)
    assert proposed is not None
    world.take(proposed)
    world.take(world.reply(1, 1))
    call_id = proposed.call.id
    world.take(judged(call_id, Verdict.REQUIRE_USER_CONFIRMATION))
    assert status_of(world) is CallStatus.ASKING
    return world, call_id


def judged(call_id: str, verdict: Verdict) -> CallJudged:
    return CallJudged(call_id=call_id, decision=decision(verdict), preview=Preview(title="t"))


def answer(world: World, option: OptionKind, **given: object) -> None:
    world.take(Answer(question_id=world.state.questions[0].id, option=option, **given))  # type: ignore[arg-type]


def status_of(world: World) -> CallStatus:
    return world.state.calls[0].status


def result_of(world: World) -> tuple[Outcome, str]:
    result = world.state.calls[0].result
    assert result is not None
    return result.outcome, "".join(block.text for block in result.content if isinstance(block, Text))


def test_a_denied_call_becomes_an_error_result() -> None:
    world, _ = asking_world()
    answer(world, OptionKind.REJECT_ONCE, text="not now")
    assert result_of(world) == (Outcome.REJECTED, "The user rejected this call and said: not now")


def test_an_amended_call_is_judged_anew_and_runs_without_a_second_question() -> None:
    world, call_id = asking_world()
    answer(world, OptionKind.ALLOW_ONCE, arguments={"n": "mine"})
    assert status_of(world) is CallStatus.JUDGING
    world.take(judged(call_id, Verdict.REQUIRE_USER_CONFIRMATION))
    assert status_of(world) is CallStatus.STARTING
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=result_text(Outcome.OK, "done")))
    outcome, text = result_of(world)
    assert outcome is Outcome.OK
    assert text == (
        'The user changed this call before approving it. It was run with these arguments instead: {"n":"mine"}done'
    )


def test_a_comment_on_an_amended_call_is_passed_on() -> None:
    world, _ = asking_world()
    answer(world, OptionKind.ALLOW_ONCE, text="shorter", arguments={"n": "mine"})
    assert world.state.notes == ("While approving run the user said: shorter",)


def test_what_the_policy_denies_stays_denied_when_the_user_amends_a_call_into_it() -> None:
    world, call_id = asking_world()
    answer(world, OptionKind.ALLOW_ONCE, arguments={"n": "worse"})
    world.take(judged(call_id, Verdict.DENY))
    assert result_of(world)[0] is Outcome.DENIED


def test_allowing_for_the_session_lets_the_same_digest_run_again_unasked() -> None:
    world, call_id = asking_world()
    answer(world, OptionKind.ALLOW_ALWAYS)
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=result_text(Outcome.OK, "done")))
    world.take(ContextReady(step=2))
    proposed = world.new_call("run")
    assert proposed is not None
    world.take(proposed)
    world.take(world.reply(2, 1))
    world.take(judged(proposed.call.id, Verdict.REQUIRE_USER_CONFIRMATION))
    assert status_of(world) is CallStatus.STARTING


def test_a_call_that_would_be_asked_is_denied_when_nobody_is_there_and_counted() -> None:
    world, _ = asking_world()
    world.take(SetPresence(user_present=False))
    outcome, text = result_of(world)
    assert outcome is Outcome.DENIED
    assert text.startswith("Denied [no-user]")
    assert world.state.turn is not None
    assert world.state.turn.denied == 1


def test_a_call_that_waited_for_a_yes_is_judged_anew_when_the_session_is_resumed_without_a_user() -> None:
    world, call_id = asking_world()
    world.take(SetMode(mode=Mode.FULL))
    world.take(Resumed(user_present=False))
    assert status_of(world) is CallStatus.JUDGING
    assert world.state.questions == ()
    world.take(judged(call_id, Verdict.ALLOW))
    assert status_of(world) is CallStatus.STARTING
