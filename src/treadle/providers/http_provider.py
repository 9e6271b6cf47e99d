"""A model behind HTTP: sends the request; what reads the reply is loaded when it has left."""

import asyncio
import os
import ssl
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from typing import TYPE_CHECKING

from treadle.engine.ports import UnsentError
from treadle.protocol.models import ErrorKind, ModelRequest, StreamEvent
from treadle.providers.certificates import http_library, named_certificates, system_certificates
from treadle.providers.endpoint import LOOPBACK, Endpoint
from treadle.providers.http_connections import (
    HTTP_ERRORS,
    ConnectionFailedError,
    Connections,
    Deadline,
    Response,
    Sent,
    SocksError,
    Trouble,
    UnansweredError,
    is_plain_url,
    never_arrived,
    nothing,
)
from treadle.providers.wire import Authorizer, CallFailedError, HttpCall, ReportLimits, WireApi

if TYPE_CHECKING:
    from treadle.providers.http_replies import HttpReplies
    from treadle.providers.remedies import Amendments


class HttpProvider:
    """The `Provider` port for one wire API at one endpoint; its connections are opened with the first call."""

    def __init__(
        self,
        endpoint: Endpoint,
        api: WireApi,
        authorizer: Authorizer | None = None,
        *,
        meanwhile: Sent = nothing,
        limits: ReportLimits | None = None,
    ) -> None:
        """`authorizer` proves who asks where that is more than the endpoint's key.

        `meanwhile` is called when the first request has left, and takes no time itself. `limits` is called with
        what an answer says of them.
        """
        self._endpoint = endpoint
        self._api = api
        self._authorizer = authorizer
        self._meanwhile = meanwhile
        self._limits = limits
        self._replies: HttpReplies | None = None
        self._amendments: Amendments | None = None
        self._connections: Connections | None = None
        self._here = endpoint.host in LOOPBACK and not endpoint.proxy
        self._needs_system = endpoint.scheme == "https" and not endpoint.ca_file
        http_library()
        if self._needs_system:
            system_certificates()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the model; see the port."""
        first = self._api.prepare(request)
        call = first if self._amendments is None else self._amendments.changed(request.model, first)
        begun = await self._begin(call)
        self._replies = self._replies or self._load_replies()
        async with aclosing(self._replies.read(request, call, begun)) as items:
            async for item in items:
                yield item

    def _load_replies(self) -> "HttpReplies":
        from treadle.providers.http_replies import HttpReplies
        from treadle.providers.remedies import Amendments

        self._amendments = Amendments()
        return HttpReplies(
            self._endpoint,
            self._api,
            self._begin,
            amendments=self._amendments,
            limits=self._limits,
            secrets=lambda: () if self._authorizer is None else self._authorizer.secrets,
        )

    async def _begin(self, call: HttpCall) -> Response | Exception:
        """Send a call; gives the response as soon as it begins, or what went wrong."""
        limits = self._endpoint.limits
        left = False

        def sent() -> None:
            nonlocal left
            left = True
            meanwhile, self._meanwhile = self._meanwhile, nothing
            meanwhile()

        try:
            with closing(Deadline()) as deadline:
                until = asyncio.get_running_loop().time() + limits.connect + limits.first_byte
                return await deadline.wait(self._send(call, sent), until)
        except (CallFailedError, *HTTP_ERRORS) as error:
            if left and not never_arrived(error):
                return UnansweredError(error)
            return self._by_proxy(error)
        except asyncio.CancelledError as cancelled:
            if left:
                raise
            raise UnsentError from cancelled

    async def close(self) -> None:
        """Give back connections."""
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.close()

    async def _send(self, call: HttpCall, sent: Sent) -> Response:
        headers = {
            "content-type": "application/json",
            "accept": self._api.framing.accept,
            "accept-encoding": "identity",
            "user-agent": "treadle",
            **call.headers,
            **(await self._authorizer.headers(call) if self._authorizer is not None else {}),
            **{name.lower(): value for name, value in self._endpoint.headers.items()},
        }
        for value in headers.values():
            if not (value.isascii() and value.isprintable()):
                why = "the API key, or another header, holds characters that cannot be sent"
                raise self._failed(ErrorKind.AUTHENTICATION, why)
        connections = self._connections or await self._connect()
        return await connections.post(call.url, headers, call.body, sent)

    def _by_proxy(self, error: Exception) -> Exception:
        """Give an error before the request left: where a proxy stands in between, it is that which did not answer."""
        endpoint = self._endpoint
        if isinstance(error, CallFailedError) or never_arrived(error):
            return error
        from treadle.workspace.unreached import proxy_of

        if not (endpoint.proxy or (not self._here and proxy_of(endpoint.base_url))):
            return error
        limits = endpoint.limits
        silent = f"no answer within {limits.connect + limits.first_byte:g} s"
        return ConnectionFailedError(Trouble.PROXY, Exception(silent) if isinstance(error, TimeoutError) else error)

    async def _connect(self) -> Connections:
        """Make the connections; the first request opens one."""
        endpoint = self._endpoint
        certificates = await self._certificates()
        await asyncio.shield(asyncio.wrap_future(http_library()))
        try:
            self._connections = open_connections(endpoint, certificates, here=self._here)
        except (*HTTP_ERRORS, ValueError) as error:
            fix = f"Check proxy under [providers.{endpoint.section}] in your settings, and HTTPS_PROXY and ALL_PROXY "
            fix += "in the environment."
            why = "its proxy cannot be used" + (f": {error}" if isinstance(error, SocksError) else "")
            raise self._failed(ErrorKind.BAD_REQUEST, why, fix) from error
        return self._connections

    async def _certificates(self) -> ssl.SSLContext | None:
        """Give what certificates are checked with: always checked, but not even read for plain HTTP."""
        endpoint = self._endpoint
        try:
            if endpoint.ca_file:
                return ssl.create_default_context(cafile=endpoint.ca_file)
            if self._needs_system:
                return await asyncio.shield(asyncio.wrap_future(system_certificates()))  # others wait for it, too
        except OSError as error:
            place = endpoint.ca_file or named_certificates() or "of the system"
            why = f"the CA certificates {place} cannot be read ({error.strerror or error})"
            fix = f"Correct ca_file under [providers.{endpoint.section}] in your settings, or SSL_CERT_FILE or "
            fix += "SSL_CERT_DIR."
            raise self._failed(ErrorKind.BAD_REQUEST, why, fix) from error
        return None

    def _failed(self, kind: ErrorKind, why: str, fix: str = "") -> CallFailedError:
        from treadle.providers.failures import failure

        return CallFailedError(failure(self._endpoint, kind, why, fix=fix))


def open_connections(endpoint: Endpoint, certificates: ssl.SSLContext | None, *, here: bool) -> Connections:
    """Make connections for an endpoint, `here` for a server of this machine, which no proxy of the environment serves.

    Nothing is connected yet. Raises `ConnectionFailedError` for a proxy that cannot be used.
    """
    if is_plain_url(endpoint.base_url) and not endpoint.proxy and (here or not _proxies_are_set()):
        from treadle.providers.plain_connections import PlainConnections

        return PlainConnections(certificates, connect_seconds=endpoint.limits.connect)
    from treadle.providers.library_connections import LibraryConnections

    return LibraryConnections(endpoint, certificates, here=here)


def _proxies_are_set() -> bool:
    """Whether the environment names proxies; on a Mac the system may."""
    return sys.platform == "darwin" or any(name.lower().endswith("_proxy") for name in os.environ)
