"""How an event changes the transcript. Together with `advance` it makes a session a fold of its log."""

from collections.abc import Iterable

from msgspec import Struct

from treadle.context.transcript import Transcript, message_blocks
from treadle.engine.advance import replay
from treadle.engine.effects import Notify
from treadle.engine.state import CallState, State
from treadle.engine.texts import NEVER_PRESENTED
from treadle.protocol.events import Compacted, ContextReady, Event, ReplyFailed, ReplyFinished
from treadle.protocol.messages import ContentBlock, Message, Text, ToolResult
from treadle.protocol.notifications import Notification


class Past(Struct, frozen=True, kw_only=True):
    """What a log tells of a session, and `told`, what surfaces were. Who takes it up goes on with the transcript."""

    state: State
    transcript: Transcript
    told: tuple[Notification, ...] = ()


def read_past(events: Iterable[Event]) -> Past:
    """Fold a log."""
    state, transcript, told = State(), Transcript(), list[Notification]()
    for event in events:
        before = state
        state, effects = replay(before, event)
        record(transcript, before, event)
        for effect in effects:
            if isinstance(effect, Notify):
                told.append(effect.notification)
    return Past(state=state, transcript=transcript, told=tuple(told))


def record(transcript: Transcript, before: State, event: Event) -> None:
    """Bring the transcript up to date with an event that was accepted in the state `before`."""
    match event.data:
        case ContextReady(environment=environment):
            transcript.add_user(
                results=_results(before, transcript),
                prompts=[prompt.content for prompt in before.delivering],
                notes=before.notes,
                environment=environment,
            )
        case ReplyFinished(message=message, usage=usage):
            transcript.add_assistant(message, usage.context_tokens)
        case ReplyFailed(partial=Message() as partial):
            transcript.add_assistant(partial)
        case Compacted(dropped=dropped, summary=summary, shortened=shortened):
            transcript.drop(dropped, summary)
            transcript.replace_results({one.call_id: one.content for one in shortened})
        case _:
            pass


def sealed_message(state: State, transcript: Transcript, environment: str) -> list[ContentBlock]:
    """Give the blocks of the message that this environment would seal now."""
    return message_blocks(
        results=_results(state, transcript),
        prompts=[prompt.content for prompt in state.delivering],
        notes=state.notes,
        environment=environment,
        first=transcript.is_empty,
    )


def _results(state: State, transcript: Transcript) -> list[ToolResult]:
    return [_result(call, transcript) for call in state.calls]


def _result(call: CallState, transcript: Transcript) -> ToolResult:
    result = call.result
    return ToolResult(
        call_id=call.call.id,
        name=call.call.name,
        content=result.content if result is not None and result.content else (Text(text=NEVER_PRESENTED),),
        is_error=result.is_error if result is not None else True,
        wire_id=transcript.wire_id(call.call.id),
    )
