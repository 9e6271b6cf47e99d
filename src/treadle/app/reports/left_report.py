"""What the last compaction removed, and what is there instead: the request before and after it, block by block."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from enum import StrEnum

from treadle.context.log_reader import TranscriptReader
from treadle.context.request_blocks import ContextBlock, blocks_of
from treadle.present.words import clip_text, counted
from treadle.protocol.base import Record
from treadle.protocol.errors import SessionError
from treadle.protocol.events import Compacted, Event, OfferChanged
from treadle.protocol.messages import ContentBlock
from treadle.protocol.sealed import SealedResult

_LONGEST_SOURCE = 60


class BlockChange(StrEnum):
    """What became of a block."""

    REMOVED = "removed"
    ADDED = "added"


class ChangedBlock(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One block that left or came; `tokens` are estimated, `kept` counts the blocks before it that stayed."""

    change: BlockChange
    source: str
    why: str
    tokens: int
    kept: int = 0


class LeftReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One compaction: the step after which it came, and the tokens that the request had and has, estimated."""

    step: int
    before: int
    after: int
    blocks: tuple[ChangedBlock, ...]
    kept: int

    def tokens(self, change: BlockChange) -> int:
        """Sum up the tokens of what left or came."""
        return sum(block.tokens for block in self.blocks if block.change is change)


def left_report(events: Sequence[Event]) -> LeftReport:
    """Read the last compaction off a log. Raises `SessionError` where there is none."""
    found = [(at, event.data) for at, event in enumerate(events) if isinstance(event.data, Compacted)]
    done = [(at, data) for at, data in found if data.dropped or data.shortened]
    if not done:
        raise SessionError(
            "nothing-left",
            "Nothing has left this conversation.",
            why="It had room in the model's window so far.",
            fix="/compact makes room now.",
        )
    end, compacted = done[-1]
    reader = TranscriptReader()
    for event in events[:end]:
        reader.take(event)
    tokens_of = reader.transcript.tokens_of
    before = _blocks(reader, compacted)
    reader.take(events[end])
    after = _blocks(reader, compacted)
    blocks: list[ChangedBlock] = []
    kept = total = 0
    matcher = SequenceMatcher(None, [id(one) for one, _ in before], [id(one) for one, _ in after], autojunk=False)
    for tag, begin, stop, start, last in matcher.get_opcodes():
        if tag == "equal":
            kept += stop - begin
            total += stop - begin
            continue
        for change, some in ((BlockChange.REMOVED, before[begin:stop]), (BlockChange.ADDED, after[start:last])):
            for _, block in some:
                blocks.append(_changed(change, block, tokens_of(block.size), kept))
                kept = 0
    return LeftReport(
        step=compacted.step, before=compacted.before, after=compacted.after, blocks=tuple(blocks), kept=total
    )


def _changed(change: BlockChange, block: ContextBlock, tokens: int, kept: int) -> ChangedBlock:
    return ChangedBlock(change=change, source=block.source, why=block.why, tokens=tokens, kept=kept)


def _blocks(reader: TranscriptReader, compacted: Compacted) -> list[tuple[object, ContextBlock]]:
    """Give the blocks of the conversation, with the results that were shortened before a message had them."""
    entries, images = reader.transcript.entries(), reader.transcript.sizes_images
    sent: list[ContentBlock] = [block for entry in entries for block in entry.message.content]
    found: list[tuple[object, ContextBlock]] = list(
        zip(sent, blocks_of(OfferChanged(step=0, system=()), entries, images=images), strict=True)
    )
    for one in compacted.shortened:
        if content := reader.pending([one.call_id]).get(one.call_id):
            (entry,) = reader.waiting([SealedResult(call_id=one.call_id, text="")])
            found += [(content, block) for block in blocks_of(OfferChanged(step=0, system=()), [entry], images=images)]
    return found


def left_lines(report: LeftReport) -> Iterator[str]:
    """Put a report into words, as a diff."""
    yield f"The compaction at step {report.step}: about {report.before:,} tokens before, {report.after:,} after."
    for block in report.blocks:
        if block.kept:
            yield f"  {counted(block.kept, 'block')} stayed"
        sign = "-" if block.change is BlockChange.REMOVED else "+"
        yield f"{sign} {block.tokens:>9,}  {clip_text(' '.join(block.source.split()), _LONGEST_SOURCE)}  ({block.why})"
    if rest := report.kept - sum(block.kept for block in report.blocks):
        yield f"  {counted(rest, 'block')} stayed"
    removed, added = (report.tokens(change) for change in (BlockChange.REMOVED, BlockChange.ADDED))
    yield f"About {removed:,} tokens were removed, and {added:,} are there instead. The log has all of it."


def left_notes(events: Sequence[Event], how: str) -> Iterator[str]:
    """Say in one line what left, if anything did; `how` shows more."""
    with suppress(SessionError):
        report = left_report(events)
        removed = sum(block.change is BlockChange.REMOVED for block in report.blocks)
        sums = [report.tokens(change) for change in (BlockChange.REMOVED, BlockChange.ADDED)]
        yield (
            f"The compaction at step {report.step} removed {counted(removed, 'block')}, about {sums[0]:,} tokens; "
            f"{sums[1]:,} are there instead. {how} shows which."
        )
