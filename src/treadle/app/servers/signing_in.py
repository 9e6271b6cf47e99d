"""Signing in to servers with OAuth: once in the browser, then with what is kept, in the keyring or a private file."""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from pydantic import AnyUrl, ValidationError

from treadle.app.servers.identity import KeptSignIn, keep_sign_in, kept_sign_in, sign_in_folder
from treadle.protocol.servers import McpServer
from treadle.workspace.files.folder_lock import alone_in_turn
from treadle.workspace.files.text import visible

_LONGEST = 16_384
_BACK = "Go back to the terminal: it says whether you are signed in. You can close this page."
_REFUSED = "You are not signed in. The terminal says why. You can close this page."
_OTHER = "This is not the address of a sign-in that Treadle waits for."


class KeptTokens:
    """The tokens of one server, as the SDK reads and writes them; `keep` stores what came."""

    def __init__(self, kept: KeptSignIn, keep: Callable[[KeptSignIn], object]) -> None:
        self.kept = kept
        self._keep = keep
        self.provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Give the tokens; one whose time is over counts as over."""
        if not self.kept.tokens:
            return None
        left = int(self.kept.until - time.time()) if self.kept.until else None
        return OAuthToken.model_validate({**self.kept.tokens, "expires_in": left})

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens, with where they are renewed."""
        metadata = None if self.provider is None else self.provider.context.oauth_metadata
        said = self.kept.metadata if metadata is None else metadata.model_dump(mode="json", exclude_none=True)
        self.kept = msgspec.structs.replace(
            self.kept,
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            until=time.time() + tokens.expires_in if tokens.expires_in else 0.0,
            metadata=said,
        )
        await asyncio.to_thread(self._keep, self.kept)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Give the registration."""
        try:
            return OAuthClientInformationFull.model_validate(self.kept.client) if self.kept.client else None
        except ValidationError:
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Remember the registration, which is kept with the tokens that it leads to."""
        self.kept = msgspec.structs.replace(self.kept, client=client_info.model_dump(mode="json", exclude_none=True))


def signed_in(server: McpServer) -> httpx2.Auth | None:
    """Give what signs requests with what is kept; None where the person has not signed in. Raises `ConfigError`."""
    kept = kept_sign_in(server)
    return KeptAuth(server, kept) if kept.tokens else None


def _client_metadata(redirect: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(client_name="Treadle", redirect_uris=[AnyUrl(redirect)])


class KeptAuth(OAuthClientProvider):
    """Signs requests with what is kept of a server, and renews that; nobody is asked.

    Several programs of a user sign with the same tokens, and a server may take a refresh token once only. So one of
    them renews at a time, and first looks whether another one has done it.
    """

    def __init__(self, server: McpServer, kept: KeptSignIn) -> None:
        self._server = server
        self._tokens = KeptTokens(kept, partial(keep_sign_in, server))
        super().__init__(server.url, _client_metadata("http://127.0.0.1/callback"), self._tokens)
        self._tokens.provider = self

    async def _take(self, kept: KeptSignIn) -> None:
        """Sign with this from now on."""
        self._tokens.kept = kept
        await self._initialize()
        self.context.token_expiry_time = kept.until or None
        try:
            self.context.oauth_metadata = OAuthMetadata.model_validate(kept.metadata) if kept.metadata else None
        except ValidationError:
            self.context.oauth_metadata = None

    async def _look_again(self) -> None:
        await self._take(await asyncio.to_thread(kept_sign_in, self._server))

    def _holds(self, refused: str) -> bool:
        """Whether there is a token that is not known to be over or refused."""
        return self.context.is_token_valid() and _access_token(self.context.current_tokens) != refused

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sign a request. A token that is over or refused is renewed once; only then has a person to sign in."""
        if not self._initialized:
            await self._take(self._tokens.kept)
        self.context.protocol_version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        refused, renewed = "", False
        while True:
            if not renewed and not self._holds(refused):
                async with alone_in_turn(sign_in_folder(self._server)):
                    await self._look_again()
                    if not self._holds(refused) and self.context.can_refresh_token():
                        renewed = True
                        response = yield await self._refresh_token()
                        await self._renew(response)
            self._add_auth_header(request)
            sent = _access_token(self.context.current_tokens)
            response = yield request
            if not _is_refused(response):
                return
            if renewed or sent == refused or response.status_code == httpx2.codes.FORBIDDEN:
                raise OAuthFlowError(f"you have to sign in again: treadle mcp login {visible(self._server.name)}")
            refused = sent

    async def _renew(self, response: httpx2.Response) -> None:
        """Take what came for a refresh token; where it was refused, what is kept by now."""
        if await self._handle_refresh_response(response):
            return
        if response.is_server_error or response.status_code == httpx2.codes.TOO_MANY_REQUESTS:
            raise OAuthFlowError(f"the sign-in cannot be renewed now: HTTP {response.status_code}")
        await self._look_again()


def _access_token(tokens: OAuthToken | None) -> str:
    return "" if tokens is None else tokens.access_token


def _is_refused(response: httpx2.Response) -> bool:
    """Whether a token was not enough: the server does not know it, or it allows too little."""
    too_little = extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == httpx2.codes.UNAUTHORIZED or (
        response.status_code == httpx2.codes.FORBIDDEN and too_little
    )


class BrowserSignIn:
    """A new sign-in: the browser comes back to this machine, or the person pastes the address that it ended at.

    `auth` signs requests; the first that is refused asks the person. What was kept before stays until `keep`.
    """

    def __init__(self, server: McpServer, show: Callable[[str], None], pasted: Callable[[], Awaitable[str]]) -> None:
        """`show` is given the address to open, `pasted` waits for the one that the browser ended at."""
        self._server, self._show, self._pasted = server, show, pasted
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._state = ""
        self._tokens = KeptTokens(KeptSignIn(), lambda _: None)
        redirect = f"http://127.0.0.1:{self._listening.getsockname()[1]}/callback"
        auth = OAuthClientProvider(server.url, _client_metadata(redirect), self._tokens, self._shown, self._came_back)
        self._tokens.provider = auth
        self.auth: httpx2.Auth = auth

    async def keep(self) -> None:
        """Keep what was given, in place of what was kept before. Raises `ConfigError`."""
        if self._tokens.kept.tokens:
            async with alone_in_turn(sign_in_folder(self._server)):
                await asyncio.to_thread(keep_sign_in, self._server, self._tokens.kept)

    def close(self) -> None:
        """Wait for no browser any more."""
        self._listening.close()

    async def _shown(self, url: str) -> None:
        if self._state:
            raise OAuthFlowError("it does not accept the token that the sign-in gave")
        self._state = _query_of(url).get("state", "")
        self._show(url)

    async def _came_back(self) -> AuthorizationCodeResult:
        came: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        typed = asyncio.ensure_future(self._pasted())
        listener = await asyncio.start_server(partial(self._visited, came), sock=self._listening)
        try:
            await asyncio.wait((typed, came), return_when=asyncio.FIRST_COMPLETED)
            return self._code_of(came.result() if came.done() else typed.result())
        finally:
            typed.cancel()
            listener.close()

    async def _visited(
        self, came: asyncio.Future[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Take the request of the browser that comes back; any other page that calls this address is sent away."""
        with suppress(OSError, ValueError):  # it is gone again, or sends a line without end
            line = (await reader.readline())[:_LONGEST].split()
            target = line[1].decode(errors="replace") if len(line) > 1 else ""
            query = _query_of(target)
            ours = query.get("state") == self._state and not query.keys().isdisjoint(("code", "error"))
            status, said = ("200 OK", _REFUSED if "error" in query else _BACK) if ours else ("404 Not Found", _OTHER)
            writer.write(f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{said}\n".encode())
            await writer.drain()
            if ours and not came.done():
                came.set_result(target)
        writer.close()

    def _code_of(self, address: str) -> AuthorizationCodeResult:
        """Read the address that the browser ended at."""
        query = _query_of(address.strip())
        if "error" in query:
            raise OAuthFlowError(f"the server refused: {query.get('error_description', query['error'])}")
        if "code" not in query:
            raise OAuthFlowError("that address has no code: paste the whole address that the browser ended at")
        if query.get("state") != self._state:
            raise OAuthFlowError("that address is one of another sign-in")
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


def _query_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
