"""Short questions to a server that answers in JSON; what does not answer like that counts as silent."""

import ssl
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

import httpx2
import msgspec

from treadle.providers.wire import decode_json

_T = TypeVar("_T")

LARGEST_ANSWER = 4 * 1024 * 1024


class JsonServer:
    """One server while it is asked; `proxies` lets the environment say how it is reached."""

    def __init__(
        self, origin: str, headers: Mapping[str, str], *, verify: ssl.SSLContext | bool, proxies: bool = False
    ) -> None:
        self._origin = origin
        self._client = httpx2.AsyncClient(
            trust_env=proxies, verify=verify, headers=dict(headers), follow_redirects=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def get(self, path: str, answer: type[_T]) -> _T | None:
        """Ask for JSON of a certain shape; None where the answer is another one, or there is none."""
        return await self._ask("GET", path, answer, None)

    async def post(self, path: str, body: Mapping[str, str], answer: type[_T]) -> _T | None:
        """Ask with a body."""
        return await self._ask("POST", path, answer, body)

    async def _ask(self, method: str, path: str, answer: type[_T], body: Mapping[str, str] | None) -> _T | None:
        data = bytearray()
        with suppress(httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, msgspec.MsgspecError):
            async with self._client.stream(method, self._origin + path, json=body) as response:
                if response.status_code != 200:
                    return None
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > LARGEST_ANSWER:
                        return None
            found: _T = decode_json(data, answer)
            return found
        return None
