"""Start-up: `--version`, and the time from the start to the first model request, against bare interpreters."""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

RUNS = 15
EVENTS = (
    '{"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}',
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}',
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}',
    '{"type":"message_stop"}',
)
REPLY = "".join(f"data: {event}\n\n" for event in EVENTS).encode()


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


class FirstRequest(Server):
    """Notes when the first byte of a request arrives, and how large its body is."""

    def __init__(self) -> None:
        self.arrived = 0.0
        self.size = 0
        super().__init__()

    def answer(self, connection: socket.socket) -> None:
        """Read the request whole, and answer it at once."""
        head = connection.recv(65536)
        self.arrived = self.arrived or time.perf_counter()
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        header, _, body = head.partition(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in header.lower().split(b"\r\n") if b"content-length" in line)
        self.size = self.size or size
        while len(body) < size:
            body += connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            + f"content-length: {len(REPLY)}\r\nconnection: close\r\n\r\n".encode()
            + REPLY
        )


def wall(command: list[str]) -> float:
    """Time a command from its start to its end (seconds)."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def to_first_request(folder: Path) -> float:
    """Time Treadle from its start to the arrival of its first request (seconds)."""
    begun, server = send_first(folder)
    return server.arrived - begun


def send_first(folder: Path, *flags: str) -> tuple[float, FirstRequest]:
    """Let Treadle send its first request; gives when it was started, and the server."""
    server = FirstRequest()
    command = [sys.executable, "-m", "treadle", "-p", "say ok", "--model", "anthropic-compatible/x", *flags]
    begun = time.perf_counter()
    subprocess.run(
        [*command, "--base-url", server.url, "-C", str(folder)],
        check=False,  # that the reply calls no tool is a mistake where calls are written as XML
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TREADLE_HOME": str(folder / ".home")},
    )
    return begun, server


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


def main() -> None:
    """Print the figures."""
    python = sys.executable
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        figures = interleaved(
            {
                "bare": lambda: wall([python, "-c", "pass"]),
                "argparse, json": lambda: wall([python, "-c", "import argparse, json"]),
                "httpx2": lambda: wall([python, "-c", "import httpx2"]),
                "bare request": bare_request,
                "version": lambda: wall([python, "-m", "treadle", "--version"]),
                "first request": lambda: to_first_request(folder),
            }
        )
        sizes = {name: send_first(folder, "--tool-protocol", name)[1].size for name in ("native", "xml")}
    version, request = figures["version"], figures["first request"]
    print(f"--version                     {version * 1000:7.1f} ms")
    print(f"  / python -c 'import argparse, json'   {version / figures['argparse, json']:5.2f}x   (budget 1.5x)")
    print(f"start to first request        {request * 1000:7.1f} ms")
    print(f"  / python -c 'import httpx2'           {request / figures['httpx2']:5.2f}x")
    print(f"  / one bare httpx2 request             {request / figures['bare request']:5.2f}x")
    print(f"  beyond python -c pass           {(request - figures['bare']) * 1000:7.1f} ms   (budget 250 ms)")
    for name, size in sizes.items():
        print(f"first request, {name:<6}         {size:7} bytes, about {size / BYTES_PER_TOKEN:,.0f} tokens")


if __name__ == "__main__":
    main()
