"""browser_action: one step in a real browser, and a picture of what came of it."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.policy.urls import check_url
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import (
    CallResult,
    Outcome,
    Preview,
    ToolSpec,
    result_text,
)
from treadle.tools.declarations import BROWSER_ACTION
from treadle.tools.quoted_words import is_own
from treadle.workspace.files.text import visible

if TYPE_CHECKING:
    from treadle.tools.browser_steps import BrowserStep, PageView
    from treadle.workspace.namespaces.listeners import CommandServers


class BrowserPage(Protocol):
    """A browser that shows one page."""

    @property
    def url(self) -> str:
        """The address that is shown."""
        ...

    async def take(self, step: "BrowserStep") -> "PageView":
        """Take a step and look. Raises `ToolError`."""
        ...

    async def close(self) -> None:
        """End the browser and all it left."""
        ...


class Opener(Protocol):
    """Starts a browser."""

    async def __call__(self) -> BrowserPage:
        """Start it, with an empty profile and nothing shown. Raises `ToolError`."""
        ...


class BrowserSession:
    """The one browser of a session, while there is one."""

    def __init__(self, opener: Opener, servers: "CommandServers | None" = None) -> None:
        self._opener = opener
        self.servers = servers
        self._opening: asyncio.Task[BrowserPage] | None = None

    @property
    def page(self) -> BrowserPage | None:
        """The browser, if it is open."""
        opening = self._opening
        if opening is None or not opening.done() or opening.cancelled() or opening.exception() is not None:
            return None
        return opening.result()

    async def opened(self) -> BrowserPage:
        """Give the browser, started if need be; who is cancelled leaves it to the next. Raises `ToolError`."""
        if self._opening is None or (self._opening.done() and self.page is None):
            self._opening = asyncio.ensure_future(_open(self._opener))
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """End the browser if there is one, or its start."""
        opening, self._opening = self._opening, None
        if opening is None:
            return
        opening.cancel()
        await asyncio.wait([opening])
        if not opening.cancelled() and opening.exception() is None:
            await opening.result().close()


async def _open(opener: Opener) -> BrowserPage:
    return await opener()


async def open_chromium(servers: "CommandServers | None" = None) -> BrowserPage:
    """Start Chromium through Playwright, which is loaded only now: few sessions need it."""
    from treadle.tools.chromium import start_browser

    return await start_browser(servers=servers)


class BrowserAction(Struct, frozen=True):
    """Drives the browser of the session; who makes it closes `session` at the end."""

    session: BrowserSession

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return BROWSER_ACTION

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the address that the action concerns: the one to open, or the one that is shown."""
        # Loaded here, like the browser itself: few sessions need them.
        from treadle.tools.browser_steps import Close, Launch, accesses, describe_step, read_action, view_result

        action = read_action(arguments)
        own = partial(is_own, servers=self.session.servers)
        if isinstance(action, Launch):
            action = Launch(action.url, own=own(action.url))
        shown = self.session.page.url if self.session.page else ""
        if not shown and not isinstance(action, Launch | Close):
            raise ToolError("No browser is open. Begin with the action launch and a URL.")

        async def run(output: Output) -> CallResult:  # noqa: ARG001 - the result has it all
            if isinstance(action, Close):
                await self.session.close()
                return result_text(Outcome.OK, "The browser is closed.")
            if not isinstance(action, Launch):
                self._still(shown)
            page = await self.session.opened()
            return view_result(await page.take(action))

        return Prepared(
            accesses=accesses(action, shown, own=own),
            preview=Preview(title="Browser", text=visible(describe_step(action, shown))),
            run=run,
        )

    def _still(self, shown: str) -> None:
        """Check that the page is still where it was when the action was judged."""
        page = self.session.page
        if page is None:
            raise ToolError("The browser was closed meanwhile. Begin again with the action launch.")
        if check_url(page.url).host != check_url(shown).host:
            raise ToolError(
                f"Not done: the page went from {visible(shown)} to {visible(page.url)} by itself meanwhile. Take a "
                "screenshot, and act on what is there now."
            )
