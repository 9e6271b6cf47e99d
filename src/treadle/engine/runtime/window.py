"""What fits into the model's window: the check before each request, and what leaves when it does not fit."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from treadle.context.left_out import Known, left_out_summary
from treadle.context.reader import TranscriptReader
from treadle.context.shorten import fair_shares, length, shorten, shorten_result
from treadle.context.transcript import BYTES_PER_TOKEN, Transcript, size_of_block
from treadle.context.user_message import user_message
from treadle.engine.core.state import State
from treadle.engine.core.texts import NEVER_PRESENTED
from treadle.protocol.events import Compacted, ContextReady, Shortened
from treadle.protocol.messages import ResultContent
from treadle.protocol.models import ModelSpec
from treadle.protocol.sealed import SealedResult

_REPLY_TOKENS = 8_192
_LEAST_REPLY = 1_024
_PARTS = (0.5, 0.75, 1.0)
"""How much of the old messages leaves the first, second and third time."""

_MOST_OF_ONE_RESULT = 64_000
_LEAST_OF_ONE_RESULT = 2_000
_WHY_ONE = "this result is too long; ask for a smaller part"
_WHY_SMALL = "the model's window is small"
_WHY_COMPACTED = "the model's window is too small for all of it; ask for a smaller part"


def in_force(spec: ModelSpec, state: State) -> ModelSpec:
    """Give what is known of the model, with the window that its provider named if that is smaller."""
    if state.model.window is None or (spec.context_window is not None and spec.context_window <= state.model.window):
        return spec
    return replace(spec, context_window=state.model.window)


def conversation_limit(spec: ModelSpec) -> int | None:
    """Say how many tokens of conversation fit beside a reply of usual length; None where the window is unknown."""
    if spec.context_window is None:
        return None
    reply = min(spec.max_output or _REPLY_TOKENS, spec.context_window // 4)
    return spec.context_window - reply


def largest_conversation(spec: ModelSpec) -> int | None:
    """Say how many tokens fit when the reply gets the least that is of use; None where the window is unknown."""
    if spec.context_window is None:
        return None
    return spec.context_window - min(_LEAST_REPLY, spec.context_window // 4)


def reply_limit(state: State, spec: ModelSpec, transcript: Transcript) -> int | None:
    """Bound the reply by the model's limit, the budgets, and what the conversation leaves of the window."""
    limit = state.money.reply_tokens or spec.max_output
    if limit is None or spec.context_window is None:
        return limit
    left = spec.context_window - transcript.tokens - spec.context_window // 50
    return min(limit, max(left, min(_LEAST_REPLY, spec.context_window // 4)))


def most_of_one_result(spec: ModelSpec) -> int:
    """Say how many characters one result may have: a quarter of the window, and never more than anybody reads."""
    return _share(spec, 4)


def bounded_content(content: Sequence[ResultContent], most: int) -> tuple[ResultContent, ...]:
    """Cut a result that is longer than `most` characters, whatever tool it came from."""
    return tuple(content) if length(content) <= most else shorten_result(content, most, _WHY_ONE)


def shorten_environment(environment: str, spec: ModelSpec) -> str:
    """Cut what is said of the surroundings where the window is small."""
    return shorten(environment, _share(spec, 8), _WHY_SMALL)


def next_message(state: State, reader: TranscriptReader, environment: str) -> ContextReady:
    """Put together the user message that this environment would seal now."""
    call_ids = _unsealed(state)
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
    return sum(map(size_of_block, reader.blocks(message.results, message.content)))


def _unsealed(state: State) -> tuple[str, ...]:
    """Name the calls whose results no message holds yet, in their order."""
    return (*state.unread, *(call.call.id for call in state.calls))


def tokens_of(count: int) -> int:
    """Estimate the tokens of so many bytes."""
    return int(count / BYTES_PER_TOKEN)


def compact(state: State, reader: TranscriptReader, spec: ModelSpec, step: int) -> Compacted:
    """Choose what leaves: old messages first, then the longest of the newest results are cut.

    Nothing of it is asked of the model, so it is free and always possible. Where the provider refused what should have
    fitted, each time takes more away than the one before.
    """
    transcript = reader.transcript
    over = _over(state, transcript, conversation_limit(spec))
    dropped = _how_many(state, transcript, over)
    words = (
        shorten(left_out_summary(_known(state, transcript, dropped)), _share(spec, 6), _WHY_SMALL) if dropped else ""
    )
    results = _newest(state, reader)
    missing = 0
    if over is not None:
        missing = over - tokens_of(transcript.size_of(dropped) - len(words.encode()))
    elif not dropped:
        missing = tokens_of(sum(map(length, results.values()))) // 2
    shortened = _shorten(results, missing) if missing > 0 else ()
    return Compacted(
        step=step,
        through=transcript.through(dropped),
        dropped=dropped,
        largest=transcript.largest(),
        summary=words,
        shortened=shortened,
    )


def _over(state: State, transcript: Transcript, window: int | None) -> int | None:
    """Say by how many tokens the request is too long; None where that is not known."""
    over = 0 if window is None else (state.space.exceeded or transcript.tokens) - window
    return over if over > 0 else None


def _how_many(state: State, transcript: Transcript, over: int | None) -> int:
    """Say how many old messages leave: as few as suffice, by halves and quarters."""
    sizes = [transcript.droppable(part) for part in _PARTS[max(0, min(state.space.compactions, len(_PARTS)) - 1) :]]
    if over is None:
        return sizes[0]
    return next((count for count in sizes if tokens_of(transcript.size_of(count)) >= over), sizes[-1])


def _share(spec: ModelSpec, part: int) -> int:
    """Say how many characters one part of the window has."""
    if spec.context_window is None:
        return _MOST_OF_ONE_RESULT
    return max(_LEAST_OF_ONE_RESULT, min(_MOST_OF_ONE_RESULT, int(spec.context_window * BYTES_PER_TOKEN / part)))


def _newest(state: State, reader: TranscriptReader) -> Mapping[str, tuple[ResultContent, ...]]:
    """Find the newest results: those about to be sealed, or those that just were."""
    if call_ids := _unsealed(state):
        return reader.pending(call_ids)
    return {result.call_id: result.content for result in reader.transcript.results()}


def _shorten(results: Mapping[str, tuple[ResultContent, ...]], tokens: int) -> tuple[Shortened, ...]:
    """Cut the longest results until so many tokens are gained."""
    sizes = {call_id: length(content) for call_id, content in results.items()}
    most = max(0, sum(sizes.values()) - int(tokens * BYTES_PER_TOKEN))
    shares = fair_shares(sizes, most)
    return tuple(
        Shortened(call_id=call_id, content=shorten_result(content, shares[call_id], _WHY_COMPACTED))
        for call_id, content in results.items()
        if shares[call_id] < sizes[call_id]
    )


def _known(state: State, transcript: Transcript, dropped: int) -> Known:
    return Known(
        requests=transcript.requests(dropped),
        changes=state.changed,
        runs=state.runs,
        checklist=state.checklist.text,
        user_present=state.user_present,
    )
