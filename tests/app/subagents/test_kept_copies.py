"""Kept copies: shown change by change, applied as a whole, in parts or elsewhere, and discarded."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Said
from treadle.app.compose import Opening, open_session, open_store
from treadle.app.config.sections import Settings
from treadle.app.reports import copy_list
from treadle.app.reports.copy_list import applied_text, apply_copy, copies_command, idle_copy, planned_copy
from treadle.app.security.trusting import session_trust
from treadle.app.subagents import writer_hunks
from treadle.app.subagents.writer_copies import (
    WriterCopy,
    left_copies,
    make_writer_copy,
    merge,
    open_copy,
    plan,
    writer_changes,
)
from treadle.app.subagents.writer_hunks import copy_hunks, part_of
from treadle.cli.main import run
from treadle.protocol.errors import ConfigError, SessionError
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import SessionRow

LINES = "".join(f"{number}\n" for number in range(1, 31))


@pytest.fixture
def treadle(capsys: pytest.CaptureFixture[str]) -> Command:
    def command(*words: str) -> Said:
        code = run(words)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return command


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home/treadle"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = (tmp_path / "shop").resolve()
    folder.mkdir()
    for name in ("a.txt", "b.txt", "gone.txt", "run.sh", ".env"):
        (folder / name).write_text(LINES)
    monkeypatch.chdir(folder)
    return folder


def replaced(file: Path, *lines: tuple[int, str]) -> None:
    for number, text in lines:
        file.write_text(re.sub(rf"(?m)^{number}$", text, file.read_text()))


@pytest.fixture
def copy(workspace: Path) -> WriterCopy:
    made = make_writer_copy(workspace, (), "child-1")
    replaced(made.folder / "a.txt", (2, "two"), (15, "fifteen"), (28, "twenty-eight"))
    (made.folder / "gone.txt").unlink()
    (made.folder / "new.bin").write_bytes(b"\0\1")
    (made.folder / "run.sh").chmod(0o755)
    replaced(made.folder / ".env", (1, "SECRET"))
    return made


def keys(copy: WriterCopy) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in copy_hunks(writer_changes(copy)):
        found.setdefault(one.shown, []).append(one.key)
    return found


def test_what_a_person_approves_is_exactly_what_is_written(workspace: Path, copy: WriterCopy) -> None:
    replaced(workspace / "a.txt", (15, "mine"))
    replaced(workspace / "run.sh", (3, "three"))
    would = plan(writer_changes(copy))
    assert [one.path.rpartition("/")[2] for one in would.conflicts] == ["a.txt"]
    assert [one.path.rpartition("/")[2] for one in would.held] == [".env"]
    named = re.findall(r"^diff a/(\S+)", would.diff, re.MULTILINE)
    assert named == [one.path.rpartition("/")[2] for one in would.merged] == ["gone.txt", "new.bin", "run.sh"]
    assert "SECRET" not in would.diff
    assert "three" not in would.diff  # what is in the folder already is not written
    merge(writer_changes(copy), digest=would.digest)
    assert plan(writer_changes(copy)).diff == ""


def test_a_change_is_applied_by_its_key_and_the_others_stay(workspace: Path, copy: WriterCopy) -> None:
    first, second, third = keys(copy)["a.txt"]
    replaced(workspace / "a.txt", (15, "mine"))  # a conflict with the second one only
    part, _ = part_of(writer_changes(copy), [third])
    assert [one.path for one in merge(part).merged] == [f"{workspace}/a.txt"]
    assert (workspace / "a.txt").read_text() == LINES.replace("15\n", "mine\n").replace("28\n", "twenty-eight\n")
    assert keys(copy)["a.txt"] == [first, second]
    part, _ = part_of(writer_changes(copy), [second])
    assert [one.path for one in plan(part).conflicts] == [f"{workspace}/a.txt"]
    part, _ = part_of(writer_changes(copy), [first[:3] if keys(copy)["a.txt"][1][:3] != first[:3] else first])
    assert "two" in (merge(part).diff)
    assert keys(copy)["a.txt"] == [second]


@pytest.mark.parametrize("least", [1, 4])
def test_all_parts_one_after_the_other_are_the_whole(
    workspace: Path, copy: WriterCopy, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """In any order: here from the last one, by the keys that were listed first, of which less is enough later."""
    monkeypatch.setattr(writer_hunks, "_KEY", least)
    for key in [key for names in keys(copy).values() for key in names][::-1]:
        part, named = part_of(writer_changes(copy), [key])
        assert len(merge(part, approved=named).merged) == 1
    assert not writer_changes(copy)
    for file in copy.folder.iterdir():
        there = workspace / file.name
        assert (there.read_bytes(), there.stat().st_mode) == (file.read_bytes(), file.stat().st_mode)
    assert not (workspace / "gone.txt").exists()


def test_what_is_shown_of_a_change_says_what_becomes_of_the_mode_too(copy: WriterCopy, treadle: Command) -> None:
    (copy.folder / "a.txt").chmod(0o755)
    replaced(copy.folder / "run.sh", (3, "three"))
    (copy.folder / "new.bin").chmod(0o755)
    (copy.folder / "new.sh").write_text("#!/bin/sh\n")
    (copy.folder / "new.sh").chmod(0o700)
    (copy.folder / "plain.txt").write_text("1\n")
    shown = re.findall(r"(?m)^\[\w+\] (\S+, line \d+.*|new.bin.*)", treadle("copies", "show", "child-1").out)
    last = "mode 644 to 755, with the last of its changes"
    assert shown == [
        ".env, line 1 (.env is protected: apply it by its key)",
        *(f"a.txt, line {number} ({last})" for number in (2, 15, 28)),
        "gone.txt, line 1",
        "new.bin: new, 2 bytes, executable, mode 755",
        "new.sh, line 1 (executable, mode 700)",
        "plain.txt, line 1",
        "run.sh, line 3 (mode 644 to 755)",
    ]


def test_a_key_that_names_nothing_changes_nothing(copy: WriterCopy) -> None:
    for key in ("ffffffffff", ""):
        with pytest.raises(ConfigError) as caught:
            part_of(writer_changes(copy), [key])
        assert caught.value.code == "copy-change"


def test_the_command_shows_applies_and_discards_a_copy(workspace: Path, copy: WriterCopy, treadle: Command) -> None:
    assert "child-1  5 files not applied" in treadle("copies").out
    (row,) = [json.loads(line) for line in treadle("copies", "--json").out.splitlines()]
    assert (row["id"], row["unapplied"], row["workspace"]) == ("child-1", 5, str(workspace))
    shown = treadle("copies", "show", "child").out
    assert "] a.txt, line 2\n 1\n-2\n+two\n 3\n" in shown
    assert "] gone.txt, line 1\n-1\n" in shown
    assert "] new.bin: new, 2 bytes" in shown
    assert "] run.sh: mode 644 to 755" in shown
    replaced(workspace / "a.txt", (15, "mine"))
    before = (workspace / "a.txt").read_text()
    assert "Conflict: " in treadle("copies", "apply", "child-1", "--preview").out
    assert treadle("copies", "apply", "child-1").code == 78  # nobody is there to say yes
    assert (workspace / "gone.txt").exists()
    done = treadle("copies", "apply", "child-1", "--yes")
    assert (done.code, (workspace / "gone.txt").exists(), (workspace / "a.txt").read_text()) == (1, False, before)
    assert "in the copy, line 13:\n    13\n    14\n    fifteen\n" in done.out
    (key,) = keys(copy)[".env"]
    assert treadle("copies", "apply", "child-1", key, "--yes").code == 0
    assert (workspace / ".env").read_text().startswith("SECRET")
    assert treadle("copies", "discard", "child-1", "--yes").code == 0
    assert left_copies() == ()
    assert treadle("copies", "show", "child-1").code == 1


def test_a_copy_is_applied_to_another_folder(
    workspace: Path, copy: WriterCopy, tmp_path: Path, treadle: Command
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text(LINES)
    treadle("copies", "apply", "child-1", *keys(copy)["a.txt"], *keys(copy)[".env"], "--into", "../other", "--yes")
    assert "fifteen" in (tmp_path / "other" / "a.txt").read_text()
    assert (workspace / "a.txt").read_text() == LINES


def test_a_session_applies_what_is_not_protected(workspace: Path, copy: WriterCopy, tmp_path: Path) -> None:
    assert "child-1" in copies_command(workspace, "")
    assert "child-1" not in copies_command(tmp_path, "")
    with pytest.raises(SessionError, match="No copy is named"):
        copies_command(tmp_path, "show child-1")
    (key,) = keys(copy)[".env"]
    assert "Nothing was applied." in copies_command(workspace, f"apply child-1 {key}")
    assert (workspace / ".env").read_text() == LINES
    assert "Applied: " in copies_command(workspace, "apply child-1")
    assert "twenty-eight" in (workspace / "a.txt").read_text()
    with pytest.raises(SessionError):
        copies_command(workspace, "apply")
    assert "is gone" in copies_command(workspace, "discard child-1")
    assert open_copy("child-1") is None


@pytest.mark.parametrize("below", ["", "part"])
async def test_a_copy_in_which_somebody_works_is_neither_applied_nor_discarded(
    workspace: Path, copy: WriterCopy, below: str
) -> None:
    folder = copy.folder / below
    folder.mkdir(exist_ok=True)
    store = open_store()
    try:
        row = SessionRow(id="s", workspace=str(folder), model="m", title="", created_at=1, updated_at=1, events=0)
        await store.create(row)
        await store.acquire("s")
        for words in ("apply child-1", "discard child-1"):
            with pytest.raises(SessionError) as caught:
                copies_command(workspace, words)
            assert (caught.value.code, caught.value.fix.endswith("treadle stop s")) == ("copy-busy", True)
        await store.release("s")
    finally:
        store.close()
    assert "Applied: " in copies_command(workspace, "apply child-1")


def test_a_copy_whose_folder_is_gone_is_shown_and_applied_elsewhere(
    workspace: Path, copy: WriterCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, treadle: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace.rename(tmp_path / "moved")
    shown = treadle("copies", "show", "child-1")
    assert (shown.code, "+two\n" in shown.out, "--into DIR" in shown.out) == (0, True, True)
    assert "treadle copies apply child-1 --into DIR" in treadle("copies", "apply", "child-1", "--yes").err
    treadle("copies", "apply", "child-1", "--into", "moved", "--yes")
    assert "twenty-eight" in (tmp_path / "moved/a.txt").read_text()


def test_a_copy_that_is_listed_and_cannot_be_used_is_named_with_the_way_on(copy: WriterCopy, treadle: Command) -> None:
    place = copy.folder.parent.parent
    (place.parent / "begun").mkdir()
    (place / "copy.json").write_text("{")
    for name, why in (("begun", "is unfinished"), ("child-1", "cannot be read")):
        assert name in treadle("copies").out
        for action in ("show", "apply", "discard"):
            said = treadle("copies", action, name)
            assert (said.code, why in said.err, str(place.parent / name) in said.err) == (1, True, True)


async def test_a_copy_is_held_by_the_sessions_in_it_or_by_one_that_applies_it(
    workspace: Path, copy: WriterCopy
) -> None:
    script = Script(turns=(Turn(items=(SayText(text="Done."),)),))
    async with ScriptedServer(script) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url)
        trust = session_trust(copy.folder, once=True)
        opening = Opening(workspace=copy.folder, settings=settings, user_present=False, trust=trust)
        with idle_copy("child-1"):
            with pytest.raises(SessionError, match="in use"), idle_copy("child-1"):
                pass
            with pytest.raises(SessionError, match="in use"):
                await open_session(opening)
        live = await open_session(opening)  # nothing is in its log yet
        with pytest.raises(SessionError, match="in use"), idle_copy("child-1"):
            pass
        async with live:
            pass
        with idle_copy("child-1") as idle:
            assert idle.folder == copy.folder


def test_what_was_applied_is_said_though_the_copy_cannot_be_looked_at_then(
    workspace: Path, copy: WriterCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = planned_copy(copy)

    def gone(_: WriterCopy) -> None:
        raise SessionError("writer-copy", "What is known of the copy cannot be read.")

    monkeypatch.setattr(copy_list, "writer_changes", gone)
    done = apply_copy(copy, wanted)
    text = applied_text(copy, done)
    assert "fifteen" in (workspace / "a.txt").read_text()
    assert f"Applied: {workspace / 'a.txt'}" in text
    assert f"The copy stays in {copy.folder}." in text
