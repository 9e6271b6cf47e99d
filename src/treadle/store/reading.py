"""Reading a log a piece at a time: its events up to the first that is missing or damaged, and what is wrong there."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from treadle.protocol.base import StoredEvent
from treadle.protocol.checkpoints import Rewound
from treadle.protocol.codec import decode_source
from treadle.protocol.errors import StoreError
from treadle.protocol.events import SCHEMA_VERSION, Event, Source
from treadle.protocol.stored import LogReader
from treadle.store.damage import event_data

AT_ONCE = 256
"""Rows that are fetched together: no reader keeps a transaction open while its events are used."""

Stored = tuple[Any, ...]
"""A row as it comes from the file: its number, then time, source, data, and the version of the data."""

_Fetch = Callable[[int], list[Stored]]
"""Gives the next rows after the one of that number; none at the end."""

_BAD_ROW = "Its row in the log is damaged."


class Damage(Struct, frozen=True, kw_only=True):
    """The events that a log cannot give: the numbers of the first and the last, and why."""

    session_id: str
    first: int
    last: int
    why: str

    @property
    def what(self) -> str:
        """Name the events."""
        return f"Event {self.first}" if self.first == self.last else f"Events {self.first} to {self.last}"

    def error(self) -> StoreError:
        """Explain what is lost, for one who needs it."""
        goes_on = "Resume the session: it continues after its last event before that. What is damaged is kept."
        return StoreError(
            "event-damaged",
            f"{self.what} of session {self.session_id} cannot be read.",
            why=self.why,
            fix=goes_on if self.first > 1 else "Start a new session. The others are not affected.",
        )


class StoredEvents:
    """The events of a session after one and before another, each decoded when it is asked for. Can be read once.

    From the beginning, a log of an older Treadle is read with what that said, under the numbers of the causes.

    Those `without` which it is read are left out. It ends at what is missing or damaged, or with `go_on` leaves it
    out; `damages` says, after the last event, what that was. Raises `StoreError` for a log of a newer Treadle, and when
    the file itself is broken.
    """

    def __init__(
        self,
        session_id: str,
        rows: Iterable[Stored],
        *,
        after: int,
        last: int,
        go_on: bool = False,
        without: Sequence[range] = (),
    ) -> None:
        self.damages: list[Damage] = []
        self._session_id = session_id
        self._rows = rows
        self._expected = after + 1
        self._last = last
        self._go_on = go_on
        self.without = without
        self._sources: dict[bytes, Source] = {}
        self._log = None if after else LogReader()

    @property
    def damage(self) -> Damage | None:
        """The first damage that was found; None as long as the log is sound."""
        return self.damages[0] if self.damages else None

    def __iter__(self) -> Iterator[Event]:
        for row in self._rows:
            if row[0] != self._expected:
                self._note_gap(row[0])
                if not self._go_on:
                    return
                if row[0] != self._expected:
                    continue
            try:
                events = self._decoded(row)
            except _DamagedError as error:
                self._note(self._expected, str(error))
                if not self._go_on:
                    return
                continue
            if not any(self._expected in cut for cut in self.without):
                yield from events
            self._expected += 1
        if self._expected <= self._last:
            self._note(self._last, "The log ends before it.")

    def _decoded(self, row: Stored) -> list[Event]:
        seq, at, source, data, version = row
        if type(at) is not int or type(source) is not bytes:
            raise _DamagedError(_BAD_ROW)
        try:
            if type(version) is int and version < SCHEMA_VERSION and self._log is not None:
                return self._log.read(StoredEvent(seq=seq, at=at, source=source, version=version, data=data))
            origin = self._sources.get(source) or self._source(source)
            return [Event(seq=seq, at=at, source=origin, data=event_data(data, version))]
        except StoreError as error:
            if isinstance(version, int) and version > SCHEMA_VERSION:
                raise
            raise _DamagedError(error.why) from error

    def _source(self, raw: bytes) -> Source:
        """Decode where events came from; most come from the same few."""
        self._sources[raw] = decode_source(raw)
        return self._sources[raw]

    def _note_gap(self, number: Any) -> None:
        if type(number) is not int:
            self._add(self._expected, self._expected, _BAD_ROW)
        elif number > self._expected:
            self._note(number - 1, "It is not in the log.")
        else:
            self._add(number, number, "It is in the log more than once.")

    def _note(self, last: int, why: str) -> None:
        """Note the events from the next one to that number as damaged, and go on after them."""
        self._add(self._expected, last, why)
        self._expected = last + 1

    def _add(self, first: int, last: int, why: str) -> None:
        self.damages.append(Damage(session_id=self._session_id, first=first, last=last, why=why))


class _DamagedError(Exception):
    """A row that gives no event."""


def ranges_left(ways_back: Sequence[Stored]) -> tuple[range, ...]:
    """Give the numbers of the events that the ways back of a session, in order, have left behind.

    One that is damaged has left none: a log is read up to there.
    """
    cuts: list[range] = []
    for seq, _, data, version in reversed(ways_back):
        if cuts and seq >= cuts[-1].start:
            continue  # that way back has left the conversation itself
        with suppress(StoreError):
            back = event_data(data, version)
            if isinstance(back, Rewound):
                cuts.append(range(back.to + 1, seq))
    return tuple(cuts)


def rows_after(fetch: _Fetch, after: int) -> Iterator[Stored]:
    """Give the rows of a log, some at once."""
    while rows := fetch(after):
        yield from rows
        if len(rows) < AT_ONCE:
            return
        after = rows[-1][0]
