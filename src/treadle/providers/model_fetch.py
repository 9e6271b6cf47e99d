"""Fetching a public list of models, when a person asks for it."""

import asyncio
from urllib.parse import urljoin

import httpx2

from treadle.providers.certificates import system_certificates
from treadle.providers.endpoint import LOOPBACK, MEBIBYTE, is_web_address, split_url
from treadle.providers.failures import without_query

FETCH_SECONDS = 60.0
LARGEST_LIST = 64 * MEBIBYTE
_MOST_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)


class ListNotFetchedError(Exception):
    """A list that did not come; the text says why, as a part of a sentence."""


async def fetch_list(url: str, *, most: int = LARGEST_LIST, limit: float = FETCH_SECONDS) -> bytes:
    """Get the bytes at an address, at most `most` within `limit` seconds; raises `ListNotFetchedError`."""
    try:
        async with asyncio.timeout(limit):
            return await _fetch(url, most)
    except TimeoutError as late:
        raise ListNotFetchedError(f"it did not come within {limit:g} s") from late
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise ListNotFetchedError(str(error) or type(error).__name__) from error


async def _fetch(url: str, most: int) -> bytes:
    certificates = await asyncio.shield(asyncio.wrap_future(system_certificates()))
    headers = {"user-agent": "treadle", "accept": "application/json"}
    async with httpx2.AsyncClient(verify=certificates, headers=headers, follow_redirects=False, timeout=None) as client:
        for _ in range(_MOST_REDIRECTS):
            _check_scheme(url)
            async with client.stream("GET", url) as response:
                if response.status_code in _MOVED:
                    url = urljoin(url, response.headers.get("location", ""))
                    continue
                if response.status_code != 200:
                    raise ListNotFetchedError(
                        f"the server at {without_query(url)} answered with HTTP status {response.status_code}"
                    )
                return await _body(response, most)
    raise ListNotFetchedError("it redirects too often")


async def _body(response: httpx2.Response, most: int) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > most:
            raise ListNotFetchedError(f"it is larger than {most / MEBIBYTE:g} MiB")
    return bytes(data)


def _check_scheme(url: str) -> None:
    """Let nobody on the way change the list: plain HTTP is for this machine alone."""
    parts = split_url(url)
    if is_web_address(url) and (parts.scheme == "https" or parts.hostname in LOOPBACK):
        return
    raise ListNotFetchedError(f"{without_query(url)!r} is not an https address")
