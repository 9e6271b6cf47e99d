"""What happened in a session, step by step, in a line for each thing that counts."""

from collections.abc import Iterable, Iterator

from treadle.app.presentation.words import clip_text, counted, money
from treadle.protocol.base import Record
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallProposed,
    Compacted,
    ContextReady,
    Event,
    Interrupt,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    Resumed,
)
from treadle.protocol.messages import Text, text_of
from treadle.protocol.sealed import ResultMade, TurnSettled
from treadle.protocol.tools import CallResult

_LONGEST = 100


class ReplayLine(Record, frozen=True, kw_only=True):
    """One thing that happened: the event's number and type, the step that it belongs to, and a line of words."""

    seq: int
    type: str
    step: int
    text: str


def replay_lines(events: Iterable[Event]) -> Iterator[ReplayLine]:
    """Say what happened; what only the machine needs is left out."""
    step = 0
    names: dict[str, str] = {}
    for event in events:
        match event.data:
            case ContextReady(step=step):
                pass
            case CallProposed(call=call):
                names[call.id] = call.name
            case _:
                pass
        for text in _words(event, names):
            kind = str(event.data.__struct_config__.tag)
            yield ReplayLine(seq=event.seq, type=kind, step=step, text=clip_text(text, _LONGEST))


def _words(event: Event, names: dict[str, str]) -> Iterator[str]:
    match event.data:
        case Prompt(content=content):
            yield f"user: {' '.join(block.text for block in content if isinstance(block, Text))}"
        case Answer(option=option, text=text):
            yield f"user: {option}{': ' if text else ''}{text}"
        case Interrupt():
            yield "user: interrupt"
        case Resumed():
            yield "taken up by another process"
        case ReplyFinished(message=message, cost=cost):
            price = "" if cost is None else f" ({money(cost)})"
            yield f"model: {text_of(message.content).strip() or 'calls tools'}{price}"
        case ReplyFailed(error=error):
            yield f"model failed: {error.kind}: {error.message}"
        case Compacted(dropped=dropped):
            yield f"room made: {counted(dropped, 'older message')} removed"
        case CallFinished(call_id=call_id, result=result) | ResultMade(call_id=call_id, result=result):
            yield f"{names.get(call_id, call_id)}: {result.outcome}: {_first_line(result)}"
        case TurnSettled(turn=turn, outcome=outcome):
            yield f"turn {turn} ends: {outcome.stop}, {counted(outcome.steps, 'step')}"
        case _:
            return


def _first_line(result: CallResult) -> str:
    text = "".join(block.text for block in result.content if isinstance(block, Text)).strip()
    return text.partition("\n")[0]
