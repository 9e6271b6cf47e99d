"""Commands that flood, hang or multiply, through the whole program: its peak memory, and how soon a cancel works."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.workspace.commands.meter import descendants

_FORK = "if os.fork(): os._exit(0)"
_DAEMON = f"import os, time\n{_FORK}\nos.setsid()\n{_FORK}\nos.closerange(0, 99)\ntime.sleep(9999)"

_LINES = {
    "nothing": "true",
    "1 GiB of text": "head -c 1073741824 /dev/zero | tr '\\0' x | fold -w 99",
    "1 GiB in one line": "head -c 1073741824 /dev/zero | tr '\\0' x",
    "64 MiB that is no UTF-8, with escape codes": "head -c 67108864 /dev/urandom",
    "100,000 writes of one character": "python3 -c 'import os\nfor n in range(100000): os.write(1, b\".\")'",
    "a daemon that closes its output": f"python3 -c '{_DAEMON}'; echo on",
    "a password is asked for": "python3 -c 'import getpass; getpass.getpass()' 2>/dev/null; read x </dev/tty; true",
}
_HANGS = {
    "sleeps for an hour and ignores TERM": "trap '' TERM INT HUP; while :; do sleep 3600; done",
    "the same in three sessions": "trap '' TERM; setsid sleep 3600 & setsid sleep 3600 & while :; do sleep 3600; done",
    "prints without end": "yes",
}


def _script(line: str) -> Script:
    run = MakeCall(name="execute_command", arguments={"command": line, "timeout": 600})
    return Script(
        turns=(Turn(items=(run,)), Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "."}),)))
    )


def _start(root: Path, url: str, out: int) -> subprocess.Popen[bytes]:
    flags = ("--model", "anthropic-compatible/scripted", "--base-url", url, "--mode", "full", "-C", str(root))
    environment: Mapping[str, str] = {**os.environ, "TREADLE_HOME": f"{root}-home"}
    return subprocess.Popen(
        [sys.executable, "-m", "treadle", "-p", "Work.", "--output-format", "stream-json", *flags],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.DEVNULL,
    )


async def _memory(what: str, line: str, idle: float) -> float:
    """Run one to its end; gives the peak of the program's own memory in MB."""
    with tempfile.TemporaryDirectory() as folder, Path(folder, "out").open("wb") as out:
        root = Path(folder, "ws")
        root.mkdir()
        async with ScriptedServer(_script(line)) as server:
            start = time.perf_counter()
            process = _start(root, server.base_url, out.fileno())
            peak = 0.0
            while process.poll() is None:
                with contextlib.suppress(OSError, StopIteration):
                    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                    peak = int(next(row for row in status if row.startswith("VmHWM")).split()[1]) / 1024
                await asyncio.sleep(0.01)
            taken = time.perf_counter() - start
        shown = Path(folder, "out").read_bytes()
        told = shown.count(b'"type":"call_output"')
        over = f"{peak - idle:+7.1f} MB" if idle else "          "
        print(f"{what:<46} {peak:6.1f} MB {over} {taken:7.1f} s  {told:5} pieces, {len(shown) / 1e6:5.2f} MB shown")
    return peak


async def _cancel(what: str, line: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "ws")
        root.mkdir()
        async with ScriptedServer(_script(line)) as server:
            process = _start(root, server.base_url, subprocess.DEVNULL)
            while len(descendants(process.pid)) < 3:
                await asyncio.sleep(0.02)
            await asyncio.sleep(1)
            below = descendants(process.pid)
            start = time.perf_counter()
            process.send_signal(signal.SIGINT)
            while any(Path(f"/proc/{pid}").exists() for pid in below):
                await asyncio.sleep(0.002)
            gone = time.perf_counter() - start
            await asyncio.to_thread(process.wait)
        print(f"cancel of one that {what:<40} {gone * 1000:6.0f} ms until every process of it is gone")


async def _measure() -> None:
    idle = 0.0
    for what, line in _LINES.items():
        peak = await _memory(what, line, idle)
        idle = idle or peak
    for what, line in _HANGS.items():
        await _cancel(what, line)


def main() -> None:
    """Print for each command the peak memory of the program, and the time that a cancel takes."""
    asyncio.run(_measure())
