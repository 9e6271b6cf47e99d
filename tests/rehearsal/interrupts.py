"""Interrupts of the engine at random moments: its session and runtime over ports that take their time and resist."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.engine.world import check_messages
from tests.fakes.engine import SPEC, STARTED, ports
from tests.fakes.slow import TRAITS, Delay, SlowEnvironment, SlowLog, SlowProvider, SlowPurse, SlowTool, judge_by
from tests.rehearsal.replays import conditions_of, replay_events
from treadle.engine.core.advance import fold
from treadle.engine.core.state import replace
from treadle.engine.ports import Ports
from treadle.engine.replay.strict import Conditions
from treadle.engine.runtime.feeds import Feed
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallProposed,
    CallStarted,
    Delivery,
    Event,
    EventData,
    Interrupt,
    Prompt,
    SetLimits,
    SetMode,
    SetModel,
    SetPresence,
)
from treadle.protocol.limits import Budget, Limits
from treadle.protocol.messages import Message, Text
from treadle.protocol.models import (
    ModelChoice,
    ToolProtocol,
)
from treadle.protocol.notifications import QuestionAsked, TurnEnded
from treadle.protocol.permissions import Mode, OptionKind, QuestionKind
from treadle.protocol.tools import (
    ToolEffect,
)

HANGS = 20.0
"""Seconds after which an interrupt counts as one that hangs; figures of how long they take are printed, not judged."""

_FOLLOWED = (
    "Prompt",
    "ContextReady",
    "ContextExceeded",
    "Compacted",
    "CallProposed",
    "ReplyFinished",
    "ReplyFailed",
    "CallJudged",
    "CallStarted",
    "CallFinished",
    "Answer",
)


@dataclass(frozen=True, slots=True)
class Interrupted:
    """What came of one interrupt; `seconds` is None where the turn was over before it came."""

    seed: str
    seconds: float | None = None
    trouble: str = ""


@dataclass(slots=True)
class Attempt:
    """One session and the interrupt that comes to it."""

    seed: str
    jitter: Random
    session: Session
    made: Ports
    log: SlowLog
    tools: Sequence[SlowTool]
    feed: Feed
    conditions: Conditions
    posted: asyncio.Event = field(default_factory=asyncio.Event)
    posted_at: float = 0.0

    def interrupt(self) -> None:
        """Post the interrupt, and perhaps something else before or behind it in the same batch."""
        if self.posted.is_set():
            return
        others: list[EventData] = [
            Interrupt(),
            SetMode(mode=self.jitter.choice(list(Mode))),
            SetModel(choice=ModelChoice(model="fake/two", tool_protocol=ToolProtocol.XML)),
            SetPresence(user_present=self.jitter.random() < 0.5),
            SetLimits(limits=Limits(max_steps=5)),
            Prompt(id="steered", content=(Text(text="also"),), delivery=Delivery.STEER),
            Prompt(id="queued", content=(Text(text="next"),)),
        ]
        around = self.jitter.sample(others, self.jitter.choice([0, 0, 1, 2]))
        place = self.jitter.randint(0, len(around))
        for data in (*around[:place], Interrupt(), *around[place:]):
            self.session.post_soon(data)
        self.posted_at = asyncio.get_running_loop().time()
        self.posted.set()

    def follow_log(self) -> None:
        """Interrupt some passes of the loop after an event of a certain kind, the first or a later one."""
        kind, count, passes = self.jitter.choice(_FOLLOWED), self.jitter.randint(1, 3), self.jitter.randrange(8)
        loop = asyncio.get_running_loop()

        def wait(left: int) -> None:
            if left:
                loop.call_soon(wait, left - 1)
            else:
                self.interrupt()

        def look(events: Sequence[Event]) -> None:
            nonlocal count
            count -= sum(type(event.data).__name__ == kind for event in events)
            if count <= 0:
                self.log.appended = lambda _: None
                wait(passes)

        self.log.appended = look


async def interrupt_once(seed: str) -> Interrupted:
    """Run one session and interrupt it."""
    attempt = _attempt(seed)
    before = asyncio.all_tasks()
    lost: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: lost.append(f"{context['message']}: {context.get('exception')!r}"))
    working = asyncio.create_task(attempt.session.run(attempt.made))
    person = asyncio.create_task(_answer(attempt.session, attempt.session.follow(), attempt.jitter))
    seconds = None
    try:
        seconds = await _to_the_end(attempt)
        person.cancel()
        await asyncio.gather(person, return_exceptions=True)
        trouble = await _close(attempt, working, before)
    except TimeoutError:
        trouble = f"hangs: {attempt.log.batches[-4:]}"
    except Exception as error:  # noqa: BLE001 - one session's failure is reported beside the others'
        trouble = f"{type(error).__name__}: {error}"
    for task in (person, working):
        task.cancel()
    await asyncio.gather(person, working, return_exceptions=True)
    loop.set_exception_handler(None)
    found = "; ".join(filter(None, (trouble, *lost)))
    return Interrupted(seed=seed, seconds=seconds, trouble=found and f"seed {seed!r}: {found}")


def _attempt(seed: str) -> Attempt:
    jitter = Random(seed)
    delay = Delay(jitter)
    tools = [SlowTool(name, delay) for name in TRAITS]
    log = SlowLog(delay)
    provider = SlowProvider(delay)
    window = jitter.choice([None, 10_000])
    made = ports(
        provider,
        *tools,
        log=log,
        environment=SlowEnvironment(delay),
        shared_budgets=SlowPurse(delay),
        judge=judge_by(jitter),
        model=lambda _: replace(SPEC, context_window=window),
        jitter=jitter.random,
    )
    session = Session(Track(), made.clock)
    feed, conditions = session.follow(), conditions_of(made)
    return Attempt(
        seed=seed, jitter=jitter, session=session, made=made, log=log, tools=tools, feed=feed, conditions=conditions
    )


async def _to_the_end(attempt: Attempt) -> float | None:
    """Give the seconds from the interrupt to the end of its turn; None where that was over before."""
    session, jitter = attempt.session, attempt.jitter
    protocol = jitter.choice([*ToolProtocol, ToolProtocol.NATIVE])
    budget = jitter.choice([Budget(), Budget(tokens=50_000)])
    limits = Limits(max_steps=jitter.choice([4, 12]), max_seconds=jitter.choice([None, 0.02, 60.0]), day=budget)
    await session.post(replace(STARTED, choice=replace(STARTED.choice, tool_protocol=protocol), limits=limits))
    await session.post(SetPresence(user_present=jitter.random() < 0.8))
    attempt.follow_log()
    await session.post(Prompt(id="p", content=(Text(text="go"),)))
    latest = jitter.choice([0.002, 0.01, 0.03])
    timer = asyncio.get_running_loop().call_later(latest * (1 + jitter.random()), attempt.interrupt)
    ends = asyncio.create_task(_first_end(attempt.feed))
    posted = asyncio.create_task(attempt.posted.wait())
    try:
        async with asyncio.timeout(HANGS):
            await asyncio.wait({ends, posted}, return_when=asyncio.FIRST_COMPLETED)
            if not posted.done():
                return None
            ended = await ends
    finally:
        timer.cancel()
        ends.cancel()
        posted.cancel()
    return max(0.0, ended - attempt.posted_at)


async def _first_end(feed: Feed) -> float:
    async for item in feed:
        if isinstance(item, TurnEnded):
            return asyncio.get_running_loop().time()
    raise RuntimeError("the session ended before its turn")


async def _answer(session: Session, feed: Feed, jitter: Random) -> None:
    """Answer what is asked, now and then."""
    async for item in feed:
        if not isinstance(item, QuestionAsked) or jitter.random() < 0.4:
            continue
        await asyncio.sleep(jitter.random() * 0.003)
        permission = item.question.kind is QuestionKind.PERMISSION
        option = jitter.choice([OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE]) if permission else OptionKind.ANSWER
        try:
            await session.post(Answer(question_id=item.question.id, option=option, text="so"))
        except RefusedError:
            continue


async def _close(attempt: Attempt, working: asyncio.Task[None], before: set[asyncio.Task[Any]]) -> str:
    """Close the session; say what is wrong with what it leaves."""
    session = attempt.session
    async with asyncio.timeout(HANGS):
        await session.close()
        await working
    left = [str(task.get_coro()) for task in asyncio.all_tasks() - before if not task.done()]
    if left:
        return f"tasks are left after the end: {left}"
    if any(tool.running for tool in attempt.tools):
        return "a call runs on after the end"
    if fold(attempt.log.events) != session.state:
        return "the log folds to another state"
    if unfinished := _unfinished(attempt.log.events):
        return f"calls were started and never finished: {unfinished}"
    if (replayed := replay_events(attempt.log.events, attempt.conditions)).difference is not None:
        return f"the log is rebuilt as another one: {replayed.difference}"
    for protocol in ToolProtocol:
        messages = session.transcript.messages(protocol)
        try:
            check_messages(messages)
        except AssertionError:
            return f"the conversation is not valid: {[_short(message) for message in messages]}"
    return ""


def _unfinished(events: Sequence[Event]) -> set[str]:
    """Name the calls without an end; those that only read may go with a reply that broke."""
    open_calls: set[str] = set()
    readers = {
        event.data.call.id
        for event in events
        if isinstance(event.data, CallProposed) and event.data.traits.effect is ToolEffect.PURE
    }
    for event in events:
        if isinstance(event.data, CallStarted):
            open_calls.add(event.data.call_id)
        elif isinstance(event.data, CallFinished):
            open_calls.discard(event.data.call_id)
    return open_calls - readers


def _short(message: Message) -> str:
    """Name the blocks of a message, with the calls that they are about."""
    ids = [getattr(block, "id", getattr(block, "call_id", "")) for block in message.content]
    kinds = [type(block).__name__ for block in message.content]
    return f"{message.role}: " + " ".join(f"{kind} {about}".strip() for kind, about in zip(kinds, ids, strict=True))


async def interrupt_all(seed: int, count: int) -> list[Interrupted]:
    """Interrupt sessions, one after the other."""
    return [await interrupt_once(f"{seed}-{number}") for number in range(count)]
