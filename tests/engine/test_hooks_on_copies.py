"""What hooks answer, in a person's place, about what a command changed in its throw-away copy."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.engine.test_hooks import Said, critical, unconfined
from tests.engine.test_runtime import DONE, PATIENCE, Replies, working
from tests.fakes.engine import STARTED, FakeLog, FakeTool, agree, calls, ports
from treadle.engine.core import copy_fate
from treadle.engine.core.past_history import read_past
from treadle.engine.core.state import replace
from treadle.engine.ports import HookDecision, HookWord, Output
from treadle.protocol.errors import ToolError
from treadle.protocol.events import Answer, CallFinished, Interrupt, Prompt, SetPresence
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Text, text_of
from treadle.protocol.notifications import QuestionAsked, TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.permissions import Decision, Mode, OptionKind, Verdict
from treadle.protocol.sealed import ResultMade
from treadle.protocol.tools import (
    CallResult,
    ChangeKind,
    CopyChange,
    CopyChanges,
    CopyFate,
    Outcome,
    OutputFolder,
    result_text,
)

MADE = CopyChange(path="/made", kind=ChangeKind.ADDED)
BUILT = OutputFolder(path="/build", files=2)
COPIES = {
    "whole": CopyChanges(digest="c", changes=(MADE,)),
    "held": CopyChanges(digest="c", changes=(replace(MADE, held="a control file"),)),
    "troubled": CopyChanges(digest="c", changes=(MADE,), trouble="it needs git's data"),
    "unshown": CopyChanges(digest="c", changes=(replace(MADE, unshown=True),)),
    "outputs": CopyChanges(digest="c", outputs=(BUILT,)),
}
AS_IT_WAS = "The workspace is as it was."
ALLOW = HookWord(decision=HookDecision.ALLOW, reason="mine", by="the hook")
DENY = HookWord(decision=HookDecision.DENY, reason="not that", by="the hook")
WORDS: dict[str, dict[str, HookWord]] = {
    "nothing": {},
    "allows before": {"before_call": ALLOW},
    "allows": {"permission": ALLOW},
    "allows the same input": {"permission": replace(ALLOW, arguments={})},
    "denies": {"permission": DENY},
    "ends the turn": {"permission": HookWord(stop="enough", by="the hook")},
    "allows other input": {"permission": replace(ALLOW, arguments={"command": "other"})},
    "allows before, denies then": {"before_call": ALLOW, "permission": DENY},
}


@dataclass
class Ended:
    """How a turn with one command ended: what was asked and applied, and what the model read of the command."""

    outcome: TurnOutcome
    result: CallResult
    asked: int
    applied: list[str]

    @property
    def text(self) -> str:
        return text_of(self.result.content)


async def ran(
    copy: CopyChanges,
    said: Said,
    *,
    mode: Mode = Mode.ASK,
    present: bool,
    judge: Callable[..., Decision] = agree,
    problem: str = "",
) -> Ended:
    """Run a command that leaves this copy; a person who is asked says no."""
    log, applied, asked = FakeLog(), list[str](), 0

    async def tried(_: Output) -> CallResult:
        return replace(result_text(Outcome.OK, "printed"), copy=copy)

    async def keep(digest: str, /) -> CallResult:
        if problem:
            raise ToolError(problem)
        applied.append(digest)
        return CallResult(outcome=Outcome.OK)

    made = ports(Replies(calls("run"), DONE), FakeTool("run", tried), log=log, keep=keep, hooks=said, judge=judge)
    first = (replace(STARTED, mode=mode, limits=Limits(asks_end=True)), SetPresence(user_present=present))
    async with working(made, log, *first) as run, asyncio.timeout(PATIENCE):
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        async for told in run.feed:
            if isinstance(told, QuestionAsked):
                asked += 1
                await run.session.post(Answer(question_id=told.question.id, option=OptionKind.REJECT_ONCE))
            if isinstance(told, TurnEnded):
                break
        assert isinstance(told, TurnEnded)
        assert read_past(log.events).state == run.session.state
        return Ended(told.outcome, run.of(CallFinished, ResultMade)[-1].result, asked, applied)


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("kind", COPIES)
async def test_hooks_answer_for_a_copy_what_one_yes_of_a_person_would(kind: str, word: str, present: bool) -> None:
    said = Said(**WORDS[word])
    ended = await ran(COPIES[kind], said, present=present)
    heard = [moment for moment, _ in said.heard].count("permission")
    if kind == "outputs":
        assert (ended.applied, ended.asked, ended.outcome.denied, heard) == (["c"], 0, 0, 0)
        return
    allows = word.startswith("allows") and word != "allows other input"
    denies = word in ("denies", "ends the turn", "allows other input") or (word.endswith("then") and kind != "whole")
    assert heard == (0 if word.startswith("allows before") and kind == "whole" else 1)
    assert ended.outcome.stop is (TurnStop.CANCELLED if word == "ends the turn" else TurnStop.END_TURN)
    if allows and kind == "whole":
        assert (ended.applied, ended.asked, ended.outcome.denied) == (["c"], 0, 0)
        assert "A hook allowed its changes: mine. They are in the workspace now: /made (added)." in ended.text
    elif denies:
        assert (ended.applied, ended.asked, ended.outcome.denied) == ([], 0, 0)
        assert "A hook denied its changes: " in ended.text
        reason = {"ends the turn": "enough", "allows other input": '{"command":"other"}'}.get(word, "not that")
        assert reason in ended.text
    else:
        assert (ended.applied, ended.asked, ended.outcome.denied) == ([], int(present), int(not present))
        assert "hook" not in ended.text


@pytest.mark.parametrize("word", ["allows before", "allows"])
async def test_changes_that_a_hook_wanted_and_that_cannot_be_applied_were_wanted_by_no_person(word: str) -> None:
    ended = await ran(COPIES["whole"], Said(**WORDS[word]), present=True, problem="The files were changed meanwhile.")
    assert (ended.applied, ended.asked) == ([], 0)
    assert ended.text == "printed\n[The files were changed meanwhile. A hook wanted to keep: /made (added).]"


@pytest.mark.parametrize("judge", [critical, unconfined])
async def test_a_hook_allows_no_trial_of_what_it_could_not_allow_before(judge: Callable[..., Decision]) -> None:
    def allowed(*about: object) -> Decision:
        return replace(judge(*about), verdict=Verdict.ALLOW)

    for word in ("allows before", "allows"):
        ended = await ran(COPIES["whole"], Said(**WORDS[word]), present=False, judge=allowed)
        assert (ended.applied, ended.outcome.denied) == ([], 1)


@pytest.mark.parametrize("word", ["allows before", "allows", "denies"])
async def test_hooks_are_not_asked_where_nothing_of_a_copy_is_kept(word: str) -> None:
    said = Said(**WORDS[word])
    ended = await ran(COPIES["whole"], said, mode=Mode.PLAN, present=True)
    assert (ended.applied, ended.asked) == ([], 0)
    assert "permission" not in [moment for moment, _ in said.heard]


@pytest.mark.parametrize("moment", ["permission", "after_call"])
@pytest.mark.parametrize("present", [True, False])
async def test_an_interrupt_while_a_hook_looks_at_a_copy_discards_it(moment: str, *, present: bool) -> None:
    looking = asyncio.Event()

    async def slow(*_: object) -> HookWord:
        looking.set()
        await asyncio.sleep(PATIENCE)
        return ALLOW

    hooks = Said()
    setattr(hooks, moment, slow)

    log = FakeLog()

    async def tried(_: Output) -> CallResult:
        return replace(result_text(Outcome.OK, "printed"), copy=COPIES["whole"])

    made = ports(Replies(calls("run"), DONE), FakeTool("run", tried), log=log, hooks=hooks)
    async with working(made, log, STARTED, SetPresence(user_present=present)) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(looking.wait(), PATIENCE)
        await run.session.post(Interrupt())
        outcome = await run.end()
    assert (outcome.stop, outcome.denied) == (TurnStop.CANCELLED, int(not present))
    result = run.of(CallFinished, ResultMade)[-1].result
    assert result.copy is not None
    assert result.copy.fate is CopyFate.DISCARDED
    why = copy_fate.BEFORE_KEPT if present else copy_fate.NOBODY_TO_KEEP
    assert text_of(result.content) == f"printed\n[{why} Changes that were discarded: /made (added). {AS_IT_WAS}]"
