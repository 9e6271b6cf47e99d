"""The agent for editors: how long a client waits for the answer to `initialize`, and for its first session."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.startup import wall

RUNS = 15


def answers(home: Path, folder: Path) -> tuple[float, float]:
    """Give the seconds from the start of the process to the answer of `initialize`, and to that of `session/new`."""
    flags = ["--model", "anthropic-compatible/none", "--base-url", "http://127.0.0.1:9"]
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "treadle", "acp", *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"TREADLE_HOME": str(home), "PATH": "/usr/bin:/bin", "HOME": str(home)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    times = []
    for number, (method, params) in enumerate(
        [
            ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
            ("session/new", {"cwd": str(folder), "mcpServers": []}),
        ]
    ):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert "result" in answer, answer
        times.append(time.perf_counter() - started)
    process.stdin.close()
    process.stdout.read()
    process.wait()
    return times[0], times[1]


def main() -> None:
    """Print the figures."""
    bare, first, second = [], [], []
    with tempfile.TemporaryDirectory() as temporary:
        home, folder = Path(temporary, "home"), Path(temporary, "folder")
        folder.mkdir()
        for _ in range(RUNS):
            bare.append(wall([sys.executable, "-c", "import asyncio, json"]))
            to_initialize, to_session = answers(home, folder)
            first.append(to_initialize)
            second.append(to_session)
    initialize, session, least = map(statistics.median, (first, second, bare))
    print(f"initialize answered after     {initialize * 1000:7.1f} ms")
    print(f"  / python -c 'import asyncio, json'    {initialize / least:5.2f}x   (budget 1.2x)")
    print(f"session/new answered after    {session * 1000:7.1f} ms")


if __name__ == "__main__":
    main()
