"""`treadle mcp serve`: tasks for MCP clients."""

import argparse
import sys

from treadle.cli.work import add_settings


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--http", action="store_true", help="serve over streamable HTTP on 127.0.0.1, with a token")
    parser.add_argument("--port", type=int, default=0, help="the port for --http (default: a free one)")
    add_settings(parser)


def serve_mcp(arguments: argparse.Namespace) -> int:
    """Serve until the client leaves or a signal comes; returns the exit code."""
    import asyncio

    from treadle.cli.command_line import flags
    from treadle.mcp_server.client_wire import WireLines, WireOutput

    if not arguments.http and sys.stdin.isatty():
        sys.stderr.write("Waiting for an MCP client on standard input. docs/mcp-server.md shows how to add one.\n")
    # Whatever is loaded or printed from here on, nothing but the protocol gets on the wire.
    wire = None if arguments.http else (WireLines(), WireOutput())
    from treadle.mcp_server.serving_tasks import serve_http, serve_stdio
    from treadle.mcp_server.task_book import TaskBook

    folders = [arguments.directory, *(arguments.add_dirs or ())]
    said = {name: value for name, value in flags(arguments).items() if name != "add_dirs"}
    book = TaskBook(folders, said, trust=arguments.trust)
    return asyncio.run(serve_http(book, arguments.port) if wire is None else serve_stdio(book, *wire))
