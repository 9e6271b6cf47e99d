"""Archive sessions: they take less room, and are listed with `treadle sessions --archived` only.

`treadle show` and `treadle export` read them where they are, and `treadle --resume` unpacks one again.
"""

import argparse
import sys

from treadle.cli.parser import session_operand


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser, nargs="?")
    parser.add_argument(
        "--older-than", type=_days, metavar="DAYS", help="all sessions of every folder that were not used for so long"
    )
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def _days(text: str) -> float:
    from math import isfinite

    days = float(text)
    if not (isfinite(days) and 0 <= days < 100_000):
        raise argparse.ArgumentTypeError("a number of days")
    return days


def execute(arguments: argparse.Namespace) -> int:
    """Archive them."""
    from treadle.cli.agreeing import agreed
    from treadle.door.past import archive_sessions, find_session, old_sessions
    from treadle.present.words import counted
    from treadle.protocol.errors import ConfigError

    if bool(arguments.session) is (arguments.older_than is not None):
        raise ConfigError("session-which", "Which sessions?", fix="treadle archive ID, or --older-than DAYS.")
    if arguments.session:
        rows = [find_session(arguments.session)]
    else:
        rows = old_sessions(arguments.older_than)
        if not rows:
            sys.stderr.write("No session is that old.\n")
            return 0
        if not agreed(f"Archive {counted(len(rows), 'session')}?", yes=arguments.yes):
            return 1
    archive_sessions(rows)
    sys.stdout.write(f"Archived {counted(len(rows), 'session')}. `treadle sessions --archived` lists them.\n")
    return 0
