"""How edits came out, for each model, format, outcome and day; and what was read for each model."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct


class EditCount(Struct, frozen=True, kw_only=True):
    """How often edits of one kind came out one way on one day. `repair`: right after a refusal for the same file.

    `day` is a date of UTC, such as 2026-01-31. `tokens` are those that the model wrote for the replies with these
    edits.
    """

    model: str
    format: str
    code: str
    repair: bool
    day: str = ""
    count: int = 1
    tokens: int = 0


class ReadingCount(Struct, frozen=True, kw_only=True):
    """In how many calls something was read for a model, by the code of the reading and the day (of UTC)."""

    model: str
    code: str
    day: str = ""
    count: int = 1


COLUMNS = "model, format, code, repair, day, count, tokens"


def add_edits(connection: sqlite3.Connection, counts: Sequence[EditCount]) -> None:
    """Add to what was counted."""
    connection.executemany(
        f"INSERT INTO edits ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) "  # noqa: S608 - a constant
        "ON CONFLICT DO UPDATE SET count = count + excluded.count, tokens = tokens + excluded.tokens",
        [(one.model, one.format, one.code, one.repair, one.day, one.count, one.tokens) for one in counts],
    )


def add_readings(connection: sqlite3.Connection, counts: Sequence[ReadingCount]) -> None:
    """Add to what was counted."""
    connection.executemany(
        "INSERT INTO readings (model, code, day, count) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET count = count + excluded.count",
        [(one.model, one.code, one.day, one.count) for one in counts],
    )


def counts_in(rows: Iterable[Any]) -> list[EditCount]:
    """Make counts of rows with these columns."""
    return [
        EditCount(model=model, format=form, code=code, repair=bool(repair), day=day, count=count, tokens=tokens)
        for model, form, code, repair, day, count, tokens in rows
    ]
