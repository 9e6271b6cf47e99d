"""Serving the page: on loopback, or on this computer's network where that is asked for."""

import asyncio
import os
import socket
import ssl
import sys
import termios
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import segno

from treadle.door.opening import run_schedules
from treadle.door.program import (
    harmless,
    is_loopback,
    keep_devices,
    kept_devices,
    listen,
    log_quietly,
    until_signal,
    url_host,
)
from treadle.present.escape import printable
from treadle.protocol.errors import ConfigError
from treadle.web.application import web_application
from treadle.web.book import SessionBook
from treadle.web.event_stream_out import EventStreams
from treadle.web.listening import PageServer, page_config
from treadle.web.page_keys import Keys
from treadle.web.screens.devices import device_link
from treadle.web.templating import load_templates

USUAL_PORT = 8424
"""The port where none is named, so that addresses last; the next free one where it is taken."""

_NEXT_PORTS = 16

_LOOPBACK = "127.0.0.1"
_ALL = ("0.0.0.0", "::")  # noqa: S104 - where it is asked for
_ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses of no computer: from where this one would go to them is its address on the network. Nothing is sent."""


async def serve_page(
    folder: Path,
    flags: Mapping[str, Any],
    *,
    port: int | None,
    opens: bool,
    trust: bool,
    network: str = "",
    bell: bool = False,
) -> int:
    """Serve until a signal; returns the exit code. Raises `ConfigError` for an address that cannot be used.

    Without a `port` it is the usual one or the next that is free. `bell` rings the terminal for each question.

    `network` is the address of this computer that other devices reach it at, or `0.0.0.0` for all that it has, `::` for
    those of IPv6 besides. One of loopback opens it to nobody.
    """
    near, network = (network, "") if is_loopback(network) else (_LOOPBACK, network)
    listening = _listen(port, near, network)
    log_quietly(serving=True)
    near, number = (_LOOPBACK if network in _ALL else listening[0].getsockname()[0]), listening[0].getsockname()[1]
    far = _own_address() if network in _ALL else listening[-1].getsockname()[0]
    shared = f"{url_host(far)}:{number}" if network else ""
    printed, encryption = _encryption(far) if network else ("", None)
    # What is kept is sent over TLS alone: whoever has this port while Treadle does not run is not sent it.
    keys = Keys(kept=kept_devices(number), note=partial(keep_devices, number)) if network and port != 0 else Keys()
    async with SessionBook(folder, flags, trust=trust) as book:
        application, streams = web_application(
            book, keys, _names(near, number, network), cookie=f"treadle-{number}", network=shared, fingerprint=printed
        )

        async def serve() -> None:
            address = f"http://{url_host(near)}:{number}/"
            _say(f"{address}#token={keys.token}\n")
            if port is None and number != USUAL_PORT:
                _say(f"Another program has port {USUAL_PORT}: the address is not the usual one.\n")
            if shared:
                _say_link(device_link(shared, keys.new_link(), printed), printed)
            if opens:
                # The browser's command line can be read by others: what it holds can be used once.
                await asyncio.to_thread(webbrowser.open, f"{address}#token={keys.new_link(paired=False)}")
            loading = asyncio.create_task(asyncio.to_thread(load_templates), name="loading templates")
            asking = {
                asyncio.create_task(run_schedules(_tell), name="schedules"),
                asyncio.create_task(_ask_here(keys), name="letting devices in"),
            }
            if bell:
                asking.add(asyncio.create_task(_ring(book), name="ringing"))
            try:
                await serve_at(listening, application, streams, encryption)
            finally:
                for one in asking:
                    one.cancel()
                await asyncio.wait({loading, *asking})

        return await until_signal(serve, hang_up=False)


def _encryption(far: str) -> tuple[str, ssl.SSLContext]:
    """Give the print of this computer's certificate, and what encrypts with it."""
    from treadle.door.program import page_certificate

    certificate = page_certificate(_far_names(far))
    return certificate.fingerprint, certificate.context()


async def _ask_here(keys: Keys) -> None:
    """Ask in the terminal, if there is one, whether a device that knocks is let in; no is what an empty line says."""
    asks = sys.stdin.isatty() and sys.stdout.isatty() and sys.stdin.fileno() == 0
    known, event = "", asyncio.Event()
    with keys.changed.notifying(event):
        while True:
            event.clear()
            knock = next(iter(keys.knocks()), None)
            if knock is not None and knock.id != known:
                known = knock.id
                about = f"Let in {printable(knock.about)} from {knock.address}, which shows the code {knock.code}?"
                if not asks:
                    _say(f"{about} Answer on the page of this computer.\n")
                else:
                    termios.tcflush(0, termios.TCIFLUSH)  # what was typed before is no answer
                    _say(f"{about} Type yes, or keep to have it stay signed in when Treadle is started again: [no] ")
            if not asks or not known:
                await event.wait()
                continue
            said = await _line_or(event)
            if said is not None:
                word = said.strip().lower()
                keys.answer_knock(known, yes=word in ("y", "yes", "keep"), keep=word == "keep")
                known = ""
            elif all(one.id != known for one in keys.knocks()):
                _say("answered elsewhere\n")
                known = ""


async def _ring(book: SessionBook) -> None:
    """Ring the bell of the terminal for each question that comes."""
    known: set[tuple[str, str]] = set()
    event = asyncio.Event()
    with book.changed.notifying(event):
        while True:
            event.clear()
            asked = {(name, question.id) for name, page in book.opened.items() for question in page.questions}
            if not asked <= known:
                _say("\a")
            known = asked
            await event.wait()


async def _line_or(event: asyncio.Event) -> str | None:
    """Give what is typed; None where the event comes first, or this program is not the one that the terminal serves."""
    loop = asyncio.get_running_loop()
    typed = asyncio.Event()
    if os.tcgetpgrp(0) != os.getpgrp():
        await event.wait()
        return None
    loop.add_reader(0, typed.set)
    waiting = [asyncio.ensure_future(one.wait()) for one in (typed, event)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(0)
        for one in waiting:
            one.cancel()
    return os.read(0, 1_000).decode(errors="replace") if typed.is_set() else None


def _listen(port: int | None, near: str, network: str) -> Sequence[socket.socket]:
    """Listen on loopback, and at what is named of the network besides."""
    if port is None:
        for number in range(USUAL_PORT, USUAL_PORT + _NEXT_PORTS):
            with suppress(ConfigError):
                return _listen(number, near, network)
        port = 0
    wanted = {"": [near], _ALL[0]: [_ALL[0]], _ALL[1]: list(_ALL)}.get(network, [near, network])
    opened: list[socket.socket] = []
    try:
        for address in wanted:
            opened.append(listen(address, opened[0].getsockname()[1] if opened else port))
    except ConfigError:
        for one in opened:
            one.close()
        raise
    return opened


def _names(near: str, number: int, network: str) -> Sequence[str]:
    """Name the hosts that the page is called by; on a network its addresses come besides."""
    names = [*dict.fromkeys([url_host(near), "127.0.0.1", "localhost", "[::1]"])]
    if network:
        own = socket.gethostname().lower()
        names += [own, f"{own.partition('.')[0]}.local"]
    return [f"{name}:{number}" for name in names] + (names if number == 80 else [])


def _own_address() -> str:
    """Find the address that this computer has on its network; its name where it has none."""
    found = (_address_towards(family, elsewhere) for family, elsewhere in _ELSEWHERE)
    return next(filter(None, found), socket.gethostname().lower())


def _far_names(far: str) -> Sequence[str]:
    """Name what other devices may call this computer by: its addresses, and its names."""
    names = {far, *(address for family, elsewhere in _ELSEWHERE if (address := _address_towards(family, elsewhere)))}
    own = socket.gethostname().lower()
    return sorted(names | {own, f"{own.partition('.')[0]}.local"})


def _address_towards(family: socket.AddressFamily, elsewhere: str) -> str:
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.connect((elsewhere, 9))
        return str(asking.getsockname()[0])
    return ""


def _say_link(link: str, fingerprint: str) -> None:
    """Show the link for another device, in a terminal as a picture, too."""
    if sys.stdout.isatty() and sys.stdout.encoding.lower().startswith("utf"):
        segno.make(link, error="l", micro=False).terminal(compact=True, border=2)
    _say(
        f"{link}\nOpen it on another device within ten minutes: it signs in one browser. The browser warns that it "
        "does not know the certificate, which this computer made itself. Compare the SHA-256 fingerprint that the "
        f"browser shows before you go on:\n{fingerprint}\n"
    )


def _tell(text: str) -> None:
    sys.stderr.write(f"# {harmless(text)}\n")


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


async def serve_at(
    listening: Sequence[socket.socket],
    application: Any,
    streams: EventStreams,
    encryption: ssl.SSLContext | None = None,
) -> None:
    """Serve until this is cancelled; with what encrypts also those who speak TLS."""
    serving = PageServer(page_config(application), encryption)
    working = asyncio.ensure_future(serving.serve(sockets=list(listening)))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        streams.end()
        serving.end()
        await working
        raise
