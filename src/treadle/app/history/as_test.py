"""A session as a test: a tape without secrets, and a pytest file that plays it."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from treadle.app.compose import session_log, tool_specs
from treadle.app.config.layers import load_settings
from treadle.app.config.sections import Settings
from treadle.app.history.replaying import conditions_now, session_tape
from treadle.app.history.session_export import known_to, with_each_text, write_export
from treadle.app.session.own_tools import own_tools
from treadle.engine.ports import TextRedactor
from treadle.engine.replay.difference import DiffersError
from treadle.engine.replay.strict import Conditions, read_rows, rebuild
from treadle.engine.replay.tape import Tape, TapeHead, conditions_of_tape, made_exact, play, write_tape
from treadle.protocol.base import StoredEvent
from treadle.protocol.codec import decode_data, encode
from treadle.protocol.errors import SessionError
from treadle.protocol.events import SCHEMA_VERSION, Event, SessionStarted, SetFallback, SetMode, SetModel

_TEST = '''\
"""What happened in session {session} must come out the same: no model is called, and no tool runs."""

from pathlib import Path

from treadle.testing import replay_tape


def test_session_{name}_is_replayed() -> None:
    replay_tape(Path(__file__).with_name("{tape}"))
'''


class WrittenTest(Struct, frozen=True, kw_only=True):
    """The files of a session as a test, how many events it has, and in how many of them secrets were hidden."""

    test: Path
    tape: Path
    events: int
    redacted: int


def export_as_test(prefix: str, output: str = "") -> WrittenTest:
    """Write a session as a pytest file with its tape beside it; raises `SessionError`, `StoreError`.

    Secrets are hidden in what came from outside, and what the machine said of it is made anew. The tape is played
    before it is written.
    """
    settings = load_settings({})
    session_id, rows, _ = session_tape(prefix)
    with session_log(session_id) as (row, store):
        redactor = known_to(row, store)
    hidden = hidden_rows(rows, redactor)
    tape = made_exact(Tape(head=tape_head(session_id, settings, rows), rows=hidden))
    redacted = sum(one.data != other.data for one, other in zip(rows, hidden, strict=True))
    if redacted:
        tape = Tape(head=tape.head, rows=_made_anew(hidden, conditions_of_tape(tape.head), session_id))
    if (difference := play(tape).difference) is not None:
        raise _not_played(session_id, f"Event {difference.seq} ({difference.type}) {difference.path}. {difference.why}")
    name = re.sub(r"\W", "_", session_id)
    test = Path(output or f"test_session_{name}.py")
    file = test.with_suffix(".jsonl")
    with suppress(OSError):
        test.parent.mkdir(parents=True, exist_ok=True)
    write_export(file, [write_tape(tape)])
    write_export(test, [_TEST.format(session=session_id, name=name, tape=file.name).encode()])
    return WrittenTest(test=test, tape=file, events=len(tape.rows), redacted=redacted)


def tape_head(session_id: str, settings: Settings, rows: Sequence[StoredEvent]) -> TapeHead:
    """Keep what a session ran under, as far as today's settings say."""
    built_in = tool_specs()
    own = own_tools([one.name for one in built_in]).tools
    spec = conditions_now(settings).model
    return TapeHead(
        session=session_id,
        models={ref: spec(ref) for ref in sorted(_models(rows))},
        tools=(*built_in, *(tool.spec for tool in own)),
        checklist=settings.checklist,
        compaction=settings.context.compaction,
    )


def _models(rows: Sequence[StoredEvent]) -> set[str]:
    found = set()
    for one in read_rows(rows):
        match one.event.data:
            case SessionStarted(choice=choice, fallback=fallback):
                found |= {each.model for each in (choice, fallback) if each is not None}
            case SetModel(choice=choice) | SetMode(choice=choice) | SetFallback(choice=choice) if choice is not None:
                found.add(choice.model)
            case _:
                pass
    return found


def hidden_rows(rows: Sequence[StoredEvent], redactor: TextRedactor) -> list[StoredEvent]:
    """Hide the secrets in every text of a log's rows; a row without one stays as it is, byte for byte."""
    found = []
    for row in rows:
        before = msgspec.json.decode(row.data)
        after = with_each_text(before, redactor.redact)
        data = row.data if before == after else _own_order(msgspec.json.encode(after), row.version)
        found.append(msgspec.structs.replace(row, data=data))
    return found


def _own_order(data: bytes, version: int) -> bytes:
    return encode(decode_data(data)) if version == SCHEMA_VERSION else data


def _made_anew(rows: Sequence[StoredEvent], conditions: Conditions, session_id: str) -> list[StoredEvent]:
    log = read_rows(rows)
    if any(not one.own for one in log):
        return list(rows)
    try:
        return [_row(event) for event in rebuild(log, conditions)]
    except DiffersError as error:
        raise _not_played(session_id, f"Event {error.difference.seq}: {error.difference.why}") from error


def _row(event: Event) -> StoredEvent:
    source, data = encode(event.source), encode(event.data)
    return StoredEvent(seq=event.seq, at=event.at, source=source, version=SCHEMA_VERSION, data=data)


def _not_played(session_id: str, why: str) -> SessionError:
    return SessionError(
        "export-differs",
        f"Session {session_id} cannot be made a test: its tape would not pass.",
        why=why,
        fix=f"See what differs with: treadle replay {session_id} --strict",
    )
