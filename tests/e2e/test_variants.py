"""A session in a copy of the folder, and a task done several times side by side."""

import asyncio
import json
import signal
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.running import PATIENCE, model
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Script, Texts, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

SCRIPT = Script(
    turns=(
        Turn(
            when=Expectation(assistant_messages=0),
            items=(MakeCall(name="write_to_file", arguments={"path": "b.py", "content": "B = 2\n"}),),
        ),
        Turn(when=Expectation(conversation=Texts(contains=("b.py",))), items=(SayText(text="Written."),)),
    )
)


async def test_variants_work_in_copies_and_one_is_taken(tmp_path: Path) -> None:
    program, folder = Program(tmp_path / "home"), tmp_path / "ws"
    folder.mkdir()
    (folder / "a.py").write_text("A = 1\n")
    here = ("-C", str(folder))
    async with ScriptedServer(SCRIPT) as server:
        flags = (*model(server), *here, "--mode", "edits", "--output-format", "json")
        refused = await program.run("-p", "Write b.", *flags, "--variants", "2")
        assert (refused.code, "treadle -p TASK -w NAME" in refused.err) == (2, True)
        done = await program.run("-p", "Write b.", *flags, "-w", "alt", "--variants", "2", "--check", "test -f b.py")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(row["name"], row["stop"], row["added"], row["check"]) for row in rows] == [
        ("alt-1", "end_turn", 1, 0),
        ("alt-2", "end_turn", 1, 0),
    ]
    again = await program.run("-p", "Write b.", *flags, "-w", "alt", "--variants", "3")
    assert (again.code, "treadle copies discard alt-1" in again.err) == (2, True)
    assert not (folder / "b.py").exists()
    listed = (await program.run("sessions", *here)).out
    assert (listed.count("Write b."), listed.count("/alt-1/"), listed.count("/alt-2/")) == (2, 1, 1)
    taken = await program.run("copies", "apply", "alt-1", "--yes")
    assert (taken.code, (folder / "b.py").read_text()) == (0, "B = 2\n")
    assert "All of it is applied." in taken.out  # its session can go on there
    assert "Conflict" not in (await program.run("copies", "show", "alt-2")).out
    assert (await program.run("copies", "discard", "alt-2", "--yes")).code == 0


SLOW = Script(
    turns=(
        SCRIPT.turns[0],
        Turn(when=SCRIPT.turns[1].when, items=(Wait(seconds=PATIENCE), SayText(text="Written."))),
    )
)


async def until(server: ScriptedServer, requests: int) -> None:
    """Wait until so many requests came."""
    async with asyncio.timeout(PATIENCE):
        while len(server.requests) < requests:
            await asyncio.sleep(0.05)


async def test_a_signal_interrupts_the_variants_and_each_is_told(tmp_path: Path) -> None:
    program, folder = Program(tmp_path / "home"), tmp_path / "ws"
    folder.mkdir()
    async with ScriptedServer(SLOW) as server:
        flags = (*model(server), "-C", str(folder), "--mode", "edits", "-w", "alt", "--variants", "2")
        process = await program.start("-p", "Write b.", *flags, "--output-format", "json", "--check", "true")
        await until(server, 4)
        process.send_signal(signal.SIGTERM)
        out, _ = await process.communicate()
    rows = [json.loads(line) for line in out.splitlines()]
    assert process.returncode == 128 + signal.SIGTERM
    assert [(row["name"], row["stop"], row["files"], "check" in row) for row in rows] == [
        ("alt-1", "cancelled", 1, False),
        ("alt-2", "cancelled", 1, False),
    ]
    assert all(row["cost"] is not None for row in rows)


async def test_variants_end_with_the_program_that_compares_them_though_it_is_killed(tmp_path: Path) -> None:
    program, folder = Program(tmp_path / "home"), tmp_path / "ws"
    folder.mkdir()
    async with ScriptedServer(SLOW) as server:
        flags = (*model(server), "-C", str(folder), "--mode", "edits", "-w", "alt", "--variants", "2")
        process = await program.start("-p", "Write b.", *flags)
        await until(server, 4)
        process.kill()
        await process.wait()
        async with asyncio.timeout(PATIENCE):
            while "working" in (listed := (await program.run("sessions", "-C", str(folder))).out):
                await asyncio.sleep(0.05)
        assert len(server.requests) == 4
    assert listed.count("stopped") == 2


async def test_a_model_that_cannot_be_called_is_named_before_any_variant_begins(tmp_path: Path) -> None:
    program, folder = Program(tmp_path / "home"), tmp_path / "ws"
    folder.mkdir()
    async with ScriptedServer(SCRIPT) as server:
        flags = (*model(server), "-C", str(folder), "-w", "alt", "--variants")
        refused = await program.run("-p", "Write b.", *flags, "anthropic-compatible/scripted,nobody/x")
        assert (refused.code, "nobody" in refused.err) == (78, True), refused.err
        assert server.requests == []
    assert (await program.run("copies")).out == "No copy is kept.\n"


async def test_no_copy_is_made_where_it_has_no_name_or_nothing_to_continue(tmp_path: Path) -> None:
    program, folder = Program(tmp_path / "home"), tmp_path / "ws"
    folder.mkdir()
    unnamed = await program.run("-p", "Go.", "-C", str(folder), "-w", "")
    assert (unnamed.code, "-w has no name for the copy." in unnamed.err) == (2, True), unnamed.err
    nothing = await program.run("-p", "Go.", "-C", str(folder), "-w", "new", "-c")
    assert (nothing.code, "There is no copy new yet." in nothing.err) == (1, True), nothing.err
    assert (await program.run("copies")).out == "No copy is kept.\n"
