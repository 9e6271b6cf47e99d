"""A host on standard input and output: one JSON object a line each way, and requests with their answers.

Reading and writing have threads of their own, so that a host that does not read stops nothing but its own lines.
"""

import asyncio
import json
import queue
import threading
import uuid
from collections.abc import AsyncIterator
from typing import Any

from treadle.door.program import MOST_UNREAD_BYTES, read_lines, write_whole
from treadle.protocol.patterns import regex

LONGEST_FRAME = 1_000_000
"""Characters of a line that goes out: hosts refuse one of more than 1,048,576."""

_LONGEST_READ = 64 * 1024 * 1024
_LEAST_CUT = 2_000
_DRAIN_SECONDS = 5.0

_TOO_MUCH = "It has more characters than a line may have, or is nested too deep."
_ENDS_LINES = regex("[\ud800-\udfff\x85\u2028\u2029]")
"""What some hosts take for the end of a line, and halves of characters."""

Frame = dict[str, Any]


class HostError(Exception):
    """The host did not do what was wanted of it: it has gone, or it says why."""


class Channel:
    """The connection to a host. `silent`: it says nothing any more; `gone` is set when it does not listen, either."""

    def __init__(self, source: int | None, target: int) -> None:
        """Takes file descriptors. Without a `source` the host says nothing: it has gone, but still listens."""
        self._source = source
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._in: asyncio.Queue[Frame | str | None] = asyncio.Queue()
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued = self._written = 0  # bytes; each is counted by one thread
        self._waiting: dict[str, asyncio.Future[Frame]] = {}
        self.silent = source is None
        self.gone = asyncio.Event()
        self._writer = threading.Thread(target=self._write_lines, name="host writer", daemon=True)

    def start(self) -> None:
        """Begin to read and to write."""
        self._writer.start()
        if self._source is not None:
            threading.Thread(target=self._read_lines, args=(self._source,), name="host reader", daemon=True).start()

    async def frames(self) -> AsyncIterator[Frame | str]:
        """Give what the host says until it has no more to say; of a line that is no frame, what is wrong with it."""
        if self._source is None:
            return
        while (frame := await self._in.get()) is not None:
            yield frame

    def send(self, frame: Frame) -> None:
        """Send a frame, cut visibly where it is longer than a line may be."""
        self._put(frame_line(frame))

    def _put(self, line: str) -> None:
        data = f"{line}\n".encode()
        self._queued += len(data)
        if self._queued - self._written > MOST_UNREAD_BYTES:
            self.gone.set()
        if not self.gone.is_set():
            self._out.put(data)

    async def ask(self, request: Frame) -> Frame:
        """Ask the host for something; raises `HostError`. Whoever stops waiting takes the request back."""
        if self.silent:
            raise HostError("The host cannot answer any more.")
        request_id = uuid.uuid4().hex
        line = _whole_line({"type": "control_request", "request_id": request_id, "request": request})
        if not line:
            raise HostError("It is too large to be shown to whoever decides about it.")
        answer = self._waiting[request_id] = self._loop.create_future()
        self._put(line)
        try:
            response = await answer
        except asyncio.CancelledError:
            self.send({"type": "control_cancel_request", "request_id": request_id})
            raise
        finally:
            self._waiting.pop(request_id, None)
        given = response.get("response")
        if response.get("subtype") != "success":
            raise HostError(str(response.get("error") or "The host failed."))
        if given is not None and not isinstance(given, dict):
            raise HostError("The host's response is not an object.")
        return given or {}

    def answer(self, request_id: str, response: Frame | None = None, *, error: str = "") -> None:
        """Answer a request of the host."""
        said: Frame = {"subtype": "error", "request_id": request_id, "error": error}
        if not error:
            said = {"subtype": "success", "request_id": request_id, "response": response or {}}
        self.send({"type": "control_response", "response": said})

    async def close(self) -> None:
        """Write what is still to be written; a host that does not read it is not waited for."""
        self._out.put(None)
        await asyncio.to_thread(self._writer.join, _DRAIN_SECONDS)

    def _write_lines(self) -> None:
        try:
            while (data := self._out.get()) is not None:
                write_whole(self._target, data)
                self._written += len(data)
        except OSError:
            self._call(self.gone.set)

    def _read_lines(self, source: int) -> None:
        for line in read_lines(source, _LONGEST_READ):
            if line is None:
                self._call(self._take, f"it is longer than {_LONGEST_READ:,} bytes")
            elif line.strip():
                self._call(self._take, _frame_of(line))
        self._call(self._end)

    def _call(self, function: Any, *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the program ends
            return

    def _take(self, frame: Frame | str) -> None:
        """Bring an answer to whoever waits for it, at once; the rest waits its turn."""
        response = frame.get("response") if isinstance(frame, dict) else None
        if isinstance(frame, dict) and frame.get("type") == "control_response" and isinstance(response, dict):
            answer = self._waiting.get(str(response.get("request_id")))
            if answer is not None and not answer.done():
                answer.set_result(response)
            return
        self._in.put_nowait(frame)

    def _end(self) -> None:
        self.silent = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(HostError("The host closed the connection."))
        self._in.put_nowait(None)


def _frame_of(line: bytes) -> Frame | str:
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON ({error})"
    return frame if isinstance(frame, dict) else "it is not a JSON object"


def frame_line(frame: Frame) -> str:
    """Write a frame as a line; what is too long is cut, the longest texts first, and says so."""
    most = LONGEST_FRAME
    line = _whole_line(frame)
    while not line and most > _LEAST_CUT:
        most //= 2
        line = _whole_line(frame, most)
    said: Frame = {name: frame[name] for name in ("type", "subtype", "uuid", "session_id") if name in frame}
    return line or _as_line({**said, "left_out": _TOO_MUCH})


def _whole_line(frame: Frame, most: int = 0) -> str:
    """Write a frame as a line, with texts of `most` characters where it says so; empty where that is too long."""
    try:
        line = _as_line(_cut(frame, most) if most else frame)
    except RecursionError:
        return ""
    return line if len(line) <= LONGEST_FRAME else ""


def _as_line(frame: Frame) -> str:
    """Write a frame as JSON that each host reads as one line; half a character, which no encoding takes, as well."""
    line = json.dumps(frame, ensure_ascii=False)
    return _ENDS_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _cut(value: Any, most: int) -> Any:
    match value:
        case str() if len(value) > most:
            return f"{value[:most]}\n[{len(value) - most} more characters are left out]"
        case {"type": "image", "source": {"data": str() as data}} if len(data) > most:
            return {"type": "text", "text": f"[an image of {len(data)} characters is left out]"}
        case dict():
            return {name: _cut(one, most) for name, one in value.items()}
        case list():
            return [_cut(one, most) for one in value]
        case _:
            return value
