"""Work for an editor: an agent that speaks the Agent Client Protocol (ACP) on standard input and output."""

import argparse

from treadle.cli.command_line import flags
from treadle.cli.work import add_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add_settings(parser, directory=False)


def execute(arguments: argparse.Namespace) -> int:
    """Serve the editor until it closes its side."""
    from treadle.acp.acp_main import serve_editor

    return serve_editor(flags(arguments), trusted=arguments.trust)
