"""Replay with the real program: the same log again, the first difference, and a session as a test."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import log_of, model
from tests.store.sessions import change
from treadle.app.errors.exits import Exit
from treadle.protocol.codec import encode
from treadle.protocol.events import CallFinished, Prompt
from treadle.protocol.sealed import TurnSettled
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

KEY = "sk-proj-9f3kQ2mZ7xLw8VbN4tYc6RdH1sJg5PaE"
SCRIPT = Script(
    turns=(
        Turn(
            items=(
                SayText(text="I look at the notes."),
                MakeCall(name="read_file", arguments={"path": "notes.txt"}),
                MakeCall(name="read_file", arguments={"path": "missing.txt"}),
            )
        ),
        Turn(items=(MakeCall(name="attempt_completion", arguments={"result": f"It says one, two. {KEY}"}),)),
    )
)


async def worked(folder: Path) -> Program:
    """A home with a session that read a file."""
    (folder / "notes.txt").write_text("one\ntwo\n")
    program = Program(folder / "home", {"MY_SERVICE_TOKEN": KEY})
    async with ScriptedServer(SCRIPT) as server:
        ended = await program.run("-p", f"What is in notes.txt? My key is {KEY}.", *model(server), cwd=folder)
    assert ended.code == Exit.DONE, ended.err
    return program


async def test_a_session_is_replayed_without_its_model_and_its_files(tmp_path: Path) -> None:
    program = await worked(tmp_path)
    (tmp_path / "notes.txt").unlink()
    events = log_of(program.home)
    strict = await program.run("replay", "2", "--strict", cwd=tmp_path)
    assert (strict.code, strict.err) == (Exit.DONE, "")
    assert strict.out.startswith(f"The same: {len(events)} events, ")
    assert len(strict.out.splitlines()) == 1
    told = await program.run("replay", "2", "--json", cwd=tmp_path)
    (record,) = [json.loads(line) for line in told.out.splitlines()]
    assert (record["events"], record["difference"]) == (len(events), None)
    session = json.loads((await program.run("sessions", "--json", cwd=tmp_path)).out)["id"]
    await program.run("archive", session, cwd=tmp_path)
    packed = await program.run("replay", session, cwd=tmp_path)
    assert (packed.code, packed.out) == (Exit.DONE, strict.out)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [CallFinished, TurnSettled, Prompt])
async def test_a_change_in_the_log_is_named_and_ends_with_exit_code_1(kind: type, tmp_path: Path) -> None:
    program = await worked(tmp_path)
    word = "one" if kind is CallFinished else ""  # of the two calls that run side by side the one that found something
    seq = next(
        event.seq
        for event in log_of(program.home)
        if isinstance(event.data, kind) and word.encode() in encode(event.data)
    )
    data = "CAST(replace(CAST(data AS TEXT), 'one', 'ten') AS BLOB)"
    if kind is not CallFinished:
        data = "CAST(replace(CAST(data AS TEXT), 'notes.txt', 'votes.txt') AS BLOB)"
    if kind is TurnSettled:
        data = "CAST(replace(CAST(data AS TEXT), 'It says', 'It said') AS BLOB)"
    change(program.home / "sessions.db", f"UPDATE events SET data = {data} WHERE seq = {seq}")
    strict = await program.run("replay", "2", "--strict", cwd=tmp_path)
    assert strict.code == Exit.FAILED
    assert "Differs at event" in strict.out
    assert f"from event {seq} on its hashes are wrong" in strict.out or "was changed in the log" in strict.out
    told = await program.run("replay", "2", "--strict", "--json", cwd=tmp_path)
    (record,) = [json.loads(line) for line in told.out.splitlines()]
    assert record["difference"]["seq"] >= seq


async def test_a_damaged_log_and_an_unknown_session_are_refused(tmp_path: Path) -> None:
    program = await worked(tmp_path)
    unknown = await program.run("replay", "nothing", "--strict", cwd=tmp_path)
    assert (unknown.code, "[session-unknown]" in unknown.err) == (Exit.FAILED, True)
    change(program.home / "sessions.db", "UPDATE events SET data = x'7b22' WHERE seq = 5")
    damaged = await program.run("replay", "2", cwd=tmp_path)
    assert (damaged.code, damaged.out) == (Exit.FAILED, "")
    assert "Event 5 of session" in damaged.err
    assert "[event-damaged]" in damaged.err
    exported = await program.run("export", "2", "--as-test", cwd=tmp_path)
    assert (exported.code, "[event-damaged]" in exported.err) == (Exit.FAILED, True)


async def test_a_session_becomes_a_test_without_secrets_that_passes_and_fails_when_its_tape_is_changed(
    tmp_path: Path,
) -> None:
    program = await worked(tmp_path)
    file = tmp_path / "kept" / "test_notes.py"
    written = await program.run("export", "2", "--as-test", "-o", str(file), cwd=tmp_path)
    assert written.code == Exit.DONE, written.err
    assert "Secrets are hidden in" in written.out
    tape = file.with_suffix(".jsonl")
    assert "hidden" in tape.read_text()
    assert KEY not in tape.read_text() + file.read_text()
    assert _tested(file) == 0
    tape.write_text(tape.read_text().replace('"outcome":"ok"', '"outcome":"failed"', 1))
    assert _tested(file) == 1
    refused = await program.run("export", "2", "--as-test", "-o", "/proc/no/test.py", cwd=tmp_path)
    assert (refused.code, "[export-unwritable]" in refused.err) == (Exit.CONFIG, True)


def _tested(file: Path) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name]
    return subprocess.run(command, cwd=file.parent, check=False, capture_output=True).returncode
