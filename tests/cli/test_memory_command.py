import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ws").mkdir()
    monkeypatch.chdir(tmp_path / "ws")
    return tmp_path / "ws"


def test_a_person_adds_lists_edits_and_forgets_without_a_question(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "nothing is remembered" in treadle("memory").out
    assert treadle("memory", "add", "Use pnpm,", "not npm.").out.startswith("Remembered: ")
    assert treadle("memory", "add", "--user", "Answer in English.").code == 0
    rows = [json.loads(line) for line in treadle("memory", "--json").out.splitlines()]
    assert [(row["n"], row["whose"], row["text"], row["sent"]) for row in rows] == [
        (1, "project", "Use pnpm, not npm.", True),
        (2, "user", "Answer in English.", True),
    ]
    assert all(row["tokens"] > 0 and row["day"] for row in rows)
    monkeypatch.setenv("VISUAL", "sed -i s/English/German/")
    assert treadle("memory", "edit", "--user").code == 0
    shown = treadle("memory").out
    assert "Answer in German." in shown
    assert f"    {home}/memory.md\n" in shown
    assert treadle("memory", "forget", "1").out.startswith("Forgotten: ")
    assert [json.loads(line)["text"] for line in treadle("memory", "--json").out.splitlines()] == ["Answer in German."]


def test_what_cannot_be_done_says_what_to_do(treadle: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = treadle("memory", "forget", "1")
    assert (missing.code, "The list has their numbers: `treadle memory`" in missing.err) == (78, True)
    monkeypatch.setenv("VISUAL", "/nowhere/editor")
    assert "Set VISUAL or EDITOR." in treadle("memory", "edit").err


def test_the_list_needs_no_model(treadle: Command) -> None:
    treadle("memory", "add", "Use pnpm.")
    assert "Use pnpm." in treadle("-p", "/memory").out
