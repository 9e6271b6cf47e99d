"""The screen of the browsers that were let in: shutting one out, and a link that lets another device in."""

import io
from urllib.parse import urlsplit

import segno
from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.program import is_loopback
from treadle.present.escape import printable
from treadle.protocol.errors import ConfigError
from treadle.web.page_keys import LINK_SECONDS, Keys
from treadle.web.page_requests import body_of, done, page, visitor_of
from treadle.web.rights import PageRoute, require
from treadle.web.templating import render

_PROGRAMS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrom", "Chrome"), ("Safari", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS", "macOS"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def browser_in_words(agent: str) -> str:
    """Say what a browser calls itself, in a word or two; empty for what is not known."""
    named = [next((word for sign, word in known if sign in agent), "") for known in (_PROGRAMS, _SYSTEMS)]
    return " on ".join(filter(None, named))


def device_link(host: str, secret: str, fingerprint: str) -> str:
    """Write the link for another device; it names the certificate to be found there, as 64 hexadecimal digits."""
    return f"https://{host}/#token={secret}&sha256={fingerprint.replace(':', '').lower()}"


def link_address(request: Request, secret: str) -> str:
    """Write the address that a link leads to."""
    state = request.app.state
    if state.network:
        return device_link(state.network, secret, state.fingerprint)
    return f"{request.url.scheme}://{request.headers['host']}/#token={secret}"


def qr_picture(address: str) -> Markup:
    """Draw an address as a QR code."""
    drawn = io.BytesIO()
    made = segno.make(address, error="m", micro=False)
    made.save(drawn, kind="svg", scale=4, xmldecl=False, dark="#000000", light="#ffffff", title="QR code of the link")
    return Markup(drawn.getvalue().decode())  # noqa: S704 - drawn here, of an address made here


async def _show(request: Request) -> Response:
    keys, me = _keys(request), visitor_of(request)
    return await page(
        request,
        "devices.html",
        browsers=sorted(keys.visitors(), key=lambda one: -one[1]),
        me=me.name,
        keeps=keys.keeps,
        network=request.app.state.network,
        fingerprint=request.app.state.fingerprint,
    )


class _Nothing(Struct):
    pass


async def _link(request: Request) -> Response:
    """Make a link, which lets one device in."""
    await body_of(request, _Nothing)
    address = link_address(request, _keys(request).new_link())
    shown = render(
        "link.html",
        address=address,
        picture="" if is_loopback(urlsplit(address).hostname or "") else qr_picture(address),
        minutes=int(LINK_SECONDS // 60),
        fingerprint=request.app.state.fingerprint,
    )
    return HTMLResponse(shown)


class _Renamed(Struct):
    name: str
    new: str


async def _rename(request: Request) -> Response:
    """Call a device otherwise."""
    said = await body_of(request, _Renamed)
    if not _keys(request).rename(said.name, printable(said.new)):
        raise ConfigError("device-name", "There is no name, or another device has it.", fix="Choose another name.")
    return done()


class _Kept(Struct):
    name: str
    kept: bool


async def _keep(request: Request) -> Response:
    """Let a device stay signed in when Treadle is started again, or not."""
    said = await body_of(request, _Kept)
    _keys(request).keep(said.name, kept=said.kept)
    return done()


class _Answered(Struct):
    id: str
    yes: bool
    keep: bool = False


async def _answer_knock(request: Request) -> Response:
    """Let a device in that knocked, or not."""
    said = await body_of(request, _Answered)
    if not _keys(request).answer_knock(said.id, yes=said.yes, keep=said.keep):
        raise ConfigError("device-gone", "This device does not wait any more.", fix="Make another link for it.")
    return done()


class _ShutOut(Struct):
    name: str


async def _shut_out(request: Request) -> Response:
    """Shut a browser out; a paired one can do that to itself alone."""
    name = (await body_of(request, _ShutOut)).name
    if name != visitor_of(request).name:
        require(visitor_of(request), Reach.DEVICES)
    _keys(request).shut_out(name)
    return done()


def _keys(request: Request) -> Keys:
    keys = request.app.state.keys
    assert isinstance(keys, Keys)  # noqa: S101 - the application has put it there
    return keys


ROUTES = (
    PageRoute("/devices", _show, Reach.SEE),
    PageRoute("/devices/link", _link, Reach.DEVICES, methods=["POST"]),
    PageRoute("/devices/name", _rename, Reach.DEVICES, methods=["POST"]),
    PageRoute("/devices/keep", _keep, Reach.DEVICES, methods=["POST"]),
    PageRoute("/devices/knock", _answer_knock, Reach.DEVICES, methods=["POST"]),
    PageRoute("/devices/out", _shut_out, Reach.WORK, methods=["POST"]),
)
