"""Reading the JSON lines of an export: rows are taken as long as they follow each other and can be decoded."""

from base64 import b64decode
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from treadle.app.history.session_export import EXPORT_VERSION, ExportHeader
from treadle.app.importing.foreign_blocks import numbered_lines, parsed
from treadle.app.importing.imported_log import LATEST, LogBuilder
from treadle.engine.core.past_history import last_state
from treadle.protocol.base import StoredEvent
from treadle.protocol.codec import encode
from treadle.protocol.errors import StoreError
from treadle.protocol.events import SCHEMA_VERSION, Event, SessionStarted
from treadle.protocol.patterns import regex
from treadle.protocol.stored import LogReader
from treadle.store.appending import tag_of
from treadle.store.chain import LogRow, beginning, link
from treadle.store.schema import type_of

_ID = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What the name of a session may be: it is a part of paths."""


_HEADER = b'"treadle_export"'


class _Row(Struct, frozen=True):
    seq: int
    at: int
    version: int
    source: Raw = Raw()
    data: Raw = Raw()
    source64: str = ""
    data64: str = ""


_headers = msgspec.json.Decoder(ExportHeader)
_rows = msgspec.json.Decoder(_Row)


class ExportedLog:
    """The log of one session in a file, as far as it can be read; `chain` is the hash of its last row."""

    def __init__(self, header: ExportHeader) -> None:
        self.header = header
        self.name = header.session.id
        self.named_well = _ID.fullmatch(header.session.id) is not None
        self.rows: list[tuple[LogRow, str, int]] = []
        self.events: list[Event] = []
        self.problems: list[str] = []
        self.chain = beginning(header.session.id) if header.session.id.isprintable() else b""
        self._reader = LogReader()
        self._broken = False

    def take(self, number: int, line: bytes | None) -> None:
        """Take the row of a line; after one that is broken, or missing, nothing more."""
        if self._broken:
            return
        try:
            row = _rows.decode(line or b"")
            source, data = _bytes(row.source, row.source64), _bytes(row.data, row.data64)
            kept = LogRow(row.seq, row.at, source, data)
            if row.seq != len(self.rows) + 1 or not 0 <= row.at <= LATEST:
                raise ValueError("it does not follow on the row before it")
            stored = StoredEvent(seq=row.seq, at=row.at, source=source, version=row.version, data=data)
            events = self._reader.read(stored)
            if not self.rows and not isinstance(events[0].data, SessionStarted):
                raise ValueError("it is not the beginning of a session")
        except (msgspec.MsgspecError, StoreError, ValueError, TypeError, LookupError, AttributeError) as error:
            self._broken = True
            self.problems.append(self._left_out(number, error))
            return
        self.events += events
        self.rows.append((kept, type_of(data), row.version))
        self.chain = link(self.chain, kept)

    def _left_out(self, number: int, error: Exception) -> str:
        """Say what is left out for an error in a line: all, where a newer Treadle wrote what comes there."""
        if isinstance(error, StoreError) and error.code == "log-newer":
            self.rows, self.events = [], []
            return f"{error.what} {error.fix}"
        why = error.why or error.what if isinstance(error, StoreError) else str(error)
        return f"line {number} is broken ({why:.120}); what comes after it was left out."

    def close(self) -> None:
        """Compare what was read with what the export says."""
        missing = self.header.session.events - len(self.rows)
        if missing > 0 and not self._broken:
            self.problems.append(f"the file ends early; {missing} events are missing.")
        elif missing <= 0 and self.header.chain and self.chain.hex() != self.header.chain:
            self.problems.append("it was changed after the export: its hash is another one.")

    def rows_for(self, session_id: str) -> list[tuple[LogRow, str, int]]:
        """Give the rows under an id, with the end of an import behind them; raises as `LogBuilder.post` does."""
        rows = list(self.rows)
        first, tag, version = rows[0]
        started = self.events[0].data
        if isinstance(started, SessionStarted) and started.session_id != session_id and version == SCHEMA_VERSION:
            data = encode(replace(started, session_id=session_id))
            rows[0] = (replace(first, data=data), tag, version)
        builder = LogBuilder(self.events, last_state(self.events))
        builder.settle(session_id)
        for event in builder.events[len(self.events) :]:
            row = LogRow(event.seq, event.at, encode(event.source), encode(event.data))
            rows.append((row, tag_of(event.data), SCHEMA_VERSION))
        return rows


def _bytes(raw: Raw, text: str) -> bytes:
    return b64decode(text, validate=True) if text else bytes(raw)


def read_logs(stream: BinaryIO) -> Iterator[ExportedLog]:
    """Read the sessions of a file one after another."""
    log: ExportedLog | None = None
    for number, line in numbered_lines(stream):
        if line is not None and _is_header(line):
            if log is not None:
                log.close()
                yield log
            log = _begun(number, line)
        elif log is not None:
            log.take(number, line)
    if log is not None:
        log.close()
        yield log


def _is_header(line: bytes) -> bool:
    """Whether a line begins a session, in whatever order its fields are; a row may only speak of one."""
    value = parsed(line) if _HEADER in line else None
    return isinstance(value, dict) and "treadle_export" in value


def _begun(number: int, line: bytes) -> ExportedLog:
    try:
        header = _headers.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(
            "import-broken", f"Line {number} cannot be read.", why=str(error), fix="Export the sessions again."
        ) from error
    if header.treadle_export > EXPORT_VERSION:
        raise StoreError(
            "import-newer",
            "The file was exported by a newer Treadle.",
            why=f"Its format is {header.treadle_export}, this one knows {EXPORT_VERSION}.",
            fix="Update Treadle.",
        )
    return ExportedLog(header)
