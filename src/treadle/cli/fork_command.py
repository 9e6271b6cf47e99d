"""Copy a session, to go on from the end of one of its turns; prints the new id."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("id", help="the session (an id, or its beginning)")
    parser.add_argument("--at", type=int, metavar="N", help="copy up to the end of turn N (default: all of it)")


def execute(arguments: argparse.Namespace) -> int:
    """Copy it."""
    from treadle.door.past import copy_whole

    sys.stdout.write(f"{copy_whole(arguments.id, arguments.at)}\n")
    return 0
