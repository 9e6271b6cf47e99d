"""One request to the web without cookies or proxies, to addresses that were checked, within limits of size and time."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx2

from treadle.policy.urls import HostKind, host_kind
from treadle.protocol.errors import ToolError
from treadle.workspace.files.text import visible
from treadle.workspace.network.checked_addresses import HostPort, Resolver, checked_addresses, is_this_machine
from treadle.workspace.unreached import connect_seconds, place_named, why_unreached

if TYPE_CHECKING:
    from treadle.workspace.namespaces.listeners import CommandServers

_OWN_ADDRESS = "127.0.0.1"
_MOST_BYTES = 5 * 1024 * 1024
_MOST_REDIRECTS = 5
_IDLE_SECONDS = 60.0
_TOTAL_SECONDS = 120.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_SEEN_AS_PRIVATE = frozenset({HostKind.LOOPBACK, HostKind.PRIVATE})
"""What the policy sees by the spelling of a host, and so has judged as this machine or its network."""
_HEADERS = {
    "user-agent": "treadle",
    "accept": "text/html,application/xhtml+xml,text/markdown,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5",
    "accept-encoding": "gzip, deflate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResponse:
    """What came back from `url`. `cut` is the size after which the body was cut, 0 if it is whole.

    `elsewhere` is the URL on another host to which it redirects; then there is no body.
    """

    url: str
    status: int = 200
    reason: str = ""
    content_type: str = ""
    body: bytes = b""
    cut: int = 0
    elsewhere: str = ""


@dataclass(frozen=True, slots=True)
class WebClient:
    """Fetches URLs. `private_hosts` may be on a private network although their names do not show it.

    With `servers`, the session's own, nothing of this machine is reached but them.
    """

    resolver: Resolver
    private_hosts: frozenset[str] = frozenset()
    servers: "CommandServers | None" = None

    async def get(self, url: str) -> WebResponse:
        """Get a URL, following redirects on its host. Raises `ToolError` with what to do next."""
        try:
            async with asyncio.timeout(_TOTAL_SECONDS):
                return await self._follow(httpx2.URL(url))
        except TimeoutError as error:
            raise ToolError(
                f"{visible(url)} did not answer within {_TOTAL_SECONDS:g} s. Try another source."
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            why = visible(request_trouble(error, url))
            raise ToolError(
                f"{visible(url)} could not be fetched: {why}. Check the URL, or use another source."
            ) from error

    async def _follow(self, url: httpx2.URL) -> WebResponse:
        first = place_of(url)
        private = host_kind(first.host) in _SEEN_AS_PRIVATE or first.host in self.private_hosts
        for _ in range(_MOST_REDIRECTS + 1):
            place = place_of(url)
            async with self._sent(url, place, private=private and place == first) as response:
                target = response.headers.get("location", "")
                if response.status_code not in _REDIRECTS or not target:
                    return await read_body(url, response)
            following = url.join(target)
            if not _same_site(url, following):
                return WebResponse(url=str(url), elsewhere=str(following.copy_with(fragment=None)))
            url = following
        raise ToolError(f"{visible(str(url))} redirects more than {_MOST_REDIRECTS} times. Use another source.")

    @asynccontextmanager
    async def _sent(self, url: httpx2.URL, place: HostPort, *, private: bool) -> AsyncIterator[httpx2.Response]:
        async with AsyncExitStack() as stack:
            at = 0
            if self.servers is not None and is_this_machine(place.host):
                at = await stack.enter_async_context(self.servers.relayed(place.port))
                addresses: tuple[str, ...] = (_OWN_ADDRESS,)
            else:
                addresses = await checked_addresses(place, self.resolver, private=private)
            yield await stack.enter_async_context(send_pinned(url, addresses, port=at))


def place_of(url: httpx2.URL) -> HostPort:
    """Tell where a request for a URL goes. Raises `ToolError` for other schemes than http and https."""
    if url.scheme not in _PORTS or not url.host:
        raise ToolError(f"It redirects to {visible(str(url))!r}. Only http and https are fetched. Use another source.")
    return HostPort(url.raw_host.decode("ascii").strip("[]").lower().rstrip("."), url.port or _PORTS[url.scheme])


def _same_site(url: httpx2.URL, target: httpx2.URL) -> bool:
    """Whether a redirect stays where it was judged to go: the same host but for `www.`, and not out of TLS."""
    if target.scheme not in _PORTS or (url.scheme == "https" and target.scheme == "http"):
        return False
    return place_of(url).host.removeprefix("www.") == place_of(target).host.removeprefix("www.")


@asynccontextmanager
async def send_pinned(
    url: httpx2.URL,
    addresses: tuple[str, ...],
    *,
    method: str = "GET",
    headers: Mapping[str, str] = _HEADERS,
    content: bytes | None = None,
    port: int = 0,
) -> AsyncIterator[httpx2.Response]:
    """Send the request to the first address that can be connected to; the host's name serves for TLS and `Host`.

    `port` is the one to connect to where it is not the URL's.
    """
    timeout = httpx2.Timeout(_IDLE_SECONDS, connect=connect_seconds(str(url)) / len(addresses))
    verify = url.scheme == "https"
    async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=timeout, verify=verify) as client:
        response: httpx2.Response | None = None
        for number, address in enumerate(addresses, 1):
            request = client.build_request(
                method,
                url.copy_with(host=address, port=port or url.port, fragment=None),
                headers={**headers, "host": url.netloc.decode("ascii")},
                content=content,
                extensions={"sni_hostname": url.raw_host.decode("ascii").strip("[]")},
            )
            try:
                response = await client.send(request, stream=True)
                break
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if number == len(addresses):
                    raise
        if response is None:
            raise AssertionError("there is at least one address")
        try:
            yield response
        finally:
            await response.aclose()


async def read_body(url: httpx2.URL, response: httpx2.Response) -> WebResponse:
    """Read a response up to the most bytes that are read of one; raises `ToolError` for damaged compression."""
    unpack = _unpacker(response.headers.get("content-encoding", "").strip().lower(), str(url))
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += unpack(chunk, _MOST_BYTES + 1 - len(body))
        if len(body) > _MOST_BYTES:
            break
    return WebResponse(
        url=str(url),
        status=response.status_code,
        reason=_reason(response.status_code),
        content_type=response.headers.get("content-type", "").strip(),
        body=bytes(body[:_MOST_BYTES]),
        cut=min(len(body), _MOST_BYTES) if len(body) > _MOST_BYTES or not unpack.ended else 0,
    )


class _Unpacker:
    """Takes compressed bytes and gives at most so many as there is room for: a small answer cannot fill the memory."""

    def __init__(self, encoding: str, url: str) -> None:
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding else None
        self._may_be_bare = encoding == "deflate"
        self._url = url

    @property
    def ended(self) -> bool:
        """Whether the end of what was compressed has come."""
        return self._zlib is None or self._zlib.eof

    def __call__(self, data: bytes, room: int) -> bytes:
        if self._zlib is None:
            return data[:room]
        try:
            return self._zlib.decompress(data, room)
        except zlib.error as error:
            if self._may_be_bare:
                # Some servers leave out the header that `deflate` has by its definition.
                self._zlib, self._may_be_bare = zlib.decompressobj(-zlib.MAX_WBITS), False
                return self(data, room)
            raise ToolError(
                f"The response from {visible(self._url)} has damaged compression. Use another source."
            ) from error
        finally:
            self._may_be_bare = False


def _unpacker(encoding: str, url: str) -> _Unpacker:
    if encoding in ("", "identity"):
        return _Unpacker("", url)
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Unpacker(encoding, url)
    raise ToolError(
        f"{visible(url)} is compressed as {visible(encoding)!r}, which was not asked for. Use another source."
    )


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def request_trouble(error: Exception, url: str) -> str:
    """Say why a request got no response: where it went, and what was tried."""
    match error:
        case httpx2.ConnectTimeout() | httpx2.ConnectError():
            return why_unreached(error, url, seconds=connect_seconds(url)).text
        case httpx2.RemoteProtocolError():
            return f"{place_named(url)} gave no answer of HTTP ({error})"
        case httpx2.TimeoutException():
            return f"nothing arrived for {_IDLE_SECONDS:g} s"
        case _:
            return str(error) or type(error).__name__
