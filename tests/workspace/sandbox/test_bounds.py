"""What takes more than its bound is ended with all that it started, and the result says which bound."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.workspace.processes import lasting, living
from tests.workspace.sandbox.running import Box, bubblewrap, landlock

from treadle.workspace.commands.wrapping import describe_bound
from treadle.workspace.sandbox import CommandLimits, SandboxState

MIB = 1024**2
EATS = """python3 -c '
import time
kept = []
while True:
    kept.append(bytearray(range(250)) * 4000)
    time.sleep(0.002)
'"""
SHARES = """python3 -c '
import os, time
kept = bytearray(range(250)) * 400000
for _ in range(4):
    if not os.fork():
        time.sleep(1)
        os._exit(0)
for _ in range(4):
    os.wait()
'"""


@pytest.fixture(params=[bubblewrap, landlock])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Box:
    state: Callable[[], SandboxState] = request.param
    (tmp_path / "work").mkdir()
    return Box(tmp_path, state())


async def ended(box: Box, line: str, limits: CommandLimits) -> str:
    """Run a line to its end, and see that another one runs after it; gives how it ended, and what it printed."""
    command = box.start(line, replace(box.profile(), limits=limits))
    await command.finish(60)
    said = f"{command.describe()} {command.take_output()}"
    assert command.left_behind == (), "what is killed is not named as what runs on"
    async with asyncio.timeout(60):
        while command.alive:  # a full disk is slow
            await asyncio.sleep(0.05)
    await command.close()
    assert await box.run("echo fine") == (0, "fine\n")
    return said


async def test_memory_of_one_process_is_bounded(box: Box) -> None:
    assert (await ended(box, EATS, CommandLimits(memory=150 * MIB))).startswith(
        "Stopped: it used more than 0.15 GiB of memory"
    )


async def test_memory_is_bounded_over_all_processes(box: Box) -> None:
    one = "python3 -c 'x = bytearray(range(250)) * 240000; import time; time.sleep(60)'"
    line = f"{one} & {one} & {one} & wait"
    assert (await ended(box, line, CommandLimits(memory=150 * MIB))).startswith(
        "Stopped: it used more than 0.15 GiB of memory"
    )


async def test_memory_that_processes_share_is_counted_once(box: Box) -> None:
    assert await ended(box, SHARES, CommandLimits(memory=250 * MIB)) == "Exit status 0. "


async def test_the_number_of_processes_is_bounded_also_for_root(box: Box) -> None:
    sleep = lasting()
    line = f"for i in {{1..60}}; do {sleep} & done; wait"
    said = await ended(box, line, CommandLimits(processes=30))
    assert said.startswith("Stopped: it ran more than 30 processes, the most that a command may run.")
    assert living(sleep) == 0


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no /dev/shm")
@pytest.mark.parametrize("state", [bubblewrap, landlock])
async def test_a_command_that_fills_the_disk_is_ended(state: Callable[[], SandboxState]) -> None:
    line = "head -c 150000000 /dev/zero > large; sync; sleep 60"
    with TemporaryDirectory(dir="/dev/shm") as folder:
        box = Box(Path(folder), state())
        (box.folder / "work").mkdir()
        said = await ended(box, line, CommandLimits(disk=50 * MIB))
    assert said.startswith("Stopped: the free disk space fell by more than 0.049 GiB while it ran.")


async def test_a_file_does_not_grow_beyond_its_bound(box: Box) -> None:
    said = await ended(box, "head -c 3000000 /dev/zero > large; wc -c < large", CommandLimits(file=MIB))
    assert said.endswith("File too large\n1048576\n")


async def test_time_is_bounded(box: Box) -> None:
    sleep = lasting()
    said = await ended(box, f"setsid {sleep} & {sleep}", CommandLimits(seconds=1))
    assert (said.strip(), living(sleep)) == (
        "Stopped: it ran longer than 1 s, the longest that a command may run.",
        0,
    )


async def test_what_is_kept_in_memory_as_files_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    line = "for at in /dev/shm /run /var/tmp; do df --output=size -k $at | tail -1; done; touch /dev/x"
    status, output = await Box(tmp_path, bubblewrap()).run(line)
    assert (status, output.split()[:3]) == (1, ["524288"] * 3)


def test_each_bound_is_described() -> None:
    assert describe_bound("processes", 1024).startswith("it ran more than 1,024 processes")
    assert describe_bound("memory", 4 * 1024**3).startswith("it used more than 4 GiB of memory")
