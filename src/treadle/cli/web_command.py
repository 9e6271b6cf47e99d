"""Work in the browser: serve a page on this computer that shows all sessions, and open it."""

import argparse

from treadle.cli.command_line import flags
from treadle.cli.work import add_settings
from treadle.protocol.errors import ConfigError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--port", type=int, help="the port; 0 is any free one (default: 8424, or the next that is free)"
    )
    parser.add_argument("--no-open", action="store_true", help="print the address without opening a browser")
    parser.add_argument("--bell", action="store_true", help="ring the bell of this terminal when a session needs you")
    parser.add_argument("--lan", action="store_true", help="let other devices of the network in, with a link for each")
    parser.add_argument("--host", metavar="ADDRESS", help="with --lan: the address to listen on (default: all of IPv4)")
    add_settings(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C; returns the exit code."""
    import asyncio

    from treadle.door.program import is_loopback
    from treadle.web.serving_page import serve_page

    if arguments.host and not arguments.lan and not is_loopback(arguments.host):
        raise ConfigError(
            "host-without-lan",
            "--host opens the page to the network.",
            why="Other devices reach it then; they are let in with a link.",
            fix="Add --lan if that is what you want.",
        )
    folder = arguments.directory.expanduser().resolve()
    serving = serve_page(
        folder,
        flags(arguments),
        port=arguments.port,
        opens=not arguments.no_open,
        bell=arguments.bell,
        trust=arguments.trust,
        network=arguments.host or ("0.0.0.0" if arguments.lan else ""),  # noqa: S104 - it was asked for
    )
    return asyncio.run(serving)
