"""Importing conversations: they become real sessions, whatever is broken in them, and bring no permissions."""

import json
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.foreign_corpus import CLINE_CONVERSATION, claude_entry, claude_lines, write_lines, write_task
from tests.store.sessions import event
from treadle.app.compose import open_store
from treadle.app.history.session_export import export_all, export_session
from treadle.app.importing import session_import
from treadle.app.importing.imported_log import ForeignMessage, ForeignSession, imported_log, merged
from treadle.app.importing.session_import import ImportReport, import_sessions
from treadle.app.reports.known_sessions import ListedSession, SessionState, listed_sessions
from treadle.app.reports.session_search import found_places
from treadle.app.reports.session_text import session_lines
from treadle.engine.core.advance import fold
from treadle.engine.core.past_history import last_state, read_past
from treadle.engine.core.sealing import written
from treadle.engine.core.state import State, Waiting
from treadle.protocol.errors import ConfigError, StoreError
from treadle.protocol.events import ENGINE, SCHEMA_VERSION, Event, Prompt, SessionStarted
from treadle.protocol.limits import OF_NEW_SESSIONS, Limits
from treadle.protocol.messages import Role, Text
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.permissions import Allowance, Mode
from treadle.protocol.sealed import StateSealed
from treadle.store.keeping import add_session
from treadle.store.sqlite import SessionRow, Store


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def taken(path: Path) -> list[ImportReport]:
    return list(import_sessions(path))


def only() -> ListedSession:
    (session,) = listed_sessions(None)
    return session


def shown(session_id: str) -> str:
    store = open_store()
    try:
        log = store.read(session_id)
        text = "\n".join(session_lines(store.find(session_id), log))
        assert (log.damage, store.verify(session_id), store.missing(session_id)) == (None, None, (None, True))
        assert fold(store.read(session_id)) == last_state(store.read(session_id))
        return text
    finally:
        store.close()


def test_a_transcript_of_claude_code_becomes_a_session(tmp_path: Path) -> None:
    reports = taken(write_lines(tmp_path / "t" / "0d3f2a.jsonl", claude_lines()))
    assert [(one.problem, one.failed) for one in reports] == [(False, False)]
    session = only()
    assert (session.title, session.workspace, session.model) == (
        "The failing cart",
        "/project",
        "anthropic/claude-sonnet-4-5",
    )
    assert (session.state, session.steps, session.mode) == (SessionState.DONE, 3, "ask")
    text = shown(session.id)
    for part in ("Why does the cart fail?", "I look.", "pytest -q 'zebra'", "1 failed", "divides by zero", "giraffe"):
        assert part in text
    for part in ("of an agent", "taken back", "never mind"):
        assert part not in text
    assert [place.event > 0 for place in found_places("q 'ZEB", None, 5)] == [True, False][:1]
    state = last_state(open_store().read(session.id))
    assert (state.mode, state.limits, state.turn, state.allowances) == (
        Mode.ASK,
        OF_NEW_SESSIONS,
        None,
        (),
    )
    assert state.money.spent.tokens == 107


def test_a_task_of_cline_becomes_a_session(tmp_path: Path) -> None:
    assert [one.problem for one in taken(write_task(tmp_path / "tasks" / "1735700000000"))] == [False]
    session = only()
    assert (session.title, session.workspace, session.model) == (
        "Add a discount.",
        "/shop",
        "anthropic/claude-opus-4-5",
    )
    assert (session.cost, session.steps, session.created_at) == (0.75, 3, 1_735_700_000_000)
    text = shown(session.id)
    assert "environment_details" not in text
    for part in ("### read_file src/cart.py [read_file: ", "giraffe", "make test", "passed", "The discount works."):
        assert part in text


def test_what_was_imported_is_skipped_and_what_grew_is_another_session(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "t" / "a.jsonl", claude_lines())
    taken(file)
    assert "skipped" in taken(file)[0].text
    write_lines(file, [*claude_lines(), claude_entry("user", "More.", "u9", "a5")])
    taken(file)
    assert len(listed_sessions(None)) == 2


def test_what_was_imported_is_skipped_whatever_the_clock_says(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    write_lines(file, [{**line, "timestamp": "2126-01-23T17:19:55.583Z"} for line in claude_lines()])
    later = datetime(2126, 1, 23, 18, tzinfo=UTC).timestamp()
    os.utime(file, (later, later))  # written before the clock was set back
    taken(file)
    assert "skipped" in taken(file)[0].text
    assert only().id.startswith("21260123-171955-")


def test_a_time_that_cannot_be_is_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    write_lines(file, [{**line, "timestamp": "9126-01-23T17:19:55.583Z"} for line in claude_lines()])
    os.utime(file, (1_000_000, 1_000_000))
    taken(file)
    assert "skipped" in taken(file)[0].text
    assert only().id.startswith("19700112-134640-")


@pytest.mark.parametrize("kind", ["foreign", "own"])
def test_what_another_imports_in_the_same_moment_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    file = write_lines(tmp_path / "a.jsonl", claude_lines())
    if kind == "own":
        taken(file)
        file.write_bytes(b"".join(export_session(only().id, "json")))
        monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "other"))
    looked: list[str] = []
    known = session_import._known

    def look(store: Store, session_id: str, events: int, chain: bytes) -> str:
        looked.append(session_id)
        found = known(store, session_id, events, chain)
        if len(looked) == 1:
            taken(file)
        return found

    monkeypatch.setattr(session_import, "_known", look)
    (report,) = taken(file)
    assert "skipped" in report.text
    assert looked == [only().id] * 3


def test_broken_lines_are_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", claude_lines()[2:3])
    with file.open("ab") as stream:
        stream.write(b'{"type": "assistant", "mess\n\n[1, 2]\n\xff\xfe\n' + b"[" * 100_000 + b"\n")
        stream.write(json.dumps(claude_entry("assistant", "Taken.", "a1", "u1")).encode())
        stream.write(b'\n{"type": "user", "message": {"content": "cut o')
    problem, done = taken(file)
    assert problem.text.endswith("5 lines are broken and were left out: 2, 4, 5, 6, 8.")
    assert not done.problem
    assert "Taken." in shown(only().id)


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.app.importing.foreign_blocks.LONGEST_LINE", 10_000)
    lines = [claude_entry("user", "x" * 50_000, "u1"), claude_entry("user", "Short.", "u2")]
    assert "left out: 1." in taken(write_lines(tmp_path / "a.jsonl", lines))[0].text
    assert only().title == "Short."


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (json.dumps(CLINE_CONVERSATION)[:-200], "is broken; its first 4 entries were read"),
        (json.dumps([*CLINE_CONVERSATION, 7, None]), "2 entries are no objects"),
        ('{"role": "user"}', "is not a list"),
        ("", "is broken; its first 0 entries"),
    ],
)
def test_a_broken_task_gives_what_can_be_read(tmp_path: Path, raw: str, said: str) -> None:
    folder = write_task(tmp_path / "1735700000000")
    (folder / "api_conversation_history.json").write_text(raw)
    assert said in taken(folder)[0].text


def test_of_a_task_without_a_conversation_the_screen_is_taken(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "1735700000000")
    (folder / "api_conversation_history.json").unlink()
    (folder / "task_metadata.json").unlink()
    assert "is missing" in taken(folder)[0].text
    assert "The discount works." in shown(only().id)


def test_a_folder_is_gone_through_and_links_and_agents_are_not_followed(tmp_path: Path) -> None:
    place = tmp_path / "projects"
    write_lines(place / "-project" / "a.jsonl", claude_lines())
    write_lines(place / "-project" / "agent-1.jsonl", [claude_entry("user", "of an agent", "u1")])
    (place / "-project" / "link.jsonl").symlink_to(place / "-project" / "a.jsonl")
    write_task(place / "tasks" / "1735700000000")
    assert [one.problem for one in taken(place)] == [False, False]
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(ConfigError):
            taken(path)


block = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "id", "name", "input", "content", "tool_use_id", "source", "thinking"]),
            inner | st.sampled_from(["text", "tool_use", "tool_result", "image", "user"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)
entry = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "summary"]) | block, "message": block},
    optional={"uuid": block, "parentUuid": block, "timestamp": block, "cwd": block, "sessionId": block},
)


@settings(max_examples=60)
@given(st.lists(entry | block, max_size=8))
def test_no_transcript_stops_the_import(tmp_path_factory: pytest.TempPathFactory, entries: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("any")
    for _ in taken(write_lines(folder / "a.jsonl", entries)):
        pass
    conversation = [
        {"role": one.get("type"), "content": one.get("message"), "ts": one.get("timestamp")}
        if isinstance(one, dict)
        else one
        for one in entries
    ]
    for _ in taken(write_task(folder / "1", conversation)):
        pass


def test_every_import_comes_back_from_an_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken(write_lines(tmp_path / "a.jsonl", claude_lines()))
    file = tmp_path / "all.jsonl"
    file.write_bytes(b"".join(export_all()))
    before = shown(only().id)
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "other"))
    assert not any(one.problem for one in taken(file))
    assert shown(only().id) == before
    assert "skipped" in taken(file)[0].text


def exported(session: str = "s0") -> list[dict[str, Any]]:
    """The export of a session whose log an attacker wrote: it may do everything, and a prompt waits in it."""
    store = open_store()
    waiting = Waiting(prompt=Prompt(id="w", content=(Text(text="run it"),)), source=ENGINE)
    state = State(
        session_id=session,
        mode=Mode.FULL,
        queue=(waiting,),
        allowances=(Allowance(id="a", tool="execute_command"),),
        limits=Limits(max_auto_approved=None, max_steps=10**6),
    )
    choice = ModelChoice(model="p/m", tool_protocol=ToolProtocol.NATIVE)
    started = SessionStarted(
        session_id=session, workspace="/w", choice=choice, mode=Mode.FULL, roots=("/etc", "/root/.ssh")
    )
    log = [
        Event(seq=1, at=1, source=ENGINE, data=started),
        event(session, 2),
        Event(seq=3, at=3, source=ENGINE, data=StateSealed(state=written(state))),
    ]
    from treadle.app.importing.session_import import rows_of

    row = SessionRow(id=session, workspace="/w", model="p/m", title="t", created_at=1, updated_at=3, events=0)
    add_session(store, row, "", rows_of(log))
    store.close()
    return [json.loads(line) for line in b"".join(export_session(session, "json")).splitlines()]


def test_an_imported_log_brings_no_mode_no_allowance_and_no_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_lines(tmp_path / "a.jsonl", exported())
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "other"))
    assert not any(one.problem for one in taken(file))
    store = open_store()
    state = last_state(store.read("s0"))
    assert state == State(
        session_id="s0",
        seq=state.seq,
        model=state.model,
        limits=OF_NEW_SESSIONS,
    )
    assert store.has_source("s0", b'{"kind":"import"}')
    assert store.verify("s0") is None
    store.close()


@pytest.mark.parametrize("hostile", ["../../etc/x", "", "a\x00b", "-rf", ".hidden", "x" * 300])
def test_a_name_that_is_a_path_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: str) -> None:
    lines = exported()
    lines[0]["session"]["id"] = hostile
    lines[0]["chain"] = ""
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "other"))
    taken(write_lines(tmp_path / "a.jsonl", lines))
    assert only().id.startswith("19700101-")


def test_a_cut_and_a_changed_export_are_said_and_another_log_gets_a_new_id(tmp_path: Path) -> None:
    lines = exported()
    assert "skipped" in taken(write_lines(tmp_path / "same.jsonl", lines))[0].text
    assert "1 events are missing" in taken(write_lines(tmp_path / "cut.jsonl", lines[:-1]))[0].text
    lines[2]["at"] += 1
    reports = taken(write_lines(tmp_path / "changed.jsonl", lines))
    assert "was changed after the export" in reports[0].text
    assert "(was s0)" in reports[1].text
    lines[0]["treadle_export"] = 99
    with pytest.raises(StoreError, match="newer Treadle"):
        taken(write_lines(tmp_path / "newer.jsonl", lines))


@pytest.mark.parametrize("newer", [(1,), (2,), (-1,), (1, 2, 3)], ids=str)
def test_nothing_is_taken_of_a_log_of_a_newer_treadle_wherever_its_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newer: tuple[int, ...]
) -> None:
    lines = exported()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "other"))
    for at in newer:
        lines[at]["version"] = SCHEMA_VERSION + 1
    (report,) = taken(write_lines(tmp_path / "a.jsonl", lines))
    assert (report.problem, report.failed) == (True, True)
    assert f"schema {SCHEMA_VERSION + 1}, newer than" in report.text
    assert "Update Treadle" in report.text
    assert listed_sessions(None) == []


def test_an_export_that_was_packed_is_read_and_one_that_was_cut_is_said(tmp_path: Path) -> None:
    import gzip

    raw = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in exported()).encode()
    whole = tmp_path / "a.jsonl.gz"
    whole.write_bytes(gzip.compress(raw))
    assert "skipped" in taken(whole)[0].text
    whole.write_bytes(gzip.compress(raw)[:-20])
    assert taken(whole)[-1].failed


def test_a_redacted_export_is_taken_whatever_the_order_of_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken(write_lines(tmp_path / "t.jsonl", claude_lines()))
    header, *rows = list(export_session(only().id, "json", redact=True))
    assert header.startswith(b'{"treadle_export":1')
    turned = json.dumps(json.loads(header), sort_keys=True).encode()  # as versions before wrote it
    for number, first in enumerate((header, turned + b"\n")):
        monkeypatch.setenv("TREADLE_HOME", str(tmp_path / f"other-{number}"))
        file = tmp_path / f"redacted-{number}.json"
        file.write_bytes(b"".join((first, *rows)))
        assert [(one.problem, one.failed) for one in taken(file)] == [(False, False)]
        assert "Why does the cart fail?" in shown(only().id)


def test_an_export_without_a_session_in_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "spread.json"
    file.write_text('{\n"treadle_export": 1\n}\n')
    (report,) = taken(file)
    assert (report.failed, "no session was found in it" in report.text) == (True, True)


def test_a_row_that_speaks_of_an_export_begins_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken(write_lines(tmp_path / "t.jsonl", [claude_entry("user", 'What is {"treadle_export": 1}?', "u1")]))
    lines = list(export_session(only().id, "json"))
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "other"))
    file = tmp_path / "one.json"
    file.write_bytes(b"".join(lines))
    assert [(one.problem, one.failed) for one in taken(file)] == [(False, False)]


def test_a_conversation_that_goes_round_in_circles_is_followed_to_its_end() -> None:
    from treadle.app.importing.imported_log import ForeignCall, ForeignResult

    call = ForeignCall(id="1", name="look at\x1b it", arguments={"path": "a"})
    messages = [ForeignMessage(role=Role.USER, at=5, content=(Text(text="go"),))]
    for _ in range(60):
        messages += [
            ForeignMessage(role=Role.ASSISTANT, calls=(call, call)),
            ForeignMessage(role=Role.USER, results={"1": ForeignResult(content=(Text(text="same"),))}),
        ]
    events = imported_log(ForeignSession(origin="x", id="1", messages=merged(messages)), "s")
    past = read_past(events)
    assert past.state.turn is None
    assert past.state.step == 61
    names = {
        block.name
        for message in past.transcript.messages(ToolProtocol.NATIVE)
        for block in message.content
        if hasattr(block, "name")
    }
    assert names == {"look_at__it"}


def test_a_full_or_read_only_store_says_so_and_keeps_what_was_there(tmp_path: Path, home: Path) -> None:
    taken(write_lines(tmp_path / "a.jsonl", claude_lines()))
    store = Store(home / "sessions.db")
    pages = sqlite3.connect(home / "sessions.db").execute("PRAGMA page_count").fetchone()[0]
    store.write_now(lambda connection: connection.execute(f"PRAGMA max_page_count={pages}"))
    row = SessionRow(id="big", workspace="/w", model="m", title="t", created_at=1, updated_at=1, events=0)
    from treadle.app.importing.session_import import rows_of

    with pytest.raises(StoreError) as raised:
        add_session(store, row, "", rows_of([event("big", seq) for seq in range(1, 900)]))
    assert raised.value.code == "log-unwritable"
    assert [one.id for one in store.sessions()] == [only().id]
    store.close()
