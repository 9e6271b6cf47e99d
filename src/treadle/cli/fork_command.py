"""Copy a session, to go on from the end of one of its turns; prints the new id."""

import argparse
import sys

from treadle.cli.parser import LAST, named_session, session_operand


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser, nargs="?", otherwise=LAST)
    parser.add_argument("--at", type=int, metavar="N", help="copy up to the end of turn N (default: all of it)")


def execute(arguments: argparse.Namespace) -> int:
    """Copy it."""
    from treadle.door.past import copy_whole

    sys.stdout.write(f"{copy_whole(named_session(arguments.session), arguments.at)}\n")
    return 0
