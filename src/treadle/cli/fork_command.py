"""Copy a session, to go on from the end of one of its turns; prints the new id."""

import argparse
import sys
from pathlib import Path

from treadle.cli.parser import LAST, named_session, session_operand


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser, nargs="?", otherwise=LAST)
    parser.add_argument("--at", type=int, metavar="N", help="copy up to the end of turn N (default: all of it)")
    parser.add_argument("--into", type=Path, metavar="DIR", help="continue in this folder; the files are not copied")


def execute(arguments: argparse.Namespace) -> int:
    """Copy it."""
    from treadle.door.past import copy_elsewhere, copy_whole

    session, into = named_session(arguments.session), arguments.into
    new = copy_elsewhere(session, into, arguments.at) if into else copy_whole(session, arguments.at)
    sys.stdout.write(f"{new}\n")
    return 0
