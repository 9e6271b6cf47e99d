"""Serving several users until a signal ends it: then turns have a while to end, and nothing new begins."""

import asyncio
import signal
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.program import HttpServer, is_loopback, listen, log_quietly, url_host
from treadle.present.words import counted
from treadle.protocol.errors import ConfigError
from treadle.web.listening import page_config
from treadle.web.service.service_front import FrontAddress, ServiceFront
from treadle.web.service.service_metrics import ServiceMetrics
from treadle.web.service.service_users import UserBook
from treadle.web.service.user_pages import PageTerms, UserPages


class ServiceWishes(Struct, frozen=True, kw_only=True):
    """What the command line says of a service. `turns` of all users work at the same time."""

    data: Path
    host: str
    port: int
    address: str
    user_header: str
    turns: int
    grace: float


async def serve_users(wishes: ServiceWishes, terms: PageTerms) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. Raises `ConfigError` for what cannot be served."""
    if terms.traces:
        import_module("treadle.web.service.turn_traces")  # what is missing is said before anybody signs in
    users = UserBook(wishes.data)
    if wishes.user_header and not users.has_proxy:
        raise ConfigError(
            "service-proxy",
            "--user-header lets a proxy name the user, which needs a secret that the proxy sends along.",
            why="Else every program that reaches this port could be anybody.",
            fix="Make one with `treadle serve proxy`, and let the proxy send it as the header x-treadle-proxy.",
        )
    users.all()  # what cannot be read is said at once
    listening = listen(wishes.host, wishes.port)
    address = _address(wishes, listening.getsockname()[1])
    terms = replace(terms, hosts=address.names, scheme=address.scheme)
    log_quietly(serving=True)
    metrics = ServiceMetrics()
    with tempfile.TemporaryDirectory(prefix="treadle-serve-") as sockets:
        async with UserPages(users, terms, Path(sockets), metrics, most=wishes.turns) as pages:
            front = ServiceFront(users, pages, address, metrics)
            server = HttpServer(page_config(front))
            _say(f"{address.scheme}://{address.host}/\n")
            serving = asyncio.create_task(server.serve(sockets=[listening]), name="serving users")
            try:
                return await _until_drained(front, pages, serving, wishes.grace)
            finally:
                server.end()
                await serving


def _address(wishes: ServiceWishes, port: int) -> FrontAddress:
    """Say how browsers reach it. Raises `ConfigError` where that would be without TLS over a network."""
    named = urlsplit(wishes.address)
    if wishes.address and (named.scheme not in ("http", "https") or not named.netloc or named.path not in ("", "/")):
        raise ConfigError(
            "service-address", f"{wishes.address} is no address.", fix="Give one such as https://treadle.example.org"
        )
    if named.scheme != "https" and not is_loopback(wishes.host):
        raise ConfigError(
            "service-address",
            f"--host {wishes.host} opens the service to the network without TLS.",
            why="Tokens and cookies could be read on their way.",
            fix="Put a proxy with TLS before it, and name its address with --address https://...",
        )
    own = f"{url_host(wishes.host)}:{port}"
    if not wishes.address:
        return FrontAddress(
            scheme="http", host=own, names=(own, f"localhost:{port}"), user_header=wishes.user_header.lower()
        )
    return FrontAddress(
        scheme=named.scheme,
        host=named.netloc.lower(),
        names=(named.netloc.lower(),),
        user_header=wishes.user_header.lower(),
    )


async def _until_drained(front: ServiceFront, pages: UserPages, serving: "asyncio.Task[None]", grace: float) -> int:
    """Wait for a signal, then for the turns that work; a second signal, or the end of the grace, waits no longer."""
    loop = asyncio.get_running_loop()
    heard: list[int] = []
    event = asyncio.Event()

    def hear(number: int) -> None:
        heard.append(number)
        event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, hear, number)
    serving.add_done_callback(lambda _: event.set())
    await event.wait()
    if not heard:
        await serving
        return 1
    front.draining = True
    pages.drain()
    if pages.working:
        turns = counted(pages.working, "turn")
        sys.stderr.write(f"Waiting up to {grace:.0f} s for {turns}. Another signal ends them immediately.\n")
    with suppress(TimeoutError), pages.changed.notifying(event):
        async with asyncio.timeout(grace):
            while pages.working and len(heard) == 1:
                event.clear()
                await event.wait()
    return 0 if heard[0] == signal.SIGTERM else 128 + heard[0]


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
