"""Copy a session, to go on from the end of one of its turns; prints the new id."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("id", help="the session (an id, or its beginning)")
    parser.add_argument("--at", type=int, metavar="N", help="copy up to the end of turn N (default: all of it)")


def execute(arguments: argparse.Namespace) -> int:
    """Copy it."""
    from treadle.app.checkpoints.opening import opened_checkpoints
    from treadle.app.compose import session_log
    from treadle.app.history.forking import fork_session

    with session_log(arguments.id) as (row, store):
        new, checkpoints = fork_session(store, row, arguments.at)
        if checkpoints:
            opened_checkpoints(store, row).copy_to(new, checkpoints)
    sys.stdout.write(f"{new}\n")
    return 0
