"""Chromium through Playwright: one window with an empty profile, reached and reaching only through the gateway."""

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import assert_never
from urllib.parse import urlsplit

from treadle.policy.urls import HostKind, host_kind
from treadle.protocol.errors import ToolError
from treadle.tools.browser_steps import (
    HEIGHT,
    WIDTH,
    BrowserStep,
    ClickAt,
    ClickOn,
    Launch,
    Observe,
    PageView,
    PressKey,
    Scroll,
    Type,
)
from treadle.workspace.commands.installed_programs import CHROMIUM, chromium_program
from treadle.workspace.commands.variables import child_variables
from treadle.workspace.files.text import visible
from treadle.workspace.installed import install_command
from treadle.workspace.namespaces.listeners import CommandServers
from treadle.workspace.network.checked_addresses import HostPort, Resolver, resolve_host
from treadle.workspace.network.gateway import REFUSED_HEADER, Gateway

try:
    from playwright import async_api
except ModuleNotFoundError as missing:
    raise ToolError(
        "The browser needs Playwright, which is not installed: the user can add it by "
        f"`{install_command('browser')}`. Until then use web_fetch, or curl with execute_command."
    ) from missing

_OPTIONS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Names are resolved by the gateway alone, and nothing goes around it.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
_OWN_ERRANDS = """
    accounts.google.com android.clients.google.com clients1.google.com clients2.google.com clientservices.googleapis.com
    content-autofill.googleapis.com edgedl.me.gvt1.com mtalk.google.com optimizationguide-pa.googleapis.com
    redirector.gvt1.com safebrowsing.googleapis.com update.googleapis.com
"""
"""Hosts that Chromium asks for by itself, whatever the options say."""

_LOAD_MS = 30_000
_ACTION_MS = 5_000
_SETTLE_MS = 2_000
_CLOSE_SECONDS = 5.0
_TRIES = 4
_BETWEEN_TRIES = 0.1  # seconds
_HANGS = "If the page hangs, use the action close before you launch another."
_QUALITIES = (80, 50, 25)
_MOST_PICTURE = 700_000
_MOST_EVENTS = 50
_EVENT_WIDTH = 500


def find_chromium(variables: Mapping[str, str]) -> str:
    """Find the program: `TREADLE_CHROMIUM`, or a usual name on the PATH. Raises `ToolError`."""
    if found := chromium_program(variables):
        return found
    named = variables.get("TREADLE_CHROMIUM", "")
    what = (
        f"TREADLE_CHROMIUM names {named}, which is not a program"
        if named
        else f"none of {', '.join(CHROMIUM)} was found"
    )
    raise ToolError(
        f"There is no Chromium: {what}. Tell the user to install one (such as `apt install chromium`) or to set "
        "TREADLE_CHROMIUM to its path. Until then use web_fetch, or curl with execute_command."
    )


async def start_browser(
    *,
    resolver: Resolver = resolve_host,
    variables: Mapping[str, str] | None = None,
    servers: CommandServers | None = None,
) -> "Chromium":
    """Start the browser; `variables` is the environment to choose from. Raises `ToolError`.

    On this machine it sees the `servers` of the session, and others only where the policy was asked about them.
    """
    variables = os.environ if variables is None else variables
    program = await asyncio.to_thread(find_chromium, variables)
    async with contextlib.AsyncExitStack() as stack:
        gateway = Gateway(resolver, closed=frozenset(_OWN_ERRANDS.split()), servers=servers)
        proxy = await gateway.start()
        stack.push_async_callback(gateway.close)
        try:
            playwright = await _start_driver()
            stack.push_async_callback(playwright.stop)
            browser = await playwright.chromium.launch(
                executable_path=program,
                headless=True,
                args=list(_OPTIONS),
                env=dict(child_variables(variables)),
                proxy={"server": proxy, "bypass": "<-loopback>"},
                # The sandbox of Chromium refuses to work for root.
                chromium_sandbox=os.getuid() != 0,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=_LOAD_MS,
            )
            stack.push_async_callback(browser.close)
            context = await browser.new_context(
                viewport={"width": WIDTH, "height": HEIGHT}, accept_downloads=False, service_workers="block"
            )
            page = await context.new_page()
        except async_api.Error as error:
            raise ToolError(
                f"Chromium ({program}) could not be started: {_first_line(error)} Tell the user."
            ) from error
        return Chromium(page, gateway, stack.pop_all())
    raise AssertionError("the block above returns or raises")


async def _start_driver() -> async_api.Playwright:
    """Start Playwright's driver. Its start cannot be cut short without leaving it behind, so a cancel waits for it."""
    starting = asyncio.ensure_future(async_api.async_playwright().start())
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await (await starting).stop()
        raise


class Chromium:
    """A running browser and the page that it shows: the newest one that was opened and not closed."""

    def __init__(self, page: async_api.Page, gateway: Gateway, owned: contextlib.AsyncExitStack) -> None:
        self._gateway = gateway
        self._owned = owned
        self._events: list[str] = []
        self._pages: list[async_api.Page] = []
        self._last_url = ""
        self._follow(page)
        page.context.on("page", self._on_new_page)

    @property
    def url(self) -> str:
        """The address that is shown; that of the last web page when a blank one is."""
        shown = self._pages[-1].url if self._pages else ""
        return shown if urlsplit(shown).scheme in ("http", "https") else self._last_url

    async def take(self, step: BrowserStep) -> PageView:
        """Take a step and look. Raises `ToolError`."""
        if not self._pages:
            raise ToolError("The page closed itself. Use the action close, and then launch.")
        page = self._pages[-1]
        try:
            async with self._settled():
                await self._do(page, step)
            return await self._look()
        except async_api.Error as error:
            refused = self._gateway.take_refusals() if isinstance(step, Launch) else ()
            hangs = (
                (_HANGS,) if isinstance(step, Launch | Observe) and isinstance(error, async_api.TimeoutError) else ()
            )
            raise ToolError(" ".join((_why(error), *refused, *hangs, _advice(step)))) from error

    async def close(self) -> None:
        """End the browser with its profile, and the gateway."""
        with contextlib.suppress(async_api.Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._owned.aclose()

    @contextlib.asynccontextmanager
    async def _settled(self) -> AsyncIterator[None]:
        """After a step wait a little for what it set off."""
        yield
        with contextlib.suppress(async_api.TimeoutError):
            if self._pages:
                await self._pages[-1].wait_for_load_state("networkidle", timeout=_SETTLE_MS)

    async def _do(self, page: async_api.Page, step: BrowserStep) -> None:
        match step:
            case Launch(url, own):
                self._allow(url, own=own)
                self._last_url = url
                # What was said before, perhaps by a page that did not come about, is no news of this one.
                self._events.clear()
                answer = await _go(page, url)
                if answer is not None and REFUSED_HEADER in answer.headers:
                    raise async_api.Error("The page was not loaded.")
            case ClickAt(x, y):
                await page.mouse.click(x, y)
            case ClickOn(selector):
                await page.locator(selector).click(timeout=_ACTION_MS)
            case Type(text, ""):
                await page.keyboard.type(text)
            case Type(text, selector):
                await page.locator(selector).fill(text, timeout=_ACTION_MS)
            case PressKey(key):
                await page.keyboard.press(key)
            case Scroll(pixels):
                await page.mouse.move(WIDTH / 2, HEIGHT / 2)
                await page.mouse.wheel(0, pixels)
            case Observe():
                pass
            case _:
                assert_never(step)

    def _allow(self, url: str, *, own: bool) -> None:
        """Open the gateway for a URL of this machine or network: the policy saw it and let it pass.

        For the session's `own` servers it is open while one of them was opened last, so that no page of the web reaches
        them; for what this machine serves at the same port it stays closed.
        """
        self._gateway.opens_own = own
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        if not own and host_kind(host) in (HostKind.LOOPBACK, HostKind.PRIVATE):
            self._gateway.allow(HostPort(host, parts.port or (443 if parts.scheme == "https" else 80)))

    async def _look(self) -> PageView:
        if not self._pages:
            return PageView(
                url=self._last_url, title="(the page closed itself)", picture="", events=self._take_events()
            )
        page = self._pages[-1]
        picture, title = await _picture(page), await page.title()
        if self._pages and self._pages[-1] is not page:
            # Another page has opened meanwhile, as links do that open one.
            with contextlib.suppress(async_api.TimeoutError):
                await self._pages[-1].wait_for_load_state("load", timeout=_SETTLE_MS)
            return await self._look()
        self._last_url = self.url
        return PageView(
            url=page.url,
            title=title,
            picture=base64.b64encode(picture).decode("ascii"),
            events=self._take_events(),
        )

    def _take_events(self) -> tuple[str, ...]:
        events, self._events = self._events, []
        left_out = max(0, len(events) - _MOST_EVENTS)
        more = [f"[{left_out} more]"] if left_out else []
        return (*events[:_MOST_EVENTS], *more, *(f"refused: {why}" for why in self._gateway.take_refusals()))

    # What happens by itself

    def _follow(self, page: async_api.Page) -> None:
        self._pages.append(page)
        page.on("close", self._on_close)
        page.on("console", lambda message: self._note(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: self._note(f"script error: {error.message}"))
        page.on("requestfailed", self._on_failure)
        page.on("response", self._on_response)
        page.on("dialog", self._on_dialog)
        page.on("download", lambda download: self._note(f"download not kept: {download.url}"))
        page.on("crash", lambda _: self._note("the page crashed; launch it again"))

    def _note(self, event: str) -> None:
        self._events.append(event if len(event) <= _EVENT_WIDTH else f"{event[:_EVENT_WIDTH]}...")
        if len(self._events) > 10 * _MOST_EVENTS:
            del self._events[_MOST_EVENTS:-_MOST_EVENTS]

    def _on_new_page(self, page: async_api.Page) -> None:
        if page not in self._pages:
            self._follow(page)
            self._note(f"a new page opened and is now shown: {page.url}")

    def _on_close(self, page: async_api.Page) -> None:
        if page in self._pages:
            self._pages.remove(page)

    def _on_failure(self, request: async_api.Request) -> None:
        self._note(f"failed: {request.method} {request.url} ({request.failure})")

    def _on_response(self, response: async_api.Response) -> None:
        if response.status >= 400:
            self._note(f"status {response.status}: {response.request.method} {response.url}")

    async def _on_dialog(self, dialog: async_api.Dialog) -> None:
        if dialog.type == "beforeunload":
            # To dismiss it would be to stay on the page for ever.
            with contextlib.suppress(async_api.Error):
                await dialog.accept()
            return
        self._note(f"{dialog.type} dialog, dismissed: {dialog.message}")
        with contextlib.suppress(async_api.Error):
            await dialog.dismiss()


async def _go(page: async_api.Page, url: str) -> async_api.Response | None:
    """Open a URL, also where what was opened before it, such as a page of errors, comes in between."""
    for _ in range(_TRIES - 1):
        try:
            return await page.goto(url, timeout=_LOAD_MS, wait_until="load")
        except async_api.Error as error:
            if "interrupted by another navigation" not in error.message:
                raise
            await asyncio.sleep(_BETWEEN_TRIES)
    return await page.goto(url, timeout=_LOAD_MS, wait_until="load")


async def _picture(page: async_api.Page) -> bytes:
    """Take a screenshot, as fine as its size allows."""
    picture = b""
    for quality in _QUALITIES:
        picture = await page.screenshot(type="jpeg", quality=quality, scale="css", timeout=_LOAD_MS)
        if len(picture) <= _MOST_PICTURE:
            break
    return picture


def _why(error: async_api.Error) -> str:
    if isinstance(error, async_api.TimeoutError):
        return "Timed out: the page does not load, or has no such element that is visible and usable."
    return visible(_first_line(error))


def _first_line(error: async_api.Error) -> str:
    """Say what went wrong without the log of the library's own steps."""
    line = error.message.strip().partition("\n")[0].rstrip(".")
    return f"{line.partition(': ')[2] if ': ' in line[:40] else line}."


def _advice(step: BrowserStep) -> str:
    match step:
        case Launch():
            return "Check the address and that the server runs, then launch again."
        case ClickOn() | Type():
            return "Take a screenshot to see what is there, or use another selector or a coordinate."
        case ClickAt() | PressKey() | Scroll() | Observe():
            return "Take a screenshot to see how the page is, or launch it again."
        case _:
            assert_never(step)
