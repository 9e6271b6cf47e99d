"""When checkpoints are taken, what waits for them, and how the machine goes back to one."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from tests.engine.test_runtime import DONE, PATIENCE, Replies, Run, working
from tests.fakes.engine import STARTED, FakeLog, FakeTool, calls, ports
from treadle.context.log_reader import TranscriptReader
from treadle.engine.core.past_history import conversation, last_state
from treadle.engine.core.sealing import written
from treadle.engine.core.state import replace
from treadle.engine.ports import Asked, KnownChanges, Output, ask_person
from treadle.engine.runtime import step_checkpoints
from treadle.engine.runtime.track import Track
from treadle.protocol.checkpoints import CheckpointTaken, Moment, Restore, Restored, Rewound
from treadle.protocol.errors import RefusedError, StoreError
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallJudged,
    CallStarted,
    Interrupt,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    Resumed,
    SetLimits,
    SetPresence,
)
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Text
from treadle.protocol.models import StreamEvent, ToolProtocol
from treadle.protocol.notifications import FilesRestored, MessageDone, Notice, TextDelta
from treadle.protocol.permissions import Decision, OptionKind, Verdict
from treadle.protocol.sealed import TurnSettled
from treadle.protocol.tools import (
    CallResult,
    Confinement,
    Flow,
    Outcome,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)

EDITS = ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.ONCE)
READS = ToolTraits(kind=ToolKind.READ, effect=ToolEffect.PURE)


class KeptFiles:
    """The files of a workspace as one text, and each checkpoint of it."""

    def __init__(self, log: FakeLog) -> None:
        self.files = "nothing"
        self.log = log
        self.slow: asyncio.Event | None = None
        self.broken = ""
        self.restoring = 0
        self.unexpected: Exception | None = None

    async def take(self, n: int, last: Sequence[str], /) -> CheckpointTaken:
        now = self.files
        if self.slow is not None:
            await self.slow.wait()
        if self.unexpected is not None:
            raise self.unexpected
        if self.broken:
            raise StoreError("checkpoints-broken", "The files cannot be kept.", why=self.broken, fix="")
        return CheckpointTaken(n=n, step=0, moment=Moment.BEFORE, trees=(now,), files=int(last != (now,)))

    async def own(self, taken: CheckpointTaken, known: KnownChanges, /) -> CheckpointTaken:
        return taken

    async def restore(self, checkpoint: int, how_far: Callable[[int, int], None], /) -> Restored:
        for done in range(self.restoring):
            how_far(done + 1, 20_000)
            await asyncio.sleep(0)
        taken = next(one for one in self.taken() if one.n == checkpoint)
        (self.files,) = taken.trees
        return Restored(checkpoint=checkpoint, written=("/w/a",))

    async def rewind(self, wanted: Restore, /) -> Rewound:
        past = [event for event in self.log.events if event.seq <= wanted.to]
        return Rewound(to=wanted.to, state=written(last_state(past)), files=wanted.files)

    def taken(self) -> list[CheckpointTaken]:
        return [event.data for event in self.log.events if isinstance(event.data, CheckpointTaken)]

    def moments(self) -> list[tuple[int, int, Moment, str]]:
        return [(one.n, one.step, one.moment, one.trees[0]) for one in self.taken()]

    def reader_at(self, seq: int) -> TranscriptReader:
        return conversation(event for event in self.log.events if event.seq <= seq)


def editing(kept: KeptFiles, *texts: str) -> FakeTool:
    left = list(texts)

    async def edit(_: Output) -> CallResult:
        kept.files = left.pop(0)
        return result_text(Outcome.OK, "edited")

    return FakeTool("edit", edit, EDITS)


async def settle(run: Run, n: int) -> None:
    """Wait until there are so many checkpoints."""
    async with asyncio.timeout(PATIENCE):
        while len(run.of(CheckpointTaken)) < n:
            await asyncio.sleep(0.001)


async def test_files_are_kept_before_and_after_a_step_that_changes_them_and_not_when_one_only_reads() -> None:
    log = FakeLog()
    kept = KeptFiles(log)

    async def read(_: Output) -> CallResult:
        return result_text(Outcome.OK, "read")

    provider = Replies(calls("read"), calls("edit", "edit"), calls("edit"), DONE)
    made = ports(
        provider, FakeTool("read", read, READS), editing(kept, "one", "two", "three"), log=log, checkpoints=kept
    )
    async with working(made, log) as run:
        await run.prompt()
    assert kept.moments() == [
        (1, 2, Moment.BEFORE, "nothing"),
        (2, 2, Moment.AFTER, "two"),
        (3, 3, Moment.AFTER, "three"),
    ]


async def test_what_others_change_between_two_steps_is_a_checkpoint_of_its_own() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(
        Replies(calls("edit"), DONE, calls("edit"), DONE), editing(kept, "one", "two"), log=log, checkpoints=kept
    )
    async with working(made, log) as run:
        await run.prompt()
        await settle(run, 2)
        kept.files = "by the user"
        await run.prompt()
    assert [(moment, files) for _, _, moment, files in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.AFTER, "one"),
        (Moment.BEFORE, "by the user"),
        (Moment.AFTER, "two"),
    ]


@pytest.mark.parametrize("answer", [OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE])
async def test_what_a_step_changed_before_a_question_is_its_own_and_what_changes_meanwhile_is_not(
    answer: OptionKind,
) -> None:
    log = FakeLog()
    kept = KeptFiles(log)

    def judge(spec: ToolSpec, *_: object) -> Decision:
        verdict = Verdict.REQUIRE_USER_CONFIRMATION if spec.name == "asks" else Verdict.ALLOW
        return Decision(verdict=verdict, risk=Risk.WRITE, digest="d")

    provider = Replies(calls("edit", "asks", "edit"), DONE)
    asks = FakeTool("asks", editing(kept, "three").work, EDITS)
    made = ports(provider, editing(kept, "one", "four"), asks, log=log, checkpoints=kept, judge=judge)
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        question = await run.asked()
        await settle(run, 2)
        kept.files = "by the user"
        await run.session.post(Answer(question_id=question.id, option=answer))
        await run.end()
    # A no is the end of the reply: the calls behind it do not run.
    rest = [(Moment.BEFORE, "by the user"), (Moment.AFTER, "four")] if answer is OptionKind.ALLOW_ONCE else []
    assert [(moment, files) for _, _, moment, files in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.AFTER, "one"),
        *rest,
    ]


async def test_what_changes_while_the_user_is_asked_for_guidance_is_not_the_sessions() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(calls("edit"), calls("nothing")), editing(kept, "one", "two"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.session.post(SetLimits(limits=Limits(max_mistakes=1)))
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await run.asked()
        await settle(run, 2)
    assert [moment for _, _, moment, _ in kept.moments()] == [Moment.BEFORE, Moment.AFTER]


async def test_a_call_that_asks_while_it_changes_files_is_at_work_all_the_time() -> None:
    log = FakeLog()
    kept = KeptFiles(log)

    async def edit(_: Output) -> CallResult:
        kept.files = "half"
        await ask_person.get()(Asked(text="go on?"))
        kept.files = "whole"
        return result_text(Outcome.OK, "edited")

    made = ports(Replies(calls("edit"), DONE), FakeTool("edit", edit, EDITS), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        question = await run.asked()
        await run.session.post(Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE))
        await run.end()
        await settle(run, 2)
    assert [(moment, files) for _, _, moment, files in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.AFTER, "whole"),
    ]


async def test_what_changes_while_a_command_tries_something_in_a_copy_is_not_the_sessions() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    going, go_on = asyncio.Event(), asyncio.Event()

    async def tries(_: Output) -> CallResult:
        going.set()
        await go_on.wait()
        return result_text(Outcome.OK, "tried")

    def judge(spec: ToolSpec, *_: object) -> Decision:
        confinement = Confinement.LOOK if spec.name == "tries" else None
        return Decision(verdict=Verdict.ALLOW, risk=Risk.WRITE, digest="d", confinement=confinement)

    command = FakeTool("tries", tries, ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE))
    provider = Replies(calls("edit", "tries", "edit"), DONE)
    made = ports(provider, editing(kept, "one", "three"), command, log=log, checkpoints=kept, judge=judge)
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(going.wait(), PATIENCE)
        await settle(run, 2)
        kept.files = "by the user"
        go_on.set()
        await run.end()
    assert [(moment, files) for _, _, moment, files in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.AFTER, "one"),
        (Moment.BEFORE, "by the user"),
        (Moment.AFTER, "three"),
    ]


async def test_a_change_waits_for_the_checkpoint_before_it_and_leaving_for_the_one_after() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    kept.slow = asyncio.Event()
    made = ports(Replies(calls("edit"), DONE), editing(kept, "one"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert (kept.files, run.of(CallStarted)) == ("nothing", [])
        kept.slow.set()
        await run.end()
        kept.slow = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, kept.slow.set)
    assert [(moment, files) for _, _, moment, files in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.AFTER, "one"),
    ]


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("last", [DONE, calls("done")])
async def test_an_end_that_waits_for_the_files_is_not_lost_where_the_waiting_is_cut(
    last: Sequence[StreamEvent], closes: bool
) -> None:
    log = FakeLog()
    kept = KeptFiles(log)

    async def edit(_: Output) -> CallResult:
        kept.slow = asyncio.Event()
        return result_text(Outcome.OK, "edited")

    async def finish(_: Output) -> CallResult:
        return result_text(Outcome.OK, "done")

    done = FakeTool("done", finish, ToolTraits(kind=ToolKind.OTHER, effect=ToolEffect.PURE, flow=Flow.END_TURN))
    made = ports(Replies(calls("edit"), last), FakeTool("edit", edit, EDITS), done, log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await run.until(MessageDone)
        if last is DONE:
            await run.until(TextDelta)
        while last is not DONE and len(run.of(CallStarted)) < 2:
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert kept.slow is not None
        assert run.session.state.turn is not None
        if closes:
            asyncio.get_running_loop().call_later(0.05, kept.slow.set)
        else:
            await run.session.post(Interrupt())
            await run.end()
            kept.slow.set()
    assert run.of(ReplyFailed) == []
    assert [one.result.outcome for one in run.of(CallFinished)] == [Outcome.OK] * (1 if last is DONE else 2)
    assert len(run.of(ReplyFinished)) == 2
    assert len(run.of(TurnSettled)) == 1
    assert last_state(log.events) == run.session.state


async def test_files_that_cannot_be_kept_are_told_once_and_the_work_goes_on() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    kept.broken = "The disk is full."
    made = ports(Replies(calls("edit"), calls("edit"), DONE), editing(kept, "one", "two"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.prompt()
    assert (kept.files, kept.moments()) == ("two", [])
    said = [one.text for one in run.told if isinstance(one, Notice)]
    assert said == ["No checkpoint: The files cannot be kept. The disk is full."]


async def test_a_restore_that_takes_long_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("_SILENCE", "_PAUSE"):
        monkeypatch.setattr(step_checkpoints, pause, 0.0)
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(calls("edit"), DONE), editing(kept, "one"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.prompt()
        await settle(run, 2)
        kept.restoring = 50
        await run.session.post(Restore(checkpoint=1))
        await run.until(FilesRestored)
    said = [(one.text, one.quiet) for one in run.told if isinstance(one, Notice)]
    assert said
    assert all(text.startswith("Restoring files: ") and quiet for text, quiet in said)
    assert any(text.endswith(" of 20,000.") for text, _ in said)
    assert kept.files == "nothing"


async def test_restored_files_can_be_restored_back_and_the_model_is_told() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    provider = Replies(calls("edit"), DONE)
    made = ports(provider, editing(kept, "one"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.prompt()
        await settle(run, 2)
        await run.session.post(Restore(checkpoint=1))
        await run.until(FilesRestored)
        assert kept.files == "nothing"
        with pytest.raises(RefusedError) as refused:
            await run.session.post(Restore(checkpoint=9))
        assert refused.value.why == "there is no checkpoint 9"
        await run.session.post(Restore(checkpoint=2))
        await run.until(FilesRestored)
        assert kept.files == "one"
        await run.prompt("on")
    assert [moment for _, _, moment, _ in kept.moments()] == [
        Moment.BEFORE,
        Moment.AFTER,
        Moment.RESTORED,
        Moment.RESTORED,
    ]
    assert "The user restored files to an earlier state (checkpoint 1)" in str(provider.requests[-1].messages[-1])


async def test_nothing_is_restored_where_the_files_cannot_be_kept_as_they_are() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(calls("edit"), DONE), editing(kept, "one"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.prompt()
        await settle(run, 2)
        kept.broken = "The disk is full."
        await run.session.post(Restore(checkpoint=1, conversation=True, to=2))
        await run.until(FilesRestored)
    assert (kept.files, run.of(Rewound)) == ("one", [])
    (restored,) = run.of(Restored)
    assert restored.error == "The files cannot be kept. The disk is full."


async def test_a_message_waits_while_files_are_restored() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(calls("edit"), DONE), editing(kept, "one"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.prompt()
        await settle(run, 2)
        kept.slow = asyncio.Event()
        await run.session.post(Restore(checkpoint=1))
        await run.session.post(Prompt(id="q", content=(Text(text="on"),)))
        assert run.session.state.turn is None
        kept.slow.set()
        await run.end()
    order = [type(event.data) for event in log.events if isinstance(event.data, Restored | Prompt)]
    assert order == [Prompt, Prompt, Restored]


async def test_a_conversation_that_went_back_sends_nothing_of_what_came_after() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    provider = Replies(DONE)
    track = Track(reader_at=kept.reader_at)
    async with working(ports(provider, log=log, checkpoints=kept), log, track=track) as run:
        await run.prompt("the first")
        place = run.session.state.seq
        await run.prompt("the second")
        await run.session.post(Restore(files=False, conversation=True, to=place))
        await run.until(FilesRestored)
        await run.prompt("the third")
        sent = str(provider.requests[-1].messages)
        assert ("the first" in sent, "the second" in sent, "the third" in sent) == (True, False, True)
        assert "took the conversation back to this point" in sent
        steps = [request.id for request in provider.requests]
        assert len(set(steps)) == len(steps), "a number names one step only"
    cut = next(event.seq for event in log.events if isinstance(event.data, Rewound))
    standing = [event for event in log.events if event.seq <= place or event.seq >= cut]
    assert last_state(standing) == last_state(log.events) == run.session.state
    messages = conversation(standing).transcript.messages(ToolProtocol.NATIVE)
    assert messages == run.session.transcript.messages(ToolProtocol.NATIVE)


async def test_after_a_kill_in_a_changing_step_the_files_are_kept_before_anything_else() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(calls("edit"), DONE), editing(kept, "one"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.prompt()
        await settle(run, 2)
    cut = next(index for index, event in enumerate(log.events) if isinstance(event.data, CallFinished))
    killed = FakeLog()
    killed.events = log.events[:cut]
    kept.log = killed
    state = last_state(killed.events)
    assert state.files.changing == 1
    track = Track()
    track._state = state
    provider = Replies(DONE)
    again = ports(provider, editing(kept, "two"), log=killed, checkpoints=kept)
    async with working(again, killed, Resumed(user_present=True), track=track) as run:
        await run.end()
    assert [(moment, files) for _, _, moment, files in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.FOUND, "one"),
    ]


async def test_what_a_step_changes_after_it_was_taken_up_again_is_kept_too() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(calls("edit", "edit"), DONE), editing(kept, "one", "two"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.prompt()
        await settle(run, 2)
    first = next(index for index, event in enumerate(log.events) if isinstance(event.data, CallFinished))
    killed = FakeLog()
    killed.events = log.events[: first + 1]
    kept.log, kept.files = killed, "one"
    track = Track(reader_at=kept.reader_at)
    for event in killed.events:
        track.take(event)
    again = ports(Replies(DONE), editing(kept, "two"), log=killed, checkpoints=kept)
    async with working(again, killed, Resumed(user_present=True), track=track) as run:
        await run.end()
        await settle(run, 3)
    assert [(moment, files) for _, _, moment, files in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.FOUND, "one"),
        (Moment.AFTER, "two"),
    ]


@pytest.mark.parametrize("decided", [True, False])
async def test_what_a_decided_call_changes_that_begins_after_a_kill_is_the_sessions(decided: bool) -> None:
    """The kill comes while the files are kept before it: what is found then is not all of the step's work."""
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(calls("edit"), DONE), editing(kept, "one"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        await run.prompt()
        await settle(run, 2)
    begins = next(index for index, event in enumerate(log.events) if isinstance(event.data, CallStarted))
    killed = FakeLog()
    killed.events = [event for event in log.events[:begins] if not isinstance(event.data, CheckpointTaken)]
    if not decided:
        killed.events = [event for event in killed.events if not isinstance(event.data, CallJudged)]
    killed.events = [replace(event, seq=seq) for seq, event in enumerate(killed.events, 1)]
    kept.log, kept.files = killed, "changed by another"
    track = Track(reader_at=kept.reader_at)
    for event in killed.events:
        track.take(event)
    again = ports(Replies(DONE), editing(kept, "two"), log=killed, checkpoints=kept)
    async with working(again, killed, Resumed(user_present=True, keeps=True), track=track) as run:
        await run.end()
        await settle(run, 2)
    moments = [(moment, files) for _, _, moment, files in kept.moments()]
    assert moments[-1] == (Moment.AFTER, "two")
    assert moments[0][1] == moments[-2][1] == "changed by another"


async def test_nothing_is_restored_in_the_middle_of_a_turn() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    going = asyncio.Event()

    async def hangs(_: Output) -> CallResult:
        going.set()
        await asyncio.sleep(3600)
        raise AssertionError

    made = ports(Replies(calls("edit")), FakeTool("edit", hangs, EDITS), log=log, checkpoints=kept)
    started = replace(STARTED)
    async with working(made, log, started, SetPresence(user_present=True)) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(going.wait(), PATIENCE)
        with pytest.raises(RefusedError) as refused:
            await run.session.post(Restore(checkpoint=1))
    assert refused.value.why == "a turn is going on: interrupt it first"


async def test_what_nobody_expected_of_a_checkpoint_ends_neither_the_session_nor_restoring() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    traced: list[BaseException] = []
    made = ports(Replies(calls("edit"), DONE), editing(kept, "one"), log=log, checkpoints=kept, trace=traced.append)
    async with working(made, log) as run:
        await run.prompt()
        await settle(run, 2)
        kept.unexpected = ImportError("half loaded")
        await run.session.post(Restore(checkpoint=1))
        await run.until(FilesRestored)
        assert run.session.state.files.restoring is None
        outcome = await run.prompt("on")
    assert outcome.text == "done"
    assert [str(error) for error in traced] == ["half loaded"]
    assert [one.error for one in run.of(Restored)] == ["ImportError: half loaded"]


async def test_what_hooks_change_while_the_session_waits_is_its_own_and_what_a_person_changed_before_is_not() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(DONE), log=log, checkpoints=kept)
    async with working(made, log) as run:
        files = run.session.checkpointer
        assert files is not None
        async with files.around_hooks(waited=True):
            kept.files = "by a hook"
        await run.prompt()
        kept.files = "by a person"
        async with files.around_hooks(waited=True), files.around_hooks(waited=True):
            kept.files = "by two hooks"
        async with files.around_hooks(waited=True):
            pass
        kept.files = "by a person again"
        async with files.around_hooks(waited=False):
            kept.files = "by a hook, or a person"
    assert kept.moments() == [
        (1, 1, Moment.BEFORE, "nothing"),
        (2, 1, Moment.AFTER, "by a hook"),
        (3, 2, Moment.BEFORE, "by a person"),
        (4, 2, Moment.AFTER, "by two hooks"),
        (5, 1, Moment.BEFORE, "by a person again"),
        (6, 1, Moment.FOUND, "by a hook, or a person"),
    ]


async def test_hooks_that_begin_while_others_change_files_take_nothing_from_them() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(DONE), log=log, checkpoints=kept)
    async with working(made, log) as run:
        files = run.session.checkpointer
        assert files is not None
        async with files.around_hooks(waited=True):
            kept.files = "half"
            async with files.around_hooks(waited=True):
                kept.files = "whole"
    assert [(moment, text) for _, _, moment, text in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.AFTER, "half"),
        (Moment.AFTER, "whole"),
    ]


@pytest.mark.parametrize("waited", [True, False])
async def test_of_hooks_that_were_ended_nobody_knows_whose_their_changes_are(*, waited: bool) -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    made = ports(Replies(calls("edit"), DONE), editing(kept, "edited"), log=log, checkpoints=kept)
    async with working(made, log) as run:
        files = run.session.checkpointer
        assert files is not None
        around = files.around_hooks(waited=waited)
        await around.__aenter__()
        kept.files = "half"
        ended = asyncio.CancelledError()
        assert not await around.__aexit__(type(ended), ended, None)
        await run.prompt()
    assert [(moment, text) for _, _, moment, text in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.FOUND, "half"),
        (Moment.BEFORE, "half"),
        (Moment.AFTER, "edited"),
    ]


async def test_hooks_of_a_call_that_changes_files_are_a_part_of_its_change() -> None:
    log = FakeLog()
    kept = KeptFiles(log)
    runs: list[Run] = []

    async def edit(_: Output) -> CallResult:
        files = runs[0].session.checkpointer
        assert files is not None
        kept.files = "edited"
        async with files.around_hooks(waited=True):
            kept.files = "formatted"
        async with files.around_hooks(waited=False):
            kept.files = "logged"
        return result_text(Outcome.OK, "edited")

    made = ports(Replies(calls("edit"), DONE), FakeTool("edit", edit, EDITS), log=log, checkpoints=kept)
    async with working(made, log) as run:
        runs.append(run)
        await run.prompt()
    assert [(moment, text) for _, _, moment, text in kept.moments()] == [
        (Moment.BEFORE, "nothing"),
        (Moment.AFTER, "logged"),
    ]
