"""A client on raw JSON-RPC that checks every message of the agent against the published schema."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from acp import schema
from pydantic import TypeAdapter

from tests.e2e.process import Program
from tests.e2e.running import PATIENCE, model
from tests.ready import treadle
from treadle.providers.scripted.scripted_server import ScriptedServer

RESULTS: dict[str, Any] = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "logout": schema.LogoutResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/close": schema.CloseSessionResponse,
    "session/delete": schema.DeleteSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
    "_session/steering": dict[str, Any],
    "_treadle/inbox": dict[str, Any],
    "_treadle/checkpoints": dict[str, Any],
    "_treadle/restore": dict[str, Any],
}
REQUESTS: dict[str, Any] = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
    "fs/write_text_file": schema.WriteTextFileRequest,
    "elicitation/create": schema.CreateElicitationRequest,
    "terminal/create": schema.CreateTerminalRequest,
    "terminal/release": schema.ReleaseTerminalRequest,
    "terminal/wait_for_exit": schema.WaitForTerminalExitRequest,
    "$/cancel_request": schema.CancelRequestNotification,
}
ALL: dict[str, Any] = {"fs": {"readTextFile": True, "writeTextFile": True}}


class RefusedByAgentError(Exception):
    """The error of a request."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.message: str = error["message"]


def checked(kind: Any, value: Any) -> Any:
    """Check a value against the schema: nothing is missing, and nothing is in it that the schema has not."""
    TypeAdapter(kind).validate_python(value)
    if isinstance(kind, type) and hasattr(kind, "model_validate"):
        again = kind.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert unknown(value, again) == [], (kind, value)
    return value


def unknown(sent: Any, read: Any, place: str = "") -> list[str]:
    """Each key that a schema dropped from what was sent."""
    match sent, read:
        case dict(), dict():
            missing = [f"{place}.{key}" for key in sent if key not in read]
            return missing + [
                one for key in sent if key in read for one in unknown(sent[key], read[key], f"{place}.{key}")
            ]
        case list(), list():
            pairs = zip(sent, read, strict=True)
            return [one for index, (a, b) in enumerate(pairs) for one in unknown(a, b, f"{place}[{index}]")]
        case _:
            return []


Responder = Callable[[dict[str, Any]], Any]


@dataclass
class Editor:
    """The client: `answers` gives the result of what the agent asks, by method; without one it is an error."""

    process: asyncio.subprocess.Process
    answers: dict[str, Responder] = field(default_factory=dict)
    updates: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))
    waiting: dict[int, tuple[str, asyncio.Future[Any]]] = field(default_factory=dict)
    problems: list[BaseException] = field(default_factory=list)

    async def read(self) -> None:
        assert self.process.stdout is not None
        try:
            async for line in self.process.stdout:
                message = json.loads(line)
                self.raw.append(message)
                await self._take(message)
        except Exception as error:
            self.problems.append(error)
            raise
        finally:
            for _, future in self.waiting.values():
                if not future.done():
                    future.set_exception(ConnectionError("the agent has ended"))

    async def _take(self, message: dict[str, Any]) -> None:
        assert message["jsonrpc"] == "2.0"
        method = message.get("method")
        if method is None:
            found = self.waiting.pop(message["id"], None) if message["id"] is not None else None
            if found is None:
                return
            name, future = found
            if "error" in message:
                future.set_exception(RefusedByAgentError(message["error"]))
            else:
                future.set_result(checked(RESULTS[name], message["result"]))
            return
        params = checked(REQUESTS[method], message["params"])
        if method == "session/update":
            self.updates.append({"sessionId": params["sessionId"], **params["update"]})
            return
        self.asked.append((method, params))
        if "id" in message:
            await self._answer(message["id"], method, params)

    async def _answer(self, number: int, method: str, params: dict[str, Any]) -> None:
        respond = self.answers.get(method)
        if respond is None:
            self.send({"jsonrpc": "2.0", "id": number, "error": {"code": -32603, "message": f"no {method} here"}})
            return
        try:
            result = respond(params)
        except RefusedByAgentError as error:
            self.send({"jsonrpc": "2.0", "id": number, "error": {"code": error.code, "message": error.message}})
            return
        if asyncio.isfuture(result):
            result.add_done_callback(
                lambda done: (
                    None if done.cancelled() else self.send({"jsonrpc": "2.0", "id": number, "result": done.result()})
                )
            )
        else:
            self.send({"jsonrpc": "2.0", "id": number, "result": result})

    def send(self, message: Any) -> None:
        self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    def begin(self, method: str, **params: Any) -> "asyncio.Future[Any]":
        """Send a request; its result comes later."""
        number = next(self.numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting[number] = (method, future)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return future

    async def call(self, method: str, **params: Any) -> Any:
        """Send a request and wait for its result."""
        async with asyncio.timeout(PATIENCE):
            return await self.begin(method, **params)

    def tell(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until something is true of what came."""
        async with asyncio.timeout(PATIENCE):
            while not (found := condition()):
                assert not self.problems
                await asyncio.sleep(0.01)
            return found

    async def initialize(self, **capabilities: Any) -> Any:
        return await self.call("initialize", protocolVersion=1, clientCapabilities=capabilities)

    async def new(self, folder: Path, **params: Any) -> str:
        opened = await self.call("session/new", cwd=str(folder), mcpServers=[], **params)
        session: str = opened["sessionId"]
        return session

    async def prompt(self, session: str, text: str = "Work.", **params: Any) -> Any:
        return await self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}], **params)

    def of(self, kind: str, session: str = "") -> list[dict[str, Any]]:
        """The updates of one kind."""
        found = [update for update in self.updates if update["sessionUpdate"] == kind]
        return [update for update in found if not session or update["sessionId"] == session]

    def said(self, kind: str = "agent_message_chunk", session: str = "") -> str:
        """The text of the messages."""
        return "".join(update["content"]["text"] for update in self.of(kind, session))

    async def end(self) -> int:
        """Close the client's side, and wait for the agent's end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


def choosing(option: str) -> Responder:
    """Choose an option by its id, or else the first of that kind."""

    def respond(params: dict[str, Any]) -> Any:
        options = params["options"]
        found = [one for one in options if one["optionId"] == option] or [
            one for one in options if one["kind"] == option
        ]
        return {"outcome": {"outcome": "selected", "optionId": found[0]["optionId"]}}

    return respond


def diff(path: Path | str, new: str, old: str | None = None, *, line: int = 1) -> dict[str, Any]:
    """A changed place as the agent shows it, which begins at the same line before and after."""
    before = {} if old is None else {"oldText": old}
    lines = {"treadle": {"oldLine": line, "newLine": line}}
    return {"type": "diff", "path": str(path), **before, "newText": new, "_meta": lines}


@asynccontextmanager
async def editor(home: Path, *flags: str, cwd: Path | None = None, **extra: str) -> AsyncIterator[Editor]:
    """Start the agent with a client; it is killed with the block at the latest."""
    program = Program(home, extra)
    process = await asyncio.create_subprocess_exec(
        *treadle(),
        "acp",
        *flags,
        env=program.environment,
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**26,
    )
    client = Editor(process)
    reading = asyncio.create_task(client.read())
    try:
        yield client
        assert not client.problems
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await asyncio.gather(reading, return_exceptions=True)
        process._transport.close()  # type: ignore[attr-defined]  # its other pipes may end after the loop


@asynccontextmanager
async def working(
    tmp_path: Path, server: ScriptedServer, *flags: str, **capabilities: Any
) -> AsyncIterator[tuple[Editor, str, Path]]:
    """Start the agent on a scripted model, with a session in the folder `ws`."""
    folder = tmp_path / "ws"
    folder.mkdir(exist_ok=True)
    async with editor(tmp_path / "home", *model(server), *flags) as client:
        client.answers["session/request_permission"] = choosing("allow_once")
        await client.initialize(**capabilities)
        session = await client.new(folder)
        yield client, session, folder
