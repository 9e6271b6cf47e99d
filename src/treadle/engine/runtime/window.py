"""What fits into the model's window: the bounds of a request, of its reply, and of each part of it."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.context.compaction_words import CompactionSettings
from treadle.context.log_reader import TranscriptReader
from treadle.context.shorten import length, shorten, shorten_result
from treadle.context.transcript import BYTES_PER_TOKEN
from treadle.context.user_message import user_message
from treadle.engine.core.state import State
from treadle.engine.core.texts import NEVER_PRESENTED
from treadle.protocol.events import ContextReady
from treadle.protocol.limits import USUAL_REPLY
from treadle.protocol.messages import ResultContent
from treadle.protocol.models import ModelSpec
from treadle.protocol.sealed import SealedResult

_LEAST_REPLY = 1_024
_RESERVED = {64_000: 27_000, 128_000: 30_000, 200_000: 40_000}
_LARGEST_RESERVED = 40_000
"""Tokens of a window that stay free where compaction begins: of the usual windows, and of others."""

_MOST_OF_ONE_RESULT = 64_000
_LEAST_OF_ONE_RESULT = 2_000
_WHY_ONE = "this result is too long; ask for a smaller part"
WHY_SMALL = "the model's window is small"


def in_force(spec: ModelSpec, state: State) -> ModelSpec:
    """Give what is known of the model, with the window that its provider named if that is smaller."""
    if state.model.window is None or (spec.context_window is not None and spec.context_window <= state.model.window):
        return spec
    return replace(spec, context_window=state.model.window)


def room_beside_reply(spec: ModelSpec) -> int | None:
    """Say how many tokens of conversation fit beside a reply of usual length; None where the window is unknown."""
    if spec.context_window is None:
        return None
    reply = min(spec.max_output or USUAL_REPLY, spec.context_window // 4)
    return spec.context_window - reply


def compact_at(spec: ModelSpec, settings: CompactionSettings) -> int | None:
    """Say at how many tokens older messages leave the prompt; None where the window is unknown.

    By default that is well before the limit of the usual windows, so that there is room for the work of a step.
    """
    window, most = spec.context_window, room_beside_reply(spec)
    if window is None or most is None:
        return None
    if settings.compact_at is None:
        wanted = window - _RESERVED.get(window, min(_LARGEST_RESERVED, window // 5))
    else:
        wanted = int(settings.compact_at * window) if settings.compact_at <= 1 else int(settings.compact_at)
    return min(most, wanted)


def largest_conversation(spec: ModelSpec) -> int | None:
    """Say how many tokens fit when the reply gets the least that is of use; None where the window is unknown."""
    if spec.context_window is None:
        return None
    return spec.context_window - min(_LEAST_REPLY, spec.context_window // 4)


def reply_limit(state: State, spec: ModelSpec, tokens: int) -> int | None:
    """Bound the reply by the model's limit, the budgets, and what a request of so many tokens leaves of the window."""
    limit = state.money.reply_tokens or spec.max_output
    if limit is None or spec.context_window is None:
        return limit
    left = spec.context_window - tokens - spec.context_window // 50
    return min(limit, max(left, min(_LEAST_REPLY, spec.context_window // 4)))


def most_of_one_result(spec: ModelSpec) -> int:
    """Say how many characters one result may have: a quarter of the window, and never more than anybody reads."""
    return share_of(spec, 4)


def bounded_content(content: Sequence[ResultContent], most: int) -> tuple[ResultContent, ...]:
    """Cut a result that is longer than `most` characters, whatever tool it came from."""
    return tuple(content) if length(content) <= most else shorten_result(content, most, _WHY_ONE)


def shorten_environment(environment: str, spec: ModelSpec) -> str:
    """Cut what is said of the surroundings where the window is small."""
    return shorten(environment, share_of(spec, 8), WHY_SMALL)


def next_message(state: State, reader: TranscriptReader, environment: str) -> ContextReady:
    """Put together the user message that this environment would seal now."""
    call_ids = unsealed(state)
    pending = reader.pending(call_ids)
    return ContextReady(
        step=state.step,
        results=tuple(
            SealedResult(call_id=call_id, text="" if pending.get(call_id) else NEVER_PRESENTED) for call_id in call_ids
        ),
        content=user_message(
            prompts=[prompt.id for prompt in state.delivering],
            notes=state.notes,
            environment=environment,
            first=reader.transcript.is_empty,
        ),
    )


def bytes_of(message: ContextReady, reader: TranscriptReader) -> int:
    """Count the bytes of a message that is about to be sealed."""
    return sum(map(reader.transcript.size_of_block, reader.blocks(message.results, message.content)))


def unsealed(state: State) -> tuple[str, ...]:
    """Name the calls whose results no message holds yet, in their order."""
    return (*state.unread, *(call.call.id for call in state.calls))


def share_of(spec: ModelSpec, part: int) -> int:
    """Say how many characters one part of the window has."""
    if spec.context_window is None:
        return _MOST_OF_ONE_RESULT
    return max(_LEAST_OF_ONE_RESULT, min(_MOST_OF_ONE_RESULT, int(spec.context_window * BYTES_PER_TOKEN / part)))
