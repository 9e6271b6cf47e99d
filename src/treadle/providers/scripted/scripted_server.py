"""The scripted model as an HTTP server on loopback, in the wire formats of real providers."""

import asyncio
import re
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

import h11
import msgspec
from msgspec import Struct

from treadle.protocol.models import StreamFailure, StreamStop
from treadle.providers.scripted.anthropic_format import AnthropicFormat
from treadle.providers.scripted.bedrock_format import BedrockFormat
from treadle.providers.scripted.billing import Billing, TokenCount
from treadle.providers.scripted.chat_format import ChatFormat
from treadle.providers.scripted.client_connection import Connection, Request
from treadle.providers.scripted.gemini_format import GeminiFormat
from treadle.providers.scripted.issued_thinking import IssuedThinking
from treadle.providers.scripted.player import Disconnect, Pause, Performance, Player, Plays, PlayStep
from treadle.providers.scripted.responses_format import ResponsesFormat
from treadle.providers.scripted.script import Refuse, Script
from treadle.providers.scripted.wire_format import ReplyWriter, WireFormat
from treadle.providers.wire import decode_json, dump

WIRE_FORMATS: tuple[tuple[re.Pattern[str], WireFormat], ...] = (
    (re.compile(r"/v1/messages"), AnthropicFormat()),
    (re.compile(r"/v1/chat/completions"), ChatFormat()),
    (re.compile(r"/v1/responses"), ResponsesFormat()),
    (re.compile(r"/v1beta/models/(?P<model>[^/]+):streamGenerateContent"), GeminiFormat()),
    (re.compile(r"/model/(?P<model>[^/]+)/converse-stream"), BedrockFormat()),
)
"""Which format a path speaks; two of them name the model, and that it streams, in the path."""

JSON = {"content-type": "application/json"}


class Received(Struct, frozen=True, kw_only=True):
    """One request as it came; `headers` have lower-case names, `body` is empty where it was no JSON object."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class ScriptedServer:
    """`async with ScriptedServer(script) as server:` serves at `server.base_url` until the block ends.

    What plays in the place of a script may answer each request by what is in it.
    `split` sends the body in pieces of so many bytes (0: as it is written). With `api_key` set, other keys are refused.
    With `tokens`, which counts those of a text, each reply has the usage of its request and its words, and `billing`
    what a provider would bill, also for a reply that was cut. With `vendor`, requests are refused as that provider does
    (`mistral`), without it as the makers of the APIs do. `model` is its name, `requests` is what came,
    `lists` the questions for its models, `violations` what was wrong, `connections` and `hang_ups` how many clients
    came, and left before the end.
    """

    def __init__(
        self,
        script: Script | Plays,
        *,
        port: int = 0,
        split: int = 0,
        api_key: str = "",
        tokens: TokenCount | None = None,
        vendor: str = "",
    ) -> None:
        self.requests: list[Received] = []
        self.lists: list[Received] = []
        self.violations: list[str] = []
        self.hang_ups = 0
        self.connections = 0
        self.base_url = ""
        self.billing = None if tokens is None else Billing(tokens)
        self._player: Plays = Player(script) if isinstance(script, Script) else script
        self.model = self._player.model
        self._port = port
        self._split = split
        self._api_key = api_key
        self._vendor = vendor
        self._issued = IssuedThinking()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.base_url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Own a connection: its task ends with the server at the latest."""
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = Connection(reader, writer, self._split)
        try:
            while (request := await connection.receive()) is not None:
                await self._answer(connection, request)
        except (OSError, h11.ProtocolError):
            self.hang_ups += 1
        finally:
            connection.abort()

    async def _answer(self, connection: Connection, request: Request) -> None:
        body = _json_object(request.body)
        path = request.target.partition("?")[0]
        received = Received(method=request.method, path=path, headers=request.headers, body=body)
        if request.method == "GET" and path == "/v1/models":
            self.lists.append(received)
            models = [{"id": self.model, "object": "model", "owned_by": "treadle", "type": "model"}]
            await connection.respond(200, JSON, dump({"object": "list", "data": models}))
            return
        self.requests.append(received)
        found = next(((match, wire) for pattern, wire in WIRE_FORMATS if (match := pattern.fullmatch(path))), None)
        if found is None or request.method != "POST":
            await connection.respond(404, JSON, dump({"error": {"message": f"there is no {path} here"}}))
            return
        match, wire = found
        if match.groupdict():
            body = {**body, "model": unquote(match["model"]), "stream": True}
        refusal = self._check(wire, request.headers, body)
        if refusal is not None:
            await _refuse(connection, wire, refusal)
            return
        performance = self._player.play(wire.see(body))
        if performance.problem:
            self.violations.append(performance.problem)
        await self._perform(connection, wire, body, performance)

    def _check(self, wire: WireFormat, headers: Mapping[str, str], body: Mapping[str, Any]) -> Refuse | None:
        if self._api_key and not any(value.removeprefix("Bearer ") == self._api_key for value in headers.values()):
            return Refuse(status=401, message="invalid api key")
        missing = [f"{name}: header is required" for name in wire.required_headers if name not in headers]
        broken = [*wire.book.broken(body, self._vendor), *self._issued.broken(body)]
        problems = [*missing, *(one.said for one in broken)]
        self.violations += problems
        if not problems:
            return None
        status, code = (400, "") if missing else (broken[0].rule.status, broken[0].rule.code)
        return Refuse(status=status, message="; ".join(problems), code=code)

    async def _perform(
        self, connection: Connection, wire: WireFormat, body: Mapping[str, Any], performance: Performance
    ) -> None:
        if performance.refusal is not None:
            for step in performance.steps:
                if isinstance(step, Pause):
                    await connection.pause(step.seconds)
            await _refuse(connection, wire, performance.refusal)
            return
        self._issued.note(performance.steps)
        await connection.start(200, {"content-type": wire.content_type, "cache-control": "no-cache"})
        sent: list[PlayStep] = []
        if self.billing is not None:
            performance = self.billing.counted(body, performance)
        try:
            await _play(connection, wire.writer(body, performance), performance, sent)
        finally:
            if self.billing is not None:
                self.billing.bill(performance, sent)


async def _play(connection: Connection, writer: ReplyWriter, performance: Performance, sent: list[PlayStep]) -> None:
    """Write the steps of a reply until it ends, one way or the other; each is added to `sent` before it leaves."""
    room: int | None = None
    await connection.send(writer.begin())
    for step in performance.steps:
        match step:
            case Pause():
                await connection.pause(step.seconds)
            case Disconnect():
                room = step.after_bytes
            case _:
                sent.append(step)
                written = writer.write(step)
                await connection.send(written if room is None else written[:room])
                room = None if room is None else room - len(written)
        if room is not None and room <= 0:
            connection.abort()
            return
        if isinstance(step, StreamStop | StreamFailure):
            break
    await connection.finish()


async def _refuse(connection: Connection, wire: WireFormat, refusal: Refuse) -> None:
    body = wire.refusal(refusal) if refusal.body is None else refusal.body.encode()
    headers = JSON | {name.lower(): value for name, value in refusal.headers.items()}
    await connection.respond(refusal.status, headers, body)


def _json_object(raw: bytes) -> Mapping[str, Any]:
    """The body of a request; anything but a JSON object counts as an empty one."""
    try:
        value = decode_json(raw)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


async def serve(script: Script, *, port: int, ready: Callable[[str], None]) -> None:
    """Serve until cancelled; `ready` is called with the base URL. Raises `OSError` where the port is taken."""
    async with ScriptedServer(script, port=port) as server:
        ready(server.base_url)
        await asyncio.Event().wait()
