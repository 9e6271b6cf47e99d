"""The steps that a browser can take, read from the arguments of a call, and what each is judged as and shown as."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from treadle.policy.urls import check_url
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Image, Text
from treadle.protocol.tools import Access, CallResult, FetchUrl, Outcome
from treadle.tools.quoted_words import origin_of_page
from treadle.workspace.untrusted import mark_untrusted

WIDTH, HEIGHT = 1280, 800
"""The size of the page in pixels, and of each screenshot."""

ACTIONS = ("launch", "click", "type", "press", "scroll_down", "scroll_up", "screenshot", "close")
_MOST_TEXT = 10_000


@dataclass(frozen=True, slots=True)
class Launch:
    """Open a URL."""

    url: str
    own: bool = False
    """Whether a server of the session answers it, and nothing else may."""


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
class PressKey:
    """Press a key."""

    key: str


@dataclass(frozen=True, slots=True)
class Scroll:
    """Scroll by so many pixels; negative is up."""

    pixels: int


@dataclass(frozen=True, slots=True)
class Observe:
    """Only look."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the browser."""


BrowserStep: TypeAlias = Launch | ClickAt | ClickOn | Type | PressKey | Scroll | Observe
Action: TypeAlias = BrowserStep | Close


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """What a page looks like after a step. `picture` is a JPEG in base64, empty when none could be taken."""

    url: str
    title: str
    picture: str
    events: tuple[str, ...] = ()


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
            return PressKey(_needed(arguments, "key"))
        case "scroll_down":
            return Scroll(HEIGHT - 100)
        case "scroll_up":
            return Scroll(100 - HEIGHT)
        case "screenshot":
            return Observe()
        case "close":
            return Close()
        case other:
            raise ToolError(f"There is no action {other!r}. Use one of: {', '.join(ACTIONS)}.", invalid=True)


def _needed(arguments: Mapping[str, Any], name: str) -> str:
    value: str = arguments.get(name, "")
    if not value:
        raise ToolError(f"The action {arguments['action']} needs `{name}`. Send it with the call.", invalid=True)
    return value


def _web_url(url: str) -> str:
    check = check_url(url.strip())
    if check.problem or not check.host:
        why = check.problem or "it has no host"
        raise ToolError(f"{url!r} cannot be opened: {why}. Give a URL like http://localhost:8000/.", invalid=True)
    return url.strip()


def _click(arguments: Mapping[str, Any]) -> ClickAt | ClickOn:
    coordinate, selector = arguments.get("coordinate", ""), arguments.get("selector", "")
    if bool(coordinate) == bool(selector):
        raise ToolError("The action click needs either `coordinate` or `selector`. Give exactly one.", invalid=True)
    if selector:
        return ClickOn(selector)
    numbers = [part.strip() for part in coordinate.strip("[]() ").split(",")]
    if len(numbers) != 2 or not all(part.isdecimal() and len(part) < 6 for part in numbers):
        raise ToolError(f"{coordinate!r} is not a coordinate. Write it as `x,y`, such as `640,400`.", invalid=True)
    x, y = map(int, numbers)
    if x >= WIDTH or y >= HEIGHT:
        raise ToolError(f"{x},{y} is outside the page's {WIDTH}x{HEIGHT} pixels. Scroll first.", invalid=True)
    return ClickAt(x, y)


def accesses(action: Action, shown: str, own: Callable[[str], bool]) -> tuple[Access, ...]:
    """Name what a step sends a request to; `own` tells the session's servers from others."""
    match action:
        case Launch(url, own=own_server):
            return (FetchUrl(url=url, own=own_server),)
        case ClickAt() | ClickOn() | Type() | PressKey():
            return (FetchUrl(url=shown, method="POST", own=own(shown)),)
        case Scroll() | Observe():
            return (FetchUrl(url=shown, own=own(shown)),)
        case Close():
            return ()
        case _:
            assert_never(action)


def describe_step(action: Action, shown: str) -> str:
    match action:
        case Launch(url):
            return f"Open {url}"
        case ClickAt(x, y):
            return f"Click at {x},{y} on {shown}"
        case ClickOn(selector):
            return f"Click on {selector} on {shown}"
        case Type(content, selector):
            return f"Type into {selector or 'the focused field'} on {shown}:\n{content}"
        case PressKey(key):
            return f"Press {key} on {shown}"
        case Scroll(pixels):
            return f"Scroll {'down' if pixels > 0 else 'up'} on {shown}"
        case Observe():
            return f"Look at {shown}"
        case Close():
            return "Close the browser"
        case _:
            assert_never(action)


_NO_PICTURE = Text(text="[no screenshot could be taken]")


def view_result(view: PageView) -> CallResult:
    lines = [f"Title: {view.title}", *(view.events or ("(nothing on the console, nothing failed to load)",))]
    report = Text(text=mark_untrusted("\n".join(lines), view.url))
    if not view.picture:
        return CallResult(
            outcome=Outcome.OK,
            origin=origin_of_page(view.url),
            content=(report, Text(text="[no screenshot could be taken]")),
        )
    return CallResult(
        outcome=Outcome.OK,
        origin=origin_of_page(view.url),
        content=(report, Image(media_type="image/jpeg", data=view.picture)),
    )
