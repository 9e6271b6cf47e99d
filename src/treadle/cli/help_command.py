"""Show what Treadle can do, or the options of one command."""

import argparse

from treadle.cli.main import commands_text, parser_of
from treadle.cli.task_words import COMMANDS, unknown_command


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("command", nargs="?", default="", help="the command to show")
    parser.add_argument("--all", action="store_true", help="list the commands that few people need, too")


def execute(arguments: argparse.Namespace) -> int:
    """Print the help."""
    if arguments.command and arguments.command not in COMMANDS:
        raise unknown_command(arguments.command, COMMANDS)
    parser = parser_of(arguments.command)
    if arguments.all and parser.after is not None:
        parser.after = lambda: commands_text(seldom=True)
    parser.listed_elsewhere = "" if arguments.all else parser.listed_elsewhere
    parser.print_help()
    return 0
