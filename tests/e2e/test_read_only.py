"""A data directory that cannot be written: what was logged can be read, and what would be written says why not."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.test_checkpoints import MODEL, lay_out, write
from tests.e2e.test_context import call
from tests.needed import needs
from tests.ready import TREADLE
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

NOBODY = 65534
DONE = Turn(items=(call("attempt_completion", result="Done."),))

pytestmark = needs(*(("setpriv",) if os.geteuid() == 0 else ()))


async def run(program: Program, work: Path, *arguments: str) -> Ended:
    """Run it as somebody whom permissions bind."""
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--") if os.geteuid() == 0 else ()
    return await program.run(*arguments, command=(*become, *TREADLE), cwd=work)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may go to: another run of pytest shuts those of this one when it starts."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def give_away(folder: Path) -> None:
    """Let everything in a folder be nobody's where root runs the test."""
    if os.geteuid() == 0:
        for one in (folder, *folder.rglob("*")):
            os.chown(one, NOBODY, NOBODY, follow_symlinks=False)


def protect(folder: Path) -> None:
    for one in sorted(folder.rglob("*"), reverse=True):
        one.chmod(0o555 if one.is_dir() else 0o444)
    folder.chmod(0o555)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


async def test_what_was_logged_can_be_read_and_nothing_is_written(shared: Path) -> None:
    program, work = lay_out(shared)
    program = Program(program.home, {"HOME": str(shared)})
    give_away(shared)
    async with ScriptedServer(Script(turns=(Turn(items=(write("a.txt", "two\n"),)), DONE))) as server:
        flags = ("--model", MODEL, "--base-url", server.base_url, "--mode", "full", "--trust")
        worked = await run(program, work, "-p", "Edit.", *flags)
        if worked.code in (126, 127):
            pytest.skip("nobody may not run this Python")
        assert worked.code == Exit.DONE, worked.err
        session = json.loads((await run(program, work, "sessions", "--json")).out)["id"]
        exported = work / "kept.json"
        assert (await run(program, work, "export", session, "--format", "json", "-o", str(exported))).code == Exit.DONE
        protect(program.home)
        before = contents(shared)
        reading: tuple[tuple[str, ...], ...] = (
            ("sessions",),
            ("sessions", "--search", "Edit"),
            ("show", session),
            ("export", session),
            ("usage",),
            ("checkpoint", "list"),
            ("replay", session),
            ("audit", "verify"),
        )
        for words in reading:
            read = await run(program, work, *words)
            assert (read.code, bool(read.out), read.err) == (Exit.DONE, True, ""), words
        writing: tuple[tuple[str, ...], ...] = (
            ("checkpoint", "restore", "1", "--yes"),
            ("checkpoint", "prune"),
            ("archive", session),
            ("rename", session, "x"),
            ("delete", session, "--yes"),
            ("fork", session),
            ("-p", "On.", "--continue", *flags),
            ("-p", "New.", *flags),
            ("--bg", "On.", "--continue", *flags),
            ("--bg", "New.", *flags),
        )
        for words in writing:
            refused = await run(program, work, *words)
            assert refused.code != Exit.DONE, words
            assert ("Traceback" in refused.err, "bug in Treadle" in refused.err) == (False, False), refused.err
            assert "cannot be" in refused.err, (words, refused.err)
        doctor = await run(program, work, "doctor")
        assert "bug in Treadle" not in doctor.err
        assert "cannot be written" in doctor.out
    assert contents(shared) == before


async def test_a_data_directory_that_may_not_be_entered_is_named_by_every_command(shared: Path) -> None:
    program, work = lay_out(shared)
    give_away(shared)
    data = program.home / "shut" / "data"
    data.mkdir(parents=True)
    data.parent.chmod(0o000)
    try:
        for words in (("sessions",), ("jobs",), ("config",), ("-p", "Go on.", "--continue")):
            refused = await run(Program(data, {"HOME": str(shared)}), work, *words)
            if refused.code in (126, 127):
                pytest.skip("nobody may not run this Python")
            assert refused.code in (Exit.FAILED, Exit.CONFIG), words
            first, why, fix = refused.err.splitlines()
            assert "cannot be" in first
            assert why.startswith(f"  why: [Errno 13] Permission denied: '{data}"), words
            assert fix.startswith("  fix: C")
        doctor = await run(Program(data, {"HOME": str(shared)}), work, "doctor", "--offline")
        assert f"data folder: {data.parent} cannot be written to" in doctor.out
        assert doctor.err == ""
    finally:
        data.parent.chmod(0o700)
