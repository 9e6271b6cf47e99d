"""What the commands of one session share, and what they cannot do to each other and to what holds it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.orphans import command_line
from tests.workspace.processes import lasting, living, until
from tests.workspace.sandbox.running import Box, bubblewrap, close_namespaces, namespaces_of

from treadle.app.security.command_confinement import confine_as
from treadle.app.security.command_folders import CommandFolders
from treadle.protocol.tools import Confinement
from treadle.workspace.commands.meter import descendants
from treadle.workspace.commands.process import CommandProcess
from treadle.workspace.files.owners import lives, owner_of
from treadle.workspace.namespaces.session_space import SessionNamespaces

_SERVER = "python3 -m http.server 8123 >/dev/null 2>&1"
_UNTIL_IT_ANSWERS = "for i in $(seq 100); do curl -sf localhost:8123 >/dev/null && break; sleep 0.1; done"


@pytest.fixture
async def box(tmp_path: Path, no_orphans: None) -> AsyncIterator[Box]:
    (tmp_path / "work").mkdir()
    yield Box(tmp_path, bubblewrap())
    close_namespaces()


def _holder(box: Box) -> int:
    holder = namespaces_of(box).holder()
    assert holder is not None
    return holder.pid


async def _ended(command: CommandProcess, seconds: float = 60) -> tuple[int | None, str]:
    await command.finish(seconds)
    return command.status, command.take_output()


async def test_a_server_that_one_command_started_answers_the_next_one_and_can_be_killed(box: Box) -> None:
    (box.root / "index.html").write_text("made here\n")
    first = box.start(f"{_SERVER} & echo $! > pid; {_UNTIL_IT_ANSWERS}", box.profile())
    assert (await _ended(first))[0] == 0
    pid = (box.root / "pid").read_text().strip()
    assert (first.alive, first.left_behind) == (True, (f"python3 ({pid})",)), "named by the number that is known inside"
    assert await box.run("curl -s localhost:8123") == (0, "made here\n")
    assert (await box.run("kill $(cat pid); for i in $(seq 100); do kill -0 $(cat pid) || break; sleep 0.1; done"))[
        0
    ] == 0
    assert (await box.run("curl -s localhost:8123"))[0] == 7
    await asyncio.to_thread(_wait_for, lambda: not first.alive)
    await first.close()


def _wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.02)


async def test_the_servers_of_the_system_are_not_on_that_network(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert (await box.run(f"curl -s localhost:{server.getsockname()[1]}"))[0] == 7


async def test_what_a_command_left_ends_when_it_is_stopped_and_nothing_else(box: Box) -> None:
    mine, other = lasting(), lasting()
    first = box.start(f"setsid {mine} & (setsid {mine} &) ; true", box.profile())
    second = box.start(f"setsid {other} & true", box.profile())
    assert [(await _ended(each))[0] for each in (first, second)] == [0, 0]
    assert (living(mine), living(other)) == (2, 1)
    await first.stop("the test wants it")
    assert (living(mine), living(other), first.alive, second.alive) == (0, 1, False, True)
    for each in (first, second):
        await each.close()
    assert living(other) == 0


async def test_a_command_that_takes_too_long_ends_with_all_that_passed_to_the_holder(box: Box) -> None:
    line = lasting()
    command = box.start(f"(setsid {line} &); trap '' TERM; sleep 60", box.profile())
    assert await until(line, 1) == 1
    await command.finish(0.1)
    assert (living(line), "longer than" in command.why_stopped) == (0, True)
    await command.close()


async def test_a_swarm_that_forks_away_ends_and_leaves_the_others(box: Box) -> None:
    (box.root / "swarm.py").write_text(
        "import os, time\n"
        "for _ in range(4):\n"
        "    if not os.fork():\n"
        "        os.setsid()\n"
        "        while True:\n"
        "            if os.fork(): os._exit(0)\n"
        "            time.sleep(0.002)\n"
    )
    other = lasting()
    second = box.start(f"setsid {other} & true", box.profile())
    await _ended(second)
    before = _holder(box)
    swarm = box.start("python3 swarm.py; sleep 0.3", box.profile())
    assert (await _ended(swarm))[0] == 0
    await swarm.stop("the test wants it")
    assert (swarm.alive, [pid for pid in descendants(_holder(box)) if "swarm.py" in command_line(pid)]) == (False, [])
    assert (living(other), _holder(box)) == (1, before)
    for each in (swarm, second):
        await each.close()


async def test_no_signal_from_inside_reaches_the_holder(box: Box) -> None:
    holder = namespaces_of(box).holder()
    names = "KILL STOP INT TERM HUP USR1 CHLD ABRT PIPE"
    line = f"for name in {names}; do kill -$name 1; done; prlimit --pid 1 --nofile=1:1; sleep 0.1"
    assert (await box.run(line))[0] == 0
    assert holder is not None
    assert (lives(holder), namespaces_of(box).holder()) == (True, holder)
    assert await box.run("echo goes on") == (0, "goes on\n")


async def test_who_kills_all_it_can_kills_the_session_and_the_next_command_runs(box: Box) -> None:
    line = lasting()
    server = box.start(f"{line} & true", box.profile())
    await _ended(server)
    status, _ = await box.run("kill -9 -1")
    assert (status != 0, living(line)) == (True, 0)
    assert await box.run("echo goes on") == (0, "goes on\n")
    await server.close()


async def test_a_holder_that_was_killed_is_replaced(box: Box) -> None:
    line = lasting()
    server = box.start(f"{line} & true", box.profile())
    await _ended(server)
    before = _holder(box)
    held = owner_of(before)
    os.kill(before, signal.SIGKILL)
    assert await until(line, 0) == 0
    await asyncio.to_thread(_wait_for, lambda: not lives(held))
    assert await box.run("echo goes on") == (0, "goes on\n")
    assert _holder(box) != before
    await server.close()


async def test_no_command_reads_another_one_or_what_holds_them(box: Box) -> None:
    other = box.start("SECRET=hush sleep 60 & echo $! > pid; wait", box.profile())
    await asyncio.to_thread(_wait_for, lambda: (box.root / "pid").exists() and bool((box.root / "pid").read_text()))
    names = "mem environ maps root/etc/hostname cwd/pid fd/0 exe"
    each = f"for name in {names}; do head -c 1 /proc/$pid/$name && echo $pid/$name; done"
    _, output = await box.run(f"(for pid in 1 2 $(cat pid); do {each}; done) 2>/dev/null")
    assert output.split() == []
    await other.close()


async def test_a_command_holds_nothing_but_its_three_descriptors(box: Box) -> None:
    assert await box.run("python3 -c 'import os; print(*sorted(os.listdir(\"/proc/self/fd\"), key=int))'") == (
        0,
        "0 1 2 3\n",
    )


async def test_what_lists_processes_shows_lines_that_can_be_read(box: Box) -> None:
    masked = box.profile(masked=("secret-plan.txt",))
    (box.root / "secret-plan.txt").write_text("x")
    _, output = await box.run("ps -eo args", masked)
    assert "secret-plan" not in output
    assert max(map(len, output.splitlines())) < 200


async def test_what_ends_processes_by_their_lines_does_not_end_its_own_sandbox(box: Box) -> None:
    sleep = lasting()
    server = box.start(f"exec {sleep}", box.profile())
    assert await until(sleep, 1) == 1
    assert await box.run(f"exec pkill -f '{sleep}'") == (0, "")
    await server.finish(60)
    assert living(sleep) == 0
    await server.close()


async def test_a_line_and_its_variables_are_those_of_a_plain_shell(box: Box) -> None:
    odd = "echo \"$# $0 $SHLVL 'quoted' \\\\ \"; env | grep -c LINE; exit 3"
    assert await box.run(odd) == (3, "0 /bin/bash 1 'quoted' \\ \n0\n")


async def test_unix_sockets_cannot_be_made_where_it_is_said(box: Box) -> None:
    line = "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'"
    assert (await box.run(line))[0] == 0
    status, output = await box.run(line, replace(box.profile(), unix_sockets=False))
    assert (status, "Address family not supported" in output) == (1, True)
    assert (await box.run("python3 -c 'import socket; socket.socket()'", replace(box.profile(), unix_sockets=False)))[
        0
    ] == 0


async def test_a_throw_away_copy_takes_its_processes_along_and_says_so(tmp_path: Path, no_orphans: None) -> None:
    from treadle.workspace.workspace import open_workspace

    bubblewrap()
    (tmp_path / "work").mkdir()
    shared, line = SessionNamespaces(), lasting()
    data = tmp_path / "data"
    place = CommandFolders(root=str(tmp_path / "work"), data=data, private=data / "private", namespaces=shared)
    workspace = open_workspace(place.root, spool=tmp_path / "spool")

    def hold(path: str, *, made: bool = False) -> str:
        return ""

    setup = confine_as(Confinement.LOOK, "", place, hold=hold)
    assert setup.changes is not None
    command = workspace.launcher.start(
        f"(setsid {line} &); sleep 0.3; echo x > made; ps -e | grep -c sleep", setup=setup
    )
    assert await _ended(command) == (0, "1\n")
    assert (living(line), command.alive, command.left_behind) == (0, False, ())
    assert command.ended_with_it.startswith("sleep (")
    assert [Path(one.path).name for one in setup.changes("", failed=False).changes] == ["made"]
    await command.close()
    await workspace.close()
    place.known.copies.throw_away()
    shared.close()


_OPENS = """
import sys, time
from treadle.workspace.namespaces.session_space import SessionNamespaces
shared = SessionNamespaces()
print(shared.holder().pid, flush=True)
time.sleep(60)
"""


def test_the_death_of_treadle_ends_everything(no_orphans: None) -> None:
    bubblewrap()
    process = subprocess.Popen([sys.executable, "-c", _OPENS], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    holder = owner_of(int(process.stdout.readline()))
    process.kill()
    process.wait()
    process.stdout.close()
    _wait_for(lambda: not lives(holder))


_RUNS = """
import asyncio, sys
from pathlib import Path
from treadle.app.security.command_confinement import confine_as
from treadle.app.security.command_folders import CommandFolders
from treadle.protocol.tools import Confinement
from treadle.workspace.namespaces.session_space import SessionNamespaces
from treadle.workspace.workspace import open_workspace

async def main(folder):
    data = folder / "data"
    place = CommandFolders(
        root=str(folder / "work"), data=data, private=data / "private", namespaces=SessionNamespaces()
    )
    setup = confine_as(Confinement.WORK, "", place)
    assert setup.wrapping.joins
    line = f"./git {sys.argv[2]} & ./other {sys.argv[2]} & wait"
    open_workspace(place.root, spool=folder / "spool").launcher.start(line, setup=setup)
    await asyncio.sleep(60)

asyncio.run(main(Path(sys.argv[1])))
"""
_PROGRAMS = {
    "other": "trap 'echo asked >> other.told; exit' TERM; echo on >> other.told; while true; do sleep 0.01; done",
    "git": "trap 'echo asked >> git.told; exit' TERM; echo on >> git.told\n"
    "until grep -q asked other.told; do sleep 0.01; done; echo finished >> git.told",
}


async def test_the_death_of_treadle_lets_git_finish_and_asks_others_to_end(tmp_path: Path, no_orphans: None) -> None:
    bubblewrap()
    work, number = tmp_path / "work", lasting().split()[1]
    work.mkdir()
    for name, text in _PROGRAMS.items():
        (work / name).write_text(f"#!/bin/sh\nexec 2> /dev/null  # nobody reads it by then\n{text}\n")
        (work / name).chmod(0o755)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _RUNS, str(tmp_path), number)
    told = [work / "other.told", work / "git.told"]
    _wait_for(lambda: all(file.exists() for file in told))
    process.kill()
    await process.wait()
    _wait_for(lambda: not any(living(f"/bin/sh ./{name} {number}") for name in _PROGRAMS))
    assert [file.read_text().split() for file in told] == [["on", "asked"], ["on", "finished"]]


def test_a_socket_of_the_session_reaches_its_servers(no_orphans: None) -> None:
    bubblewrap()
    shared = SessionNamespaces()
    assert shared.holder() is not None
    with (
        shared.socket(socket.AF_INET, socket.SOCK_STREAM) as server,
        shared.socket(socket.AF_INET, socket.SOCK_STREAM) as client,
    ):
        server.bind(("127.0.0.1", 80))
        server.listen()
        client.connect(("127.0.0.1", 80))
        server.accept()[0].close()
    with pytest.raises(OSError, match="Address family not supported"):
        shared.socket(99, socket.SOCK_STREAM)
    shared.close()
    with pytest.raises(OSError, match="no network of its own"):
        shared.socket(socket.AF_INET, socket.SOCK_STREAM)
    assert shared.holder() is None


def test_where_they_cannot_be_made_it_says_why(monkeypatch: pytest.MonkeyPatch, no_orphans: None) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    shared = SessionNamespaces()
    assert (shared.holder(), shared.trouble) == (None, "they cannot be made here: it ended")
