"""Making room: which messages leave, which results become shorter, and what stands in the place of both."""

from collections.abc import Mapping

from msgspec import Struct

from treadle.context.compaction_words import CompactionSettings, CompactionStrategy
from treadle.context.left_out import Known, left_out_summary
from treadle.context.log_reader import TranscriptReader
from treadle.context.shorten import fair_shares, length, shorten_result
from treadle.context.transcript import Transcript
from treadle.engine.core.machine_effects import MakeRoom
from treadle.engine.core.state import State
from treadle.engine.runtime.window import compact_at, next_message, share_of, unsealed
from treadle.protocol.events import Compacted, OfferChanged, Shortened
from treadle.protocol.messages import ResultContent, Text
from treadle.protocol.models import ModelSpec

_WHY_ROOM = "the model's window is too small for all of it; ask for a smaller part"
_SUPERSEDED = "[This was left out: {what} was read again later, and that result is below.]"
_ENOUGH = 0.3
"""Part of the conversation that results of repeated reads must take so that nothing else has to leave."""

_WORTH = 0.1
"""Part of the window that early compaction must win to be worth the loss of the cache."""

_LEAST_WINDOW_FOR_SUMMARY = 48_000


class RoomPlan(Struct, frozen=True, kw_only=True):
    """How many messages leave, and which results become shorter; both together win `tokens`."""

    dropped: int = 0
    shortened: tuple[Shortened, ...] = ()
    tokens: int = 0


def plan_room(
    state: State, reader: TranscriptReader, spec: ModelSpec, settings: CompactionSettings, *, wanted: bool = False
) -> RoomPlan:
    """Choose what leaves: results that were read again, then old messages, then parts of the newest results.

    Where the provider refused what should have fitted, each time takes more away than the one before.
    """
    transcript = reader.transcript
    repeated = _superseded(transcript)
    won = transcript.tokens_of(transcript.size_of_results({one.call_id: "" for one in repeated}))
    over = _over(state, transcript, compact_at(spec, settings))
    if not wanted and repeated and won >= max(over or 0, int(transcript.tokens * _ENOUGH)):
        return RoomPlan(shortened=repeated, tokens=won)
    dropped = transcript.droppable(1.0) if wanted else _how_many(state, transcript, over, settings)
    tokens = transcript.tokens_of(transcript.size_of(dropped))
    words = _tokens_more(transcript, _words(state, transcript, spec, dropped)) if dropped else 0
    if wanted and tokens + won <= words:
        return RoomPlan()
    missing = 0
    results = _newest(state, reader)
    if over is not None and not wanted:
        missing = over - tokens + words - won
    elif not dropped and not wanted:
        missing = transcript.tokens_of(sum(map(length, results.values()))) // 2
    shortened = _shortest(transcript, results, missing) if missing > 0 else ()
    kept = repeated if dropped or shortened or wanted else ()
    return RoomPlan(dropped=dropped, shortened=(*kept, *shortened), tokens=tokens + won)


def is_worth(plan: RoomPlan, spec: ModelSpec) -> bool:
    """Whether a plan wins so much that the loss of the cache is worth it."""
    return plan.tokens >= (spec.context_window or 0) * _WORTH


def carried_out(
    plan: RoomPlan,
    state: State,
    reader: TranscriptReader,
    spec: ModelSpec,
    *,
    step: int,
    written: str = "",
    offer: OfferChanged | None = None,
) -> Compacted:
    """Say what a plan does to the conversation; the model's summary of what leaves is `written`, if there is one.

    `offer` is what goes with it now, by default what went with it last.
    """
    transcript, words = reader.transcript, ""
    if plan.dropped:
        words = _words(state, transcript, spec, plan.dropped, written)
        if written and _tokens_more(transcript, words) >= plan.tokens:  # it would be longer than what it is about
            words = left_out_summary(_known(state, transcript, plan.dropped), "", share_of(spec, 6))
    new = next_message(state, reader, "")
    largest = reader.largest(offer or reader.offer, reader.blocks(new.results, new.content))
    before = state.space.exceeded or transcript.tokens
    gone = plan.tokens - (_tokens_more(transcript, words) if words else 0)
    return Compacted(
        step=step,
        through=transcript.through(plan.dropped),
        dropped=plan.dropped,
        largest=", ".join(f"{name} (about {tokens:,} tokens)" for tokens, name in largest),
        summary=words,
        shortened=plan.shortened,
        before=before,
        after=transcript.tokens_without(gone, before),
    )


def _words(state: State, transcript: Transcript, spec: ModelSpec, dropped: int, written: str = "") -> str:  # noqa: PLR0917
    """Say what is known of messages that leave, with the newest summary of the model's."""
    return left_out_summary(_known(state, transcript, dropped), written or state.space.summary, share_of(spec, 6))


def _tokens_more(transcript: Transcript, words: str) -> int:
    """Say how many tokens these words take beyond those of an earlier compaction, which they replace."""
    return transcript.tokens_of(len(words.encode()) - transcript.left_out_size)


def asks_model(effect: MakeRoom, plan: RoomPlan, spec: ModelSpec, settings: CompactionSettings) -> bool:
    """Whether the model is to sum up what leaves: it costs one request, most of which its cache holds."""
    if not effect.write or not plan.dropped or settings.strategy is CompactionStrategy.DROP:
        return False
    if settings.strategy is CompactionStrategy.SUMMARY or effect.wanted:
        return True
    return spec.context_window is None or spec.context_window >= _LEAST_WINDOW_FOR_SUMMARY


def _superseded(transcript: Transcript) -> tuple[Shortened, ...]:
    return tuple(
        Shortened(call_id=call_id, content=(Text(text=_SUPERSEDED.format(what=what)),))
        for call_id, what in transcript.superseded().items()
    )


def _over(state: State, transcript: Transcript, window: int | None) -> int | None:
    """Say by how many tokens the request is too long; None where that is not known."""
    over = 0 if window is None else (state.space.exceeded or transcript.tokens) - window
    return over if over > 0 else None


def _how_many(state: State, transcript: Transcript, over: int | None, settings: CompactionSettings) -> int:
    """Say how many old messages leave: as few as suffice, half and three quarters of them by default."""
    parts = (1 - settings.keep, 1 - settings.keep / 2, 1.0)
    sizes = [transcript.droppable(part) for part in parts[max(0, min(state.space.compactions, len(parts)) - 1) :]]
    if over is None:
        return sizes[0]
    return next((count for count in sizes if transcript.tokens_of(transcript.size_of(count)) >= over), sizes[-1])


def _newest(state: State, reader: TranscriptReader) -> Mapping[str, tuple[ResultContent, ...]]:
    """Find the newest results: those about to be sealed, or those that just were."""
    if call_ids := unsealed(state):
        return reader.pending(call_ids)
    return {result.call_id: result.content for result in reader.transcript.results()}


def _shortest(
    transcript: Transcript, results: Mapping[str, tuple[ResultContent, ...]], tokens: int
) -> tuple[Shortened, ...]:
    """Cut the longest results until so many tokens are gained."""
    sizes = {call_id: length(content) for call_id, content in results.items()}
    most = max(0, sum(sizes.values()) - transcript.bytes_of(tokens))
    shares = fair_shares(sizes, most)
    return tuple(
        Shortened(call_id=call_id, content=shorten_result(content, shares[call_id], _WHY_ROOM))
        for call_id, content in results.items()
        if shares[call_id] < sizes[call_id]
    )


def _known(state: State, transcript: Transcript, dropped: int) -> Known:
    return Known(
        facts=transcript.facts(dropped),
        changes=state.changed,
        runs=state.runs,
        checklist=state.checklist.text,
        pins=tuple(one.text for one in state.space.pins),
        user_present=state.user_present,
    )
