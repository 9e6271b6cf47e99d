"""`treadle try` runs a person's command on a copy of the folder; only --apply changes the folder."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Ended, Program
from tests.workspace.copies.copied import Bench, snapshot
from tests.workspace.processes import lasting, until
from treadle.app.errors.exits import Exit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a secret and a control file; skips where no copies can be made."""
    bench = Bench(tmp_path.resolve())
    bench.root.mkdir()
    bench.needs_copies()
    (bench.root / "code.py").write_text("one\n")
    (bench.root / ".env").write_text("KEY=secret-value\n")
    (bench.root / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q"], cwd=bench.root, check=True)
    return bench.root


async def attempt(folder: Path, *words: str) -> Ended:
    return await Program(folder.parent / "home").run("try", *words, cwd=folder)


def last(ended: Ended) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended.out.splitlines()[-1])
    return found


LINE = (
    "echo two >> code.py; mkdir -p build pkg/__pycache__; echo x | tee build/x pkg/new pkg/__pycache__/c > AGENTS.md; "
    "cat .env; echo MORE=1 >> .env; git add code.py; printf unfinished; echo problem >&2; exit 3"
)
CHANGES = {
    ".env": ("changed", True),
    ".git": ("changed", True),
    "AGENTS.md": ("added", True),
    "code.py": ("changed", False),
    "pkg/new": ("added", False),
}
HELD = sorted(name for name, (_, held) in CHANGES.items() if held)


async def test_without_apply_the_folder_stays_as_it_is(folder: Path) -> None:
    before = snapshot(folder)
    ended = await attempt(folder, "--json", "--", LINE)
    assert ended.code == 3
    assert ended.out.splitlines()[0] == "unfinished"
    assert ended.err.startswith("problem\n")
    assert "secret-value" not in ended.out + ended.err
    found = last(ended)
    assert {one["path"]: (one["kind"], one["held"] is not None) for one in found["changes"]} == CHANGES
    assert (sorted(found), found["applied"]) == (["against", "applied", "changes", "whole"], False)
    assert [one.partition(":")[0] for one in found["against"]] == HELD
    assert found["whole"] is False
    assert "  M code.py  +1 -0\n" in ended.err
    assert "without `treadle try`" in ended.err
    assert snapshot(folder) == before


async def test_with_apply_nothing_is_made_where_a_part_cannot_be(folder: Path) -> None:
    before = snapshot(folder)
    ended = await attempt(folder, "--apply", "--json", "--", "sh", "-c", LINE)
    assert (ended.code, last(ended)["applied"]) == (3, False)
    assert "Nothing was applied." in ended.err
    assert snapshot(folder) == before
    assert list((folder.parent / "home/copies").iterdir()) == []


async def test_with_apply_all_of_what_is_whole_is_made(folder: Path) -> None:
    line = "echo two >> code.py; mkdir -p pkg/__pycache__ build; echo x | tee pkg/new pkg/__pycache__/a > build/out"
    ended = await attempt(folder, "--apply", "--json", "--", line)
    assert (ended.code, last(ended)["applied"], last(ended)["whole"]) == (0, True, True)
    assert "Applied 2 changes and 1 file that git ignores.\n" in ended.err
    assert (folder / "code.py").read_text() == "one\ntwo\n"
    assert (folder / "build/out").read_text() == "x\n"
    assert sorted(path.name for path in (folder / "pkg").iterdir()) == ["new"]


async def test_a_command_that_changes_nothing_says_so(folder: Path) -> None:
    ended = await attempt(folder, "--apply", "--", "git", "status", "--short")
    assert (ended.code, ended.err) == (0, "The command changed nothing.\n")
    assert "?? code.py" in ended.out


async def test_a_program_that_is_missing_has_the_shells_status(folder: Path) -> None:
    ended = await attempt(folder, "--json", "--", "no-such-program", "--flag")
    assert (ended.code, last(ended)) == (127, {"changes": [], "applied": False, "whole": True, "against": []})


async def test_there_is_no_network_and_nothing_outside_can_be_changed(folder: Path) -> None:
    line = "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 9), 2)\"; touch ../outside"
    ended = await attempt(folder, "--", line)
    assert "Connection refused" in ended.err or "Network is unreachable" in ended.err
    assert not (folder.parent / "outside").exists()


async def test_where_no_copy_can_be_made_it_says_why_and_what_to_do(folder: Path) -> None:
    ended = await Program(folder / "home").run("try", "--", "touch", "made", cwd=folder)
    assert ended.code == Exit.CONFIG
    assert f"Treadle's own data is in {folder}" in ended.err
    assert "fix:" in ended.err
    assert not (folder / "made").exists()


async def test_a_command_is_named(folder: Path) -> None:
    assert (await attempt(folder, "--apply")).code == Exit.USAGE


async def test_a_name_that_is_no_text_is_shown_escaped(folder: Path) -> None:
    (folder / "make.py").write_text("open(b'\\xff', 'w')\n")
    ended = await attempt(folder, "--json", "--", "python3 make.py")
    assert [one["path"] for one in last(ended)["changes"]] == ["\\xff"]
    assert sorted(path.name for path in folder.iterdir()) == [".env", ".git", ".gitignore", "code.py", "make.py"]


async def test_a_name_cannot_be_taken_for_other_lines(folder: Path) -> None:
    (folder / "make.py").write_text("open('x\\n  M other\\x1b[2J', 'w')\n")
    ended = await attempt(folder, "--", "python3 make.py")
    assert "  x\\x0a  M other\\x1b[2J: the path has control characters\n" in ended.err


async def test_an_interrupt_ends_the_command_and_throws_the_copy_away(folder: Path) -> None:
    marker = lasting()
    process = await Program(folder.parent / "home").start(
        "try", "--apply", "--", f"echo x > new; echo on; {marker}", cwd=folder
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"on\n"
    process.send_signal(signal.SIGINT)
    await process.communicate()
    assert process.returncode == Exit.INTERRUPTED
    assert await until(marker, 0) == 0
    assert not (folder / "new").exists()
    assert list((folder.parent / "home/copies").iterdir()) == []


async def test_a_reader_that_leaves_ends_the_command(folder: Path) -> None:
    marker = lasting()
    line = f"{sys.executable} -m treadle try -- 'echo first; {marker} & yes' | head -n 1"
    done = await asyncio.create_subprocess_shell(
        line, cwd=folder, env=Program(folder.parent / "home").environment, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await done.communicate()
    assert out == b"first\n"
    assert await until(marker, 0) == 0


async def test_what_a_killed_trial_left_goes_with_the_next(folder: Path) -> None:
    home = folder.parent / "home"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "treadle", "try", "--", f"echo on; {lasting()}"),
        cwd=folder,
        env=Program(home).environment,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"on\n"
    (left,) = (home / "output").glob("try-*")
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert left.is_dir()
    (home / "output/try-1").mkdir()  # of an older version: named after a process that is another one by now
    (home / "output/session").mkdir()
    assert (await attempt(folder, "--", "true")).code == 0
    assert [path.name for path in (home / "output").iterdir()] == ["session"]
