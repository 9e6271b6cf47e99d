"""Replaying what rehearsals recorded: every log must be rebuilt byte for byte."""

from collections.abc import Sequence

from msgspec.structs import replace

from tests.e2e.process import Program
from tests.e2e.running import log_of
from treadle.app.config.sections import Settings
from treadle.app.history.replaying import conditions_now, replay_rows, report_lines, session_tape
from treadle.engine.ports import Ports
from treadle.engine.replay.strict import Conditions, ReplayResult, read_rows, replay_strictly
from treadle.engine.runtime.model_requests import known_tools
from treadle.protocol.base import StoredEvent
from treadle.protocol.codec import encode
from treadle.protocol.events import SCHEMA_VERSION, Event, SessionStarted


def rows_of(events: Sequence[Event]) -> list[StoredEvent]:
    """Give events as the rows of a log."""
    return [
        StoredEvent(seq=one.seq, at=one.at, source=encode(one.source), version=SCHEMA_VERSION, data=encode(one.data))
        for one in events
    ]


def conditions_of(ports: Ports) -> Conditions:
    """Give what a session over these ports ran under."""
    return Conditions(model=ports.model, compaction=ports.compaction, tools=known_tools(ports), exact=True)


def replay_events(events: Sequence[Event], conditions: Conditions) -> ReplayResult:
    """Replay a log in memory."""
    return replay_strictly(read_rows(rows_of(events)), conditions)


def replay_trouble(session_id: str, settings: Settings) -> str:
    """Say how a session's rebuilt log differs from the recorded one; empty where it does not."""
    report = replay_rows(*session_tape(session_id), replace(conditions_now(settings), exact=True))
    return "" if report.same else "\n".join(report_lines(report))


async def replay_program(program: Program) -> str:
    """Have the program replay the one session of its home; empty where it is the same."""
    started = log_of(program.home)[0].data
    assert isinstance(started, SessionStarted)
    ended = await program.run("replay", started.session_id, "--strict")
    return "" if ended.code == 0 else f"{ended.out}{ended.err}"
