"""The agent as a program: it answers `initialize` with what is loaded by then, and loads the rest after that."""

import asyncio
import os
import signal
from collections.abc import Mapping
from threading import Thread
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from treadle import __version__
from treadle.acp.rpc import INTERNAL_ERROR, RpcConnection, RpcError, read_params
from treadle.acp.shapes import AuthMethod, ClientCapabilities, Implementation, InitializeAnswer, InitializeRequest
from treadle.door.program import own_stdout

if TYPE_CHECKING:
    from treadle.acp.acp_agent import EditorAgent

PROTOCOL_VERSION = 1

_LAST_ANSWERS = 20.0
"""Seconds that requests have to end after the client has closed its side."""

_CAPABILITIES: dict[str, Any] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {
        "list": {},
        "delete": {},
        "additionalDirectories": {},
        "fork": {},
        "resume": {},
        "close": {},
    },
    "auth": {"logout": {}},
    "_meta": {
        "steering": {"supported": True},
        "treadle": {"edited": True, "inbox": True, "checkpoints": True, "restore": True},
    },
}


def serve_editor(flags: Mapping[str, Any], *, trusted: bool) -> int:
    """Work for the client on the standard streams until it is gone; returns the exit code.

    `flags` are the settings that the command line gives every session; it may say that all folders are `trusted`.
    """
    return asyncio.run(_serve(flags, trusted, (os.dup(0), own_stdout())))


async def _serve(flags: Mapping[str, Any], trusted: bool, streams: tuple[int, int]) -> int:  # noqa: FBT001
    front = _Front(flags, trusted)
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(number: signal.Signals) -> None:
        if not ended.done():
            ended.set_result(128 + number)

    heeded = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heeded.append(signal.SIGHUP)
    for number in heeded:
        loop.add_signal_handler(number, end, number)
    writer = front.connection.start(*streams)
    await asyncio.wait((front.connection.gone, ended), return_when=asyncio.FIRST_COMPLETED)
    await front.close()
    front.connection.end()
    await asyncio.to_thread(writer.join, _LAST_ANSWERS)
    return ended.result() if ended.done() else 0


class _Front:
    """Takes what comes before anything else is loaded, and passes the rest on."""

    def __init__(self, flags: Mapping[str, Any], trusted: bool) -> None:  # noqa: FBT001 - of this module only
        self._flags = flags
        self._trusted = trusted
        self._capabilities = ClientCapabilities()
        self._agent: EditorAgent | None = None
        self._loading: asyncio.Task[type[EditorAgent]] | None = None
        self.connection = RpcConnection(self._request, self._notice, self._describe)

    async def close(self) -> None:
        """End what is going on, and close the sessions."""
        if self._agent is not None:
            await self._agent.stop()
        running = self.connection.running
        if running:
            await asyncio.wait(running, timeout=_LAST_ANSWERS)
        for task in running:
            task.cancel()
        if self._agent is not None:
            await self._agent.close()

    async def _request(self, method: str, params: Raw) -> object:
        if method == "initialize":
            return self._initialize(read_params(InitializeRequest, params))
        return await (await self._loaded()).request(method, params)

    def _notice(self, method: str, params: Raw) -> None:
        if self._agent is not None:
            self._agent.notice(method, params)

    def _initialize(self, wanted: InitializeRequest) -> InitializeAnswer:
        self._capabilities = wanted.client_capabilities or ClientCapabilities()
        if self._agent is not None:
            self._agent.know(self._capabilities)
        else:
            Thread(target=_load, name="acp-load", daemon=True).start()
        return InitializeAnswer(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=_CAPABILITIES,
            auth_methods=_sign_in(self._capabilities),
            agent_info=Implementation(name="treadle", title="Treadle", version=__version__),
            meta=_CAPABILITIES["_meta"],
        )

    async def _loaded(self) -> "EditorAgent":
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_load), name="load")
        agent = await asyncio.shield(self._loading)
        if self._agent is None:
            self._agent = agent(self.connection, self._flags, trusted=self._trusted)
            self._agent.know(self._capabilities)
        return self._agent

    def _describe(self, error: BaseException) -> RpcError:
        if self._agent is None:
            return RpcError(INTERNAL_ERROR, f"Internal error: {error}")
        return self._agent.describe(error)


def _load() -> "type[EditorAgent]":
    from treadle.acp.acp_agent import EditorAgent

    return EditorAgent


def _sign_in(client: ClientCapabilities) -> tuple[AuthMethod, ...]:
    """Say how a provider's key is stored; a client that can opens a terminal for it."""
    about = "Run `treadle login PROVIDER` in a terminal, or set a key variable such as ANTHROPIC_API_KEY."
    if client.auth is not None and client.auth.terminal:
        return (
            AuthMethod(
                id="login",
                name="Store a provider's key",
                description=about,
                type="terminal",
                args=("start",),
            ),
        )
    return (AuthMethod(id="login", name="Store a provider's key", description=about),)
