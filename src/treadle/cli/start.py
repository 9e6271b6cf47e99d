"""Work interactively if a model is configured and a terminal is there, else run the demo."""

import argparse
import sys

from treadle.cli import demo, work


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    work.add_settings(parser)
    parser.set_defaults(resume="", go_on=False, task=[], file=[])


def execute(arguments: argparse.Namespace) -> int:
    """Start what fits."""
    from treadle.app.config.settings import load_settings
    from treadle.app.models.choosing import Models

    settings = load_settings(work.flags(arguments))
    if settings.base_url or Models(settings).configured():
        return work.interactive(arguments)
    sys.stdout.write("No model is configured (docs/configuration.md says how): here is the demo.\n\n")
    return demo.run_demo(ask=True)
