"""Show what Treadle can do, or the options of one command."""

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("command", nargs="?", default="", help="the command to show")


def execute(arguments: argparse.Namespace) -> int:
    """Print the help."""
    from treadle.cli.main import parser_of
    from treadle.cli.task_words import COMMANDS, unknown_command

    if arguments.command and arguments.command not in COMMANDS:
        raise unknown_command(arguments.command, COMMANDS)
    parser_of(arguments.command).print_help()
    return 0
