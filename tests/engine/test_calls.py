"""The life of a call, case by case."""

from typing import Any

import pytest

from tests.engine.exploring import IN_PART, MADE, OUTPUTS, UNSHOWN, World, decision
from tests.engine.world import check_messages, notes_of
from treadle.engine.core.machine_effects import Notify, Remember, RunTool
from treadle.engine.core.state import phase, replace, standing
from treadle.engine.core.texts import NO_RIGHT_IN_PLAN, OLDER_IN_PLAN, RIGHT_REFUSED
from treadle.engine.runtime.model_requests import cost
from treadle.engine.runtime.reply_reader import ReplyPiece, ReplyReader
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    Interrupt,
    Prompt,
    ReplyFailed,
    Resumed,
    RevokeAllowance,
    SetMode,
    SetPresence,
    Shortened,
)
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Enclosure, EnclosureKind, Text, Thinking
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelSpec,
    Prices,
    ReplyStop,
    Searches,
    StreamCallDone,
    StreamCallStart,
    StreamThinking,
    StreamThinkingDone,
    ToolProtocol,
)
from treadle.protocol.notifications import CallStatus, Notice, Phase, TurnEnded
from treadle.protocol.permissions import Allowance, AllowScope, Decision, Mode, OptionKind, Standing, Verdict
from treadle.protocol.tools import (
    CallResult,
    Confinement,
    CopyChanges,
    CopyFate,
    FileChange,
    Origin,
    Outcome,
    OutputFolder,
    Preview,
    Right,
    Rights,
    Risk,
    SandboxDenial,
    result_text,
)
from treadle.protocol.usage import Usage

OFFER = Allowance(id="always: make", tool="run", argv=("make",))


def turn_with(*names: str, limits: Limits | None = None, user_present: bool = True) -> World:
    """A turn whose first reply makes these calls."""
    world = World(limits=limits or Limits()).begin()
    world.take(SetPresence(user_present=user_present))
    world.take(Prompt(id="p", content=(Text(text="do it"),)))
    world.take(world.ready(""))
    for name in names:
        proposed = world.new_call(name)
        assert proposed is not None
        world.take(proposed)
    world.take(world.reply(1, 1))
    return world


def asking_world(name: str = "run", offers: tuple[Allowance, ...] = ()) -> tuple[World, str]:
    """A turn in which one call waits for a yes; gives its id."""
    world = turn_with(name)
    call_id = world.state.calls[0].call.id
    world.take(judged(call_id, Verdict.REQUIRE_USER_CONFIRMATION, offers))
    assert status_of(world) is CallStatus.ASKING
    return world, call_id


def judged(call_id: str, verdict: Verdict, offers: tuple[Allowance, ...] = ()) -> CallJudged:
    decided = replace(decision(verdict), offers=offers)
    return CallJudged(call_id=call_id, decision=decided, preview=Preview(title="t"))


def answer(world: World, option: OptionKind, **given: object) -> None:
    world.take(Answer(question_id=world.state.questions[0].id, option=option, **given))  # type: ignore[arg-type]


def notices(world: World) -> list[Notice]:
    said = (one.notification for one in world.effects if isinstance(one, Notify))
    return [one for one in said if isinstance(one, Notice)]


def status_of(world: World) -> CallStatus:
    return world.state.calls[0].status


def result_of(world: World) -> tuple[Outcome, str]:
    result = world.results()[0]
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
        'The user changed this call before approving it. It ran with these arguments instead: {"n":"mine"}done'
    )


def test_a_comment_on_an_amended_call_is_passed_on() -> None:
    world, _ = asking_world()
    answer(world, OptionKind.ALLOW_ONCE, text="shorter", arguments={"n": "mine"})
    assert notes_of(world) == ("While approving run the user said: shorter",)


def test_what_the_policy_denies_stays_denied_when_the_user_amends_a_call_into_it() -> None:
    world, call_id = asking_world()
    answer(world, OptionKind.ALLOW_ONCE, arguments={"n": "worse"})
    world.take(judged(call_id, Verdict.DENY))
    assert result_of(world)[0] is Outcome.DENIED


def test_what_is_allowed_for_the_session_stands_for_every_later_decision_until_it_is_revoked() -> None:
    world, call_id = asking_world(offers=(OFFER,))
    answer(world, OptionKind.ALLOW_ALWAYS)
    assert status_of(world) is CallStatus.STARTING
    assert standing(world.state) == Standing(mode=Mode.ASK, allowances=(OFFER,))
    assert not [effect for effect in world.effects if isinstance(effect, Remember)]
    world.take(CallStarted(call_id=call_id))
    world.take(RevokeAllowance(allowance_id=OFFER.id))
    assert standing(world.state) == Standing(mode=Mode.ASK)
    with pytest.raises(RefusedError):
        world.take(RevokeAllowance(allowance_id=OFFER.id))


def test_an_allowance_for_every_session_is_remembered_among_the_users_rules() -> None:
    world, _ = asking_world(offers=(OFFER,))
    answer(world, OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER)
    assert [effect for effect in world.effects if isinstance(effect, Remember)] == [Remember(allowances=(OFFER,))]


def test_always_cannot_be_answered_where_no_rule_is_narrow_enough() -> None:
    world, _ = asking_world()
    with pytest.raises(RefusedError):
        answer(world, OptionKind.ALLOW_ALWAYS)


def test_other_calls_that_wait_are_judged_anew_by_what_was_just_allowed() -> None:
    world = turn_with("look", "look")
    first, second = (call.call.id for call in world.state.calls)
    world.take(judged(first, Verdict.REQUIRE_USER_CONFIRMATION, offers=(OFFER,)))
    world.take(judged(second, Verdict.REQUIRE_USER_CONFIRMATION, offers=(OFFER,)))
    answer(world, OptionKind.ALLOW_ALWAYS)
    assert [call.status for call in world.state.calls] == [CallStatus.STARTING, CallStatus.JUDGING]
    assert world.state.questions == ()
    world.take(judged(second, Verdict.ALLOW))
    assert [call.status for call in world.state.calls] == [CallStatus.STARTING, CallStatus.STARTING]


def test_after_so_many_automatic_approvals_in_a_row_the_next_is_asked() -> None:
    world = turn_with("write", "write", limits=Limits(max_auto_approved=1))
    first, second = (call.call.id for call in world.state.calls)
    world.take(judged(first, Verdict.ALLOW))
    world.take(CallStarted(call_id=first))
    world.take(CallFinished(call_id=first, result=result_text(Outcome.OK, "done")))
    world.take(judged(second, Verdict.ALLOW))
    assert world.state.calls[1].status is CallStatus.ASKING
    decided = world.state.questions[0].decision
    assert decided is not None
    assert decided.reasons[0].rule == "auto-approval-limit"
    answer(world, OptionKind.ALLOW_ONCE)
    assert world.state.guard.auto_approved == 0


def test_text_from_outside_taints_the_rest_of_the_turn_and_only_that() -> None:
    world = turn_with("look")
    call_id = world.state.calls[0].call.id
    world.take(judged(call_id, Verdict.ALLOW))
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=CallResult(outcome=Outcome.OK, origin=Origin.WEB)))
    assert standing(world.state).tainted
    world.take(world.ready(""))
    world.take(world.reply(2, 1))
    assert world.state.turn is None
    assert not standing(world.state).tainted


def test_a_page_that_goes_along_with_a_prompt_taints_its_turn_and_only_that() -> None:
    world = World(limits=Limits()).begin()
    page = Enclosure(kind=EnclosureKind.PAGE, origin="https://a.test/x", content=(Text(text="page"),))
    world.take(Prompt(id="p", content=(Text(text="do it"),), enclosed=(page,)))
    assert (standing(world.state).tainted, standing(world.state).fetched) == (True, ("https://a.test/x",))
    world.take(world.ready(""))
    world.take(world.reply(1, 1))
    assert not standing(world.state).tainted
    file = Enclosure(kind=EnclosureKind.FILE, origin="a.py", content=(Text(text="file"),))
    world.take(Prompt(id="q", content=(Text(text="do it"),), enclosed=(file,)))
    assert not standing(world.state).tainted


def test_a_search_of_the_provider_taints_the_turn_too() -> None:
    world = turn_with("look")
    assert not standing(world.state).tainted
    call_id = world.state.calls[0].call.id
    world.take(judged(call_id, Verdict.ALLOW))
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=CallResult(outcome=Outcome.OK)))
    world.take(world.ready(""))
    reply = world.reply(2, 1, stop=ReplyStop.MAX_TOKENS)
    found = Thinking(text="Searched the web: x", searched=True)
    world.take(replace(reply, message=replace(reply.message, content=(found, *reply.message.content))))
    assert standing(world.state).tainted


def test_a_search_taints_the_calls_behind_it_before_the_reply_is_whole() -> None:
    reader = ReplyReader({}, ToolProtocol.NATIVE, step=1, attempt=1)
    pieces: list[ReplyPiece] = [StreamCallStart(index=0, name="a"), StreamCallDone(index=0)]
    pieces += [StreamThinking(text="Searched the web: x"), StreamThinkingDone(searched=True)]
    pieces += [StreamCallStart(index=1, name="b"), StreamCallDone(index=1)]
    found = [one for piece in pieces for one in reader.feed(piece) if isinstance(one, CallProposed)]
    assert [one.outside for one in found] == [False, True]
    world = World(limits=Limits()).begin()
    world.take(Prompt(id="p", content=(Text(text="do it"),)))
    world.take(world.ready(""))
    world.take(found[0])
    assert not standing(world.state).tainted
    world.take(found[1])
    assert standing(world.state).tainted


def test_searches_are_priced_and_without_a_price_the_cost_is_openly_unknown() -> None:
    spec = ModelSpec(
        provider="p", name="m", prices=Prices(input=1.0, output=2.0), searches=Searches(price=10.0, most=5)
    )
    used = Usage(input_tokens=1_000_000, searches=3)
    assert cost(spec, used) == pytest.approx(1.03)
    assert cost(replace(spec, searches=Searches()), used) is None
    assert cost(replace(spec, searches=None), used) is None
    assert cost(replace(spec, searches=None), replace(used, searches=0)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("outcome", "tainted"),
    [(Outcome.OK, True), (Outcome.FAILED, True), (Outcome.INTERRUPTED, True), (Outcome.REJECTED, False)],
)
def test_a_command_that_brings_text_from_outside_taints_the_turn_once_it_ran(outcome: Outcome, tainted: bool) -> None:
    world = turn_with("run")
    call_id = world.state.calls[0].call.id
    decision = Decision(verdict=Verdict.ALLOW, risk=Risk.REMOTE, digest="d", outside=True)
    world.take(replace(judged(call_id, Verdict.ALLOW), decision=decision))
    assert not standing(world.state).tainted
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=CallResult(outcome=outcome, origin=Origin.COMMAND)))
    assert (standing(world.state).tainted, standing(world.state).fetched) == (tainted, ())


def test_a_denied_command_that_would_bring_text_from_outside_taints_nothing() -> None:
    world = turn_with("run")
    decision = Decision(verdict=Verdict.DENY, risk=Risk.REMOTE, outside=True)
    world.take(replace(judged(world.state.calls[0].call.id, Verdict.DENY), decision=decision))
    assert not standing(world.state).tainted


DENIAL = SandboxDenial(right=Right.NETWORK, target="example.org", text="cannot resolve example.org")
STOPPED = CallResult(outcome=Outcome.FAILED, content=(Text(text="no network"),), denial=DENIAL)


def stopped_world(
    *, user_present: bool = True, mode: Mode = Mode.ASK, right: Right = DENIAL.right
) -> tuple[World, str]:
    """A turn whose command was stopped by the sandbox; gives the call's id."""
    world = turn_with("run", user_present=user_present)
    world.take(SetMode(mode=mode))
    call_id = world.state.calls[0].call.id
    world.take(judged(call_id, Verdict.ALLOW))
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=replace(STOPPED, denial=replace(DENIAL, right=right))))
    return world, call_id


@pytest.mark.parametrize("right", Right)
def test_plan_mode_gives_no_right_and_asks_about_none(right: Right) -> None:
    world, _ = stopped_world(mode=Mode.PLAN, right=right)
    assert world.state.questions == ()
    assert result_of(world) == (Outcome.FAILED, f"no network\n{NO_RIGHT_IN_PLAN}")
    assert len(runs_of(world)) == 1


@pytest.mark.parametrize("right", Right)
def test_a_yes_after_plan_mode_was_chosen_gives_no_right(right: Right) -> None:
    world, _ = stopped_world(right=right)
    world.take(SetMode(mode=Mode.PLAN))
    answer(world, OptionKind.ALLOW_ONCE)
    assert result_of(world) == (Outcome.FAILED, f"no network\n{NO_RIGHT_IN_PLAN}")
    assert len(runs_of(world)) == 1


@pytest.mark.parametrize("option", [OptionKind.ALLOW_ONCE, OptionKind.RUN_FOR_REAL])
def test_a_yes_to_changes_after_plan_mode_was_chosen_discards_them(option: OptionKind) -> None:
    world, _ = copied_world()
    world.take(SetMode(mode=Mode.PLAN))
    answer(world, option)
    assert "as commands do in plan mode. Changes that were discarded: /made (added)" in result_of(world)[1]
    assert len(runs_of(world)) == 1


@pytest.mark.parametrize("option", [OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS])
@pytest.mark.parametrize("verdict", Verdict)
def test_a_yes_to_a_question_from_before_plan_mode_has_the_call_judged_anew(
    option: OptionKind, verdict: Verdict
) -> None:
    world, call_id = asking_world(offers=(Allowance(id="a", tool="run"),))
    world.take(SetMode(mode=Mode.PLAN))
    assert [one.text for one in notices(world)] == [OLDER_IN_PLAN]
    answer(world, option)
    assert (status_of(world), runs_of(world)) == (CallStatus.JUDGING, [])
    world.take(judged(call_id, verdict))
    assert len(runs_of(world)) == (verdict is Verdict.ALLOW)
    if verdict is Verdict.DENY:
        assert result_of(world)[0] is Outcome.DENIED
    if verdict is Verdict.REQUIRE_USER_CONFIRMATION:
        assert world.state.questions[0].text == "t; approving lets it run in plan mode"
        answer(world, OptionKind.ALLOW_ONCE)
        assert len(runs_of(world)) == 1


def test_a_log_from_before_that_carried_an_older_yes_out_goes_on() -> None:
    world, call_id = asking_world()
    world.take(SetMode(mode=Mode.PLAN))
    answer(world, OptionKind.ALLOW_ONCE)
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=result_text(Outcome.OK, "ran")))
    assert result_of(world) == (Outcome.OK, "ran")


def test_after_plan_mode_was_left_again_a_yes_is_carried_out_as_it_was_asked() -> None:
    world, _ = asking_world()
    world.take(SetMode(mode=Mode.PLAN))
    world.take(SetMode(mode=Mode.ASK))
    answer(world, OptionKind.ALLOW_ONCE)
    assert len(runs_of(world)) == 1


def test_plan_mode_tells_of_older_questions_only_where_there_are_some() -> None:
    world = turn_with("run")
    world.take(SetMode(mode=Mode.PLAN))
    world.take(judged(world.state.calls[0].call.id, Verdict.REQUIRE_USER_CONFIRMATION))
    world.take(SetMode(mode=Mode.PLAN))
    assert notices(world) == []
    answer(world, OptionKind.ALLOW_ONCE)
    assert len(runs_of(world)) == 1


def test_a_right_that_the_sandbox_refused_is_asked_for_and_counts_for_one_run() -> None:
    world, call_id = stopped_world()
    question = world.state.questions[0]
    assert (question.denial, question.options) == (DENIAL, (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE))
    answer(world, OptionKind.ALLOW_ONCE)
    runs = [effect for effect in world.effects if isinstance(effect, RunTool)]
    assert [(run.call.id, run.digest, run.rights) for run in runs] == [
        (call_id, "d", Rights(confinement=Confinement.LOOK)),
        (call_id, "d", Rights(confinement=Confinement.WORK, granted=(DENIAL,))),
    ]
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=STOPPED))
    assert result_of(world) == (Outcome.FAILED, "no network")
    assert world.state.questions == ()


def test_a_refused_right_leaves_the_first_result_and_says_so() -> None:
    world, _ = stopped_world()
    answer(world, OptionKind.REJECT_ONCE)
    assert result_of(world) == (Outcome.FAILED, f"no network\n{RIGHT_REFUSED}")


def test_nobody_there_means_no_right_beyond_the_sandbox() -> None:
    world, _ = stopped_world(user_present=False)
    assert result_of(world) == (Outcome.FAILED, "no network")
    asked, _ = stopped_world()
    asked.take(SetPresence(user_present=False))
    assert result_of(asked) == (Outcome.FAILED, "no network")
    resumed, _ = stopped_world()
    resumed.take(Resumed(user_present=False))
    assert result_of(resumed) == (Outcome.FAILED, "no network")
    interrupted, _ = stopped_world()
    interrupted.take(Interrupt())
    assert result_of(interrupted) == (Outcome.FAILED, "no network")


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


def test_a_conversation_that_stays_too_long_whatever_left_says_what_fills_it() -> None:
    world = World(limits=Limits()).begin()
    world.take(Prompt(id="p", content=(Text(text="do it"),)))
    world.take(world.ready(""))
    too_long = ModelError(kind=ErrorKind.CONTEXT_TOO_LONG, message="The model says: too long.")
    largest = "the result of read_file (about 90,000 tokens)"
    for attempt in range(1, 4):
        world.take(ReplyFailed(step=1, attempt=attempt, error=too_long))
        shorter = Shortened(call_id="c", content=(Text(text="x" * attempt),))
        world.take(Compacted(step=1, dropped=0, largest=largest, shortened=(shorter,)))
    ended = [
        effect.notification.outcome
        for effect in world.take(ReplyFailed(step=1, attempt=4, error=too_long))
        if isinstance(effect, Notify) and isinstance(effect.notification, TurnEnded)
    ]
    (outcome,) = ended
    assert outcome.error is not None
    assert outcome.error.message == (
        f"The model says: too long. Making room did not help. The largest parts of it: {largest}."
    )
    assert phase(world.state) is Phase.WAITING_FOR_EVENT


def test_a_call_that_is_read_while_the_turn_is_cancelled_has_a_result_in_the_history() -> None:
    world = World(limits=Limits()).begin()
    world.take(Prompt(id="p", content=(Text(text="do it"),)))
    world.take(world.ready(""))
    world.take(Interrupt())
    proposed = world.new_call("look")
    assert proposed is not None
    world.take(proposed)
    world.take(world.reply(1, 1))
    world.take(Prompt(id="q", content=(Text(text="go on"),)))
    world.take(world.ready(""))
    check_messages(world.transcript.messages(ToolProtocol.NATIVE))


IN_A_COPY = replace(result_text(Outcome.OK, "done"), copy=MADE)


def copied_world(
    *, user_present: bool = True, mode: Mode = Mode.ASK, result: CallResult = IN_A_COPY
) -> tuple[World, str]:
    """A turn whose command changed something in its throw-away copy; gives the call's id."""
    world = turn_with("run", user_present=user_present)
    world.take(SetMode(mode=mode))
    call_id = world.state.calls[0].call.id
    world.take(judged(call_id, Verdict.ALLOW))
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=result))
    return world, call_id


def runs_of(world: World) -> list[RunTool]:
    return [effect for effect in world.effects if isinstance(effect, RunTool)]


def test_changes_in_a_copy_are_asked_about_and_a_yes_applies_exactly_them() -> None:
    world, call_id = copied_world()
    question = world.state.questions[0]
    assert question.copy == MADE
    assert question.options == (OptionKind.ALLOW_ONCE, OptionKind.RUN_FOR_REAL, OptionKind.REJECT_ONCE)
    answer(world, OptionKind.ALLOW_ONCE)
    assert [run.keep for run in runs_of(world)] == ["", MADE.digest]
    world.take(CallStarted(call_id=call_id))
    change = FileChange(path="/made", before="", after="x")
    world.take(CallFinished(call_id=call_id, result=CallResult(outcome=Outcome.OK, changes=(change,))))
    kept = "done\n[The user kept its changes. They are in the workspace now: /made (added).]"
    assert result_of(world) == (Outcome.OK, kept)
    assert world.state.changed == (change,)
    assert world.state.questions == ()


def finish_keeping(world: World, call_id: str, result: CallResult) -> None:
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=result))


def left_in_copy(copy: CopyChanges, outcome: Outcome = Outcome.OK, **about: Any) -> tuple[World, str]:
    """A turn whose command left this in its copy."""
    return copied_world(result=replace(IN_A_COPY, outcome=outcome, copy=copy), **about)


def test_a_command_that_failed_is_not_called_a_success_for_its_changes_being_kept() -> None:
    world, call_id = left_in_copy(MADE, Outcome.FAILED)
    answer(world, OptionKind.ALLOW_ONCE)
    finish_keeping(world, call_id, CallResult(outcome=Outcome.OK))
    assert result_of(world)[0] is Outcome.FAILED
    call = world.state.calls[0]
    assert call.result is not None
    assert call.result.copy == replace(MADE, fate=CopyFate.KEPT)


def test_what_could_not_be_applied_is_not_called_kept() -> None:
    world, call_id = left_in_copy(MADE)
    answer(world, OptionKind.ALLOW_ONCE)
    finish_keeping(world, call_id, result_text(Outcome.FAILED, "Nothing was applied: 'x' was changed."))
    outcome, text = result_of(world)
    assert outcome is Outcome.FAILED
    assert text == "done\n[Nothing was applied: 'x' was changed. The user wanted to keep: /made (added).]"


def test_what_needed_no_yes_and_could_not_be_applied_is_not_called_a_wish_of_the_user() -> None:
    world, call_id = left_in_copy(CopyChanges(digest="o", outputs=(OutputFolder(path="/dist", files=3),)))
    finish_keeping(world, call_id, result_text(Outcome.FAILED, "The disk is full."))
    assert result_of(world)[1] == "done\n[The disk is full. Not kept: files that git ignores: /dist (3 files).]"


def test_changes_that_cannot_be_applied_whole_are_only_made_for_real_with_what_that_needs() -> None:
    world, _ = left_in_copy(IN_PART)
    question = world.state.questions[0]
    assert question.options == (OptionKind.RUN_FOR_REAL, OptionKind.REJECT_ONCE)
    assert question.yes is OptionKind.RUN_FOR_REAL
    with pytest.raises(RefusedError):
        answer(world, OptionKind.ALLOW_ONCE)
    answer(world, OptionKind.RUN_FOR_REAL)
    assert [run.rights for run in runs_of(world)][1:] == [Rights(confinement=Confinement.GIT)]


def test_what_no_view_can_show_takes_a_second_yes() -> None:
    world, _ = left_in_copy(UNSHOWN)
    answer(world, OptionKind.ALLOW_ONCE)
    assert len(runs_of(world)) == 1
    assert world.state.questions[0].more
    answer(world, OptionKind.ALLOW_ONCE)
    assert [run.keep for run in runs_of(world)] == ["", MADE.digest]


@pytest.mark.parametrize("user_present", [True, False])
def test_what_git_ignores_is_kept_without_a_question_and_said(*, user_present: bool) -> None:
    world, call_id = left_in_copy(OUTPUTS, user_present=user_present)
    assert world.state.questions == ()
    assert [run.keep for run in runs_of(world)] == ["", OUTPUTS.digest]
    finish_keeping(world, call_id, CallResult(outcome=Outcome.OK))
    kept = "[It ran in a throw-away copy. Kept: files that git ignores: /build (2 files).]"
    assert result_of(world) == (Outcome.OK, f"done\n{kept}")


def test_in_plan_mode_not_even_outputs_are_kept() -> None:
    world, _ = left_in_copy(OUTPUTS, mode=Mode.PLAN)
    assert len(runs_of(world)) == 1
    assert "discarded: files that git ignores: /build (2 files)" in result_of(world)[1]


@pytest.mark.parametrize("began", [True, False])
def test_a_program_that_stops_while_changes_are_applied_does_not_guess(*, began: bool) -> None:
    world, call_id = left_in_copy(MADE)
    answer(world, OptionKind.ALLOW_ONCE)
    if began:
        world.take(CallStarted(call_id=call_id))
    world.take(Resumed(user_present=True))
    outcome, text = result_of(world)
    assert ("Either all of them are in the workspace, or none is" in text) is began
    assert ("Changes that were discarded: /made (added)" in text) is not began
    assert outcome is (Outcome.UNKNOWN if began else Outcome.OK)


def test_a_no_discards_the_changes_and_the_model_hears_what_was_said() -> None:
    world, _ = copied_world()
    answer(world, OptionKind.REJECT_ONCE, text="not there")
    outcome, text = result_of(world)
    assert outcome is Outcome.OK
    assert "The user did not keep its changes and said: not there." in text
    assert "discarded: /made (added)" in text
    assert len(runs_of(world)) == 1


def test_run_for_real_runs_once_more_in_the_workspace_itself() -> None:
    world, call_id = copied_world()
    answer(world, OptionKind.RUN_FOR_REAL)
    assert [run.rights for run in runs_of(world)] == [
        Rights(confinement=Confinement.LOOK),
        Rights(confinement=Confinement.WORK),
    ]
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=result_text(Outcome.OK, "for real")))
    assert result_of(world) == (Outcome.OK, "for real")


@pytest.mark.parametrize(("mode", "denied"), [(Mode.ASK, 1), (Mode.PLAN, 0)])
def test_with_nobody_there_changes_are_discarded_and_count_as_work_not_done(mode: Mode, denied: int) -> None:
    world, _ = copied_world(user_present=False, mode=mode)
    assert world.state.questions == ()
    assert "discarded: /made (added)" in result_of(world)[1]
    assert world.state.turn is not None
    assert world.state.turn.denied == denied


def test_plan_mode_discards_without_asking() -> None:
    world, _ = copied_world(mode=Mode.PLAN)
    assert world.state.questions == ()
    assert "In plan mode" not in result_of(world)[1]
    assert "as commands do in plan mode" in result_of(world)[1]


def test_what_git_ignores_is_nothing_to_ask_about() -> None:
    world = turn_with("run")
    call_id = world.state.calls[0].call.id
    world.take(judged(call_id, Verdict.ALLOW))
    world.take(CallStarted(call_id=call_id))
    world.take(CallFinished(call_id=call_id, result=replace(IN_A_COPY, copy=CopyChanges(ignored=3))))
    assert world.state.questions == ()
    assert result_of(world) == (Outcome.OK, "done")


def test_an_interrupt_before_the_answer_discards_and_says_so() -> None:
    world, _ = copied_world()
    world.take(Interrupt())
    assert "was interrupted before its changes were kept" in result_of(world)[1]


def test_changes_that_were_being_applied_are_taken_up_again_after_a_restart() -> None:
    world, call_id = copied_world()
    answer(world, OptionKind.ALLOW_ONCE)
    world.take(CallStarted(call_id=call_id))
    world.take(Resumed(user_present=True))
    assert runs_of(world)[-1].keep == MADE.digest


@pytest.mark.parametrize("present", [True, False])
def test_a_question_about_changes_ends_with_the_program_that_has_them(present: bool) -> None:
    world, _ = copied_world()
    world.take(Resumed(user_present=present))
    assert world.state.questions == ()
    assert "discarded: /made" in result_of(world)[1]


@pytest.mark.parametrize("moment", ["before it is judged", "after it was judged", "while it runs"])
@pytest.mark.parametrize("mode", Mode)
def test_a_change_of_the_mode_changes_nothing_of_what_a_judged_call_runs_in(mode: Mode, moment: str) -> None:
    world = turn_with("run")
    call_id = world.state.calls[0].call.id
    if moment == "before it is judged":
        world.take(SetMode(mode=mode))
    world.take(judged(call_id, Verdict.ALLOW))
    if moment == "after it was judged":
        world.take(SetMode(mode=mode))
    world.take(CallStarted(call_id=call_id))
    if moment == "while it runs":
        world.take(SetMode(mode=mode))
    assert [run.rights for run in runs_of(world)] == [Rights(confinement=Confinement.LOOK)]
