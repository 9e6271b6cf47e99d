"""Golden logs: rows as an older version wrote them, and what that version showed and sent."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple

from tests.golden.config import ROOT
from treadle.protocol.base import StoredEvent
from treadle.protocol.events import Event
from treadle.protocol.stored import LogReader

LOGS = Path(__file__).with_name("logs")
VERSIONS = ("0.1.0", "2")
WALKS = LOGS / "walks_0_1_0.jsonl.gz"
"""Random sessions of 0.1.0, written by `walk_0_1_0.py`; what is shown of them was written by `reading.py`."""


class Row(NamedTuple):
    """A row of a log; source and data are JSON."""

    seq: int
    at: int
    source: str
    version: int
    data: str


def read_rows(rows: Iterable[Row]) -> Iterator[Event]:
    """Read the events of a log."""
    reader = LogReader()
    for row in rows:
        yield from reader.read(
            StoredEvent(seq=row.seq, at=row.at, source=row.source.encode(), version=row.version, data=row.data.encode())
        )


@dataclass(frozen=True)
class Golden:
    """One golden log. `root` stands in the place of the folder that it was written in."""

    version: str
    name: str
    root: str = str(ROOT)

    def __str__(self) -> str:
        return f"{self.version}-{self.name}"

    def text(self, ending: str) -> str:
        """Read one of its files."""
        return (LOGS / self.version / f"{self.name}.{ending}").read_text(encoding="utf-8").replace(str(ROOT), self.root)

    def json(self, ending: str) -> Any:
        """Read one of its files."""
        return json.loads(self.text(ending))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Its rows."""
        lines = map(json.loads, self.text("jsonl").splitlines())
        return tuple(
            Row(seq, at, _written(source), version, _written(data)) for seq, at, source, version, data in lines
        )

    @property
    def ended(self) -> bool:
        """Whether its last turn came to an end."""
        return not self.name.startswith("ends_")

    @property
    def workspace(self) -> Path:
        """The folder that it was worked in."""
        return Path(self.root, self.name)

    @property
    def id(self) -> str:
        """The session."""
        return str(json.loads(self.rows[0].data)["session_id"])


def golden_logs() -> list[Golden]:
    """All golden logs."""
    return [Golden(folder, file.stem) for folder in VERSIONS for file in sorted((LOGS / folder).glob("*.jsonl"))]


def restore(home: Path, logs: Iterable[Golden]) -> None:
    """Make a data directory with these sessions, in a database as 0.1.0 made it."""
    home.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(home / "sessions.db")) as database:
        database.executescript(Path(__file__).with_name("database_0_1_0.sql").read_text(encoding="utf-8"))
        for log in logs:
            with database:
                _insert(database, log)


def _insert(database: sqlite3.Connection, log: Golden) -> None:
    rows, title = log.rows, log.text("show.txt").splitlines()[0].removeprefix("# ")
    session = (log.id, str(log.workspace), "golden/main", title, rows[0].at, rows[-1].at, rows[-1].seq)
    database.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", session)
    chain = sha256(log.id.encode()).digest()
    for row in rows:
        source, data = row.source.encode(), row.data.encode()
        chain = sha256(chain + pack(">qqI", row.seq, row.at, len(source)) + source + data).digest()
        values = (log.id, row.seq, row.at, source, row.version, data, chain)
        database.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
