"""No file that hides secrets holds the beginning of one, wherever a title, a first line or a limit cuts it."""

import json
from pathlib import Path

import pytest

from tests.app.foreign_corpus import claude_entry, write_lines
from treadle.app.compose import open_store
from treadle.app.history.session_export import export_session
from treadle.app.history.shared_file import preview_share
from treadle.app.importing.session_import import import_sessions
from treadle.app.reports.known_sessions import listed_sessions
from treadle.store.keeping import rename

KNOWN = "correct-horse-battery-staple-4711"
RANDOM = "k9fQx2LmZ7rB4vHs8Yw3KpE5tN6"
BY_FORM = "ghp_" + "a1B2c3D4e5" * 4
"""It is a key as a whole alone: nothing tells what its beginning is."""
SECRETS = (KNOWN, RANDOM, BY_FORM)
PLACES = (*range(20, 122, 3), *range(3_960, 4_010, 7))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEPLOY_PASSWORD", KNOWN)
    monkeypatch.setenv("DEPLOY_TOKEN", RANDOM)
    return tmp_path / "home"


def conversation(text: str) -> list[dict[str, object]]:
    """A prompt, an answer, and a call with its output, all with the same text."""
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": f"echo {text}"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": f"{text}\n{text}"}
    return [
        claude_entry("user", text, "u1"),
        claude_entry("assistant", [{"type": "text", "text": text}, call], "a1", "u1"),
        claude_entry("user", [result], "u2", "a1"),
        claude_entry("assistant", [{"type": "text", "text": f"Done: {text}"}], "a2", "u2"),
        claude_entry("user", f"Again {text}", "u3", "a2"),
        claude_entry("assistant", [{"type": "text", "text": "Yes."}], "a3", "u3"),
    ]


def filler(size: int) -> str:
    return ("lorem ipsum " * (size // 12 + 1))[: size - 1] + " "


def given_away(session_id: str) -> dict[str, str]:
    """Everything of a session that hides secrets."""
    preview = preview_share(session_id)
    pieces = {form: b"".join(export_session(session_id, form, redact=True)).decode() for form in ("md", "html", "json")}
    return {**pieces, "preview": "\n".join((preview.title, preview.html, *(one.words for one in preview.turns)))}


@pytest.mark.parametrize("secret", SECRETS)
def test_no_export_has_the_beginning_of_a_secret_that_a_cut_left(tmp_path: Path, secret: str) -> None:
    for place in PLACES:
        write_lines(tmp_path / "t" / f"{place}.jsonl", conversation(f"{filler(place)}{secret} and more"))
    assert [one.problem for one in import_sessions(tmp_path / "t")] == [False] * len(PLACES)
    listed = listed_sessions(None)
    assert not any(secret[:8] in one.title and secret not in one.title for one in listed), "a title cuts no word"
    for session in listed:
        for form, text in given_away(session.id).items():
            assert secret[:8] not in text, (form, session.title, text[max(0, text.find(secret[:8]) - 80) :][:200])


@pytest.mark.parametrize("secret", [KNOWN, RANDOM])
def test_a_name_and_what_was_cut_before_it_was_logged_end_before_a_known_secret(tmp_path: Path, secret: str) -> None:
    write_lines(tmp_path / "t" / "a.jsonl", conversation(f"{secret[:20]}… is cut, and so is {secret[:22]}"))
    assert [one.problem for one in import_sessions(tmp_path / "t")] == [False]
    (session,) = listed_sessions(None)
    store = open_store()
    rename(store, session.id, f"{'a name ' * 26}{secret}")
    store.close()
    assert secret[:8] in listed_sessions(None)[0].title
    for form, text in given_away(session.id).items():
        assert secret[:8] not in text, form
    json.loads(given_away(session.id)["json"].partition("\n")[0])
