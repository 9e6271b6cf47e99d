"""Subagents that nobody waits for: what they ask comes to the session, whatever that does then, and none hangs."""

import asyncio
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.app.subagents.families import ME, Family, call, events_of, family
from tests.e2e.running import PATIENCE
from treadle.app.history.branching import branch_at_step
from treadle.app.history.forking import copy_elsewhere, copy_whole
from treadle.app.session.children.child_plans import ChildPlans
from treadle.app.slash.further_folders import add_dir
from treadle.engine.runtime.feeds import Feed
from treadle.present.items import NoteItem
from treadle.present.record_words import recorded
from treadle.present.view import SessionView
from treadle.protocol.checkpoints import Restore
from treadle.protocol.children import ChildEnded, ChildOutcome
from treadle.protocol.events import Answer, CallFinished, Prompt, SetMode, SetPresence
from treadle.protocol.messages import Text
from treadle.protocol.notifications import ChildChanged, ConversationRewound, QuestionAsked, TurnEnded
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.sealed import ResultMade
from treadle.providers.scripted.script import Expectation, SayText, Texts, Turn, Wait

AGENT = """---
name: reader
description: reads
tools: Read
---
You are a subagent that reads.
"""
OF_CHILD = Texts(contains=("You are a subagent",))
BEGUN = Expectation(last_result=Texts(contains=("work by themselves",)))
SECRET = "the text outside"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws" / ".treadle" / "agents").mkdir(parents=True)
    (tmp_path / "ws" / ".treadle" / "agents" / "reader.md").write_text(AGENT)
    (tmp_path / "outside.txt").write_text(SECRET)
    return (tmp_path / "ws").resolve()


def turns(folder: Path, *, busy: bool) -> tuple[Turn, ...]:
    """A subagent reads outside of the folder, while its session works (`busy`) or has ended its turn."""
    begins = call("use_subagents", tasks=[{"prompt": "Read it.", "agent": "reader"}], wait=False)
    return (
        Turn(when=Expectation(system=OF_CHILD, assistant_messages=1), items=(SayText(text="I have looked."),)),
        Turn(when=Expectation(system=OF_CHILD), items=(call("read_file", path=str(folder.parent / "outside.txt")),)),
        Turn(when=Expectation(last_user=Texts(contains=("has ended",))), items=(SayText(text="Thanks."),)),
        Turn(when=Expectation(assistant_messages=0), items=(begins,)),
        Turn(when=BEGUN, items=(*([Wait(seconds=0.4)] if busy else []), SayText(text="Going on."))),
    )


async def until_thanks(own: Family, said: str) -> None:
    """Follow the session until it was woken; each question gets this answer, or nobody is there any more."""
    async with own.live.follow() as feed:
        await own.live.post(Prompt(id="p", content=(Text(text="Go."),)), ME)
        async for one in feed:
            if isinstance(one, QuestionAsked):
                own.asked.append(one.question)
                if said == "leaves":
                    await own.live.post(SetPresence(user_present=False), ME)
                else:
                    option = OptionKind.ALLOW_ONCE if said == "yes" else OptionKind.REJECT_ONCE
                    await own.live.post(Answer(question_id=one.question.id, option=option), ME)
            if isinstance(one, TurnEnded) and one.outcome.text == "Thanks.":
                return


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("said", "mode", "busy"),
    [
        *(("yes", mode, busy) for mode, busy in product((Mode.ASK, Mode.AUTO), (False, True))),
        *((said, Mode.ASK, False) for said in ("no", "leaves", "nobody")),
    ],
)
async def test_what_one_in_the_background_asks_is_answered_or_denied_and_it_ends(
    folder: Path, said: str, mode: Mode, busy: bool
) -> None:
    async with family(folder, *turns(folder, busy=busy), mode=mode, present=said != "nobody") as own:
        await asyncio.wait_for(until_thanks(own, said), PATIENCE)
    assert [(one.agent, bool(one.child)) for one in own.asked] == ([] if said == "nobody" else [("reader", True)])
    (ended,) = events_of(ChildEnded)
    assert ended.outcome is ChildOutcome.DONE
    results = str([one.result for kind in (CallFinished, ResultMade) for one in events_of(kind)])
    assert (SECRET in results) is (said == "yes")


@pytest.mark.parametrize("later", [Mode.ASK, Mode.EDITS, Mode.AUTO])
async def test_one_in_the_background_has_the_rights_that_its_session_has_then(folder: Path, later: Mode) -> None:
    begins = call("use_subagents", tasks=[{"prompt": "Run it.", "agent": "explore"}], wait=False)
    explore = folder / ".treadle" / "agents" / "explore.md"
    explore.write_text(AGENT.replace("reader", "explore").replace("tools: Read", "tools: Read, WebFetch"))
    outside = str(folder.parent / "outside.txt")
    script = (
        Turn(when=Expectation(system=OF_CHILD, assistant_messages=1), items=(SayText(text="I have looked."),)),
        Turn(
            when=Expectation(system=OF_CHILD),
            items=(Wait(seconds=0.4), call("read_file", path=outside)),
        ),
        Turn(when=Expectation(last_user=Texts(contains=("has ended",))), items=(SayText(text="Thanks."),)),
        Turn(when=Expectation(assistant_messages=0), items=(begins,)),
        Turn(when=BEGUN, items=(SayText(text="Going on."),)),
    )
    async with family(folder, *script, mode=Mode.FULL) as own, own.live.follow() as feed:
        await own.live.post(Prompt(id="p", content=(Text(text="Go."),)), ME)
        async with asyncio.timeout(PATIENCE):
            async for one in feed:
                if isinstance(one, TurnEnded) and one.outcome.text == "Going on.":
                    await own.live.post(SetMode(mode=later), ME)
                if isinstance(one, QuestionAsked):
                    own.asked.append(one.question)
                    await own.live.post(Answer(question_id=one.question.id, option=OptionKind.REJECT_ONCE), ME)
                if isinstance(one, TurnEnded) and one.outcome.text == "Thanks.":
                    break
    assert len(own.asked) == 1  # the mode in which it was begun would not have asked
    assert SECRET not in str([one.result for one in events_of(CallFinished)])


async def begin_one(own: Family, feed: Feed) -> None:
    """Begin one that asks, and end the turn."""
    await own.live.post(Prompt(id="p", content=(Text(text="Go."),)), ME)
    waits = {"asks", "ends"}
    async for one in feed:
        waits -= {"asks"} if isinstance(one, QuestionAsked) else {"ends"} if isinstance(one, TurnEnded) else set()
        if not waits:
            return


async def go_back(own: Family, feed: Feed) -> None:
    """Begin one that asks, and take the conversation back behind the message that began it."""
    await begin_one(own, feed)
    await own.live.post(Restore(files=False, conversation=True, to=1), ME)
    async for one in feed:
        if isinstance(one, ConversationRewound):
            return


@pytest.mark.parametrize("closes", [False, True])
async def test_one_whose_beginning_left_the_conversation_is_stopped_and_tells_it_nothing(
    folder: Path, *, closes: bool
) -> None:
    async with asyncio.timeout(PATIENCE):
        async with family(folder, *turns(folder, busy=False)) as own, own.live.follow() as feed:
            await go_back(own, feed)
            while not closes:
                heard = await anext(feed)
                assert not isinstance(heard, TurnEnded)
                if isinstance(heard, ChildChanged) and heard.outcome is not None:
                    break
        async with family(folder, resume=own.live.id) as again:
            assert not again.live.awaits_subagents()
    (ended,) = events_of(ChildEnded)
    assert ended.outcome is ChildOutcome.INTERRUPTED
    assert not any(one.id.startswith("ended-") for one in events_of(Prompt))


async def test_one_that_is_about_to_begin_when_its_beginning_leaves_the_conversation_does_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, known = asyncio.Event(), ChildPlans.is_known

    async def is_known(plans: ChildPlans, session_id: str) -> bool:
        await gone.wait()
        return await known(plans, session_id)

    monkeypatch.setattr(ChildPlans, "is_known", is_known)
    async with asyncio.timeout(PATIENCE):
        async with family(folder, *turns(folder, busy=False)) as own, own.live.follow() as feed:
            await own.live.post(Prompt(id="p", content=(Text(text="Go."),)), ME)
            async for one in feed:
                if isinstance(one, TurnEnded):
                    await own.live.post(Restore(files=False, conversation=True, to=1), ME)
                if isinstance(one, ConversationRewound):
                    await asyncio.sleep(0.1)
                    gone.set()
                if isinstance(one, ChildChanged) and one.outcome is not None:
                    break
    (ended,) = events_of(ChildEnded)
    assert ended.outcome is ChildOutcome.INTERRUPTED
    assert ended.usage.context_tokens == 0


NOTE = 'Subagent reader, "Read it.": left to the session that this is a copy of'
COPIES: dict[str, Callable[[str, Path], str]] = {
    "whole": lambda session_id, _: copy_whole(session_id),
    "elsewhere": copy_elsewhere,
    "at a step": lambda session_id, folder: branch_at_step(session_id, 2, folder).id,
}


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("closes", [False, True])
async def test_one_that_works_goes_on_in_its_own_session_and_in_no_copy_of_it(
    folder: Path, kind: str, *, closes: bool
) -> None:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()

    async def use_copy() -> None:
        copy = await asyncio.to_thread(COPIES[kind], own.live.id, elsewhere)
        async with family(folder if kind == "whole" else elsewhere, *turns(folder, busy=False), resume=copy) as again:
            assert not again.live.awaits_subagents()
            view, items = recorded(again.live.past, SessionView())
        assert (view.children, view.questions) == ((), ())
        assert [one.item.text for one in items if isinstance(one.item, NoteItem)] == [NOTE]

    async with asyncio.timeout(PATIENCE):
        async with family(folder, *turns(folder, busy=False)) as own, own.live.follow() as feed:
            await begin_one(own, feed)
            if not closes:
                await use_copy()
        if closes:
            await use_copy()
    assert events_of(ChildEnded) == []


async def test_a_session_whose_copy_would_go_on_without_its_subagents_has_them_end_first(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir()
    async with asyncio.timeout(PATIENCE):
        async with family(folder, *turns(folder, busy=False)) as own, own.live.follow() as feed:
            await begin_one(own, feed)
            working = add_dir(own.live, "../elsewhere")
            (question,) = own.live.status.questions
            await own.live.post(Answer(question_id=question.id, option=OptionKind.REJECT_ONCE), ME)
            async for one in feed:
                if isinstance(one, TurnEnded):
                    break
            ended = add_dir(own.live, "../elsewhere")
    assert (working.opens, working.text.partition(",")[0]) == ("", "Subagents work in the background")
    assert ended.opens
