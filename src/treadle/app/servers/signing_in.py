"""Signing in to servers with OAuth: once in the browser, then with what is kept, in the keyring or a private file."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from treadle.app.models.provider_keys import store_key
from treadle.app.servers.identity import forget_tokens, kept_sign_in, token_name
from treadle.protocol.servers import McpServer

_DONE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nSigned in. You can close this page.\n"
_LONGEST = 16_384


class KeptTokens:
    """The tokens of one server, as the SDK reads and writes them."""

    def __init__(self, server: McpServer) -> None:
        self._name = token_name(server)
        self.provider: OAuthClientProvider | None = None
        self.kept = kept_sign_in(server)

    def _write(self, **changes: Any) -> None:
        metadata = None if self.provider is None else self.provider.context.oauth_metadata
        if metadata is not None:
            changes["metadata"] = metadata.model_dump(mode="json", exclude_none=True)
        self.kept = msgspec.structs.replace(self.kept, **changes)
        store_key(self._name, msgspec.json.encode(self.kept).decode())

    async def get_tokens(self) -> OAuthToken | None:
        """Give the tokens; one whose time is over counts as over."""
        if not self.kept.tokens:
            return None
        left = int(self.kept.until - time.time()) if self.kept.until else None
        return OAuthToken.model_validate({**self.kept.tokens, "expires_in": left})

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        until = time.time() + tokens.expires_in if tokens.expires_in else 0.0
        said = tokens.model_dump(mode="json", exclude_none=True)
        await asyncio.to_thread(self._write, tokens=said, until=until)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Give the registration."""
        try:
            return OAuthClientInformationFull.model_validate(self.kept.client) if self.kept.client else None
        except ValidationError:
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the registration."""
        await asyncio.to_thread(self._write, client=client_info.model_dump(mode="json", exclude_none=True))


def signed_in(server: McpServer) -> httpx2.Auth | None:
    """Give what signs requests with what is kept; None where the person has not signed in. Raises `ConfigError`."""
    tokens = KeptTokens(server)
    if not tokens.kept.tokens:
        return None

    async def refuse(*_: object) -> Any:
        raise OAuthFlowError(f"you have to sign in again: treadle mcp login {server.name}")

    provider = _provider(server, tokens, "http://127.0.0.1/callback", refuse, wait=refuse)
    provider.context.token_expiry_time = tokens.kept.until or None
    return provider


def _provider(
    server: McpServer,
    tokens: KeptTokens,
    redirect: str,
    show: Callable[[str], Awaitable[None]],
    *,
    wait: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(client_name="Treadle", redirect_uris=[AnyUrl(redirect)])
    provider = OAuthClientProvider(server.url, metadata, tokens, show, wait)
    tokens.provider = provider
    if tokens.kept.metadata:
        try:
            provider.context.oauth_metadata = OAuthMetadata.model_validate(tokens.kept.metadata)
        except ValidationError:
            provider.context.oauth_metadata = None
    return provider


def browser_sign_in(
    server: McpServer, show: Callable[[str], None], pasted: Callable[[], Awaitable[str]]
) -> httpx2.Auth:
    """Sign in anew: the browser comes back to this machine, or the person pastes the address that it ended at.

    What is given signs requests; the first that is refused asks the person. `show` is given the address to open.
    """
    listening = socket.create_server(("127.0.0.1", 0))

    async def shown(url: str) -> None:
        show(url)

    async def wait() -> AuthorizationCodeResult:
        came: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        typed = asyncio.ensure_future(pasted())
        listener = await asyncio.start_server(partial(_visited, came), sock=listening)
        try:
            await asyncio.wait((typed, came), return_when=asyncio.FIRST_COMPLETED)
            return _code_of(came.result() if came.done() else typed.result())
        finally:
            typed.cancel()
            listener.close()

    forget_tokens(server)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/callback"
    return _provider(server, KeptTokens(server), address, shown, wait=wait)


async def _visited(came: asyncio.Future[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take the request of the browser that comes back."""
    line: list[bytes] = []
    with suppress(OSError, ValueError):  # it is gone again, or sends a line without end
        line = (await reader.readline())[:_LONGEST].split()
        writer.write(_DONE)
        await writer.drain()
    writer.close()
    target = line[1].decode(errors="replace") if len(line) > 1 else ""
    if ("code=" in target or "error=" in target) and not came.done():
        came.set_result(target)


def _code_of(address: str) -> AuthorizationCodeResult:
    """Read the address that the browser ended at."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
    if "error" in query:
        raise OAuthFlowError(f"the server refused: {query.get('error_description', query['error'])}")
    if "code" not in query:
        raise OAuthFlowError("that address has no code: paste the whole address that the browser ended at")
    return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))
