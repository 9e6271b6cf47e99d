"""Exporting sessions: Markdown and HTML for people, JSON lines that hold every row as it is stored."""

import gzip
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from treadle.app.compose import open_store
from treadle.app.config.layers import load_settings
from treadle.app.config.sections import Settings
from treadle.app.history.session_html import session_page
from treadle.app.reports.session_text import as_it_ended, session_lines
from treadle.app.session.known_values import session_redactor
from treadle.engine.ports import TextRedactor
from treadle.protocol.base import Record
from treadle.protocol.codec import encode
from treadle.protocol.errors import ConfigError, TreadleError
from treadle.protocol.events import Event, EventData, Prompt
from treadle.store.damage import event_data
from treadle.store.sqlite import SessionRow, Store
from treadle.store.titles import title_of
from treadle.workspace.files.text import visible

EXPORT_VERSION = 1
"""Of the JSON lines."""

Redact = Callable[[str], str]
D = TypeVar("D", bound=EventData)


class ExportedSession(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the list of sessions says of one. Times are milliseconds since 1970, UTC; `events` counts its rows."""

    id: str
    workspace: str
    model: str
    title: str
    created_at: int
    updated_at: int
    events: int
    archived: bool = False


class ExportHeader(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The line before the rows of a session. `chain` is the hash of its last row, empty where secrets were hidden."""

    treadle_export: int
    session: ExportedSession
    chain: str = ""
    redacted: bool = False


def export_session(prefix: str, form: str, *, redact: bool = False, turn: int = 1) -> Iterator[bytes]:
    """Give a session in a form, piece by piece; md and html from a `turn` on, which is counted from 1.

    Raises `SessionError`, `ConfigError` for JSON of a part, and at the end `StoreError` for damage.
    """
    if form == "json" and turn > 1:
        raise ConfigError(
            "export-part",
            "A part of a session cannot be exported as JSON.",
            why="`treadle import` reads whole logs.",
            fix="Export all of it, or choose md or html.",
        )
    store = open_store()
    try:
        row = store.find(prefix)
        if form == "json":
            yield from _json(store, row, known_to(row, store).redact if redact else None)
            return
        row, hide = hidden_row(row, store)
        log = store.read(row.id)
        events = hidden_events(as_it_ended(store, row.id, log), hide)
        if form == "html":
            yield from (
                piece.encode() for piece in session_page(row, events, lambda text: visible(hide(text)), turn=turn)
            )
        else:
            for piece in session_lines(row, events, turn=turn):
                yield f"{visible(hide(piece))}\n".encode()
        if log.damage is not None:
            raise log.damage.error()
    finally:
        store.close()


def export_all(*, redact: bool = False) -> Iterator[bytes]:
    """Give every session as JSON lines, the oldest first; raises `StoreError`."""
    store = open_store()
    try:
        for row in reversed(store.sessions(subagents=True)):
            if row.title:
                yield from _json(store, row, known_to(row, store).redact if redact else None)
    finally:
        store.close()


def hidden_row(row: SessionRow, store: Store) -> tuple[SessionRow, Redact]:
    """Give a session as it is listed with its secrets hidden, and what hides them in its texts."""
    hide = known_to(row, store).redact
    return replace(row, title=_hidden_title(row, store, hide)), hide


def _hidden_title(row: SessionRow, store: Store, hide: Redact) -> str:
    """Hide secrets in a title; what was cut from the first prompt is cut anew, as a part of a key looks like none."""
    with suppress(TreadleError):
        for _, _, raw, version in store.of_types(row.id, ("prompt",))[:1]:
            asked = event_data(raw, version)
            if isinstance(asked, Prompt) and title_of(asked.content) == row.title:
                return title_of(_hidden(asked, hide).content)
    return hide(row.title)


def hidden_events(events: Iterable[Event], hide: Redact) -> Iterator[Event]:
    """Hide secrets in whole texts, before anything is cut that is shown of them."""
    for event in events:
        yield replace(event, data=_hidden(event.data, hide))


def _hidden(data: D, hide: Redact) -> D:
    return msgspec.convert(with_each_text(msgspec.to_builtins(data), hide), type(data))


def known_to(row: SessionRow, store: Store) -> TextRedactor:
    """Hide what a session in its folder hides."""
    try:
        settings = load_settings({})
    except (
        TreadleError
    ):  # broken settings keep nobody from their sessions; keys of their own providers are then unknown
        settings = Settings()
    started = next(iter(store.read(row.id, before=2)), None)
    roots = getattr(started.data, "roots", ()) if started is not None else ()
    return session_redactor(row.workspace, settings, roots=roots)


def _json(store: Store, row: SessionRow, hide: Redact | None) -> Iterator[bytes]:
    chains = store.chains(row.id)
    listed = row if hide is None else replace(row, title=_hidden_title(row, store, hide))
    session = msgspec.convert(msgspec.to_builtins(listed), ExportedSession)
    header = ExportHeader(
        treadle_export=EXPORT_VERSION,
        session=session,
        chain=chains[-1].hex() if chains and hide is None else "",
        redacted=hide is not None,
    )
    if hide is not None:
        header = msgspec.convert(with_each_text(msgspec.to_builtins(header), hide), ExportHeader)
    yield encode(header) + b"\n"
    for seq, at, source, data, version in store.rows(row.id):
        parts = [_part("source", source, hide), _part("data", data, hide)]
        yield b'{"seq":%d,"at":%d,%b,"version":%d,%b}\n' % (seq, at, parts[0], version, parts[1])


def _part(name: str, raw: bytes, hide: Redact | None) -> bytes:
    """Write a column as it is stored; what is damaged, so that it is no JSON on one line, as Base64."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value, whole = None, False
    else:
        whole = b"\n" not in raw
    if hide is not None:
        return b'"%b":%b' % (name.encode(), encode(with_each_text(value, hide)))
    return b'"%b":%b' % (name.encode(), raw) if whole else b'"%b64":"%b"' % (name.encode(), b64encode(raw))


def with_each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Change every text of what JSON can hold, but for the names of fields."""
    match value:
        case str():
            return change(value)
        case dict():
            return {key: with_each_text(one, change) for key, one in value.items()}
        case list() | tuple():
            return [with_each_text(one, change) for one in value]
        case _:
            return value


def write_export(file: Path, pieces: Iterable[bytes]) -> None:
    """Write a file for the user alone, all of it or nothing; one named `.gz` is compressed. Raises `ConfigError`."""
    draft = file.with_name(f".{file.name}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as raw:
            if file.suffix == ".gz":
                with gzip.GzipFile("", "wb", fileobj=raw) as packed:
                    packed.writelines(pieces)
            else:
                raw.writelines(pieces)
            raw.flush()
            os.fsync(raw.fileno())
        draft.replace(file)
    except OSError as error:
        raise ConfigError(
            "export-unwritable",
            f"{file} cannot be written.",
            why=str(error.strerror or error),
            fix="Name another file. Nothing was written.",
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink()
