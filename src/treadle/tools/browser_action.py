"""browser_action: one step in a real browser, and a picture of what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, assert_never

from treadle.engine.ports import Output, Prepared
from treadle.policy.urls import check_url
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Image, Text
from treadle.protocol.tools import (
    Access,
    CallResult,
    FetchUrl,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)
from treadle.tools.declare import parameters, prompt, text
from treadle.workspace.text import visible
from treadle.workspace.untrusted import wrap

WIDTH, HEIGHT = 1280, 800
"""The size of the page in pixels, and of each screenshot."""

_ACTIONS = ("launch", "click", "type", "press", "scroll_down", "scroll_up", "screenshot", "close")
_MOST_TEXT = 10_000

_SPEC = ToolSpec(
    name="browser_action",
    description=prompt(__file__),
    parameters=parameters(
        {
            "action": {"type": "string", "enum": list(_ACTIONS), "description": "What to do."},
            "url": text("For launch: the URL, with http:// or https://."),
            "coordinate": text("For click: where, as `x,y`."),
            "selector": text("For click and type: the element, as a CSS selector."),
            "text": text("For type: the text."),
            "key": text("For press: the key."),
        },
        optional=("url", "coordinate", "selector", "text", "key"),
    ),
    traits=ToolTraits(kind=ToolKind.FETCH, effect=ToolEffect.ONCE),
    risk=Risk.READ_OUTSIDE,
)


@dataclass(frozen=True, slots=True)
class Launch:
    """Open a URL."""

    url: str


@dataclass(frozen=True, slots=True)
class ClickAt:
    """Click on a point of the page."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class ClickOn:
    """Click on an element."""

    selector: str


@dataclass(frozen=True, slots=True)
class Type:
    """Write text where the focus is, or into an element."""

    text: str
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Press:
    """Press a key."""

    key: str


@dataclass(frozen=True, slots=True)
class Scroll:
    """Scroll by so many pixels; negative is up."""

    pixels: int


@dataclass(frozen=True, slots=True)
class Look:
    """Only look."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the browser."""


Step: TypeAlias = Launch | ClickAt | ClickOn | Type | Press | Scroll | Look
Action: TypeAlias = Step | Close


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a page looks like after a step. `picture` is a JPEG in base64, empty when none could be taken."""

    url: str
    title: str
    picture: str
    events: tuple[str, ...] = ()


class Page(Protocol):
    """A browser that shows one page."""

    @property
    def url(self) -> str:
        """The address that is shown."""
        ...

    async def take(self, step: Step) -> View:
        """Take a step and look. Raises `ToolError`."""
        ...

    async def close(self) -> None:
        """End the browser and all it left."""
        ...


class Opener(Protocol):
    """Starts a browser."""

    async def __call__(self) -> Page:
        """Start it, with an empty profile and nothing shown. Raises `ToolError`."""
        ...


@dataclass(slots=True)
class BrowserSession:
    """The one browser of a session, while there is one."""

    opener: Opener
    page: Page | None = None

    async def opened(self) -> Page:
        """Give the browser, started if need be. Raises `ToolError`."""
        if self.page is None:
            self.page = await self.opener()
        return self.page

    async def close(self) -> None:
        """End the browser if there is one."""
        page, self.page = self.page, None
        if page is not None:
            await page.close()


async def open_chromium() -> Page:
    """Start Chromium through Playwright, which is loaded only now: few sessions need it."""
    from treadle.tools.chromium import start

    return await start()


@dataclass(frozen=True, slots=True)
class BrowserAction:
    """Drives the browser of the session; who makes it closes `session` at the end."""

    session: BrowserSession

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the address that the action concerns: the one to open, or the one that is shown."""
        action = read_action(arguments)
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
            return _result(await page.take(action))

        return Prepared(
            accesses=_accesses(action, shown),
            preview=Preview(title="Browser", text=visible(_describe(action, shown))),
            run=run,
        )

    def _still(self, shown: str) -> None:
        """Check that the page is still where it was when the action was judged."""
        page = self.session.page
        if page is None:
            raise ToolError("The browser was closed in between. Begin again with the action launch.")
        if check_url(page.url).host != check_url(shown).host:
            raise ToolError(
                f"Not done: the page went from {visible(shown)} to {visible(page.url)} by itself in between. "
                "Take a screenshot, and act on what is there now."
            )


def read_action(arguments: Mapping[str, Any]) -> Action:
    """Read the arguments as an action. Raises `ToolError` for what is missing or makes no sense."""
    match arguments["action"]:
        case "launch":
            return Launch(_web_url(_needed(arguments, "url")))
        case "click":
            return _click(arguments)
        case "type":
            return Type(_needed(arguments, "text")[:_MOST_TEXT], arguments.get("selector", ""))
        case "press":
            return Press(_needed(arguments, "key"))
        case "scroll_down":
            return Scroll(HEIGHT - 100)
        case "scroll_up":
            return Scroll(100 - HEIGHT)
        case "screenshot":
            return Look()
        case "close":
            return Close()
        case other:
            raise ToolError(f"There is no action {other!r}. There is: {', '.join(_ACTIONS)}.", invalid=True)


def _needed(arguments: Mapping[str, Any], name: str) -> str:
    value: str = arguments.get(name, "")
    if not value:
        raise ToolError(f"The action {arguments['action']} needs `{name}`.", invalid=True)
    return value


def _web_url(url: str) -> str:
    check = check_url(url.strip())
    if check.problem or not check.host:
        raise ToolError(f"{url!r} cannot be opened: {check.problem or 'it has no host'}.", invalid=True)
    return url.strip()


def _click(arguments: Mapping[str, Any]) -> ClickAt | ClickOn:
    coordinate, selector = arguments.get("coordinate", ""), arguments.get("selector", "")
    if bool(coordinate) == bool(selector):
        raise ToolError("The action click needs either `coordinate` or `selector`.", invalid=True)
    if selector:
        return ClickOn(selector)
    numbers = [part.strip() for part in coordinate.split(",")]
    if len(numbers) != 2 or not all(part.isdecimal() and len(part) < 6 for part in numbers):
        raise ToolError(f"{coordinate!r} is no coordinate. Write it as `x,y`, such as `640,400`.", invalid=True)
    x, y = map(int, numbers)
    if x >= WIDTH or y >= HEIGHT:
        raise ToolError(f"{x},{y} is outside of the page's {WIDTH}x{HEIGHT} pixels. Scroll first.", invalid=True)
    return ClickAt(x, y)


def _accesses(action: Action, shown: str) -> tuple[Access, ...]:
    match action:
        case Launch(url):
            return (FetchUrl(url=url),)
        case ClickAt() | ClickOn() | Type() | Press():
            return (FetchUrl(url=shown, method="POST"),)
        case Scroll() | Look():
            return (FetchUrl(url=shown),)
        case Close():
            return ()
        case _:
            assert_never(action)


def _describe(action: Action, shown: str) -> str:
    match action:
        case Launch(url):
            return f"Open {url}"
        case ClickAt(x, y):
            return f"Click at {x},{y} on {shown}"
        case ClickOn(selector):
            return f"Click on {selector} on {shown}"
        case Type(content, selector):
            return f"Type into {selector or 'the focused field'} on {shown}:\n{content}"
        case Press(key):
            return f"Press {key} on {shown}"
        case Scroll(pixels):
            return f"Scroll {'down' if pixels > 0 else 'up'} on {shown}"
        case Look():
            return f"Look at {shown}"
        case Close():
            return "Close the browser"
        case _:
            assert_never(action)


def _result(view: View) -> CallResult:
    lines = [f"Title: {view.title}", *(view.events or ("(nothing on the console, nothing failed to load)",))]
    report = Text(text=wrap("\n".join(lines), view.url))
    if not view.picture:
        return CallResult(outcome=Outcome.OK, content=(report, Text(text="[no screenshot could be taken]")))
    return CallResult(outcome=Outcome.OK, content=(report, Image(media_type="image/jpeg", data=view.picture)))
