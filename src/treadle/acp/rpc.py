"""JSON-RPC 2.0 as lines of JSON on two file descriptors: requests of both sides at the same time, and their ends."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import count
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from treadle.door.program import MOST_UNREAD_BYTES, read_lines, write_whole

MOST_LINE_BYTES = 50 * 1024 * 1024
"""Bytes of one message; a longer one is dropped, and answered with an error."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
AUTH_REQUIRED, RESOURCE_NOT_FOUND, REQUEST_CANCELLED = -32000, -32002, -32800

RequestId: TypeAlias = int | str | float | None
_T = TypeVar("_T")


class RpcError(Exception):
    """The error of a request, as its answer: `data` is for programs, `message` for a person."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ClientGoneError(Exception):
    """The other side will not answer any more."""


class AnsweredRequest(Struct, frozen=True):
    """The result of a request, and what is done once it is sent."""

    result: object
    after: Callable[[], None]


class _Failure(Struct, omit_defaults=True):
    code: int
    message: str
    data: Any = None


class _Message(Struct):
    id: RequestId | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET
    error: _Failure | None = None


class _Call(Struct):
    method: str
    params: Any
    id: int | UnsetType = UNSET
    jsonrpc: str = "2.0"


class _Result(Struct):
    id: RequestId
    result: Any
    jsonrpc: str = "2.0"


class _Error(Struct):
    id: RequestId
    error: _Failure
    jsonrpc: str = "2.0"


_decoder = msgspec.json.Decoder(_Message)
_any_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


def read_params(kind: type[_T], params: Raw) -> _T:
    """Read the parameters of a request; raises `RpcError`."""
    try:
        return msgspec.json.decode(params, type=kind, strict=True)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from error


class RpcConnection:
    """One client. Each request of it runs as a task of its own; what is sent keeps its order.

    `request` gives the result of a request, or raises `RpcError`; `notice` takes a notification. What else a request
    raises is given to `trace`, and the client is shown `describe` of it.
    """

    def __init__(
        self,
        request: Callable[[str, Raw], Awaitable[object]],
        notice: Callable[[str, Raw], None],
        describe: Callable[[BaseException], RpcError],
    ) -> None:
        self._request = request
        self._notice = notice
        self._describe = describe
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[Raw]] = {}
        self._running: dict[RequestId, asyncio.Task[object]] = {}
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._queued = self._written = 0  # bytes; each is counted by one thread
        self.gone = self._loop.create_future()
        """Done when the client has closed its side, or reads no more."""

    def start(self, source: int, target: int) -> Thread:
        """Read from one file descriptor and write to the other, each in a thread; gives the one that writes."""
        writer = Thread(target=self._write, args=(target,), name="acp-writer", daemon=True)
        writer.start()
        Thread(target=self._read, args=(source,), name="acp-reader", daemon=True).start()
        return writer

    @property
    def running(self) -> tuple["asyncio.Task[object]", ...]:
        """The requests that are not answered yet."""
        return tuple(self._running.values())

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._send(_Call(method, params))

    async def ask(self, method: str, params: object, kind: type[_T]) -> _T:
        """Send a request and wait for its result; raises `RpcError` or `ClientGoneError`.

        Whoever stops waiting takes the request back.
        """
        if self.gone.done():
            raise ClientGoneError
        number = next(self._numbers)
        answer: asyncio.Future[Raw] = self._loop.create_future()
        self._asked[number] = answer
        self._send(_Call(method, params, number))
        try:
            return read_params(kind, await answer)
        except asyncio.CancelledError:
            self.notify("$/cancel_request", {"requestId": number})
            raise
        finally:
            self._asked.pop(number, None)

    def end(self) -> None:
        """Send what still waits, and then nothing more."""
        self._outgoing.put(None)

    def _read(self, source: int) -> None:
        for line in read_lines(source, MOST_LINE_BYTES):
            self._post(self._line, line)
        self._post(self._lose)

    def _post(self, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def _write(self, target: int) -> None:
        while (line := self._outgoing.get()) is not None:
            try:
                write_whole(target, line)
            except OSError:
                self._post(self._lose)
                return
            self._written += len(line)

    def _lose(self) -> None:
        """Fail what the client was asked: nobody answers it."""
        if not self.gone.done():
            self.gone.set_result(None)
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(ClientGoneError())
                answer.exception()

    def _send(self, message: object) -> None:
        try:
            line = _encoder.encode(message)
        except UnicodeEncodeError:  # the name of a file that is no UTF-8
            builtins = msgspec.to_builtins(message)
            line = json.dumps(builtins, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        self._queued += len(line) + 1
        if self._queued - self._written > MOST_UNREAD_BYTES:
            self._lose()
        elif not self.gone.done() or self._running:
            self._outgoing.put(line + b"\n")

    def _line(self, line: bytes | None) -> None:
        if line is None:
            self._refuse(None, RpcError(PARSE_ERROR, f"Parse error: a line has more than {MOST_LINE_BYTES:,} bytes."))
            return
        if not line.strip():
            return
        try:
            message = _read(line)
        except msgspec.ValidationError as error:
            self._refuse(_id_in(line), RpcError(INVALID_REQUEST, f"Invalid request: {error}"))
        except (ValueError, RecursionError) as error:
            self._refuse(None, RpcError(PARSE_ERROR, f"Parse error: {error}"))
        else:
            self._take(message)

    def _take(self, message: _Message) -> None:
        if not isinstance(message.method, str):
            self._take_answer(message)
        elif message.method == "$/cancel_request":
            self._cancel(message.params)
        elif isinstance(message.id, UnsetType):
            self._notice(message.method, message.params)
        elif message.id in self._running:
            self._refuse(message.id, RpcError(INVALID_REQUEST, "A request with this id is being worked on."))
        else:
            task = asyncio.ensure_future(self._request(message.method, message.params))
            self._running[message.id] = task
            task.add_done_callback(partial(self._answer, message.id))

    def _take_answer(self, message: _Message) -> None:
        answer = self._asked.get(message.id) if isinstance(message.id, int) else None
        if answer is None or answer.done():
            if isinstance(message.result, UnsetType) and message.error is None:
                self._refuse(None, RpcError(INVALID_REQUEST, "Invalid request: it has neither a method nor a result."))
        elif message.error is not None:
            answer.set_exception(RpcError(message.error.code, message.error.message, message.error.data))
        else:
            answer.set_result(Raw(b"null") if isinstance(message.result, UnsetType) else message.result)

    def _cancel(self, params: Raw) -> None:
        with suppress(RpcError):
            task = self._running.get(read_params(_Cancelled, params).requestId)
            if task is not None:
                task.cancel()

    def _answer(self, number: RequestId, task: "asyncio.Task[object]") -> None:
        """Send what came of a request; whatever that is, the client is answered."""
        found = None
        if task.cancelled():
            self._refuse(number, RpcError(REQUEST_CANCELLED, "Request cancelled"))
        elif (error := task.exception()) is not None:
            self._refuse(number, error if isinstance(error, RpcError) else self._describe(error))
        else:
            found = task.result()
            self._send(_Result(number, found.result if isinstance(found, AnsweredRequest) else found))
        self._running.pop(number, None)
        if isinstance(found, AnsweredRequest):
            found.after()

    def _refuse(self, number: RequestId, error: RpcError) -> None:
        self._send(_Error(number, _Failure(error.code, error.message, error.data)))


def _read(line: bytes) -> _Message:
    """Read a message; what is no character in its texts becomes a replacement character, as an editor may hold such.

    Raises `ValueError`, of which errors of msgspec are a kind, and `RecursionError`.
    """
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False)
        return _decoder.decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


class _Cancelled(Struct):
    requestId: RequestId  # noqa: N815 - as the protocol names it


def _id_in(line: bytes) -> RequestId:
    """Give the id of a message that is wrong elsewhere."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _any_decoder.decode(line)
        number = found.get("id") if isinstance(found, dict) else None
        return number if isinstance(number, int | str) else None
    return None
