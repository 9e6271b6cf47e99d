"""What hooks say of calls, of messages and of a turn's end, and what a running call asks the user."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.engine.test_runtime import DONE, PATIENCE, Replies, Run, keeping, needs_yes, results, working
from tests.fakes.engine import STARTED, USAGE, FakeLog, FakeTool, calls, ports
from treadle.engine.core.past_history import read_past
from treadle.engine.core.state import AwaitingHooks
from treadle.engine.ports import Asked, HookDecision, HookWord, Output, PersonReply, Prepared, ask_person
from treadle.engine.runtime.track import Track
from treadle.protocol.errors import ToolError
from treadle.protocol.events import (
    HOOK,
    Answer,
    CallFinished,
    CallJudged,
    Interrupt,
    Prompt,
    Resumed,
    SetPresence,
    Source,
)
from treadle.protocol.limits import Budget, Limits
from treadle.protocol.messages import Text, text_of
from treadle.protocol.notifications import (
    CallStatus,
    Notice,
    PromptDelivered,
    QuestionClosed,
    TurnEnded,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.permissions import CallAsked, Decision, OptionKind, QuestionKind, Verdict
from treadle.protocol.sealed import ResultMade
from treadle.protocol.tools import CallResult, Outcome, Preview, Right, Risk, SandboxDenial, ToolCall, result_text

FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "loud": {"type": "boolean", "default": False}},
    "required": ["name"],
}


class Said:
    """Hooks that say what a test wants, and note what they were asked."""

    def __init__(self, **words: HookWord) -> None:
        self.words = words
        self.heard: list[tuple[str, Any]] = []

    def _word(self, moment: str, about: Any) -> HookWord:
        self.heard.append((moment, about))
        return self.words.get(moment, HookWord())

    async def before_call(self, call: ToolCall, /) -> HookWord:
        return self._word("before_call", call.arguments)

    async def permission(self, call: ToolCall, decision: Decision, /) -> HookWord:
        return self._word("permission", decision.verdict)

    async def after_call(self, call: ToolCall, result: CallResult, /) -> HookWord:
        return self._word("after_call", result.outcome)

    async def before_end(self, text: str, /, *, again: bool) -> HookWord:
        return HookWord() if again else self._word("before_end", text)

    async def on_prompt(self, text: str, /) -> HookWord:
        return self._word("on_prompt", text)


class Echo(FakeTool):
    """Says what it was given."""

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        async def run(output: Output) -> CallResult:
            return result_text(Outcome.OK, f"ran with {dict(arguments)}")

        return Prepared(accesses=(), preview=Preview(title=self.name), run=run)


async def nothing(output: Output) -> CallResult:
    return result_text(Outcome.OK, "")


class Broken(FakeTool):
    """Cannot be prepared."""

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        raise ToolError("There is no such file.")


ECHO = Echo("echo", nothing)


def wary(*_: object, risk: Risk = Risk.WRITE) -> Decision:
    return Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=risk, digest="d")


def critical(*_: object) -> Decision:
    return wary(risk=Risk.CRITICAL)


def unconfined(*_: object) -> Decision:
    return msgspec.structs.replace(wary(risk=Risk.EXECUTE), grants=(SandboxDenial(right=Right.UNSANDBOXED),))


async def told_of(said: Said, log: FakeLog, tool: FakeTool = ECHO, **others: Any) -> str:
    """Let the model call the tool once; gives what it reads of it."""
    provider = Replies(calls("echo", word="own"), DONE)
    made = ports(provider, tool, log=log, hooks=said, **others)
    async with working(made, log, STARTED, SetPresence(user_present=False)) as run:
        await run.prompt()
        past = read_past(log.events)
        assert past.state == run.session.state
    return str(provider.requests[1].messages[-1])


async def test_a_hook_denies_a_call_and_the_model_reads_why() -> None:
    said = Said(before_call=HookWord(decision=HookDecision.DENY, reason="not on Fridays", by="~/hooks.toml"))
    log = FakeLog()
    read = await told_of(said, log)
    assert ("not on Fridays" in read, "ran with" in read) == (True, False)
    (judged,) = [event.data for event in log.events if isinstance(event.data, CallJudged)]
    assert [(one.rule, one.text, one.source) for one in judged.decision.reasons] == [
        ("hook", "not on Fridays", "~/hooks.toml")
    ]
    assert judged.preview == Preview(title="echo")


async def test_a_call_that_a_hook_denies_and_that_cannot_be_prepared_is_shown_with_its_arguments() -> None:
    said = Said(before_call=HookWord(decision=HookDecision.DENY, reason="not on Fridays"))
    log = FakeLog()
    assert "not on Fridays" in await told_of(said, log, tool=Broken("echo", nothing))
    (judged,) = [event.data for event in log.events if isinstance(event.data, CallJudged)]
    assert judged.preview == Preview(title="Call echo", text='{"word":"own"}')


async def test_a_call_runs_with_what_a_hook_makes_of_it_and_the_model_is_told() -> None:
    said = Said(
        before_call=HookWord(arguments={"word": "other"}, context="house rule 7"),
        after_call=HookWord(context="formatted"),
    )
    read = await told_of(said, FakeLog())
    assert "ran with {'word': 'other'}" in read
    for words in ("A hook changed this call", "[Hook] house rule 7", "[Hook] formatted"):
        assert words in read


async def test_a_yes_to_another_call_in_the_users_place_is_a_yes_to_that_one() -> None:
    said = Said(permission=HookWord(decision=HookDecision.ALLOW, arguments={"word": "other"}))
    read = await told_of(said, FakeLog(), judge=wary)
    assert "ran with {'word': 'other'}" in read
    assert "A hook changed this call" in read


async def test_another_call_that_is_worse_is_not_allowed_in_the_users_place() -> None:
    def judge(spec: object, arguments: Mapping[str, Any], *_: object) -> Decision:
        return critical() if arguments == {"word": "other"} else wary()

    said = Said(permission=HookWord(decision=HookDecision.ALLOW, arguments={"word": "other"}))
    assert "ran with" not in await told_of(said, FakeLog(), judge=judge)


async def test_a_hook_that_answers_in_the_users_place_can_end_the_turn() -> None:
    provider, log = Replies(calls("echo", word="own"), DONE), FakeLog()
    said = Said(permission=HookWord(decision=HookDecision.DENY, stop="enough for today"))
    made = ports(provider, ECHO, log=log, hooks=said, judge=wary)
    async with working(made, log, STARTED, SetPresence(user_present=True)) as run:
        await run.prompt()
    assert len(provider.requests) == 1
    assert [event.source.kind for event in log.events if isinstance(event.data, Interrupt)] == ["hook"]


async def test_what_a_call_brought_can_be_replaced() -> None:
    read = await told_of(Said(after_call=HookWord(output="something else")), FakeLog())
    assert ("something else" in read, "ran with" in read) == (True, False)


@pytest.mark.parametrize(
    ("moment", "judge", "runs"),
    [
        ("before_call", wary, True),
        ("permission", wary, True),
        ("before_call", critical, False),
        ("permission", critical, False),
        ("before_call", unconfined, False),
        ("permission", unconfined, False),
    ],
)
async def test_a_hook_says_yes_in_the_users_place_but_never_to_what_is_critical_or_leaves_the_sandbox(
    moment: str, judge: Any, runs: bool
) -> None:
    said = Said(**{moment: HookWord(decision=HookDecision.ALLOW, by="mine")})
    read = await told_of(said, FakeLog(), judge=judge)
    assert ("ran with" in read) is runs


async def test_a_hook_can_want_a_call_asked_that_would_run() -> None:
    said = Said(before_call=HookWord(decision=HookDecision.ASK, reason="look twice"))
    read = await told_of(said, FakeLog())
    assert ("ran with" in read, "look twice" in read) == (False, True), "nobody was there to say yes"


async def test_a_hook_ends_the_turn_after_a_call() -> None:
    log = FakeLog()
    provider = Replies(calls("echo"), DONE)
    made = ports(provider, ECHO, log=log, hooks=Said(after_call=HookWord(stop="enough")))
    async with working(made, log) as run:
        await run.prompt()
    ended = [one.outcome.stop for one in run.told if isinstance(one, TurnEnded)]
    assert (len(provider.requests), ended) == (1, [TurnStop.CANCELLED])
    assert "A hook ends the turn: enough" in [one.text for one in run.told if isinstance(one, Notice)]


@pytest.mark.parametrize("moment", ["before_call", "permission", "after_call", "before_end"])
async def test_the_end_of_a_turn_has_the_reason_of_the_hook_that_ended_it(moment: str) -> None:
    log, provider = FakeLog(), Replies(calls("echo"), DONE)
    said = Said(**{moment: HookWord(stop="enough")})
    judged = {"judge": needs_yes} if moment == "permission" else {}
    async with working(ports(provider, ECHO, log=log, hooks=said, **judged), log) as run:
        outcome = await run.prompt()
    stop = TurnStop.END_TURN if moment == "before_end" else TurnStop.CANCELLED
    assert (outcome.stop, outcome.why) == (stop, "a hook: enough")


async def test_a_turn_that_may_not_end_goes_on_with_the_reason_once() -> None:
    log = FakeLog()
    provider = Replies(DONE, DONE)
    said = Said(before_end=HookWord(decision=HookDecision.DENY, reason="run the tests first"))
    async with working(ports(provider, log=log, hooks=said), log) as run:
        outcome = await run.prompt()
    sent = str(provider.requests[1].messages[-1])
    assert ("run the tests first" in sent, "a hook that the user has set up" in sent) == (True, True)
    assert said.heard == [("before_end", "done")]
    kinds = [type(one) for one in run.told if isinstance(one, TurnStarted | TurnEnded)]
    assert (kinds, outcome.steps, run.session.state.turns) == ([TurnStarted, TurnEnded], 2, 1), "it is one turn"
    assert outcome.usage == USAGE + USAGE


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        (Limits(max_steps=3), TurnStop.MAX_TURN_REQUESTS),
        (Limits(turn=Budget(tokens=400)), TurnStop.BUDGET),
        (Limits(max_seconds=0.3), TurnStop.TIME),
        (Limits(), TurnStop.LOOP),
    ],
)
async def test_hooks_that_never_let_a_turn_end_keep_it_within_its_bounds(limits: Limits, stop: TurnStop) -> None:
    log, provider = FakeLog(), Replies(DONE)

    class Never(Said):
        async def before_end(self, text: str, /, *, again: bool) -> HookWord:
            await asyncio.sleep(0 if limits.max_seconds is None else 60)
            return HookWord(decision=HookDecision.DENY, reason="not yet")

    first = (replace(STARTED, limits=replace(limits, asks_end=True)), SetPresence(user_present=False))
    async with working(ports(provider, log=log, hooks=Never()), log, *first) as run:
        outcome = await run.prompt()
    assert (outcome.stop, run.session.state.turns) == (stop, 1)
    assert outcome.steps - len(provider.requests) in (0, 1), "the last one may not have gone out"
    assert read_past(log.events).state == run.session.state


async def test_words_of_a_hook_that_come_after_the_end_of_its_turn_begin_no_other_turn() -> None:
    log, provider = FakeLog(), Replies(DONE)
    first = (replace(STARTED, limits=Limits(asks_end=True)), SetPresence(user_present=False))
    async with working(ports(provider, log=log), log, *first) as run:
        await run.prompt()
        await run.session.post(Prompt(id="late", content=(Text(text="run the tests"),)), HOOK)
        for _ in range(20):
            await asyncio.sleep(0)
        state = run.session.state
    assert (state.turns, state.turn, state.queue, len(provider.requests)) == (1, None, (), 1)


async def test_what_hooks_looked_at_when_the_program_ended_they_look_at_again() -> None:
    log = FakeLog()
    asked = asyncio.Event()

    class Slow(Said):
        async def before_end(self, text: str, /, *, again: bool) -> HookWord:
            asked.set()
            await asyncio.Event().wait()
            return HookWord()

    async with working(ports(Replies(DONE), log=log, hooks=Slow()), log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(asked.wait(), PATIENCE)
    said = Said()
    past = read_past(log.events)
    made = ports(Replies(DONE), log=log, hooks=said)
    async with working(made, log, Resumed(user_present=True), track=Track(past)) as run:
        outcome = await run.end()
    assert (outcome.stop, outcome.text, said.heard) == (TurnStop.END_TURN, "done", [("before_end", "done")])


async def test_the_end_of_a_turn_is_told_after_the_hooks_have_let_it_end() -> None:
    log = FakeLog()
    let = asyncio.Event()

    class Slow(Said):
        async def before_end(self, text: str, /, *, again: bool) -> HookWord:
            await let.wait()
            return HookWord()

    async with working(ports(Replies(DONE), log=log, hooks=Slow()), log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        async with asyncio.timeout(PATIENCE):
            while not isinstance(run.session.state.activity, AwaitingHooks):
                await asyncio.sleep(0.001)
        assert not [one for one in run.feed.taken() if isinstance(one, TurnEnded)]
        let.set()
        await run.until(TurnEnded)


async def test_an_interrupt_lets_a_turn_end_that_hooks_still_look_at() -> None:
    log = FakeLog()
    asked, cancelled = asyncio.Event(), asyncio.Event()

    class Slow(Said):
        async def before_end(self, text: str, /, *, again: bool) -> HookWord:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return HookWord()

    async with working(ports(Replies(DONE), log=log, hooks=Slow()), log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
            await run.session.post(Interrupt())
            await run.until(TurnEnded)
    assert cancelled.is_set()
    assert [one.outcome.stop for one in run.told if isinstance(one, TurnEnded)] == [TurnStop.END_TURN]


async def test_words_that_are_not_the_users_are_told_as_such() -> None:
    log = FakeLog()
    provider = Replies(DONE)
    async with working(ports(provider, log=log), log) as run:
        watch = Source(kind="monitor", id="job 3")
        await run.session.post(Prompt(id="m", content=(Text(text="ERROR in line 7"),)), watch)
        await run.until(TurnEnded)
    sent = str(provider.requests[0].messages[-1])
    shown = [one.by for one in run.told if isinstance(one, PromptDelivered)]
    heard = (one.notification for one in read_past(log.events).stamped)
    past = [one.by for one in heard if isinstance(one, PromptDelivered)]
    assert (shown, past) == (["monitor:job 3"], ["monitor:job 3"])
    assert 'begins with "ERROR in line 7" was not written by the user.' in sent
    assert "It is from a background command that you watch (job 3)." in sent


class Asking:
    """A tool that asks the user while it runs."""

    def __init__(self, *asked: Asked) -> None:
        self.asked = asked
        self.replies: list[PersonReply] = []

    async def __call__(self, output: Output) -> CallResult:
        for one in self.asked:
            self.replies.append(await ask_person.get()(one))
        return result_text(Outcome.OK, str(len(self.replies)))


def open_questions(run: Run) -> Sequence[str]:
    return [question.id for question in run.session.state.questions]


async def test_a_running_call_asks_the_user_and_gets_the_values() -> None:
    log = FakeLog()
    asking = Asking(Asked(text="Who are you?", form=FORM, who="MCP server x"), Asked(text="Sure?"))
    made = ports(Replies(calls("ask"), DONE), FakeTool("ask", asking), log=log)
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        async with asyncio.timeout(PATIENCE):
            for answer in (
                Answer(question_id="", option=OptionKind.ALLOW_ONCE, arguments={"name": "Ada", "loud": True}),
                Answer(question_id="", option=OptionKind.REJECT_ONCE),
            ):
                while not run.session.state.questions:
                    await asyncio.sleep(0.001)
                (question,) = run.session.state.questions
                assert question.kind is QuestionKind.ELICITATION
                assert [call.status for call in run.session.state.calls] == [CallStatus.RUNNING]
                await run.session.post(
                    Answer(question_id=question.id, option=answer.option, arguments=answer.arguments)
                )
            await run.until(TurnEnded)
    assert asking.replies == [
        PersonReply(accepted=True, values={"name": "Ada", "loud": True}),
        PersonReply(declined=True),
    ]
    texts = [event.data.text for event in log.events if isinstance(event.data, CallAsked)]
    assert texts == ["MCP server x asks: Who are you?", "Sure?"]


async def test_without_a_user_nobody_answers_and_the_call_goes_on() -> None:
    log = FakeLog()
    asking = Asking(Asked(text="Who are you?", form=FORM))
    made = ports(Replies(calls("ask"), DONE), FakeTool("ask", asking), log=log)
    async with working(made, log, STARTED, SetPresence(user_present=False)) as run:
        await run.prompt()
    assert asking.replies == [PersonReply()]


async def test_an_interrupt_takes_the_question_of_a_running_call_back() -> None:
    log = FakeLog()
    asking = Asking(Asked(text="Sure?"))
    made = ports(Replies(calls("ask"), DONE), FakeTool("ask", asking), log=log)
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        async with asyncio.timeout(PATIENCE):
            while not run.session.state.questions:
                await asyncio.sleep(0.001)
        await run.session.post(Interrupt())
        await run.until(TurnEnded)
        assert open_questions(run) == []
    assert asking.replies == []
    assert [one.option for one in run.told if isinstance(one, QuestionClosed)] == [None]


async def test_an_interrupt_while_a_hook_looks_at_a_result_keeps_the_result() -> None:
    log = FakeLog()
    looking = asyncio.Event()

    class Slow(Said):
        async def after_call(self, call: ToolCall, result: CallResult, /) -> HookWord:
            looking.set()
            await asyncio.Event().wait()
            return HookWord()

    async with working(ports(Replies(calls("echo"), DONE), ECHO, log=log, hooks=Slow()), log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await looking.wait()
        await run.session.post(Interrupt())
        await run.end()
    (finished,) = run.of(CallFinished)
    assert (finished.result.outcome, str(finished.result.content[0])) == (Outcome.OK, str(Text(text="ran with {}")))


class Looks(Said):
    """Hooks that look at a trial, and at it again when its changes are kept."""

    def __init__(self, kept: list[str], second: str = "formatted", output: str | None = None) -> None:
        super().__init__()
        self.kept, self.second, self.output = kept, second, output
        self.looked: list[tuple[str, tuple[str, ...]]] = []

    async def after_call(self, call: ToolCall, result: CallResult, /) -> HookWord:
        self.looked.append((text_of(result.content), tuple(self.kept)))
        return HookWord(context=self.second if self.kept else "looked", output=self.output)


async def test_hooks_look_at_a_trial_again_when_its_changes_are_in_the_workspace_and_their_words_are_told_once() -> (
    None
):
    kept: list[str] = []

    async def keep(digest: str, /) -> CallResult:
        kept.append(digest)
        return CallResult(outcome=Outcome.OK)

    said = "[The user kept its changes. They are in the workspace now: /made (added).]"
    for second, told in (("formatted", "\n[Hook] formatted"), ("looked", "")):
        kept.clear()
        hooks = Looks(kept, second)
        async with keeping(keep, hooks=hooks) as (run, provider):
            await run.end()
        shown = "printed\n[Hook] looked"
        assert hooks.looked == [("printed", ()), (shown, ("c",))]
        assert results(provider.requests[1]) == [(f"{shown}{told}\n{said}", False)]


async def test_a_result_that_a_hook_replaced_stays_replaced_when_the_trial_is_kept() -> None:
    kept: list[str] = []

    async def keep(digest: str, /) -> CallResult:
        kept.append(digest)
        return CallResult(outcome=Outcome.OK)

    async with keeping(keep, hooks=Looks(kept, "looked", "hidden")) as (run, provider):
        await run.end()
    ((text, _),) = results(provider.requests[1])
    assert (text.count("hidden"), "printed" in text) == (1, False)


async def test_hooks_do_not_look_again_at_a_trial_that_could_not_be_kept() -> None:
    async def keep(_: str, /) -> CallResult:
        raise ToolError("The files were changed meanwhile.")

    hooks = Looks([])
    async with keeping(keep, hooks=hooks) as (run, _):
        await run.end()
    assert len(hooks.looked) == 1


async def test_an_interrupt_while_a_hook_looks_at_a_trial_that_is_kept_says_that_it_is() -> None:
    kept, looking = list[str](), asyncio.Event()

    async def keep(digest: str, /) -> CallResult:
        kept.append(digest)
        return CallResult(outcome=Outcome.OK)

    class Slow(Said):
        async def after_call(self, call: ToolCall, result: CallResult, /) -> HookWord:
            if kept:
                looking.set()
                await asyncio.Event().wait()
            return HookWord()

    async with keeping(keep, hooks=Slow()) as (run, _):
        await asyncio.wait_for(looking.wait(), PATIENCE)
        await run.session.post(Interrupt())
        await run.end()
    last = run.of(CallFinished, ResultMade)[-1]
    assert "The user kept its changes" in text_of(last.result.content)


async def test_a_message_that_comes_while_hooks_let_a_turn_end_is_shown_after_that_end() -> None:
    log = FakeLog()
    asked, let = asyncio.Event(), asyncio.Event()

    class Slow(Said):
        async def before_end(self, text: str, /, *, again: bool) -> HookWord:
            asked.set()
            await let.wait()
            return HookWord()

    async with working(ports(Replies(DONE), log=log, hooks=Slow()), log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asked.wait()
        await run.session.post(Prompt(id="q", content=(Text(text="and now"),)))
        let.set()
        await run.end()
        await run.end()
    kinds = [type(one).__name__ for one in run.told if isinstance(one, TurnStarted | TurnEnded)]
    assert kinds == ["TurnStarted", "TurnEnded"] * 2


async def test_a_hook_that_denies_a_call_can_end_the_turn_too() -> None:
    log = FakeLog()
    provider = Replies(calls("echo"), DONE)
    said = Said(before_call=HookWord(decision=HookDecision.DENY, reason="no", stop="enough"))
    async with working(ports(provider, ECHO, log=log, hooks=said), log) as run:
        outcome = await run.prompt()
    assert (len(provider.requests), outcome.stop) == (1, TurnStop.CANCELLED)


async def test_who_asks_from_another_task_hears_of_an_interrupt() -> None:
    log = FakeLog()
    asking: list[asyncio.Task[PersonReply]] = []

    async def serve(output: Output) -> CallResult:
        ask = ask_person.get()

        async def elsewhere() -> PersonReply:
            return await ask(Asked(text="Sure?"))

        asking.append(asyncio.create_task(elsewhere()))
        await asyncio.Event().wait()
        return result_text(Outcome.OK, "")

    async with working(ports(Replies(calls("ask"), DONE), FakeTool("ask", serve), log=log), log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        async with asyncio.timeout(PATIENCE):
            while not run.session.state.questions:
                await asyncio.sleep(0.001)
        await run.session.post(Interrupt())
        await run.end()
        async with asyncio.timeout(PATIENCE):
            assert await asking[0] == PersonReply(withdrawn=True)
