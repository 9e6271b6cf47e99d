"""One subagent at work: what it does is told to the parent, what it asks is put there, and what came of it is found."""

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import reduce
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Asked, AskPerson
from treadle.present.words import clip_text, counted, describe_call
from treadle.protocol.children import ChildEnded, ChildOutcome, ChildStarted
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Interrupt, Prompt, SetMode, SetPresence, Source
from treadle.protocol.messages import Text, ToolUse
from treadle.protocol.models import money
from treadle.protocol.notifications import (
    CHILD_OUTCOMES,
    CallChanged,
    CallStatus,
    ChildSaid,
    MessageDone,
    Notification,
    QuestionAsked,
    QuestionClosed,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    TurnStop,
    child_changed,
)
from treadle.protocol.permissions import Mode, Question
from treadle.protocol.sealed import TurnSettled
from treadle.protocol.tools import OUTSIDE, FileChange, ToolKind
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import Store

if TYPE_CHECKING:
    from treadle.app.session.children.renaming import Renaming
    from treadle.app.session.live import LiveSession

_WHY = {
    TurnStop.MAX_TURN_REQUESTS: "it reached its limit of steps",
    TurnStop.BUDGET: "its budget was used up",
    TurnStop.TIME: "its time was up",
    TurnStop.LOOP: "it repeated itself",
    TurnStop.MISTAKES: "its calls could not be used",
    TurnStop.REFUSAL: "the model refused",
    TurnStop.CANCELLED: "it was stopped",
}

_UNTOLD = (ToolKind.EXECUTE, ToolKind.OTHER)
"""Kinds of tools whose calls do not say which files they change."""

_DOING = 80
"""Characters of what it does now."""

_LOOK = "It had changed {}. See whether that is in the workspace."

_MOST_INTERRUPTED = 6_000
"""Characters that the subagents of a call bring together where it was interrupted."""

_FROM_OUTSIDE = "[left out: it may repeat text from outside]"

CUT_OFF = "its session ended before its turn"
"""Why a subagent failed whose log ends within its turn."""


class ChildResult(Struct, frozen=True, kw_only=True):
    """What came of a subagent: how it `ended`, what it said, and whether it read text from outside.

    Of one that may write `applied` is what it changed in the workspace, and `after` says what became of its changes.
    """

    ended: ChildEnded
    text: str
    tainted: bool
    applied: tuple[FileChange, ...] = ()
    after: str = ""


class ChildRun:
    """A subagent that works; `publish` tells the surfaces of the parent, `ask` asks the user there.

    What one asks that works in a copy has the `names` of the workspace in the place of those of the copy. Once a call
    ran that does not say which files it changes, such as a command, `changes_are_all` is False.
    """

    names: "Renaming | None" = None

    def __init__(self, started: ChildStarted, publish: Callable[[Notification], None], ask: AskPerson) -> None:
        self.started = started
        self._publish = publish
        self._ask = ask
        self._live: LiveSession | None = None
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._told = child_changed(started)
        self._tainted = False
        self._tools: dict[str, str] = {}
        self._changes: dict[str, FileChange] = {}
        self.changes_are_all = True
        self._outcome: TurnOutcome | None = None
        self._in_turn = False
        self.stopped = False

    async def work(self, live: "LiveSession", prompt: str) -> ChildResult:
        """Let it work from where it is to the end of its turn, and of the turns for what a person says to it then."""
        self._live = live
        try:
            async with live, live.follow() as feed:
                past = [one.notification for one in live.past]
                self._remember(past)
                if live.empty:
                    content = (Text(text=prompt),)
                    await live.wake(Prompt(id=uuid.uuid4().hex, content=content), self._source)
                if self.stopped:
                    await self.stop()
                for notification in live.opening:
                    self._take(notification)
                while self._goes_on(live) and (heard := await anext(feed, None)) is not None:
                    self._take(heard)
        finally:
            for task in self._asking.values():
                task.cancel()
            await asyncio.gather(*self._asking.values(), return_exceptions=True)
        return self._result()

    def _goes_on(self, live: "LiveSession") -> bool:
        """Whether its turn is not over, or what came while the last answer was on its way gets a turn of its own."""
        if self._outcome is None:
            return True
        comes = live.status.turn_active or bool(live.status.queue)  # what is told of it is still on its way
        return self._in_turn or (comes and not self.stopped)

    async def stop(self) -> None:
        """Interrupt it; what it has said so far stays."""
        self.stopped = True
        if self._live is not None:
            with suppress(RefusedError):
                await self._live.wake(Interrupt(), self._source)

    async def set_mode(self, mode: Mode) -> None:
        """Work on in a mode."""
        if self._live is not None and self._live.status.mode is not mode:
            with suppress(RefusedError):
                await self._live.wake(SetMode(mode=mode), self._source)

    @property
    def opened(self) -> bool:
        """Whether its session was opened."""
        return self._live is not None

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """Give what its calls changed, each file once: as it was before all of them, and is after."""
        return tuple(one for one in self._changes.values() if one.before != one.after)

    @property
    def _source(self) -> Source:
        return Source(kind="parent")

    def _remember(self, past: Iterable[Notification]) -> None:
        for one in past:
            if isinstance(one, CallChanged):
                self._look_at(one)
            elif isinstance(one, MessageDone):
                self._count(one)
            elif isinstance(one, TurnStarted):
                self._in_turn = True
            elif isinstance(one, TurnEnded):
                self._end(one.outcome)

    def _end(self, outcome: TurnOutcome) -> None:
        self._in_turn = False
        self._outcome = outcome if self._outcome is None else _both(self._outcome, outcome)

    def _take(self, notification: Notification) -> None:
        match notification:
            case CallChanged():
                self._take_call(notification)
            case MessageDone():
                self._count(notification)
                self._say(notification)
                self._tell(doing="" if _calls(notification) else "answers")
            case QuestionAsked(question=question) if question.id not in self._asking:
                self._asking[question.id] = asyncio.create_task(self._relay(question), name="question of a subagent")
                self._tell(doing="waits for your answer")
            case QuestionClosed(question_id=question_id) if question_id in self._asking:
                self._asking[question_id].cancel()
            case TurnStarted():
                self._in_turn = True
            case TurnEnded(outcome=outcome):
                self._end(outcome)
            case _:
                pass

    def _take_call(self, changed: CallChanged) -> None:
        self._tools[changed.call.id] = changed.call.name
        self._look_at(changed)
        if changed.status is CallStatus.RUNNING:
            self._tell(doing=clip_text(describe_call(changed).text, _DOING))
        elif changed.status is CallStatus.FINISHED:
            self._say(changed)

    def _look_at(self, changed: CallChanged) -> None:
        self._tainted = self._tainted or _brings_outside(changed)
        if changed.kind in _UNTOLD and changed.status is CallStatus.RUNNING:
            self.changes_are_all = False
        if changed.status is CallStatus.FINISHED and changed.result is not None:
            for one in changed.result.changes:
                first = self._changes.get(one.path)
                self._changes[one.path] = one if first is None else replace(one, before=first.before)

    def _count(self, message: MessageDone) -> None:
        told = self._told
        cost = None if told.cost is None or message.cost is None else told.cost + message.cost
        self._told = replace(told, steps=told.steps + 1, usage=told.usage + message.usage, cost=cost)

    def _tell(self, *, doing: str) -> None:
        self._publish(replace(self._told, doing=doing))

    def _say(self, said: MessageDone | CallChanged) -> None:
        self._publish(ChildSaid(session_id=self.started.session_id, call_id=self.started.call_id, said=said))

    async def _relay(self, question: Question) -> None:
        """Put a question to the user of the parent; where nobody is there the subagent is told so, and goes on."""
        live, started = self._live, self.started
        assert live is not None  # noqa: S101 - it asks while it is open
        relayed = replace(
            question if self.names is None else self.names.question(question),
            child=started.session_id,
            agent=started.agent,
            task=started.task,
            tool=self._tools.get(question.call_id, ""),
            child_call=question.call_id,
        )
        reply = await self._ask(Asked(text=relayed.text, relayed=relayed, outlives=started.background))
        if reply.withdrawn and not started.background:
            return  # it is being stopped: an answer would let its command go on meanwhile
        with suppress(RefusedError):
            if reply.answer is None:
                await live.wake(SetPresence(user_present=False), self._source)
            else:
                answer = reply.answer if self.names is None else self.names.answer(reply.answer)
                await live.wake(replace(answer, question_id=question.id), self._source)

    def _result(self) -> ChildResult:
        outcome, told = self._outcome, self._told
        if outcome is None:
            ended = ChildEnded(
                session_id=told.session_id,
                outcome=ChildOutcome.FAILED,
                why=CUT_OFF,
                steps=told.steps,
                usage=told.usage,
                cost=told.cost,
            )
            return ChildResult(ended=ended, text="", tainted=self._tainted)
        error = "" if outcome.error is None else outcome.error.message
        ended = ChildEnded(
            session_id=told.session_id,
            outcome=CHILD_OUTCOMES[outcome.stop],
            why=outcome.why or error or _WHY.get(outcome.stop, ""),
            steps=outcome.steps,
            usage=outcome.usage,
            cost=outcome.cost,
            denied=outcome.denied,
            refused=outcome.refused,
            digest=sha256(outcome.text.encode()).hexdigest() if outcome.text else "",
        )
        return ChildResult(ended=ended, text=outcome.text, tainted=self._tainted)


def failed(started: ChildStarted, why: str) -> ChildResult:
    """Give what came of a subagent that could not be opened, or whose log cannot be written."""
    ended = ChildEnded(session_id=started.session_id, outcome=ChildOutcome.FAILED, why=why)
    return ChildResult(ended=ended, text="", tainted=False)


def stopped_late(started: ChildStarted) -> ChildResult:
    """Give what came of a subagent that was stopped and did not end in time; what it cost is not known."""
    why = _WHY[TurnStop.CANCELLED]
    ended = ChildEnded(session_id=started.session_id, outcome=ChildOutcome.INTERRUPTED, why=why, cost=None)
    return ChildResult(ended=ended, text="", tainted=True)


def stopped_before(started: ChildStarted) -> ChildResult:
    """Give what came of a subagent that was stopped before its session was opened."""
    why = _WHY[TurnStop.CANCELLED]
    ended = ChildEnded(session_id=started.session_id, outcome=ChildOutcome.INTERRUPTED, why=why)
    return ChildResult(ended=ended, text="", tainted=False)


def over_before(ended: ChildEnded, store: Store) -> ChildResult:
    """Give what came of a subagent that ended before the program did: its log has the text that it ended with.

    Its changes are where they were brought then. Whether it read text from outside is not known any more.
    """
    rows = store.of_types(ended.session_id, (tag_of(TurnSettled),))
    settled = [event_data(raw, version) for _, _, raw, version in rows]
    outcomes = [one.outcome for one in settled if isinstance(one, TurnSettled)]
    text = reduce(_both, outcomes).text if outcomes else ""
    names = ", ".join(one.path for one in ended.changes)
    return ChildResult(ended=ended, text=text, tainted=True, after=_LOOK.format(names) if names else "")


def _both(first: TurnOutcome, then: TurnOutcome) -> TurnOutcome:
    """Give what came of two turns as of one: how the second ended, with all that was said and spent."""
    return replace(
        then,
        text="\n\n".join(filter(None, (first.text, then.text))),
        steps=first.steps + then.steps,
        usage=first.usage + then.usage,
        cost=None if first.cost is None or then.cost is None else first.cost + then.cost,
        denied=first.denied + then.denied,
        refused=first.refused + then.refused,
    )


def _brings_outside(changed: CallChanged) -> bool:
    result, decision = changed.result, changed.decision
    return result is not None and (result.origin in OUTSIDE or (decision is not None and decision.outside))


def _calls(message: MessageDone) -> bool:
    return any(isinstance(block, ToolUse) for block in message.message.content)


def is_done(result: ChildResult) -> bool:
    """Whether a subagent did its task to the end."""
    return result.ended.outcome is ChildOutcome.DONE


def how_many_are_done(results: Sequence[ChildResult]) -> str:
    """Say how many of the subagents of a call are done."""
    done, all_of_them = sum(map(is_done, results)), len(results)
    if done == all_of_them:
        return "The subagent is done." if done == 1 else f"All {done} subagents are done."
    if all_of_them == 1:
        return "The subagent did not finish."
    return f"{done or 'None'} of {all_of_them} subagents {'is' if done < 2 else 'are'} done."


def child_answer(started: ChildStarted, result: ChildResult, most: int) -> str:
    """Say what came of a subagent as the model reads it, with at most so many characters of its text."""
    ended, text = result.ended, result.text.strip()
    if len(text) > most:
        text = f"{text[:most]}\n[cut here; the whole is {len(text):,} characters long]"
    head = f'<subagent agent="{started.agent}" id="{ended.session_id}" outcome="{ended.outcome}">'
    spent = f"{counted(ended.steps, 'step')}, {money(ended.cost, estimated=ended.usage.estimated)}"
    after = f"\n\n{result.after}" if result.after else ""
    if ended.outcome is ChildOutcome.DONE:
        return f"{head}\n{text or '(it ended without a word)'}{after}\n</subagent>"
    so_far = f" What it had written:\n{text}" if text else ""
    why = ended.why.rstrip(".")
    return f"{head}\nIt did not finish: {why} ({spent}).{so_far}{after}\n</subagent>"


def what_came(started: Sequence[ChildStarted], results: Sequence[object]) -> str:
    """Say of each subagent of an interrupted call how it ended, and what it had written where that is its own."""
    most = _MOST_INTERRUPTED // len(started)
    return "\n\n".join(
        child_answer(one, replace(result, text=_FROM_OUTSIDE) if result.tainted and result.text else result, most)
        for one, result in zip(started, results, strict=False)
        if isinstance(result, ChildResult)
    )
