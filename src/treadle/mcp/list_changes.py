"""What a server tells of its changes: over the stream of the newer protocol, or as the older one has it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, ResourceUpdated, SubscriptionLost

_LISTEN_PAUSE = 30.0
_MOST_WATCHED = 50
"""Resources of a server whose changes are told."""


class ServerChanges:
    """The changes of one server; `updated` is given the resources that changed since they were read.

    `arrived` is set when there is something to do: `stale` says that tools and prompts are to be listed again,
    `rewatch` that `listen` is to begin anew.
    """

    def __init__(self, updated: Callable[[str], None], *, seconds: float) -> None:
        self.arrived = asyncio.Event()
        self.stale = False
        self.rewatch = False
        self._updated = updated
        self._seconds = seconds
        self._watched: dict[str, bool] = {}
        """Resources that were read, and whether it was told since that they changed; the one read last is the last."""
        self._subscribed: set[str] = set()

    def begin(self) -> None:
        """Take note of a new connection, which nothing is subscribed on."""
        self.arrived.clear()
        self._subscribed.clear()

    def noticed(self, message: Any) -> None:
        """Take note of what the older protocol tells."""
        if isinstance(message, types.ToolListChangedNotification | types.PromptListChangedNotification):
            self._relist()
        elif isinstance(message, types.ResourceUpdatedNotification):
            self._tell(str(message.params.uri))

    def watch(self, client: Client, uri: str) -> None:
        """Hear from now on when this resource changes, which was just read; where the server can tell that."""
        has = client.server_capabilities.resources
        if has is None or not has.subscribe:
            return
        known = self._watched.pop(uri, None) is not None
        self._watched[uri] = False
        if not known:
            if len(self._watched) > _MOST_WATCHED:
                del self._watched[next(iter(self._watched))]
            self.rewatch = True
            self.arrived.set()

    async def listen(self, client: Client) -> None:
        """Hear of changes over a stream, where the protocol has one; else subscribe to each resource."""
        while True:
            try:
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resource_subscriptions=tuple(self._watched)
                ) as changes:
                    async for change in changes:
                        if isinstance(change, ResourceUpdated):
                            self._tell(str(change.uri))
                        else:
                            self._relist()
            except ListenNotSupportedError:
                await self._subscribe(client)
                return
            except MCPError:
                return
            except (SubscriptionLost, TimeoutError):
                pass
            await asyncio.sleep(_LISTEN_PAUSE)
            self._relist()  # what changed meanwhile was not told

    async def _subscribe(self, client: Client) -> None:
        gone, new = self._subscribed - self._watched.keys(), self._watched.keys() - self._subscribed
        self._subscribed = set(self._watched)
        requests: list[types.Request[Any, Any]] = [
            *(types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri)) for uri in gone),
            *(types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri)) for uri in new),
        ]
        for request in requests:
            with suppress(MCPError, TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await client.session.send_request(request, types.EmptyResult)

    def _relist(self) -> None:
        self.stale = True
        self.arrived.set()

    def _tell(self, uri: str) -> None:
        """Tell once of each resource that changed, or that holds what changed, until it is read again."""
        for one, told in self._watched.items():
            if not told and (uri == one or uri.startswith(f"{one.rstrip('/')}/")):
                self._watched[one] = True
                self._updated(one)
