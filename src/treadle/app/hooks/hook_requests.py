"""Hooks that are URLs: the event is posted to them, and their response is the answer."""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import httpx2
from msgspec import Struct

from treadle.app.config.hook_settings import HookSpec
from treadle.app.hooks.hook_answers import read_answer
from treadle.app.hooks.hook_rows import HookAnswer, HookFailedError
from treadle.policy.urls import HostKind, check_url
from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.tools.web_request import place_of, read_body, request_trouble, send_pinned
from treadle.workspace.network.checked_addresses import checked_addresses, resolve_host

_VARIABLE = regex(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_NEAR = frozenset({HostKind.LOOPBACK, HostKind.PRIVATE})
_FAR = frozenset({HostKind.INVALID, HostKind.METADATA})
_JSON = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "gzip, deflate"}


class HttpHook(Struct, frozen=True):
    """Posts each event to one URL, to an address that was checked; no redirect is followed."""

    spec: HookSpec

    async def __call__(self, given: dict[str, Any]) -> HookAnswer:
        """Post it. Raises `HookFailedError`."""
        checked = check_url(self.spec.url)
        if checked.kind in _FAR:
            raise HookFailedError(checked.problem or "its URL names a place that no request goes to")
        url = httpx2.URL(self.spec.url)
        try:
            addresses = await checked_addresses(place_of(url), resolve_host, private=checked.kind in _NEAR)
            headers = {**self._headers(os.environ), **_JSON}
            body = json.dumps(given).encode()
            async with send_pinned(url, addresses, method="POST", headers=headers, content=body) as response:
                found = await read_body(url, response)
        except ToolError as error:
            raise HookFailedError(error.text.rstrip(".")) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise HookFailedError(request_trouble(error, self.spec.url)) from error
        if not 200 <= found.status < 300:
            raise HookFailedError(f"the response was {found.status} {found.reason}".rstrip())
        return read_answer(found.body, self.spec.event)

    def _headers(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Fill in the variables that the hook may have; others stay empty."""
        allowed = frozenset(self.spec.allowed_variables)

        def value(found: re.Match[str]) -> str:
            name = found[1] or found[2]
            return variables.get(name, "") if name in allowed else ""

        return {name: _VARIABLE.sub(value, text) for name, text in self.spec.headers.items()}
