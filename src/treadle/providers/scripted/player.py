"""Chooses the turn that answers a request, and plays it as a neutral stream."""

from collections import Counter
from collections.abc import Iterator
from typing import Protocol, TypeAlias, assert_never

from msgspec import Struct

from treadle.protocol.models import (
    ModelError,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
)
from treadle.protocol.usage import Usage
from treadle.providers.scripted.script import (
    BreakOff,
    Cut,
    MakeCall,
    Pace,
    Refuse,
    SayText,
    SayThinking,
    Script,
    ScriptItem,
    Turn,
    Wait,
)
from treadle.providers.scripted.seen_requests import SeenRequest, misses
from treadle.providers.wire import dump

CHARACTERS_PER_TOKEN = 4
_OTHERWISE = -1
"""Stands for the turn that is played in the place of a refusal."""


class Pause(Struct, frozen=True, kw_only=True):
    """Nothing for some seconds."""

    seconds: float


class Disconnect(Struct, frozen=True, kw_only=True):
    """The connection goes, after some more bytes."""

    after_bytes: int


PlayStep: TypeAlias = StreamEvent | Pause | Disconnect


class Performance(Struct, frozen=True, kw_only=True):
    """What one request gets. With a `refusal` the steps are only what passes before it.

    `number` tells the replies of one conversation apart; `problem` says what the script did not expect.
    """

    number: int
    usage: Usage
    steps: tuple[PlayStep, ...]
    refusal: Refuse | None = None
    problem: str = ""


class Plays(Protocol):
    """Answers requests as a model does: by a script, or by a program that looks at each request."""

    @property
    def model(self) -> str:
        """The name of the model."""
        ...

    def play(self, seen: SeenRequest) -> Performance:
        """Answer a request."""
        ...


class Player:
    """Plays a script. It keeps nothing but how often each turn was played, for what happens only some times."""

    def __init__(self, script: Script) -> None:
        self.model = script.model
        self._script = script
        self._played: Counter[int] = Counter()

    def play(self, seen: SeenRequest) -> Performance:
        """Answer a request: the first turn whose condition holds, else the turn for this many assistant messages."""
        index = self._choose(seen)
        if index is None:
            return self._refuse(
                seen, f"the script has no turn for a request with {seen.assistant_messages} replies in it"
            )
        turn = self._script.turns[index]
        missing = misses(turn.expect, seen)
        if missing:
            return self._refuse(seen, f"turn {index + 1} of the script expected something else: " + "; ".join(missing))
        return self._perform(turn, seen, index)

    def _refuse(self, seen: SeenRequest, problem: str) -> Performance:
        """Refuse a request, or answer it by the turn that is there for such ones."""
        if self._script.otherwise is None:
            return refused(seen, problem)
        return self._perform(self._script.otherwise, seen, _OTHERWISE)

    def _perform(self, turn: Turn, seen: SeenRequest, index: int) -> Performance:
        self._played[index] += 1
        return perform(turn, seen, self._script.pace, self._played[index])

    def _choose(self, seen: SeenRequest) -> int | None:
        turns = list(enumerate(self._script.turns))
        chosen = next((i for i, turn in turns if turn.when is not None and not misses(turn.when, seen)), None)
        if chosen is not None:
            return chosen
        plain = [i for i, turn in turns if turn.when is None]
        return plain[seen.assistant_messages] if seen.assistant_messages < len(plain) else None


def perform(turn: Turn, seen: SeenRequest, pace: Pace, play: int = 1) -> Performance:
    """Play a turn for the `play`-th time, at this pace unless it has one of its own."""
    items = [item for item in turn.items if _happens(item, play)]
    steps: list[PlayStep] = []
    calls = 0
    for item in items:
        if isinstance(item, Refuse):
            usage = Usage()
            return Performance(number=seen.assistant_messages, usage=usage, steps=tuple(steps), refusal=item)
        steps += _steps(item, seen, calls)
        calls += isinstance(item, MakeCall)
    usage = turn.usage or _estimate(items, seen)
    stop = ReplyStop.TOOL_USE if calls and seen.tools else ReplyStop.END_TURN
    steps.append(StreamStop(reason=turn.stop or stop, usage=usage))
    paced = tuple(step for whole in steps for step in _pace(whole, turn.pace or pace))
    return Performance(number=seen.assistant_messages, usage=usage, steps=paced)


def refused(seen: SeenRequest, problem: str) -> Performance:
    """Refuse a request that was not expected."""
    refusal = Refuse(status=400, message=problem)
    return Performance(number=seen.assistant_messages, usage=Usage(), steps=(), refusal=refusal, problem=problem)


def _happens(item: ScriptItem, play: int) -> bool:
    """Whether an item takes part when its turn is played for the n-th time."""
    match item:
        case Refuse() | BreakOff() | Cut():
            return item.times == 0 or play <= item.times
        case SayText() | SayThinking() | MakeCall() | Wait():
            return True
        case _:
            assert_never(item)


def _steps(item: ScriptItem, seen: SeenRequest, calls: int) -> list[PlayStep]:
    """Turn an item into the neutral stream; `calls` counts the calls before it in this reply."""
    match item:
        case SayText():
            return [StreamText(text=item.text)]
        case SayThinking(redacted=""):
            return [StreamThinking(text=item.text), StreamThinkingDone(signature=item.signature)]
        case SayThinking():
            return [StreamThinkingDone(redacted=item.redacted)]
        case MakeCall():
            return _call(item, seen, calls)
        case Wait():
            return [Pause(seconds=item.seconds)]
        case BreakOff():
            return [StreamFailure(error=ModelError(kind=item.kind, message=item.message))]
        case Cut():
            return [Disconnect(after_bytes=item.after_bytes)]
        case Refuse():
            return []
        case _:
            assert_never(item)


def _call(item: MakeCall, seen: SeenRequest, calls: int) -> list[PlayStep]:
    """A native call where tools are offered, else the same call as XML in the text."""
    if not seen.tools:
        return [StreamText(text=xml_call(item))]
    arguments = item.raw if item.raw is not None else dump(item.arguments).decode()
    return [
        StreamCallStart(index=calls, name=item.name, wire_id=item.id or f"call_{seen.assistant_messages}_{calls}"),
        StreamCallArguments(index=calls, text=arguments),
        StreamCallDone(index=calls),
    ]


def xml_call(item: MakeCall) -> str:
    """Write a call as XML text: one element a parameter; what is no text is written as JSON."""
    if item.raw is not None:
        return f"\n<{item.name}>\n{item.raw}\n</{item.name}>\n"
    lines = [
        f"<{name}>{value if isinstance(value, str) else dump(value).decode()}</{name}>"
        for name, value in item.arguments.items()
    ]
    return "\n" + "\n".join([f"<{item.name}>", *lines, f"</{item.name}>"]) + "\n"


def _estimate(items: list[ScriptItem], seen: SeenRequest) -> Usage:
    """Plausible figures where the script gives none: characters divided by a constant."""
    said = sum(len(item.text) if isinstance(item, SayText | SayThinking) else 0 for item in items)
    said += sum(len(dump(item.arguments)) for item in items if isinstance(item, MakeCall))
    asked = len(seen.system) + len(seen.conversation)
    return Usage(input_tokens=1 + asked // CHARACTERS_PER_TOKEN, output_tokens=1 + said // CHARACTERS_PER_TOKEN)


def _pace(step: PlayStep, pace: Pace) -> Iterator[PlayStep]:
    """Cut a step with text into the pieces that the pace asks for."""
    match step:
        case StreamText(text=text):
            yield from _slow((StreamText(text=part) for part in _pieces(text, pace)), pace)
        case StreamThinking(text=text):
            yield from _slow((StreamThinking(text=part) for part in _pieces(text, pace)), pace)
        case StreamCallArguments(index=index, text=text):
            yield from _slow((StreamCallArguments(index=index, text=part) for part in _pieces(text, pace)), pace)
        case _:
            yield step


def _pieces(text: str, pace: Pace) -> list[str]:
    if pace.chunk <= 0:
        return [text] if text else []
    return [text[start : start + pace.chunk] for start in range(0, len(text), pace.chunk)]


def _slow(steps: Iterator[StreamEvent], pace: Pace) -> Iterator[PlayStep]:
    for step in steps:
        if pace.delay > 0:
            yield Pause(seconds=pace.delay)
        yield step
