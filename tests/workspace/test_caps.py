"""What the kernel bounds for a command: set by the guard, or by a shell where there is no guard."""

import subprocess
from pathlib import Path

import pytest

from treadle.workspace.commands.confinement import Setup
from treadle.workspace.commands.wrapping import Caps, Wrapping
from treadle.workspace.workspace import Workspace

SAY = "ulimit -n; ulimit -c; ulimit -f; ulimit -u; cat <&9"
KIB = 1024
CAPS = Caps(open_files=77, file=5 * 1024 * KIB, tasks=3_333)
SAID = ["77", "0", f"{5 * 1024}", "3333"]
"""As bash says it, which counts a file in KiB."""


async def run(workspace: Workspace, caps: Caps, line: str) -> str:
    command = workspace.launcher.start(line, setup=Setup(Wrapping(caps=caps)))
    await command.finish(60)
    output = command.take_output()
    await command.close()
    return output


def capped(folder: Path) -> Caps:
    file = folder / "filter"
    file.write_text("opened")
    return Caps(open_files=CAPS.open_files, file=CAPS.file, tasks=CAPS.tasks, opened=str(file))


async def test_the_guard_sets_them_and_opens_the_file(workspace: Workspace, tmp_path: Path) -> None:
    assert (await run(workspace, capped(tmp_path), SAY)).split() == [*SAID, "opened"]


def test_a_shell_sets_the_same(tmp_path: Path) -> None:
    words = Wrapping(caps=capped(tmp_path)).around(("bash", "-c", SAY))
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == [*SAID, "opened"]


async def test_a_bound_above_the_one_that_is_set_leaves_it(workspace: Workspace) -> None:
    line = "ulimit -n 50; exec bash -c 'ulimit -n'"
    assert (await run(workspace, Caps(open_files=60), line)).split() == ["50"]
    low = subprocess.run(["bash", "-c", "ulimit -Hn"], capture_output=True, text=True, check=True).stdout.strip()
    if low == "unlimited":
        pytest.skip("nothing bounds open files here")
    assert (await run(workspace, Caps(open_files=int(low) + 1), "ulimit -Hn")).split() == [low]


async def test_a_file_that_is_gone_is_said_and_nothing_runs(workspace: Workspace, tmp_path: Path) -> None:
    assert "No such file" in await run(workspace, Caps(opened=str(tmp_path / "gone")), "echo ran")


async def test_input_comes_from_a_file_and_output_goes_to_one_apart_from_errors(
    workspace: Workspace, tmp_path: Path
) -> None:
    given, printed = tmp_path / "given", tmp_path / "printed"
    given.write_text("in")
    printed.touch()
    caps = Caps(given=str(given), printed=str(printed))
    assert await run(workspace, caps, "cat; echo wrong >&2") == "wrong\n"
    assert printed.read_text() == "in"
