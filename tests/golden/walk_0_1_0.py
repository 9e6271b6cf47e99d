# mypy: ignore-errors
"""Random sessions of Treadle 0.1.0, for `compare_with_0_1_0`: runs with the source of 0.1.0 on the path, not with ours,
whose types are others.

Prints a line of JSON for each walk: the rows of its log, and what 0.1.0 makes of them itself.
"""

import json
import random
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from treadle.engine.explore import Choose, World

from treadle.app.reports.session_text import _lines
from treadle.context.transcript import Transcript
from treadle.engine import explore
from treadle.engine.core.machine_effects import CallModel, Compact, Effect, JudgeCall, RunTool
from treadle.engine.core.past_history import read_past, sealed_message
from treadle.engine.core.state import AwaitingReply, CallStatus, replace
from treadle.engine.runtime import window
from treadle.protocol.codec import decode_data, encode
from treadle.protocol.events import (
    CallFinished,
    CallJudged,
    CallStarted,
    Compacted,
    ContextReady,
    EditChecklist,
    Event,
    EventData,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    SetLimits,
    SetModel,
    SetPresence,
)
from treadle.protocol.limits import Budget, Limits, Terms
from treadle.protocol.messages import Image, Message, Role, Text
from treadle.protocol.models import ErrorKind, ModelSpec, Spent, ToolProtocol
from treadle.protocol.notifications import Notification, QuestionAsked, RetryScheduled, TurnEnded, TurnStarted
from treadle.protocol.permissions import Allowance, Decision, Part, Reason, Verdict
from treadle.protocol.tools import (
    FetchUrl,
    FileChange,
    Origin,
    Outcome,
    Preview,
    Right,
    Risk,
    RunCommand,
    SandboxDenial,
    result_text,
)
from treadle.protocol.usage import Usage

LISTS = (
    "- [ ] one\n- [x] two",
    "- [x] one\n- [ ] two\n  - [ ] three",
    "* [ ] Two\n1. [x] one\n\n- [ ] four",
    "no list",
    "",
)
LONG = "\n".join(f"line {number} of what a command printed" for number in range(60))


class Richer(World):
    """Everything that a log of 0.1.0 may hold, at random; with a `habit` most calls are the same."""

    habit = ""

    def new_call(self, name: str, problem: str = "") -> Any:
        proposed = super().new_call(name, problem)
        if proposed is None:
            return None
        choice = CHANCE.choice
        if self.habit:
            call = replace(proposed.call, arguments={"n": 1}, problem="bad" if self.habit == "bad" else "")
            return replace(proposed, call=call)
        extra = {"question": "which?", "options": ["a", 3]} if name == "ask" else {}
        call = replace(proposed.call, arguments={"n": choice([1, 1, 1, 2]), **extra})
        return replace(proposed, call=call, progress=choice(LISTS), outside=choice([False, False, True]))

    def reply(self, step: int, attempt: int, **others: Any) -> ReplyFinished:
        reply = super().reply(step, attempt, **others)
        usage = CHANCE.choice([Usage(), Usage(input_tokens=700, output_tokens=90, cache_read_tokens=5), reply.usage])
        text = CHANCE.choice(["answer", "answer", "", "more of it"])
        content = (
            reply.message.content[1:]
            if len(reply.message.content) > 1 and not text
            else (Text(text=text or "x"), *reply.message.content[1:])
        )
        cost = CHANCE.choice([0.25, 0.5, None]) if usage != Usage() else None
        hint = CHANCE.choice(["", "", "write it so"])
        return replace(reply, usage=usage, cost=cost, hint=hint, message=Message(role=Role.ASSISTANT, content=content))

    def failure(self, step: int, attempt: int, kind: ErrorKind) -> ReplyFailed:
        failure = super().failure(step, attempt, kind)
        choice = CHANCE.choice
        error = replace(failure.error, retry_after=choice([None, None, 3.0, 30.0]), window=choice([None, 4_000]))
        partial = choice([None, Message(role=Role.ASSISTANT, content=(Text(text="partly"),))])
        usage = choice([Usage(), Usage(input_tokens=3, output_tokens=4)])
        return replace(
            failure, error=error, partial=partial, usage=usage, cost=choice([None, 0.0, 0.1]), jitter=CHANCE.random()
        )

    def outcomes(self, effect: Effect, choice: Choose) -> EventData | None:
        match effect:
            case CallModel(step=step, attempt=attempt) if choice([True] * (30 if self.habit else 4) + [False]):
                return self.reply(step, attempt)
            case JudgeCall(call=call) if self.habit:
                return CallJudged(call_id=call.id, decision=explore.decision(Verdict.ALLOW), preview=Preview(title="t"))
            case RunTool(call=call) if self.habit:
                if any(c.call.id == call.id and c.status is CallStatus.STARTING for c in self.state.calls):
                    return CallStarted(call_id=call.id)
                result = replace(result_text(Outcome.OK, "a"), running=self.habit == "running")
                return CallFinished(call_id=call.id, result=result)
            case Compact(step=step) if choice([True, True, False]):
                spec = ModelSpec(provider="p", name="m", context_window=choice([None, 400, 4_000]))
                return window.make_room(self.state, self.transcript, window.in_force(spec, self.state), step)
            case Compact(step=step) if choice([True, False]):
                return Compacted(step=step, dropped=self.transcript.droppable(), largest=choice(["", "an image"]))
            case JudgeCall(call=call):
                data = super().outcomes(effect, choice)
                return self._judged(data, choice) if isinstance(data, CallJudged) else data
            case RunTool(call=call):
                if any(c.call.id == call.id and c.status is CallStatus.STARTING for c in self.state.calls):
                    return CallStarted(call_id=call.id)
                return CallFinished(call_id=call.id, result=self._result(choice))
        data = super().outcomes(effect, choice)
        if isinstance(data, ContextReady) and data.terms is not None:
            prices = [None, 0.0, 2.0, 15.0]
            terms = Terms(
                input_tokens=choice([100, 700, 3_000]),
                max_output=choice([None, 900, 5_000]),
                input_price=choice(prices),
                output_price=choice(prices),
                search_cost=choice([0.0, None, 0.02]),
                day=choice([Spent(), Spent(cost=0.4, tokens=500)]),
            )
            return replace(data, terms=terms, environment=choice(["", "where it is"]))
        return data

    def _judged(self, data: CallJudged, choice: Choose) -> CallJudged:
        reasons = tuple(
            choice(
                [
                    (),
                    (Reason(rule="r", text="it is so."),),
                    (Reason(rule="grants", text="reads ~/x"), Reason(rule="b", text="b")),
                ]
            )
        )
        part = Part(text="x " * choice([2, 90]), verdict=Verdict.DENY, risk=Risk.WRITE, reasons=reasons[:1])
        decision: Decision = replace(
            data.decision,
            risk=choice(list(Risk)),
            reasons=reasons,
            parts=choice([(), (part,), (part, part)]),
            alternatives=choice([(), ("ls", "cat  " + "y" * 120)]),
            offers=choice([(), (Allowance(id="always x", tool="x"), Allowance(id=f"a{choice([1, 2])}", tool="y"))]),
            outside=choice([False, True]),
        )
        accesses = choice(
            [
                (),
                (RunCommand(command=choice(["make check", "ls", "a", "b", "c", "d"]), cwd="/w"),),
                (FetchUrl(url="http://x"),),
            ]
        )
        preview = Preview(title=choice(["t", "title"]), text=choice(["", "+a"]), result=choice(["", "", "the result"]))
        return replace(data, decision=decision, accesses=accesses, preview=preview)

    def _result(self, choice: Choose) -> Any:
        outcome = choice([Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.INTERRUPTED, Outcome.UNKNOWN])
        changes = (FileChange(path=choice(["/a", "/b"]), before="1", after=choice(["", "2"]), added=3, removed=1),)
        denial = SandboxDenial(right=choice(list(Right)), target=choice(["", "/x"]), text=choice(["", "seen"]))
        result = replace(
            result_text(outcome, choice(["a", "a", "a", LONG])),
            changes=choice([(), (), (), changes]),
            denial=choice([None, None, denial]),
            origin=choice([Origin.COMMAND, Origin.WEB]),
            running=choice([False, False, True]),
            full_output=choice(["", "/tmp/out"]),
        )
        return replace(result, content=()) if choice([False] * 7 + [True]) else result


def asked(world: World, number: int) -> list[EventData]:
    """What a user may want besides."""
    choice = CHANCE.choice
    return [
        EditChecklist(text=choice(LISTS)),
        SetLimits(limits=replace(bounds(), max_seconds=world.limits.max_seconds)),
        SetPresence(user_present=choice([True, False])),
        SetModel(model=choice(["p/m", "p/other"]), tool_protocol=world.protocol, thinking_budget=choice([None, 5])),
        Prompt(id=f"q{number}", content=(Text(text="look at this"), Image(media_type="image/png", data="AAAA"))),
    ]


def bounds() -> Limits:
    """Bounds that are all reached now and then."""
    choice = CHANCE.choice
    free = [Budget()] * choice([0, 3, 30])
    return Limits(
        max_steps=choice([None, None, 3, 8]),
        max_seconds=choice([None, None, 5.0]),
        turn=choice([Budget(), *free, Budget(cost=1.0), Budget(tokens=2_500)]),
        session=choice([Budget(), *free, Budget(cost=2.5, tokens=9_000)]),
        day=choice([Budget(), *free, Budget(cost=0.9), Budget(tokens=4_000)]),
        max_unasked=choice([None, 1, 2]),
        max_mistakes=choice([1, 3]),
        max_retries=choice([0, 2, 6]),
        warn_repeats=choice([2, 3]),
        max_repeats=choice([3, 5]),
        reminders=choice([0, 2]),
        raisable=choice([False, True]),
    )


def walk(seed: int) -> dict[str, Any]:
    """Make one walk, and say what 0.1.0 reads off its log."""
    CHANCE.seed(seed)
    kind = CHANCE.choice([World, Richer, Richer, Richer])
    limits = bounds() if kind is Richer else CHANCE.choice([explore.BOUNDED, Limits(max_steps=8, max_retries=2)])
    world = kind(limits=limits, protocol=CHANCE.choice(list(ToolProtocol))).begin()
    world.take(SetPresence(user_present=CHANCE.random() < 0.8))
    if isinstance(world, Richer):
        world.habit = CHANCE.choice(["", "", "", "", "same", "running", "bad"])
    for number in range(CHANCE.choice([20, 60, 150]) * (3 if getattr(world, "habit", "") else 1)):
        move(world, number)
    rows = [(one.seq, one.at, encode(one.source).decode(), 1, encode(one.data).decode()) for one in world.log]
    return {"seed": seed, "rows": rows, **told(world.log)}


def move(world: World, number: int) -> None:
    """Make one move, most often the one that goes on."""
    chance = CHANCE.random()
    work = [one for name, one in world.outstanding.items() if not name.startswith("timer:turn")]
    calls = isinstance(world.state.activity, AwaitingReply) and len(world.state.calls) < CHANCE.choice([1, 2, 4])
    if world.state.turn is None and chance < 0.5:
        world.try_take(Prompt(id=f"r{number}", content=(Text(text=f"do {number}"),)))
    elif not isinstance(world, Richer) or chance < 0.06:
        explore._move(world, CHANCE, number)
    elif chance < 0.08 and not world.habit:
        world.try_take(CHANCE.choice(asked(world, number)))
    elif world.state.questions and chance < 0.6:
        world.take(explore.answer_to(CHANCE.choice(world.state.questions), CHANCE.choice))
    elif calls and chance < 0.7:
        name = "run" if world.habit else CHANCE.choice(list(explore.TRAITS))
        data = world.new_call(name, CHANCE.choice(["", "", "", "not valid"]))
        if data is not None and not world.try_take(data):
            world.proposed.pop()
    elif work:
        world.work_on(CHANCE.choice(work), CHANCE.choice)


def told(log: list[Event]) -> dict[str, Any]:
    """Say what 0.1.0 reads off a log."""
    past = read_past([replace(one, data=decode_data(encode(one.data))) for one in log])
    transcript: Transcript = past.transcript
    return {
        "native": msgspec.to_builtins(transcript.messages(ToolProtocol.NATIVE)),
        "xml": msgspec.to_builtins(transcript.messages(ToolProtocol.XML, images=False)),
        "tokens": [transcript.tokens, transcript.most_tokens, transcript.droppable()],
        "requests": transcript.requests(transcript.droppable()),
        "next": msgspec.to_builtins(sealed_message(past.state, transcript, "env")),
        "shown": [line for one in past.told for line in _lines(one)],
        "notified": list(notified(past.told)),
        "state": msgspec.to_builtins(past.state, order="deterministic"),
    }


def notified(told: Iterable[Notification]) -> Iterator[Any]:
    """What a person was asked, and how turns ended."""
    known = set()
    for one in told:
        if isinstance(one, QuestionAsked) and one.question.id not in known:
            asked = one.question
            known.add(asked.id)
            yield [asked.id, asked.kind, asked.text, asked.options, asked.call_id, asked.more]
        elif isinstance(one, TurnEnded | TurnStarted | RetryScheduled):
            yield msgspec.to_builtins(one)


CHANCE = random.Random()

if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        sys.stdout.write(json.dumps(walk(seed)) + "\n")
