"""Reading a log a piece at a time: its events up to the first that is missing or damaged, and what is wrong there."""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from treadle.protocol.codec import decode_data, decode_source
from treadle.protocol.errors import StoreError
from treadle.protocol.events import SCHEMA_VERSION, Event
from treadle.store.chain import Row

AT_ONCE = 256
"""Rows that are fetched together: no reader keeps a transaction open while its events are used."""

Fetch = Callable[[int], list[tuple[Row, object]]]
"""Gives the next rows after the one of that number, each with the version of its data; none at the end."""


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


class Reading:
    """The events of a session after one and before another, each decoded when it is asked for. Can be read once.

    It ends at what is missing or damaged, or with `go_on` leaves it out; `damages` says, after the last event, what
    that was. Raises `StoreError` for a log of a newer Treadle, and when the file itself is broken.
    """

    def __init__(
        self, session_id: str, rows: Iterable[tuple[Row, object]], *, after: int, last: int, go_on: bool = False
    ) -> None:
        self.damages: list[Damage] = []
        self._session_id = session_id
        self._rows = rows
        self._expected = after + 1
        self._last = last
        self._go_on = go_on

    @property
    def damage(self) -> Damage | None:
        """The first damage that was found; None as long as the log is sound."""
        return self.damages[0] if self.damages else None

    def __iter__(self) -> Iterator[Event]:
        for row, version in self._rows:
            event = self._read(row, version)
            if event is not None:
                yield event
            elif not self._go_on:
                return
        if self._expected <= self._last:
            self._found(self._last, "The log ends before it.")

    def _read(self, row: Row, version: object) -> Event | None:
        if row.well_formed and row.seq > self._expected:
            self._found(row.seq - 1, "It is not in the log.")
            if not self._go_on:
                return None
        try:
            event = _decoded(row, version, self._expected)
        except _DamagedError as error:
            self._found(self._expected, str(error))
            return None
        self._expected += 1
        return event

    def _found(self, last: int, why: str) -> None:
        self.damages.append(Damage(session_id=self._session_id, first=self._expected, last=last, why=why))
        self._expected = last + 1


class _DamagedError(Exception):
    """A row that gives no event."""


def _decoded(row: Row, version: object, expected: int) -> Event:
    if not row.well_formed or row.seq != expected:
        raise _DamagedError("Its row in the log is damaged.")
    if not isinstance(version, int) or version < 1:
        raise _DamagedError("The version of its data is unknown.")
    try:
        return Event(seq=row.seq, at=row.at, source=decode_source(row.source), data=decode_data(row.data, version))
    except StoreError as error:
        if version > SCHEMA_VERSION:
            raise
        raise _DamagedError(error.why) from error


def rows_after(fetch: Fetch, after: int) -> Iterator[tuple[Row, object]]:
    """Give the rows of a log, some at once; ends at one whose number does not lead on."""
    while rows := fetch(after):
        yield from rows
        last = rows[-1][0]
        if len(rows) < AT_ONCE or not last.well_formed or last.seq <= after:
            return
        after = last.seq
