"""Work interactively; without a model a terminal offers ways to get one, and without a terminal the demo runs."""

import argparse
import sys

from treadle.cli import demo_command as demo
from treadle.cli import work
from treadle.cli.command_line import flags


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    work.add_settings(parser)
    parser.set_defaults(resume="", attach="", go_on=False, task=[], file=[])


def execute(arguments: argparse.Namespace) -> int:
    """Start what fits."""
    from treadle.door.known_models import Models
    from treadle.door.settings import load_settings

    settings = load_settings(flags(arguments))
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if at_terminal or settings.model or settings.base_url or Models(settings).configured():
        from treadle.cli.working import interactive

        return interactive(arguments)
    sys.stdout.write("No model is configured (docs/configuration.md says how): here is the demo.\n\n")
    return demo.run_demo(ask=True)
