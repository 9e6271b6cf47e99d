"""A thousand sessions: listing them, and searching all that was asked, answered, called and printed in them."""

import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SESSIONS = 1_000
_TURNS = 12
_ROUNDS = 7
_WORDS = ("cart", "total", "discount", "price", "order", "item", "test", "fail", "error", "value", "index", "table")


def _fill() -> None:
    """Write the sessions as an import does, each with a dozen calls and results of some kB."""
    from treadle.app.compose import open_store
    from treadle.app.importing.imported_log import (
        ForeignCall,
        ForeignMessage,
        ForeignResult,
        ForeignSession,
        imported_log,
    )
    from treadle.app.importing.session_import import rows_of
    from treadle.protocol.messages import Role, Text
    from treadle.store.keeping import add_session
    from treadle.store.sqlite import SessionRow

    chance = random.Random(7)

    def text(words: int) -> tuple[Text, ...]:
        return (Text(text=" ".join(f"{chance.choice(_WORDS)}{chance.randrange(400)}" for _ in range(words))),)

    store = open_store()
    for number in range(SESSIONS):
        messages = [ForeignMessage(role=Role.USER, at=10**12 + number, content=text(20))]
        for _ in range(_TURNS):
            call = ForeignCall(id="c", name="execute_command", arguments={"command": text(8)[0].text})
            messages += [
                ForeignMessage(role=Role.ASSISTANT, content=text(30), calls=(call,)),
                ForeignMessage(role=Role.USER, results={"c": ForeignResult(content=text(200))}),
            ]
        if number == SESSIONS // 2:
            messages.append(ForeignMessage(role=Role.ASSISTANT, content=(Text(text="a Needle, once in a haystack"),)))
        name = f"s{number:04}"
        log = imported_log(ForeignSession(origin="bench", id=name, messages=messages, workspace="/w"), name)
        row = SessionRow(
            id=name, workspace="/w", model="b/m", title=f"session {number}", created_at=1, updated_at=number, events=0
        )
        add_session(store, row, "", rows_of(log))
    store.close()


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        work()
        times.append((time.perf_counter() - begun) * 1000)
    return min(times)


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TREADLE_HOME"] = folder
        from treadle.app.reports.known_sessions import listed_sessions
        from treadle.app.reports.session_search import found_places

        _fill()
        database = Path(folder, "sessions.db")
        begun = time.perf_counter()
        found_places("needle", None, 50)
        print(
            f"{SESSIONS:,} sessions, {database.stat().st_size / 1e6:,.0f} MB; their index "
            f"{database.with_name('sessions.db-words').stat().st_size / 1e6:,.0f} MB, made in "
            f"{time.perf_counter() - begun:.1f} s"
        )
        assert len(listed_sessions(None)) == SESSIONS

        def rows() -> object:
            with sqlite3.connect(database) as connection:
                found = connection.execute(
                    "SELECT sessions.*, summaries.data FROM sessions LEFT JOIN summaries ON session_id = id "
                    "ORDER BY updated_at DESC"
                ).fetchall()
            connection.close()
            return found

        def matches(query: str) -> object:
            with sqlite3.connect(database.with_name("sessions.db-words")) as connection:
                found = connection.execute("SELECT rowid FROM grams WHERE grams MATCH ? LIMIT 50", (query,)).fetchall()
            connection.close()
            return found

        _print("listing them", _best(lambda: listed_sessions(None)), _best(rows))
        for text in ("NEEDLE, once", "discount12", "cart3 total4", "no such text anywhere"):
            grams = " AND ".join(f'"{text.lower()[at : at + 3]}"' for at in range(len(text) - 2))
            taken = _best(lambda text=text: found_places(text, None, 50))  # type: ignore[misc]
            _print(f"searching for {text!r}", taken, _best(lambda grams=grams: matches(grams)))  # type: ignore[misc]


def _print(what: str, taken: float, bare: float) -> None:
    print(f"  {what:<44}{taken:>8.1f} ms   {taken / bare:5.1f}x of the bare query's {bare:.2f} ms   (budget 150 ms)")


if __name__ == "__main__":
    main()
