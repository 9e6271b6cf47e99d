"""Serve a scripted model over HTTP on loopback, in the wire formats of real providers (docs/scripted-model.md)."""

import argparse
import asyncio
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("script", type=Path, help="a script, .json or .toml")
    parser.add_argument("--port", type=int, default=0, help="the port to listen on (default: a free one)")


def execute(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from treadle.protocol.errors import ConfigError
    from treadle.providers.scripted.script import load_script
    from treadle.providers.scripted.scripted_server import serve

    script = load_script(arguments.script)
    try:
        asyncio.run(serve(script, port=arguments.port, ready=_ready))
    except (OSError, OverflowError) as error:
        raise ConfigError(
            "port-unusable",
            f"Treadle cannot listen on port {arguments.port}.",
            why=str(error),
            fix="Choose another with --port, or leave it out to get a free one.",
        ) from error
    return 0


def _ready(base_url: str) -> None:
    sys.stdout.write(f"{base_url}\n")
    sys.stdout.flush()
