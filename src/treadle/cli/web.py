"""Work in the browser: serve a page on this computer that shows all sessions, and open it."""

import argparse

from treadle.cli.work import add_settings, flags


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--port", type=int, default=0, help="the port (default: a free one)")
    parser.add_argument("--no-open", action="store_true", help="print the address without opening a browser")
    add_settings(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C; returns the exit code."""
    import asyncio

    from treadle.web.serving import serve_page

    folder = arguments.directory.expanduser().resolve()
    serving = serve_page(
        folder, flags(arguments), port=arguments.port, opens=not arguments.no_open, trust=arguments.trust
    )
    return asyncio.run(serving)
