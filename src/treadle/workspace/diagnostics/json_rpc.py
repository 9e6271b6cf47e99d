"""JSON-RPC with a program over its pipes, framed as the Language Server Protocol does."""

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.wrapping import UNWRAPPED, Wrapping
from treadle.workspace.diagnostics.tether import tethered

_Pipe = TypeVar("_Pipe")
_MOST_BYTES = 64 * 1024 * 1024
_MOST_UNSOLICITED = 20_000
"""Bytes of one message, and messages between two of ours: what sends more is ended."""

_METHOD_NOT_FOUND = -32601
_GRACE_SECONDS = 1.0
_CHUNK = 1 << 16

RpcHandler = Callable[[str, Any], Any]
"""Takes the method and parameters of what the program sends; its value answers a request, `NotImplemented` refuses."""


class JsonRpc:
    """A running program that is talked to. Made by `connect`."""

    def __init__(self, name: str, process: Process, handler: RpcHandler, on_end: Callable[[], None]) -> None:
        self._name = name
        self._process = process
        self._handler = handler
        self._on_end = on_end
        self._ended = False
        self._unsolicited = 0
        self._why = "has ended"
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.ensure_future(self._read())

    @property
    def alive(self) -> bool:
        """Whether answers can still come."""
        return not self._ended

    @property
    def why_ended(self) -> str:
        """Say that it has ended, with its name."""
        return f"{self._name} {self._why}"

    async def request(self, method: str, params: object) -> Any:
        """Send a request and wait for its answer. Raises `ToolError` for an error or when the program ends."""
        if not self.alive:
            raise ToolError(self.why_ended)
        number = next(self._ids)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._unsolicited = 0
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            return await answer
        finally:
            self._waiting.pop(number, None)

    def notify(self, method: str, params: object) -> None:
        """Send what needs no answer."""
        self._unsolicited = 0
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def close(self) -> None:
        """End the program and what it started: by the end of its input, and by force after a second."""
        with contextlib.suppress(OSError):
            _pipe(self._process.stdin).close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _GRACE_SECONDS)
        self._kill()
        await self._process.wait()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._drain()

    async def _drain(self) -> None:
        """Read what was left unread, as a pipe is given back at its end only; what got away may keep it open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                while await _pipe(self._process.stdout).read(_CHUNK):
                    pass

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _send(self, message: Mapping[str, Any]) -> None:
        body = msgspec.json.encode(message)
        with contextlib.suppress(OSError):
            _pipe(self._process.stdin).write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _read(self) -> None:
        """Read messages until the program ends or makes no sense; then it is ended, and nobody waits for an answer."""
        try:
            while self._unsolicited < _MOST_UNSOLICITED:
                self._unsolicited += 1
                self._take(await self._message())
            self._why = f"sent more than {_MOST_UNSOLICITED:,} messages in a row and was stopped"
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError, msgspec.MsgspecError):
            pass
        finally:
            self._ended = True
            self._kill()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ToolError(self.why_ended))
            self._on_end()

    async def _message(self) -> Any:
        reader = _pipe(self._process.stdout)
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b":", 1) for line in head.strip().split(b"\r\n"))
        size = int(fields.get(b"content-length", b"-1"))
        if not 0 <= size <= _MOST_BYTES:
            raise ValueError(size)
        return msgspec.json.decode(await reader.readexactly(size))

    def _take(self, message: Any) -> None:
        match message:
            case {"method": str(method), "id": number}:
                self._answer(number, method, message.get("params"))
            case {"method": str(method)}:
                self._handler(method, message.get("params"))
            case {"id": int(number), "error": error}:
                self._settle(number, ToolError(f"{self._name} refused: {_error_text(error)}"))
            case {"id": int(number)}:
                self._settle(number, message.get("result"))
            case _:
                raise ValueError(message)

    def _answer(self, number: Any, method: str, params: Any) -> None:
        value = self._handler(method, params)
        if value is NotImplemented:
            error = {"code": _METHOD_NOT_FOUND, "message": f"{method} is not known here"}
            self._send({"jsonrpc": "2.0", "id": number, "error": error})
        else:
            self._send({"jsonrpc": "2.0", "id": number, "result": value})

    def _settle(self, number: int, outcome: Any) -> None:
        answer = self._waiting.get(number)
        if answer is None or answer.done():
            return
        if isinstance(outcome, ToolError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is started: its name for messages, its command, its directory and its whole environment.

    `wrapping` may put a sandbox around it.
    """

    name: str
    argv: Sequence[str]
    directory: str
    variables: Mapping[str, str]
    wrapping: Wrapping = UNWRAPPED


async def connect(program: Program, handler: RpcHandler, on_end: Callable[[], None]) -> JsonRpc:
    """Start a program; `on_end` is told when no answers can come any more. Raises `ToolError`."""
    found = shutil.which(program.argv[0], path=program.variables.get("PATH"))
    if found is None:
        raise ToolError(f"{program.name} could not be started ({program.argv[0]} is missing or cannot be run)")
    try:
        process = await asyncio.create_subprocess_exec(
            *tethered(program.wrapping.around((found, *program.argv[1:]))),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=program.directory,
            env=dict(program.variables),
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"{program.name} could not be started ({error.strerror})") from error
    return JsonRpc(program.name, process, handler, on_end)


def _pipe(pipe: _Pipe | None) -> _Pipe:
    if pipe is None:
        raise AssertionError("the program is always started with pipes")
    return pipe


def _error_text(error: Any) -> str:
    return str(error.get("message", error) if isinstance(error, dict) else error)
