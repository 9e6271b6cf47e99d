"""The gap between two steps beside that of other agents on the same scripted server, where they are installed.

Each program reads a line of a file at each step, with the tool that it has for it: `codex` has a shell for it, in
which the line costs a process. The programs take turns, so that a drifting machine favours none.
"""

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.startup import EVENTS, processor

ROUNDS = 5
LENGTHS = (50, 300)
LONGEST = 600.0
"""Seconds after which a run has gone wrong."""

Call = tuple[str, dict[str, Any]]
"""The name of a tool, and its arguments."""


class Scripted:
    """A model's server that asks for a call so many times, then ends the turn; it serves every connection at once.

    Requests without tools are answered too, and not counted: some programs ask for a title beside the work.
    """

    def __init__(self, steps: int, call: Callable[[int], Call]) -> None:
        self._steps = steps
        self._call = call
        self._number = 0
        self._sent = 0.0
        self._lock = threading.Lock()
        self.gaps: list[float] = []
        self.size = 0
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            for path, body in requests(connection):
                whole = time.perf_counter()
                if not path.partition("?")[0].endswith(("/messages", "/responses")):
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}")
                    continue
                responses = path.partition("?")[0].endswith("/responses")
                counted = b'"tools":[{' in body or b'"tools": [{' in body
                call = self._next(whole, len(body)) if counted else None
                events = responses_events(self._number, call) if responses else messages_events(self._number, call)
                reply = stream(events)
                if counted:
                    self._sent = time.perf_counter()  # afterwards the program may long be at work
                connection.sendall(reply)

    def _next(self, whole: float, size: int) -> Call | None:
        """Take a step: give its call, None at the end."""
        with self._lock:
            if self._sent:
                self.gaps.append(whole - self._sent)
            self.size = size
            self._number += 1
            return self._call(self._number) if self._number <= self._steps else None


def requests(connection: socket.socket) -> Iterator[tuple[str, bytes]]:
    """Read the requests of a connection, each whole: its path and its body."""
    waiting = b""
    while True:
        while b"\r\n\r\n" not in waiting:
            try:
                piece = connection.recv(1 << 18)
            except OSError:
                return
            if not piece:
                return
            waiting += piece
        head, _, rest = waiting.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
        path = head.split(b" ", 2)[1].decode()
        pieces, size, missing = [rest], len(rest), int(fields.get(b"content-length", b"0"))
        while size < missing:
            pieces.append(connection.recv(1 << 18))
            size += len(pieces[-1])
        whole = b"".join(pieces)
        body, waiting = whole[:missing], whole[missing:]
        yield path, body


def stream(events: Sequence[str]) -> bytes:
    """Write a reply as a stream of events in chunks, whole at once."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    pieces = [f"event: {json.loads(event)['type']}\ndata: {event}\n\n".encode() for event in events]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def messages_events(number: int, call: Call | None) -> tuple[str, ...]:
    """Write a reply of the Messages API that makes a call, or ends."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "x", "content": []}
    start = {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    if call is None:
        return (json.dumps(start), *EVENTS[1:])
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    return (
        json.dumps(start),
        json.dumps({"type": "content_block_start", "index": 0, "content_block": block}),
        json.dumps({"type": "content_block_delta", "index": 0, "delta": delta}),
        EVENTS[3],
        EVENTS[4].replace("end_turn", "tool_use"),
        EVENTS[5],
    )


def responses_events(number: int, call: Call | None) -> tuple[str, ...]:
    """Write a reply of the Responses API that makes a call, or ends."""
    item: dict[str, Any] = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "ok"}],
    }
    if call is not None:
        name, arguments = call
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
        item["arguments"] = json.dumps(arguments)
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None}
    answer = {"id": f"resp_{number}", "object": "response", "output": [], "usage": {**usage, "total_tokens": 2}}
    return (
        json.dumps({"type": "response.created", "response": answer}),
        json.dumps({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json.dumps({"type": "response.completed", "response": answer}),
    )


@dataclass(frozen=True)
class Agent:
    """A program that works without a person: its command and variables for a folder and a server, and its read."""

    name: str
    program: str
    command: Callable[[Path, str], list[str]]
    variables: Callable[[Path, str], Mapping[str, str]]
    call: Callable[[int, Path], Call]
    version: tuple[str, ...] = ("--version",)


TASK = "read every line of lines.txt"


def _treadle(_: Path, url: str) -> list[str]:
    flags = ["--model", "anthropic-compatible/x", "--base-url", url, "--max-steps", "2000"]
    return [sys.executable, "-m", "treadle", "-p", TASK, *flags]


def _pi(home: Path, url: str) -> list[str]:
    state = home / ".pi"
    state.mkdir(exist_ok=True)
    model = {"id": "x", "contextWindow": 1_000_000, "maxTokens": 8_000}
    provider = {"baseUrl": url, "api": "anthropic-messages", "apiKey": "none", "models": [model]}
    (state / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
    return [_found("pi"), "--provider", "scripted", "--model", "x", "-p", TASK]


def _claude(_: Path, __: str) -> list[str]:
    return [_found("claude"), "-p", TASK, "--model", "x", "--allowedTools", "Read"]


def _codex(_: Path, url: str) -> list[str]:
    provider = f'{{name="s", base_url="{url}", wire_api="responses", env_key="SCRIPTED_KEY"}}'
    chosen = ["-c", f"model_providers.s={provider}", "-c", 'model_provider="s"', "-m", "x"]
    return [_found("codex"), "exec", *chosen, "-s", "danger-full-access", "--skip-git-repo-check", TASK]


AGENTS = (
    Agent(
        name="treadle",
        program=sys.executable,
        command=_treadle,
        variables=lambda home, _: {"TREADLE_HOME": str(home / ".treadle")},
        call=lambda number, _: ("read_file", {"path": "lines.txt", "start_line": number, "end_line": number}),
        version=("-m", "treadle", "--version"),
    ),
    Agent(
        name="pi",
        program="pi",
        command=_pi,
        variables=lambda home, _: {"PI_CODING_AGENT_DIR": str(home / ".pi"), "PI_OFFLINE": "1"},
        call=lambda number, folder: ("read", {"path": str(folder / "lines.txt"), "offset": number, "limit": 1}),
    ),
    Agent(
        name="claude",
        program="claude",
        command=_claude,
        variables=lambda _, url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        call=lambda number, folder: ("Read", {"file_path": str(folder / "lines.txt"), "offset": number, "limit": 1}),
    ),
    Agent(
        name="codex",
        program="codex",
        command=_codex,
        variables=lambda _, __: {"SCRIPTED_KEY": "none"},
        call=lambda number, _: ("exec_command", {"cmd": f"sed -n {number}p lines.txt"}),
    ),
)


def _found(program: str) -> str:
    return shutil.which(program) or program


@dataclass
class Seen:
    """What the runs of one program with so many steps took: the gaps of all, and each one's processor time and time."""

    gaps: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    size: int = 0


class WentWrongError(Exception):
    """A run that did not take all of its steps."""


def run(agent: Agent, steps: int, seen: Seen) -> None:
    """Let a program take so many steps in a folder of its own. Raises `WentWrongError`."""
    with tempfile.TemporaryDirectory() as temporary:
        home, folder = Path(temporary).resolve() / "home", Path(temporary).resolve() / "work"
        home.mkdir()
        folder.mkdir()
        (folder / "lines.txt").write_text("".join(f"value_{number} = compute({number})\n" for number in range(400)))
        server = Scripted(steps, lambda number: agent.call(number, folder))
        # Nothing of the user's own is read: no settings, no keys.
        kept = {name: os.environ[name] for name in ("PATH", "ANEW", "LANG", "VIRTUAL_ENV") if name in os.environ}
        variables = {**kept, "HOME": str(home), **agent.variables(home, server.url)}
        command = agent.command(home, server.url)
        said: list[str] = []

        def work() -> None:
            done = subprocess.run(
                command,
                env=variables,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST,
            )
            said.append(f"{done.stdout[-300:]}{done.stderr[-300:]}")

        begun = time.perf_counter()
        seen.used.append(processor(work))
        seen.whole.append(time.perf_counter() - begun)
        server.close()
        if len(server.gaps) < steps:
            raise WentWrongError(f"{len(server.gaps)} of {steps} steps: {' '.join(said[0].split())[-300:]}")
        seen.gaps += server.gaps
        seen.size = server.size


def installed() -> tuple[list[Agent], dict[str, str]]:
    """Find the programs that take part: those that take two steps; and why the others do not."""
    found: list[Agent] = []
    left: dict[str, str] = {}
    for agent in AGENTS:
        if shutil.which(agent.program) is None:
            left[agent.name] = "not installed"
            continue
        try:
            run(agent, 2, Seen())
        except (WentWrongError, subprocess.TimeoutExpired, OSError) as error:
            left[agent.name] = str(error)
        else:
            found.append(agent)
    return found, left


def version_of(agent: Agent) -> str:
    """Tell the version of a program."""
    command = [_found(agent.program), *agent.version]
    said = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return (said.stdout + said.stderr).strip().partition("\n")[0]


def main() -> None:
    """Print the figures."""
    found, left = installed()
    for name, reason in left.items():
        print(f"{name:<8} left out: {reason}")
    for agent in found:
        print(f"{agent.name:<8} {version_of(agent)}")
    seen = {(agent.name, steps): Seen() for agent in found for steps in LENGTHS}
    for _ in range(ROUNDS):
        for steps in LENGTHS:
            for agent in found:
                run(agent, steps, seen[agent.name, steps])
    print(f"from the end of a reply to the whole next request, medians of all steps of {ROUNDS} runs each")
    for steps in LENGTHS:
        for agent in found:
            one = seen[agent.name, steps]
            gap = statistics.median(one.gaps)
            against = "".join(
                f"   {gap / statistics.median(seen[other.name, steps].gaps):5.2f}x of {other.name}"
                for other in found
                if other.name == "pi" != agent.name
            )
            took, used = statistics.median(one.whole), statistics.median(one.used)
            print(
                f"  {steps:>4} steps  {agent.name:<8} {gap * 1000:7.2f} ms{against or ' ' * 15}   "
                f"whole run {took:6.2f} s, processor {used:6.2f} s, last request {one.size:>8,} bytes"
            )
    few, many = LENGTHS
    print("processor time of a step, what a longer run takes more")
    for agent in found:
        more = statistics.median(seen[agent.name, many].used) - statistics.median(seen[agent.name, few].used)
        print(f"  {agent.name:<8} {more / (many - few) * 1000:7.2f} ms")


if __name__ == "__main__":
    main()
