"""Commands for whole sessions: rename, archive, delete, export, import, and the list with its search."""

import asyncio
import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.app.foreign_corpus import HOSTILE, claude_entry, claude_lines, write_lines
from tests.cli.conftest import Command
from treadle.app.compose import open_store
from treadle.store.sqlite import SessionRow


def only(treadle: Command, *flags: str) -> dict[str, object]:
    (line,) = treadle("sessions", "--all", "--json", *flags).out.splitlines()
    found: dict[str, object] = json.loads(line)
    return found


@pytest.fixture
def session(treadle: Command, tmp_path: Path) -> str:
    """The id of a session with hostile text and a secret in it."""
    long = "y" * 1_000_000
    secret = "sk-ant-api03-" + "abcDEF123456_-" * 6
    lines = [
        *claude_lines(),
        claude_entry("user", f"```\n{HOSTILE}\n{secret}", "u5", "a5"),
        claude_entry("assistant", f'<img src=x onerror="alert(1)"> {long}', "a6", "u5"),
    ]
    said = treadle("import", str(write_lines(tmp_path / "t.jsonl", lines)))
    assert (said.code, said.err) == (0, "")
    return str(only(treadle)["id"])


def test_a_session_is_renamed_archived_and_deleted(treadle: Command, session: str) -> None:
    assert treadle("rename", session[:12], "My", "<work>\x1b[2J").out == f"{session}  My <work>\\x1b[2J\n"
    assert only(treadle)["title"] == "My <work>\x1b[2J"
    assert treadle("archive", session).out.startswith("Archived 1 session.")
    assert treadle("sessions", "--all").err == "No sessions here yet.\n"
    assert (only(treadle, "--archived")["archived"], only(treadle, "--archived")["id"]) == (True, session)
    assert "(archived)" in treadle("sessions", "--all", "--search", "my <W").out
    assert "1 failed" in treadle("sessions", "--all", "--archived", "--search", "1 FAILED").out
    assert "Why does the cart fail?" in treadle("show", session).out
    refused = treadle("delete", session)
    assert (refused.code != 0, "Add --yes" in refused.err, refused.out) == (True, True, "")
    assert treadle("delete", session, "--yes").out == f"Deleted {session}.\n"
    assert treadle("sessions", "--all", "--archived").out == ""
    assert treadle("audit", "verify").code == 0
    assert treadle("delete", session, "--yes").code == 1


def test_each_batch_is_one_line_among_the_sessions_of_all_folders(treadle: Command, session: str) -> None:
    store = open_store()
    for number, name in enumerate(("batch-1.a", "batch-1.b-2", "batch-2.a"), 1):
        row = SessionRow(id=name, workspace=name, model="p/a", title="go", created_at=1, updated_at=number, events=0)
        asyncio.run(store.create(row))
    store.close()
    listed = treadle("sessions", "--all").out.splitlines()
    assert [line.split()[0] for line in listed if not line.startswith(" ")] == [session, "batch-2", "batch-1"]
    of_run = treadle("sessions", "--run", "batch-1").out.splitlines()
    assert [line.split()[0] for line in of_run[::2]] == ["batch-1.b-2", "batch-1.a"]
    assert len(treadle("sessions", "--all", "--json").out.splitlines()) == 4
    assert treadle("sessions", "--run", "batch").err == "No sessions of a batch batch.\n"


def test_an_open_session_is_not_deleted(treadle: Command, session: str) -> None:
    store = open_store()
    asyncio.run(store.acquire(session))
    said = treadle("delete", session, "--yes")
    assert "is busy" in said.err
    asyncio.run(store.release(session))
    store.close()
    assert treadle("delete", session, "--yes").code == 0


def test_old_sessions_are_archived_together(treadle: Command, session: str) -> None:
    assert treadle("archive", "--older-than", "20000").err == "No session is that old.\n"
    assert "Add --yes" in treadle("archive", "--older-than", "0").err
    store = open_store()
    store.write_now(lambda connection: connection.execute("UPDATE sessions SET updated_at = updated_at + (1 << 45)"))
    assert treadle("archive", "--older-than", "0", "--yes").err == "No session is that old.\n"  # the clock was wrong
    store.write_now(lambda connection: connection.execute("UPDATE sessions SET updated_at = updated_at - (1 << 45)"))
    store.close()
    assert treadle("archive", "--older-than", "0", "--yes").code == 0
    assert only(treadle, "--archived")["id"] == session
    assert "Which" in treadle("archive").err


class Page(HTMLParser):
    """Notes the elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take one."""
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_a_page_holds_hostile_text_inert_and_hides_secrets(treadle: Command, session: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert treadle("export", session, "--format", "html", "-o", str(file)).code == 0
    text = file.read_text()
    page = Page()
    page.feed(text)
    assert page.tags == {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "section", "div"),
        *("details", "summary", "span", "pre"),
    }
    assert page.attributes == {"lang", "charset", "http-equiv", "content", "name", "class"}
    assert "default-src 'none'" in text
    assert "&lt;script&gt;" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", text)
    assert "abcDEF123456" not in text
    assert len(text) < 100_000
    assert file.stat().st_mode & 0o777 == 0o600


def test_markdown_hides_secrets_and_json_holds_everything(treadle: Command, session: str, tmp_path: Path) -> None:
    text = treadle("export", session).out
    assert ("abcDEF123456" in text, "\x1b" in text, "# The failing cart" in text) == (False, False, True)
    lines = treadle("export", session, "--format", "json").out.splitlines()
    header = json.loads(lines[0])
    assert (header["treadle_export"], header["session"]["id"], header["redacted"]) == (1, session, False)
    assert len(lines) == header["session"]["events"] + 1
    assert "abcDEF123456" in "".join(lines)
    assert "abcDEF123456" not in treadle("export", session, "--format", "json", "--redact").out
    packed = tmp_path / "all.jsonl.gz"
    assert treadle("export", "--all", "-o", str(packed)).code == 0
    assert "skipped" in treadle("import", str(packed)).out


def test_what_cannot_be_exported_or_imported_is_said(treadle: Command, session: str, tmp_path: Path) -> None:
    assert "Which session?" in treadle("export").err
    assert "JSON only" in treadle("export", "--all", "--format", "md").err
    assert "cannot be written" in treadle("export", session, "-o", str(tmp_path / "none" / "x.md")).err
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".x")]
    assert "treadle import PATH" in treadle("import").err
    assert "There is no" in treadle("import", str(tmp_path / "none")).err


def test_an_imported_session_is_searched_by_any_text(treadle: Command, session: str) -> None:
    place = json.loads(treadle("sessions", "--all", "--search", "-Q 'zebra'", "--json").out)
    assert (place["session"], place["snippet"]) == (session, "Bash pytest -q 'zebra'")
    assert treadle("sessions", "--all", "--search", "pytest AND zebra").err == "Nothing found.\n"


def test_a_file_without_a_conversation_says_so(treadle: Command, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    said = treadle("import", str(tmp_path / "empty.jsonl"))
    assert (said.code, "no conversation was found" in said.err) == (1, True)


def test_a_future_time_is_not_taken(treadle: Command, tmp_path: Path) -> None:
    lines = [{**line, "timestamp": "9998-01-01T00:00:00Z"} for line in claude_lines()]
    assert treadle("import", str(write_lines(tmp_path / "t.jsonl", lines))).code == 0
    updated = only(treadle)["updated_at"]
    assert isinstance(updated, int)
    assert updated <= time.time() * 1000
