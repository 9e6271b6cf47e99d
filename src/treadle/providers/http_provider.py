"""A model behind HTTP: sends the request, reads the event stream, and maps every failure."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import msgspec

from treadle.protocol.models import ErrorKind, ModelError, ModelRequest, StreamEvent, StreamFailure, StreamStop
from treadle.providers.certificates import certificates_of, system_certificates
from treadle.providers.endpoint import MEBIBYTE, Endpoint
from treadle.providers.event_stream import DamagedFrameError
from treadle.providers.failures import CallFailedError, clean, failure, from_response, is_html
from treadle.providers.http_client import HTTP_ERRORS, HttpClient, HttpResponse
from treadle.providers.http_direct import DirectClient
from treadle.providers.http_failures import from_exception
from treadle.providers.sse import EventTooLargeError, SseEvent
from treadle.providers.wire import Authorizer, HttpCall, WireApi

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DRAIN_SECONDS = 0.05
"""How long to wait after the last event for the end of the body, so that the connection can be used again."""
MAX_REFUSAL = 64 * 1024
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


class HttpProvider:
    """The `Provider` port for one wire API at one endpoint; its connections are opened with the first call."""

    def __init__(self, endpoint: Endpoint, api: WireApi, authorizer: Authorizer | None = None) -> None:
        """`authorizer` proves who asks where that is more than the endpoint's key."""
        self._endpoint = endpoint
        self._api = api
        self._authorizer = authorizer
        self._client: HttpClient | None = None
        self._proxied = _may_be_proxied(endpoint)
        if endpoint.scheme == "https" and not (endpoint.ca_file or self._proxied):
            system_certificates()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the model; see the port."""
        reader = self._api.reader()
        try:
            async with aclosing(self._events(request)) as events:
                async for event in events:
                    for item in reader.read(event):
                        if isinstance(item, StreamStop):
                            await _drain(events)
                            yield item
                            return
                        yield item
            for item in reader.end():
                yield item
                if isinstance(item, StreamStop):
                    return
            error = failure(self._endpoint, ErrorKind.MALFORMED_STREAM, "the reply ended before it was whole")
        except CallFailedError as failed:
            error = failed.error
        except (msgspec.MsgspecError, *HTTP_ERRORS) as broken:
            error = from_exception(self._endpoint, broken)
        if self._authorizer is not None:
            error = msgspec.structs.replace(error, message=clean(error.message, self._authorizer.secrets))
        yield StreamFailure(error=error, usage=reader.usage)

    async def close(self) -> None:
        """Give back connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _events(self, request: ModelRequest) -> AsyncGenerator[SseEvent, None]:
        """Send the request and give the events of the reply."""
        limits = self._endpoint.limits
        async with asyncio.timeout(limits.connect + limits.first_byte):
            response = await self._send(self._api.prepare(request))
        try:
            if response.status_code != 200 or not self._may_be_events(response):
                raise CallFailedError(await self._refusal(response))
            decoder = self._api.framing.decoder(limits.event)
            async with aclosing(self._chunks(response)) as chunks:
                async for chunk in chunks:
                    for event in decoder.feed(chunk):
                        yield event
        except EventTooLargeError as error:
            raise CallFailedError(self._too_large("an event", limits.event)) from error
        except DamagedFrameError as error:
            raise CallFailedError(failure(self._endpoint, ErrorKind.MALFORMED_STREAM, str(error))) from error
        finally:
            await response.aclose()

    async def _send(self, call: HttpCall) -> HttpResponse:
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
                raise CallFailedError(failure(self._endpoint, ErrorKind.AUTHENTICATION, why))
        client = self._client or await self._connect()
        return await client.post(call.url, headers, call.body)

    async def _connect(self) -> HttpClient:
        """Build the client. Certificates are always checked, but not even read for plain HTTP."""
        endpoint = self._endpoint
        connect, idle = endpoint.limits.connect, max(endpoint.limits.idle, endpoint.limits.first_byte)
        try:
            tls = certificates_of(endpoint.ca_file) if endpoint.ca_file else None
            if self._proxied:
                from treadle.providers.http_proxied import ProxiedClient

                self._client = ProxiedClient(endpoint.proxy, tls, connect=connect, idle=idle)
            else:
                if tls is None and endpoint.scheme == "https":
                    tls = await asyncio.wrap_future(system_certificates())
                self._client = DirectClient(tls, connect=connect, idle=idle)
        except (OSError, ValueError) as error:
            why = "the CA file or the proxy of its configuration cannot be used"
            raise CallFailedError(failure(endpoint, ErrorKind.BAD_REQUEST, why)) from error
        return self._client

    async def _chunks(self, response: HttpResponse) -> AsyncGenerator[bytes, None]:
        """Give the body as it arrives, within the limits of time and size."""
        limits = self._endpoint.limits
        async with aclosing(response.aiter_bytes()) as body:
            async with asyncio.timeout(limits.first_byte):
                first = await anext(body, b"")
            if is_html("", first):
                raise CallFailedError(self._map_refusal(response, first))
            yield first
            total = len(first)
            async for chunk in body:
                total += len(chunk)
                if total > limits.body:
                    raise CallFailedError(self._too_large("the reply", limits.body))
                yield chunk

    async def _refusal(self, response: HttpResponse) -> ModelError:
        """Read the body of a response that is no stream, as far as it is worth reading."""
        body = bytearray()
        with suppress(*HTTP_ERRORS):
            async with aclosing(self._chunks(response)) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > MAX_REFUSAL:
                        break
        return self._map_refusal(response, bytes(body))

    def _may_be_events(self, response: HttpResponse) -> bool:
        """Whether the content type lets the body hold the events of this API."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return kind in self._api.framing.types

    def _map_refusal(self, response: HttpResponse, body: bytes) -> ModelError:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return from_response(self._endpoint, response.status_code, headers, body, now=time.time())

    def _too_large(self, what: str, limit: int) -> ModelError:
        return failure(self._endpoint, ErrorKind.MALFORMED_STREAM, f"{what} is larger than {limit / MEBIBYTE:g} MiB")


async def _drain(events: AsyncGenerator[SseEvent, None]) -> None:
    """Read the rest of a body whose reply is whole."""
    with suppress(CallFailedError, *HTTP_ERRORS):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in events:
                pass


def _may_be_proxied(endpoint: Endpoint) -> bool:
    """Whether the settings or the environment may name a proxy on the way, and be it only to exempt this host."""
    if endpoint.proxy or endpoint.host in LOOPBACK:
        return bool(endpoint.proxy)
    named = any(os.environ.get(name) for kind in _PROXIES for name in (kind, kind.upper()))
    return named or sys.platform == "darwin"  # where the system's settings may name one
