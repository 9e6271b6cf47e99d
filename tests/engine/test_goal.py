"""A goal: checked when a turn ends, worked on until it is met, given up with the reason, and kept over restarts."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.test_checkpointing import KeptFiles
from tests.engine.test_hooks import Said, wary
from tests.engine.test_runtime import DONE, PATIENCE, Replies, Run, working
from tests.fakes.engine import STARTED, USAGE, FakeLog, FakeTool, calls, ports
from treadle.context.notified import notifications
from treadle.engine.core.goal import is_due
from treadle.engine.core.past_history import read_past
from treadle.engine.core.state import State
from treadle.engine.core.texts import NOT_RUN
from treadle.engine.ports import HookDecision, HookWord, Output, Ports
from treadle.engine.runtime.track import Track
from treadle.protocol.checkpoints import Restore
from treadle.protocol.children import ChildEnded, ChildOutcome, ChildStarted
from treadle.protocol.errors import ToolError
from treadle.protocol.events import (
    Answer,
    CompactNow,
    Interrupt,
    Prompt,
    Resumed,
    SetLimits,
    SetMode,
    SetPresence,
    Source,
)
from treadle.protocol.goals import GoalChecked, GoalJudge, GoalState, GoalStatus, SetGoal
from treadle.protocol.limits import Budget, Limits
from treadle.protocol.messages import Text, text_of
from treadle.protocol.models import ReplyStop, StreamEvent, StreamStop, StreamText
from treadle.protocol.notifications import ContextCompacted, FilesRestored, GoalChanged, TurnEnded, TurnStop
from treadle.protocol.permissions import Decision, Mode, OptionKind, Verdict
from treadle.protocol.sealed import OF_GOAL, SideAnswered, SideAsked
from treadle.protocol.tools import CallResult, Outcome, Right, Risk, SandboxDenial, result_text

TESTS_PASS = SetGoal(condition="all tests pass", check="make test")
JUDGED = SetGoal(condition="the answer is polite")
ALONE = (STARTED, SetPresence(user_present=False))
AT_IT = (STARTED, SetPresence(user_present=True))


def says(text: str) -> list[StreamEvent]:
    return [StreamText(text=text), StreamStop(reason=ReplyStop.END_TURN, usage=USAGE)]


ENDED = ChildEnded(session_id="c", outcome=ChildOutcome.DONE)
WOKEN = Prompt(id="w", content=(Text(text="it found this"),))
OF_CHILD = Source(kind="subagent", id="c")


class Check:
    """The command: gives one result after the other, the last one from then on."""

    def __init__(self, *results: CallResult) -> None:
        self.results = results
        self.runs = 0

    async def __call__(self, output: Output) -> CallResult:
        self.runs += 1
        return self.results[min(self.runs, len(self.results)) - 1]


def fails(text: str) -> CallResult:
    return result_text(Outcome.FAILED, f"Exit status 2.\n{text}")


PASSES = result_text(Outcome.OK, "Exit status 0.\n3 passed")


def command(work: Any) -> FakeTool:
    return FakeTool("execute_command", work)


async def stands(run: Run, *states: GoalState) -> State:
    """Wait until the goal stands so, and no check goes on."""
    async with asyncio.timeout(PATIENCE):
        while (goal := run.session.state.goal) is None or goal.stands not in states or run.session.state.turn:
            await asyncio.sleep(0.001)
    return run.session.state


def checks(log: FakeLog) -> list[tuple[bool, GoalJudge | None, str, bool]]:
    found = [event.data for event in log.events if isinstance(event.data, GoalChecked)]
    return [(one.met, one.by, one.reason, one.blocked) for one in found]


async def worked(made: Ports, log: FakeLog, goal: SetGoal, first: Sequence[Any] = ALONE) -> State:
    """Let the session work on a goal until it stands; what surfaces are told is what the log says."""
    async with working(made, log, *first) as run:
        await run.session.post(goal)
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        state = await stands(run, GoalState.MET, GoalState.BLOCKED)
        told = [one for one in run.feed.taken() if isinstance(one, GoalChanged)]
    assert told == [one for one in notifications(log.events) if isinstance(one, GoalChanged)]
    assert read_past(log.events).state == state
    return state


async def test_a_session_works_on_until_the_command_says_that_the_goal_is_met() -> None:
    log, check, provider = FakeLog(), Check(fails("2 failed"), fails("1 failed"), PASSES), Replies(DONE)
    state = await worked(ports(provider, command(check), log=log), log, TESTS_PASS)
    assert state.goal is not None
    assert (state.goal.stands, state.turns, check.runs) == (GoalState.MET, 3, 3)
    assert checks(log) == [
        (False, GoalJudge.COMMAND, "Exit status 2.\n2 failed", False),
        (False, GoalJudge.COMMAND, "Exit status 2.\n1 failed", False),
        (True, GoalJudge.COMMAND, "Exit status 0.\n3 passed", False),
    ]
    first, second = (text_of(request.messages[-1].content) for request in provider.requests[:2])
    assert "The user has set a goal for this session: all tests pass" in first
    assert "The goal is not met yet: all tests pass\nIts check `make test` failed:\nExit status 2.\n2 failed" in second
    assert "It is from the check of the goal that the user has set." in second


NO_GIT = SandboxDenial(right=Right.WRITE, target="/w/.git", text="/w/.git is held")


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        (
            ToolError("The command was not started: there is no sandbox."),
            "The command was not started: there is no sandbox",
        ),
        (ValueError("x"), "execute_command failed inside Treadle: ValueError: x. Try another way"),
        (replace(result_text(Outcome.FAILED, f"{NOT_RUN}{NO_GIT.text}"), denial=NO_GIT), NO_GIT.text),
    ],
    ids=["not-started", "crashed", "refused"],
)
async def test_a_check_that_does_not_run_says_nothing_of_the_goal(ended: Exception | CallResult, why: str) -> None:
    async def work(output: Output) -> CallResult:
        if isinstance(ended, Exception):
            raise ended
        return ended

    log = FakeLog()
    state = await worked(ports(Replies(DONE), command(work), log=log), log, TESTS_PASS)
    assert (state.goal and state.goal.stands, state.turns) == (GoalState.BLOCKED, 1)
    way_on = "Change that, or give another check; /goal resume checks again."
    assert checks(log) == [(False, GoalJudge.COMMAND, f"The check did not run: {why}. {way_on}", True)]


async def test_the_same_failure_three_times_blocks_whatever_differs_from_run_to_run() -> None:
    log = FakeLog()
    check = Check(*(fails(f"1 failed in {n}.0{n}s at 0x7f{n}a in /tmp/pytest-{n}/x") for n in range(1, 9)))
    state = await worked(ports(Replies(DONE), command(check), log=log), log, TESTS_PASS)
    assert state.goal is not None
    assert (state.goal.stands, state.turns, check.runs) == (GoalState.BLOCKED, 3, 3)
    assert state.goal.reason.startswith("3 checks in a row failed in the same way: Exit status 2.\n1 failed")


async def test_the_model_judges_where_there_is_no_command_and_that_is_billed_and_marked() -> None:
    log = FakeLog()
    provider = Replies(DONE, says("NO: it does not say please"), DONE, says("Yes, it is polite now."))
    state = await worked(ports(provider, log=log), log, JUDGED)
    assert checks(log) == [
        (False, GoalJudge.MODEL, "it does not say please", False),
        (True, GoalJudge.MODEL, "it is polite now.", False),
    ]
    asides = [event.data for event in log.events if isinstance(event.data, SideAnswered)]
    assert [(one.question, one.usage) for one in asides] == [(OF_GOAL, USAGE)] * 2
    assert [event.data.question for event in log.events if isinstance(event.data, SideAsked)] == [OF_GOAL] * 2
    assert state.money.spent.tokens == 4 * (USAGE.input_tokens + USAGE.output_tokens)
    assert "Is this condition met now? the answer is polite" in text_of(provider.requests[1].messages[-1].content)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("No: it is rude.", "3 checks in a row failed in the same way: it is rude."),
        (
            "Perhaps it is.",
            "3 checks in a row failed in the same way: The model said neither yes nor no: Perhaps it is.",
        ),
    ],
)
async def test_what_the_model_says_in_the_same_way_three_times_blocks(answer: str, reason: str) -> None:
    log = FakeLog()
    state = await worked(ports(Replies(*[DONE, says(answer)] * 9), log=log), log, JUDGED)
    assert (state.goal and state.goal.stands, state.goal and state.goal.reason) == (GoalState.BLOCKED, reason)


async def test_a_check_that_the_budget_does_not_allow_blocks() -> None:
    log = FakeLog()
    limits = SetLimits(limits=Limits(session=Budget(tokens=40)))
    state = await worked(ports(Replies(DONE), log=log), log, JUDGED, (*ALONE, limits))
    assert state.goal is not None
    assert state.goal.stands is GoalState.BLOCKED


async def test_the_limit_of_steps_counts_over_all_turns_of_a_goal() -> None:
    log, check = FakeLog(), Check(*(fails(f"{n} failed") for n in range(9, 0, -1)))
    first = (*ALONE, SetLimits(limits=Limits(max_steps=3)))
    state = await worked(ports(Replies(DONE), command(check), log=log), log, TESTS_PASS, first)
    assert (state.goal and state.goal.stands, state.step) == (GoalState.BLOCKED, 3)
    assert state.goal is not None
    assert state.goal.reason.startswith("the limit of 3 steps is reached")


async def test_the_limit_of_time_counts_over_all_turns_of_a_goal() -> None:
    log, check, now = FakeLog(), Check(*(fails(f"{n} failed") for n in range(9, 0, -1))), [0]

    def clock() -> int:
        now[0] += 1_000
        return now[0]

    first = (*ALONE, SetLimits(limits=Limits(max_seconds=60)))
    state = await worked(ports(Replies(DONE), command(check), log=log, clock=clock), log, TESTS_PASS, first)
    assert state.goal is not None
    assert state.goal.reason.startswith("the limit of 60 s is reached")


async def test_a_turn_that_is_cut_ends_the_work_with_the_reason() -> None:
    log, check = FakeLog(), Check(PASSES)
    broken: list[StreamEvent] = [StreamStop(reason=ReplyStop.REFUSAL, usage=USAGE)]
    state = await worked(ports(Replies(broken), command(check), log=log), log, TESTS_PASS)
    assert (state.goal and state.goal.reason, check.runs) == ("the model refused", 0)


async def test_a_check_that_needs_a_yes_is_denied_with_the_way_on_where_nobody_is_there() -> None:
    log, check = FakeLog(), Check(PASSES)
    state = await worked(ports(Replies(DONE), command(check), log=log, judge=wary), log, TESTS_PASS)
    assert state.goal is not None
    assert (state.goal.stands, check.runs) == (GoalState.BLOCKED, 0)
    for words in ("`make test` needs a yes", "nobody was there to allow it", "/goal resume checks again"):
        assert words in state.goal.reason


async def test_a_check_that_is_denied_or_that_no_tool_can_run_blocks() -> None:
    def denied(*_: object) -> Decision:
        return Decision(verdict=Verdict.DENY, risk=Risk.EXECUTE, digest="d")

    others: tuple[dict[str, Any], ...] = ({"judge": denied}, {"tools": {}})
    for settings in others:
        log = FakeLog()
        state = await worked(ports(Replies(DONE), command(Check(PASSES)), log=log, **settings), log, TESTS_PASS)
        assert (state.goal and state.goal.stands, checks(log)[0][3]) == (GoalState.BLOCKED, True)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (OptionKind.ALLOW_ONCE, (GoalState.MET, 1)),
        (OptionKind.REJECT_ONCE, (GoalState.BLOCKED, 0)),
    ],
)
async def test_a_person_who_is_there_is_asked_about_the_check(
    option: OptionKind, expected: tuple[GoalState, int]
) -> None:
    log, check = FakeLog(), Check(PASSES)
    async with working(ports(Replies(DONE), command(check), log=log, judge=wary), log, *AT_IT) as run:
        await run.session.post(TESTS_PASS)
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        question = await run.asked()
        assert question.text.startswith("Run the check of the goal, `make test`?")
        await run.session.post(Answer(question_id=question.id, option=option))
        state = await stands(run, GoalState.MET, GoalState.BLOCKED)
    assert (state.goal and state.goal.stands, check.runs) == expected


async def test_a_yes_to_a_check_after_plan_mode_was_chosen_runs_none() -> None:
    log, check = FakeLog(), Check(PASSES)
    async with working(ports(Replies(DONE), command(check), log=log, judge=wary), log, *AT_IT) as run:
        await run.session.post(TESTS_PASS)
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        question = await run.asked()
        await run.session.post(SetMode(mode=Mode.PLAN))
        await run.session.post(Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE))
        for _ in range(200):  # nothing that goes on waits for anything but the loop
            await asyncio.sleep(0)
    assert check.runs == 0


class Waits:
    """A check that goes on until it is let go."""

    def __init__(self, result: CallResult = PASSES) -> None:
        self.begun, self.go, self.runs, self.result = asyncio.Event(), asyncio.Event(), 0, result

    async def __call__(self, output: Output) -> CallResult:
        self.runs += 1
        self.begun.set()
        await self.go.wait()
        return self.result


async def test_an_interrupt_during_the_check_pauses_and_going_on_checks_again() -> None:
    log, check = FakeLog(), Waits()
    async with working(ports(Replies(DONE), command(check), log=log), log, *AT_IT) as run:
        await run.session.post(TESTS_PASS)
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(check.begun.wait(), PATIENCE)
        assert not any(isinstance(one, TurnEnded) for one in run.feed.taken())
        await run.session.post(Interrupt(), Source(kind="tui"))
        assert (await run.end()).stop is TurnStop.END_TURN
        state = await stands(run, GoalState.PAUSED)
        assert (check.runs, state.turns) == (1, 1)
        check.go.set()
        await run.session.post(TESTS_PASS)
        state = await stands(run, GoalState.MET)
        assert (check.runs, state.turns) == (2, 1)


async def test_an_interrupt_of_the_turn_pauses_the_goal() -> None:
    log, begun = FakeLog(), asyncio.Event()

    async def slow(output: Output) -> CallResult:
        begun.set()
        await asyncio.sleep(PATIENCE)
        return PASSES

    made = ports(Replies(calls("look"), DONE), FakeTool("look", slow), command(Check(PASSES)), log=log)
    async with working(made, log, *AT_IT) as run:
        await run.session.post(TESTS_PASS)
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await run.session.post(Interrupt(), Source(kind="tui"))
        await run.end()
        await run.prompt("and now?")
        told = [one for one in run.told if isinstance(one, GoalChanged)]
        assert (run.session.state.goal and run.session.state.goal.stands) is GoalState.PAUSED
    assert checks(log) == []
    assert told == [one for one in notifications(log.events) if isinstance(one, GoalChanged)]


async def test_hooks_are_heard_before_the_goal_and_one_that_stops_the_work_blocks_it() -> None:
    for word, expected in (
        (HookWord(decision=HookDecision.DENY, reason="not yet"), (GoalState.MET, 1, 1)),
        (HookWord(stop="enough"), (GoalState.BLOCKED, 1, 0)),
    ):
        log, check = FakeLog(), Check(PASSES)
        made = ports(Replies(DONE), command(check), log=log, hooks=Said(before_end=word))
        state = await worked(made, log, TESTS_PASS, (replace(STARTED, limits=Limits(asks_end=True)), ALONE[1]))
        assert (state.goal and state.goal.stands, state.turns, check.runs) == expected


async def test_a_session_that_ended_during_the_check_checks_again_when_it_is_taken_up() -> None:
    log, check = FakeLog(), Waits()
    async with working(ports(Replies(DONE), command(check), log=log), log, *ALONE) as run:
        await run.session.post(TESTS_PASS)
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(check.begun.wait(), PATIENCE)
    past = read_past(log.events)
    again = Check(fails("1 failed"), PASSES)
    made = ports(Replies(DONE), command(again), log=log)
    async with working(made, log, Resumed(user_present=False), track=Track(past)) as run:
        state = await stands(run, GoalState.MET)
    assert (state.turns, again.runs) == (2, 2)


async def test_a_session_that_was_idle_does_not_go_on_by_itself() -> None:
    log = FakeLog()
    async with working(ports(Replies(DONE), log=log), log, *ALONE) as run:
        await run.session.post(TESTS_PASS)
    check = Check(PASSES)
    async with working(
        ports(Replies(DONE), command(check), log=log),
        log,
        Resumed(user_present=True),
        track=Track(read_past(log.events)),
    ) as run:
        assert (run.session.state.goal and run.session.state.goal.due, run.session.state.turn) == (False, None)
        await run.prompt()
        await stands(run, GoalState.MET)
    assert check.runs == 1


async def test_it_is_not_asked_in_plan_mode() -> None:
    log, check = FakeLog(), Check(PASSES)
    async with working(ports(Replies(DONE), command(check), log=log), log, *AT_IT) as run:
        await run.session.post(SetMode(mode=Mode.PLAN))
        await run.session.post(TESTS_PASS)
        await run.prompt()
        await run.session.post(SetMode(mode=Mode.FULL))
        assert check.runs == 0
        await run.prompt()
        await stands(run, GoalState.MET)


async def begun_behind(run: Run, check: Check) -> None:
    """Begin a subagent that nobody waits for, and end the turn: it is over for surfaces, too."""
    await run.session.post(TESTS_PASS)
    await run.prompt()
    assert run.session.state.goal is not None
    assert (is_due(run.session.state), check.runs) == (False, 0)


def behind(run: Callable[[], Run]) -> FakeTool:
    """Begins one that works in the background."""

    async def begins(output: Output) -> CallResult:
        call = next(one for one in run().session.state.calls if one.call.name == "helpers")
        started = ChildStarted(call_id=call.call.id, session_id="c", agent="explore", task="look", background=True)
        await run().session.post(started)
        return result_text(Outcome.OK, "begun")

    return FakeTool("helpers", begins)


@pytest.mark.parametrize("wakes", [True, False])
async def test_it_is_not_asked_before_the_subagents_in_the_background_have_ended(*, wakes: bool) -> None:
    log, check = FakeLog(), Check(PASSES)
    made = ports(Replies(calls("helpers"), DONE), behind(lambda: run), command(check), log=log)
    async with working(made, log, *ALONE) as run:
        await begun_behind(run, check)
        run.session.post_soon(ENDED)
        if wakes:
            await run.session.post(WOKEN, OF_CHILD)
        state = await stands(run, GoalState.MET)
    assert (state.turns, check.runs) == (1 + wakes, 1)


async def test_a_subagent_that_wakes_the_session_gives_a_goal_no_further_steps() -> None:
    log, check = FakeLog(), Check(fails("1 failed"))
    made = ports(Replies(calls("helpers"), DONE), behind(lambda: run), command(check), log=log)
    async with working(made, log, *ALONE, SetLimits(limits=Limits(max_steps=3))) as run:
        await begun_behind(run, check)
        run.session.post_soon(ENDED)
        await run.session.post(WOKEN, OF_CHILD)
        state = await stands(run, GoalState.BLOCKED)
    assert state.goal is not None
    assert (state.goal.steps, state.goal.reason.partition(":")[0]) == (3, "the limit of 3 steps is reached")


async def test_a_hook_that_ends_the_work_blocks_a_goal_beside_a_subagent() -> None:
    log, check = FakeLog(), Check(PASSES)
    hooks = Said(before_end=HookWord(stop="enough"))
    made = ports(Replies(calls("helpers"), DONE), behind(lambda: run), command(check), log=log, hooks=hooks)
    async with working(made, log, replace(STARTED, limits=Limits(asks_end=True)), ALONE[1]) as run:
        await begun_behind(run, check)
        assert (run.session.state.goal and run.session.state.goal.stands) is GoalState.BLOCKED


@pytest.mark.parametrize(
    "said",
    [SetGoal(), replace(TESTS_PASS, paused=True), SetGoal(condition="another", check="make lint")],
    ids=["cleared", "paused", "changed"],
)
async def test_the_check_of_a_goal_that_is_cleared_paused_or_changed_is_cut_short(said: SetGoal) -> None:
    log, ended = FakeLog(), asyncio.Event()
    check = Waits()

    async def work(output: Output) -> CallResult:
        try:
            return await check(output)
        finally:
            ended.set()

    async with working(ports(Replies(DONE), command(work), log=log), log, *AT_IT) as run:
        await run.session.post(TESTS_PASS)
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(check.begun.wait(), PATIENCE)
        await run.session.post(said)
        await asyncio.wait_for(ended.wait(), PATIENCE)
        assert (await run.end()).stop is TurnStop.END_TURN
    assert (check.runs, checks(log)) == (1, [])


async def test_a_goal_that_is_paused_and_continued_at_once_is_checked_anew() -> None:
    log, check = FakeLog(), Waits()
    async with working(ports(Replies(DONE), command(check), log=log), log, *AT_IT) as run:
        await run.session.post(TESTS_PASS)
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(check.begun.wait(), PATIENCE)
        await run.session.post(replace(TESTS_PASS, paused=True))
        await run.session.post(TESTS_PASS)
        check.go.set()
        await stands(run, GoalState.MET)
        assert (await run.end()).stop is TurnStop.END_TURN
    assert check.runs == 2


async def test_a_goal_is_changed_and_cleared_while_it_is_checked() -> None:
    log, check = FakeLog(), Waits(fails("1 failed"))
    async with working(ports(Replies(DONE), command(check), log=log), log, *AT_IT) as run:
        await run.session.post(TESTS_PASS)
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(check.begun.wait(), PATIENCE)
        await run.session.post(SetGoal())
        check.go.set()
        await run.end()
        assert run.session.state.goal is None
    assert checks(log) == []
    assert [one for one in notifications(log.events) if isinstance(one, GoalChanged)] == [
        GoalChanged(goal=GoalStatus(condition="all tests pass", check="make test")),
        GoalChanged(goal=None),
    ]


async def test_going_back_keeps_the_goal_and_opens_one_that_was_met_again() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(DONE), command(Check(PASSES)), log=log, checkpoints=kept)
    async with working(made, log, *AT_IT, track=Track(reader_at=kept.reader_at)) as run:
        await run.prompt("the first")
        place = run.session.state.seq
        await run.session.post(TESTS_PASS)
        await run.prompt("the second")
        await stands(run, GoalState.MET)
        await run.session.post(Restore(files=False, conversation=True, to=place))
        await run.until(FilesRestored)
        state = run.session.state
        assert (state.goal and state.goal.stands, state.goal and state.goal.due) == (GoalState.ACTIVE, False)
        assert any("all tests pass" in note.text for note in state.notes)
        await run.prompt("the third")
        await stands(run, GoalState.MET)
    told = [one.goal and one.goal.state for one in notifications(log.events) if isinstance(one, GoalChanged)]
    assert told == [GoalState.ACTIVE, GoalState.MET, GoalState.ACTIVE, GoalState.MET]
    assert read_past(log.events).state.goal == run.session.state.goal


async def test_the_model_is_told_of_the_goal_again_when_older_messages_are_removed() -> None:
    log, provider = FakeLog(), Replies(DONE)
    made = ports(provider, command(Check(*(fails(f"{n} left") for n in range(9)))), log=log)
    async with working(made, log, *AT_IT) as run:
        await run.session.post(SetGoal(condition="nothing is forgotten"))
        await run.session.post(SetGoal(condition="nothing is forgotten", paused=True))
        for _ in range(3):
            await run.prompt("a question " * 40)
        await run.session.post(SetGoal(condition="all is done", check="make test"))
        await run.session.post(SetMode(mode=Mode.PLAN))  # no check comes between
        await run.prompt("a question " * 40)
        await run.session.post(CompactNow())
        await run.until(ContextCompacted)
        await run.prompt("go on")
    assert "The user has set a goal for this session: all is done" in text_of(
        provider.requests[-1].messages[-1].content
    )
