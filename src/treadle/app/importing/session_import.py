"""Importing sessions: which format a file has, and what became of each session in it."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.compose import open_store
from treadle.app.importing.claude_code_transcript import read_transcript
from treadle.app.importing.cline_session import CLINE_MESSAGES, messages_file, read_session
from treadle.app.importing.cline_task import CONVERSATION, SCREEN, read_task
from treadle.app.importing.codex_rollout import is_rollout, read_rollout
from treadle.app.importing.foreign_blocks import LARGEST_FILE, numbered_lines, parsed
from treadle.app.importing.imported_log import ForeignSession, foreign_id, imported_log
from treadle.app.importing.own_export import ExportedLog, read_logs
from treadle.app.session.parts import new_session_id
from treadle.protocol.codec import encode
from treadle.protocol.errors import ConfigError, StoreError, TreadleError
from treadle.protocol.events import SCHEMA_VERSION, Event, Prompt, SessionStarted
from treadle.store.appending import tag_of
from treadle.store.chain import LogRow, beginning, link
from treadle.store.keeping import add_session
from treadle.store.sqlite import SessionRow, Store
from treadle.store.titles import first_title
from treadle.workspace.files.walking import walk

_MOST_FILES = 20_000
_ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz")
_OF_AGENTS = "agent-"
"""How files of Claude Code begin that are no conversation with a person."""

_DAY = 24 * 3600 * 1000
"""Milliseconds; what a transcript says is later than its file by more than that is wrong."""

_GZIP = b"\x1f\x8b"

_UNREADABLE = (OSError, EOFError, zlib.error)

_MakeLog = Callable[[str], list[Event]]
"""Makes the log of a conversation for a session's id."""


class ImportReport(Struct, frozen=True, kw_only=True):
    """What to say: a session that was taken or skipped, or with `problem` what was left out. `failed`: all of it."""

    text: str
    problem: bool = False
    failed: bool = False


def import_sessions(path: Path) -> Iterator[ImportReport]:
    """Import what a file or folder holds; raises `ConfigError`, `StoreError`."""
    if not path.exists():
        raise ConfigError("import-nothing", f"There is no {path}.", fix="Name a file or folder to import.")
    store = open_store()
    try:
        found = 0
        for place in _places(path):
            found += 1
            yield from _import_place(store, place)
        if not found:
            raise ConfigError(
                "import-nothing",
                f"{path} holds nothing that can be imported.",
                why=f"Looked for {CONVERSATION} and for files that end in {', '.join(_ENDINGS)}.",
                fix="See docs/sessions.md for what can be imported, and where other programs keep it.",
            )
    finally:
        store.close()


def _places(path: Path) -> Iterator[Path]:
    """Find task folders of Cline, and files; links are not followed."""
    if path.is_file():
        own = path.with_name(f"{path.stem}{CLINE_MESSAGES}")
        yield path.parent if path.name in (CONVERSATION, SCREEN) else own if own.is_file() else path
        return
    for count, (folder, folders, files) in enumerate(walk(path)):
        if count >= _MOST_FILES:
            return
        folders.sort()
        here = Path(folder)
        if CONVERSATION in files or SCREEN in files:
            folders.clear()
            yield here
            continue
        if spoken := messages_file(here, files):
            yield spoken
            continue
        if here.name == "subagents":
            folders.clear()
            continue
        for name in sorted(files):
            if name.endswith(_ENDINGS) and not name.startswith(_OF_AGENTS) and not (here / name).is_symlink():
                yield here / name


def _import_place(store: Store, place: Path) -> Iterator[ImportReport]:
    try:
        if place.is_dir():
            yield from _import_foreign(store, place, read_task(place))
        elif place.name.endswith(CLINE_MESSAGES):
            yield from _import_foreign(store, place, read_session(place))
        elif is_rollout(first := _first_value(place)):
            yield from _import_foreign(store, place, read_rollout(place))
        elif isinstance(first, dict) and "treadle_export" in first:
            with _opened(place) as stream:
                log = None
                for log in read_logs(stream):
                    yield from _import_own(store, place, log)
            if log is None:
                yield ImportReport(text=f"{place}: no session was found in it.", problem=True, failed=True)
        else:
            yield from _import_foreign(store, place, read_transcript(place))
    except _UNREADABLE as error:
        yield ImportReport(text=f"{place}: cannot be read: {error}", problem=True, failed=True)


def _opened(file: Path) -> BinaryIO:
    with file.open("rb") as raw:
        packed = raw.read(2) == _GZIP
    return cast("BinaryIO", gzip.open(file, "rb")) if packed else file.open("rb")


def _first_value(file: Path) -> object:
    """Parse the first line of a file that is not blank, or all of one whose lines are no values."""
    with _opened(file) as stream:
        first = next((line for _, line in numbered_lines(stream)), None)
    value = None if first is None else parsed(first)
    is_one = value is None and file.suffix == ".json" and file.stat().st_size <= LARGEST_FILE
    return parsed(file.read_bytes()) if is_one else value


def _import_foreign(store: Store, place: Path, session: ForeignSession) -> Iterator[ImportReport]:
    problems = [ImportReport(text=f"{place}: {problem}", problem=True) for problem in session.problems]
    yield from problems
    if not session.messages:
        yield ImportReport(text=f"{place}: no conversation was found in it.", problem=True, failed=True)
        return
    # Not the time of now: the same conversation is to come out the same, whatever the clock says.
    changed = _changed(place)
    messages = [one if one.at <= changed + _DAY else replace(one, at=changed) for one in session.messages]
    begun = next((one.at for one in messages if one.at), 0) or changed
    messages[0] = replace(messages[0], at=begun)
    session = replace(session, messages=messages, workspace=session.workspace or str(Path.home()))
    name = foreign_id(session, begun)
    yield _again(lambda: _kept(store, place, name, lambda chosen: imported_log(session, chosen), title=session.title))


def _again(work: Callable[[], ImportReport]) -> ImportReport:
    """Do it once more where another process has written a session of the same id meanwhile."""
    try:
        return work()
    except StoreError as error:
        if error.code != "log-conflict":
            raise
        return work()


def _changed(place: Path) -> int:
    return int(place.stat().st_mtime * 1000)


def _import_own(store: Store, place: Path, log: ExportedLog) -> Iterator[ImportReport]:
    for problem in log.problems:
        yield ImportReport(text=f"{place}: {log.name}: {problem}", problem=True, failed=not log.rows)
    if not log.rows:
        return
    try:
        yield _again(lambda: _kept_own(store, log))
    except (TreadleError, AssertionError, LookupError, StopIteration, TypeError, ValueError) as error:
        if isinstance(error, TreadleError) and error.code == "log-unwritable":
            raise
        why = getattr(error, "why", "") or str(error)
        text = f"{place}: {log.name}: it cannot be followed to its end: {why}"
        yield ImportReport(text=text, problem=True, failed=True)


def _kept_own(store: Store, log: ExportedLog) -> ImportReport:
    """Write a log that was exported, unless it is here already."""
    row = log.header.session
    known = _known(store, row.id, len(log.rows), log.chain)
    if known == "same":
        return ImportReport(text=f"{row.id} is here already, with the same log: skipped.")
    chosen = row.id if known == "free" and log.named_well else new_session_id(row.created_at)
    note = f" (was {row.id})" * (chosen != row.id)
    return _written(store, chosen, log.rows_for(chosen), log.events, title=row.title, note=note)


def _known(store: Store, session_id: str, events: int, chain: bytes) -> str:
    """Say whether an id is free, or taken by the same log, which may go on since, or by another one."""
    if not store.query("SELECT 1 FROM sessions WHERE id = ?", (session_id,)):
        return "free"
    chains = store.chains(session_id)
    return "same" if len(chains) >= events and chains[events - 1] == chain else "other"


def _kept(store: Store, place: Path, name: str, make: _MakeLog, *, title: str) -> ImportReport:
    """Write the log of another program's conversation, unless it is here already."""
    events = make(name)
    rows = rows_of(events)
    chain = beginning(name)
    for row, _, _ in rows:
        chain = link(chain, row)
    known = _known(store, name, len(rows), chain)
    if known == "same":
        return ImportReport(text=f"{name} is here already, with the same log: skipped ({place}).")
    if known == "other":
        name = new_session_id(events[0].at)
        events = make(name)
        rows = rows_of(events)
    return _written(store, name, rows, events, title=title)


def rows_of(events: list[Event]) -> list[tuple[LogRow, str, int]]:
    """Encode a log as it is stored, each row with its type and version."""
    return [
        (LogRow(one.seq, one.at, encode(one.source), encode(one.data)), tag_of(one.data), SCHEMA_VERSION)
        for one in events
    ]


def _written(
    store: Store, name: str, rows: list[tuple[LogRow, str, int]], events: list[Event], *, title: str, note: str = ""
) -> ImportReport:
    """Write a session and check the chain of what is written."""
    started = events[0].data
    prompts = sum(isinstance(one.data, Prompt) for one in events)
    first = first_title(one.data for one in events)
    if not first:
        return ImportReport(text=f"{name} has no prompt: skipped.", problem=True)
    row = SessionRow(
        id=name,
        workspace=started.workspace if isinstance(started, SessionStarted) else "",
        model=started.choice.model if isinstance(started, SessionStarted) else "",
        title=first,
        created_at=events[0].at,
        updated_at=events[-1].at,
        events=0,
    )
    add_session(store, row, "" if title == first else title, rows)
    if (wrong := store.verify(name)) is not None:
        return ImportReport(text=f"{name}: event {wrong} is not as it was written.", problem=True, failed=True)
    return ImportReport(text=f"{name}{note}  {title or first} ({prompts} prompts)")
