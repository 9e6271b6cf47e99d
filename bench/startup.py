"""Start-up and steps of the real program: `--version`, `--help`, the first request over HTTP, the time between two."""

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

RUNS = 31
STEPS = 1_010
AT = (10, 300, 1_000)
EVENTS = (
    '{"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}',
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}',
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}',
    '{"type":"message_stop"}',
)


BYTES_PER_TOKEN = 4.2
"""Of English and JSON, about: what a request costs is told by no local figure."""


class Server(ABC):
    """Answers the connections to a port of its own, one after another."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                self.answer(connection)

    @abstractmethod
    def answer(self, connection: socket.socket) -> None:
        """Read a request and answer it."""


def read_request(connection: socket.socket, arrived: Callable[[], None]) -> int:
    """Read a request whole; gives the size of its body, -1 for one without, as at the end of the connection."""
    head = connection.recv(65536)
    arrived()
    if not head:
        return -1
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536)
    header, _, body = head.partition(b"\r\n\r\n")
    sizes = [int(line.split(b":")[1]) for line in header.lower().split(b"\r\n") if b"content-length" in line]
    size = sizes[0] if sizes else -1
    missing = size - len(body)
    while missing > 0:
        missing -= len(connection.recv(min(missing, 1 << 20)))
    return size


def reply(events: Sequence[str], *, more: bool = False) -> bytes:
    """Write a reply of the Messages API; `more` leaves the connection open."""
    body = "".join(f"data: {event}\n\n" for event in events).encode()
    kept = "keep-alive" if more else "close"
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\nconnection: {kept}"
    return f"{head}\r\n\r\n".encode() + body


class FirstRequest(Server):
    """Notes when the first byte of a request arrives, and how large its body is."""

    def __init__(self) -> None:
        self.arrived = 0.0
        self.size = 0
        super().__init__()

    def answer(self, connection: socket.socket) -> None:
        """Read the request whole, and answer it at once."""
        size = read_request(connection, self._note)
        self.size = self.size or size
        connection.sendall(reply(EVENTS))

    def _note(self) -> None:
        self.arrived = self.arrived or time.perf_counter()


class Steps(Server):
    """Answers each request with a cheap call, the last one with an end; notes when requests arrive."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._sent = 0.0
        self.gaps: list[float] = []
        self.arrived: list[float] = []
        self.size = 0
        super().__init__()

    def answer(self, connection: socket.socket) -> None:
        """Serve all requests of one connection."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while (size := read_request(connection, self._note)) >= 0:
            self.size, number = size, len(self.gaps) - 1
            events = call_events(number) if number < self._steps else EVENTS
            self._sent = 0.0
            connection.sendall(reply(events, more=True))
            self._sent = time.perf_counter()

    def _note(self) -> None:
        self.arrived.append(time.perf_counter())
        self.gaps.append(self.arrived[-1] - self._sent)


def call_events(number: int) -> tuple[str, ...]:
    """Write a reply that calls for one line of a file."""
    start = {"type": "tool_use", "id": f"toolu_{number}", "name": "read_file", "input": {}}
    arguments = {"type": "input_json_delta", "partial_json": json.dumps(
        {"path": "lines.txt", "start_line": number + 1, "end_line": number + 1}
    )}  # fmt: skip
    return (
        EVENTS[0],
        json.dumps({"type": "content_block_start", "index": 0, "content_block": start}),
        json.dumps({"type": "content_block_delta", "index": 0, "delta": arguments}),
        EVENTS[3],
        EVENTS[4].replace("end_turn", "tool_use"),
        EVENTS[5],
    )


def wall(command: list[str]) -> float:
    """Time a command from its start to its end (seconds)."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def to_first_request(folder: Path) -> float:
    """Time Treadle from its start to the arrival of its first request (seconds)."""
    server = FirstRequest()
    begun = run(folder, server, "-p", "say ok")
    return server.arrived - begun


def run(folder: Path, server: Server, *flags: str) -> float:
    """Let Treadle work with a server as its model; gives when it was started."""
    begun = time.perf_counter()
    process = start_with(folder, server, *flags)
    process.communicate()
    return begun


def start_with(folder: Path, server: Server, *flags: str) -> subprocess.Popen[bytes]:
    """Start Treadle with a server as its model."""
    command = [sys.executable, "-m", "treadle", "--model", "anthropic-compatible/x", *flags]
    return subprocess.Popen(
        [*command, "--base-url", server.url, "-C", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TREADLE_HOME": str(folder / ".home")},
    )


def processor(work: Callable[[], object]) -> float:
    """Tell how much processor time the processes took that some work ran (seconds)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


SEND = """
import asyncio, httpx2, sys
async def main():
    async with httpx2.AsyncClient(verify=False, trust_env=False) as client:
        await client.post(sys.argv[1], json={})
asyncio.run(main())
"""


def bare_request() -> float:
    """Time a bare interpreter that does nothing but send one request with `httpx2` (seconds to its arrival)."""
    server = FirstRequest()
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", SEND, server.url], check=True, stdout=subprocess.DEVNULL)
    return server.arrived - begun


def interleaved(measures: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Measure in turn, A B A B, so that a drifting machine favours none; gives medians (seconds)."""
    seen: dict[str, list[float]] = {name: [] for name in measures}
    for run in range(RUNS + 1):
        for name, measure in measures.items():
            taken = measure()
            if run:
                seen[name].append(taken)
    return {name: statistics.median(values) for name, values in seen.items()}


def start(folder: Path) -> None:
    """Print how long the program takes to answer, and to send its first request."""
    python = sys.executable
    figures = interleaved(
        {
            "bare": lambda: wall([python, "-c", "pass"]),
            "argparse, json": lambda: wall([python, "-c", "import argparse, json"]),
            "bare request": bare_request,
            "version": lambda: wall([python, "-m", "treadle", "--version"]),
            "help": lambda: wall([python, "-m", "treadle", "--help"]),
            "first request": lambda: to_first_request(folder),
            "processor": lambda: processor(lambda: to_first_request(folder)),
            "bare processor": lambda: processor(bare_request),
        }
    )
    version, request = figures["version"], figures["first request"]
    print(f"--version                     {version * 1000:7.1f} ms")
    print(f"  / python -c 'import argparse, json'   {version / figures['argparse, json']:5.2f}x   (budget 1.5x)")
    print(f"--help                        {figures['help'] * 1000:7.1f} ms")
    print(f"  / --version                           {figures['help'] / version:5.2f}x   (budget 3x)")
    print(f"start to first request        {request * 1000:7.1f} ms")
    print(f"  / one bare httpx2 request             {request / figures['bare request']:5.2f}x   (budget 1.15x)")
    print(f"  beyond python -c pass           {(request - figures['bare']) * 1000:7.1f} ms   (budget 250 ms)")
    print(f"a whole run, processor        {figures['processor'] * 1000:7.1f} ms")
    print(f"  / one bare httpx2 request             {figures['processor'] / figures['bare processor']:5.2f}x")
    for name in ("native", "xml"):
        server = FirstRequest()
        run(folder, server, "-p", "say ok", "--tool-protocol", name)
        tokens = server.size / BYTES_PER_TOKEN
        print(f"first request, {name:<6}         {server.size:7} bytes, about {tokens:,.0f} tokens")


def steps(folder: Path) -> None:
    """Print how long the next request takes, after the end of a reply and after the result of its call.

    The call reads a line of a file. That its result is in the log is what the program says of it on its output.
    """
    (folder / "lines.txt").write_text("".join(f"value_{number} = compute({number})\n" for number in range(STEPS)))
    server = Steps(STEPS)
    process = start_with(
        folder, server, "-p", "read every line", "--max-steps", str(2 * STEPS), "--output-format", "stream-json"
    )
    finished = [time.perf_counter() for line in process.stdout or () if b'"ASSEMBLING_CONTEXT"' in line][1:]
    process.wait()
    if len(finished) < STEPS:
        print(f"the run ended after {len(finished)} calls")
        return
    after_result = [arrived - result for arrived, result in zip(server.arrived[1:], finished, strict=False)]
    print("until the next request, at steps   " + " ".join(f"{step:>10}" for step in AT))
    for what, gaps in (("from the result of a call", after_result), ("from the end of a reply", server.gaps[1:])):
        found = [statistics.median(gaps[max(0, step - 20) : step + 20]) for step in AT]
        shown = " ".join(f"{gap * 1000:7.2f} ms" for gap in found)
        print(f"  {what:<32} {shown}   {found[-1] / found[0]:5.2f}x, {found[1] / found[0]:5.2f}x of step {AT[0]}")
    print("  (budget from the result: 3 ms, at step 1,000 at most 1.3x)")
    print(f"  the last request had {server.size:,} bytes")


def main() -> None:
    """Print the figures."""
    for part in (start, steps):
        with tempfile.TemporaryDirectory() as temporary:
            part(Path(temporary))


if __name__ == "__main__":
    main()
