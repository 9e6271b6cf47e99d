"""A tape: a log with what its session ran under, in one file of JSON lines, so that it can be played anywhere."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.context.compaction_words import CompactionSettings
from treadle.context.focus import with_progress
from treadle.engine.replay.strict import Conditions, ReplayResult, read_rows, replay_strictly
from treadle.protocol.base import Record, StoredEvent
from treadle.protocol.errors import StoreError
from treadle.protocol.models import ModelSpec
from treadle.protocol.tools import ToolSpec


class TapeHead(Record, frozen=True, kw_only=True):
    """The first line of a tape. `exact`: what compactions chose follows from these settings."""

    tape: int = 1
    session: str
    models: dict[str, ModelSpec]
    tools: tuple[ToolSpec, ...] = ()
    checklist: bool = True
    compaction: CompactionSettings = CompactionSettings()
    exact: bool = False


class Tape(Struct, frozen=True, kw_only=True):
    """A session's log that can be played without the session's home."""

    head: TapeHead
    rows: Sequence[StoredEvent]


def write_tape(tape: Tape) -> bytes:
    """Write a tape; each row is an array of number, time, source, schema and data."""
    lines = [msgspec.json.encode(tape.head)]
    lines += [b"[%d,%d,%s,%d,%s]" % (row.seq, row.at, row.source, row.version, row.data) for row in tape.rows]
    return b"\n".join([*lines, b""])


def read_tape(raw: bytes) -> Tape:
    """Read a tape; raises `StoreError`."""
    first, *rest = raw.splitlines() or [b""]
    row = msgspec.json.Decoder(tuple[int, int, msgspec.Raw, int, msgspec.Raw])
    try:
        head = msgspec.json.decode(first, type=TapeHead)
        rows = [row.decode(line) for line in rest if line.strip()]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(
            "tape-damaged",
            "The tape cannot be read.",
            why=str(error),
            fix="Export the session again: treadle export ID --as-test",
        ) from error
    stored = [
        StoredEvent(seq=seq, at=at, source=bytes(source), version=version, data=bytes(data))
        for seq, at, source, version, data in rows
    ]
    return Tape(head=head, rows=stored)


def conditions_of_tape(head: TapeHead) -> Conditions:
    """Give what the session of a tape ran under."""
    tools = {one.name: with_progress(one) if head.checklist else one for one in head.tools}
    unknown = ModelSpec(provider="", name="")
    return Conditions(
        model=lambda ref: head.models.get(ref, unknown), compaction=head.compaction, tools=tools, exact=head.exact
    )


def play(tape: Tape) -> ReplayResult:
    """Replay a tape strictly; raises `StoreError` for rows that cannot be read."""
    return replay_strictly(read_rows(tape.rows), conditions_of_tape(tape.head))


def made_exact(tape: Tape) -> Tape:
    """Bind a tape to its settings where what compactions chose follows from them."""
    return replace(tape, head=replace(tape.head, exact=not play(tape).taken))
