"""Print a script that completes commands and flags: treadle completion bash > a file that your shell reads."""

import argparse
import sys

from treadle.cli.main import parser_of
from treadle.cli.task_words import COMMANDS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])


def execute(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from treadle.cli.completion_scripts import completion_script

    parsers = {name: parser_of(name) for name in ("", *COMMANDS)}
    sys.stdout.write(completion_script(arguments.shell, COMMANDS, parsers))
    return 0
