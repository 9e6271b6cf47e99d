"""Speed of the tools, each beside the plain way to do the same, and how fast a command is cancelled."""

import asyncio
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from treadle.app.security.command_confinement import confine_as
from treadle.app.security.command_folders import CommandFolders
from treadle.app.session.commands.host_decisions import RESOLVED_BY_TREADLE, RESOLVER
from treadle.protocol.tools import Confinement
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.commands.confinement import OPEN, Setup
from treadle.workspace.copies import Hold, nothing_is_held
from treadle.workspace.namespaces.network_broker import NetworkBroker
from treadle.workspace.namespaces.session_space import SessionNamespaces
from treadle.workspace.sandbox import Backend, probe
from treadle.workspace.workspace import Workspace, open_workspace

_REPEATS = 9
_FILES = 5_000
_OUTPUT_MB = 100

Ours = Callable[[], Awaitable[object]]
Plain = Callable[[], object]


async def _compare(what: str, ours: Ours, plain: Plain, repeats: int = _REPEATS) -> None:
    """Run both in turn, so that a busy machine is busy for both, and print the medians and their ratio."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        start = time.perf_counter()
        await ours()
        between = time.perf_counter()
        plain()
        times[0].append(between - start)
        times[1].append(time.perf_counter() - between)
    mine, theirs = map(statistics.median, times)
    print(f"{what:<58} {mine * 1000:9.1f} ms {theirs * 1000:9.1f} ms {mine / theirs:7.1f} x")


def _call(workspace: Workspace, name: str, **arguments: Any) -> Ours:
    (tool,) = (tool for tool in builtin_tools(workspace) if tool.spec.name == name)

    async def work() -> object:
        prepared = await tool.prepare(arguments)
        runs = prepared if prepared.confined is None else prepared.confined(OPEN)
        return await runs.run(lambda _: None)

    return work


def _shell(line: str, cwd: str) -> Plain:
    return lambda: subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, check=False)


async def _commands(workspace: Workspace) -> None:
    async def unhurried() -> object:
        # As between two steps of a model; only the command itself is of interest.
        return await _call(workspace, "execute_command", command="true")()

    await _compare("execute_command, the first one of a session | bash -c", unhurried, _shell("true", "/"), 1)
    for pause in (0.0, 0.3):
        times = []
        for _ in range(_REPEATS):
            await asyncio.sleep(pause)
            start = time.perf_counter()
            await unhurried()
            times.append(time.perf_counter() - start)
        print(f"{f'execute_command, {pause} s after another':<58} {statistics.median(times) * 1000:9.1f} ms")
    flood = f"head -c {_OUTPUT_MB}000000 /dev/zero | tr '\\0' x | fold -w 99"
    ours, plain = _call(workspace, "execute_command", command=flood), _shell(flood, "/")
    await _compare(f"a command that prints {_OUTPUT_MB} MB | all into memory", ours, plain, 1)


_CONFINED: tuple[tuple[str, Confinement, Hold | None, float], ...] = (
    ("look, in the background", Confinement.LOOK, None, 12),
    ("work", Confinement.WORK, None, 12),
    ("look, its changes read", Confinement.LOOK, nothing_is_held, 20),
)
"""Ways to run a command confined, on a copy where there is a `Hold`; at the end how many milliseconds it may cost."""


async def _confined(workspace: Workspace) -> None:
    """Compare a confined command, from the look at the folder to the one after it, with a bare one."""
    if probe().backend is None:
        print(f"no sandbox here: {probe().reason}")
        return
    _write_tree(Path(workspace.root))
    private = Path(workspace.root).parent / "data"
    place = CommandFolders(root=workspace.root, data=private, private=private / "session")
    times: dict[str, list[float]] = {"bare": []}
    for _ in range(3 * _REPEATS):
        times["bare"].append(await _once(workspace, Setup))
        for what, kind, hold, _ in _CONFINED:
            taken = await _once(workspace, partial(confine_as, kind, "true", place, hold=hold))
            times.setdefault(what, []).append(taken)
    medians = {what: statistics.median(kept[1:]) * 1000 for what, kept in times.items()}
    least = {what: min(kept) * 1000 for what, kept in times.items()}
    bare = medians["bare"]
    for what, _, _, budget in _CONFINED:
        print(
            f"{f'a confined command ({what}) | a bare one':<58} {medians[what]:9.1f} ms {bare:9.1f} ms "
            f"{medians[what] / bare:7.1f} x  (+{medians[what] - bare:.1f} ms, the quickest "
            f"+{least[what] - least['bare']:.1f} ms; budget {budget} ms)"
        )


_CONNECTION_BUDGET = 15  # milliseconds that a first connection through the broker may cost
_CONNECTS = """{python} -I -c "
import socket, time
start = time.perf_counter()
s = socket.create_connection(('{host}', {port}))
s.sendall(b'GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n')
s.recv(1)
print(time.perf_counter() - start)
\""""


async def _connections(workspace: Workspace) -> None:
    """Compare the first connection of a command to a name, which the broker carries, with a direct one."""
    if probe().backend is not Backend.BUBBLEWRAP or not Path(RESOLVER).exists():
        print("no network of a session's own here")
        return
    private = Path(workspace.root).parent / "connections"
    private.mkdir()
    (private / "resolv.conf").write_text(RESOLVED_BY_TREADLE)
    placed = ((str(Path(RESOLVER).resolve()), str(private / "resolv.conf")),)
    shared = SessionNamespaces()
    place = CommandFolders(root=workspace.root, data=private, private=private, namespaces=shared, placed=placed)

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    async def decides(_name: str, _port: int) -> bool:
        return True

    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    broker = NetworkBroker(shared, decides, lambda *_: asyncio.open_connection("127.0.0.1", port), tell=lambda *_: None)
    await broker.open()
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(2 * _REPEATS):
        named = _CONNECTS.format(python=sys.executable, host=f"n{number}.example.com", port=80)
        times[0].append(await _printed(workspace, named, partial(confine_as, Confinement.WORK, named, place)))
        times[1].append(await _printed(workspace, _CONNECTS.format(python=sys.executable, host="localhost", port=port)))
    await broker.close()
    server.close()
    shared.close()
    (mine, least), (theirs, bare) = ((statistics.median(kept) * 1000, min(kept) * 1000) for kept in times)
    print(
        f"{'a first connection through the broker | a direct one':<58} {mine:9.1f} ms {theirs:9.1f} ms "
        f"{mine / theirs:7.1f} x  (+{mine - theirs:.1f} ms, the quickest +{least - bare:.1f} ms; "
        f"budget {_CONNECTION_BUDGET} ms)"
    )


async def _printed(workspace: Workspace, line: str, set_up: Callable[[], Setup] = Setup) -> float:
    """Run a command that prints how many seconds it took."""
    command = workspace.launcher.start(line, setup=await asyncio.to_thread(set_up))
    await command.finish(30)
    taken = float(command.take_output())
    await command.close()
    return taken


async def _once(workspace: Workspace, set_up: Callable[[], Setup]) -> float:
    """Run a command that does nothing (seconds)."""
    await asyncio.sleep(0.15)  # as between two steps of a model: a guard is ready
    start = time.perf_counter()
    setup = await asyncio.to_thread(set_up)
    command = workspace.launcher.start("true", setup=setup)
    await command.finish(30)
    await command.settle("")
    if setup.changes is not None:
        await asyncio.to_thread(setup.changes, "", failed=False)
    taken = time.perf_counter() - start
    await command.close()
    return taken


async def _cancel(workspace: Workspace) -> None:
    for line in ("yes", "trap '' TERM; yes & while :; do sleep 1; done"):
        task = asyncio.ensure_future(_call(workspace, "execute_command", command=line)())
        await asyncio.sleep(1)
        start = time.perf_counter()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        print(f"{f'cancel of `{line[:14]}`':<58} {(time.perf_counter() - start) * 1000:9.1f} ms")


async def _files(workspace: Workspace) -> None:
    path = Path(workspace.root, "large.py")
    _write_lines(path)
    ours, plain = _call(workspace, "read_file", path="large.py"), lambda: path.read_text().split("\n")[:2000]
    await _compare("read_file, a page of 10,000 lines | read, split", ours, plain)
    flip = ["SEARCHED", "value_5000 = compute(5000)"]

    async def edit() -> object:
        flip.reverse()
        diff = f"------- SEARCH\n{flip[0]}\n=======\n{flip[1]}\n+++++++ REPLACE\n"
        return await _call(workspace, "replace_in_file", path="large.py", diff=diff)()

    await _compare(
        "replace_in_file in 10,000 lines, synced | read, write", edit, lambda: path.write_text(path.read_text())
    )


def _write_lines(path: Path) -> None:
    path.write_text("".join(f"value_{number} = compute({number})\n" for number in range(10_000)))


async def _searches(workspace: Workspace) -> None:
    _write_tree(Path(workspace.root))
    rg = workspace.search.ripgrep
    ours = _call(workspace, "search_files", path=".", regex="needle 4[0-9]7")
    await _compare(f"search_files in {_FILES:,} files | rg", ours, _shell(f"{rg} 'needle 4[0-9]7'", workspace.root))
    ours = _call(workspace, "list_files", path=".", recursive=True)
    await _compare(f"list_files of {_FILES:,} files | rg --files", ours, _shell(f"{rg} --files", workspace.root))


def _write_tree(root: Path) -> None:
    for number in range(_FILES):
        directory = root / f"d{number % 100}"
        directory.mkdir(exist_ok=True)
        (directory / f"f{number}.txt").write_text("some line\n" * 50 + f"needle {number}\n")


async def _measure(root: Path, spool: Path) -> None:
    workspace = open_workspace(root, spool=spool)
    for part in (_commands, _confined, _connections, _cancel, _files, _searches):
        await part(workspace)
    await workspace.close()


def main() -> None:
    """Print every figure: ours, the plain way, the ratio."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "root")
        root.mkdir()
        asyncio.run(_measure(root, Path(directory, "spool")))
