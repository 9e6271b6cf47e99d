"""Delete a session for good: its log, and all that was kept with it. Its cost stays in the budgets of its days."""

import argparse
import sys

from treadle.cli.parser import session_operand


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def execute(arguments: argparse.Namespace) -> int:
    """Delete it."""
    from treadle.cli.agreeing import agreed
    from treadle.door.past import delete_session, find_session
    from treadle.door.program import harmless

    row = find_session(arguments.session)
    if not agreed(f"Delete {row.id}, {harmless(row.title)!r}, for good?", yes=arguments.yes):
        return 1
    delete_session(row)
    sys.stdout.write(f"Deleted {row.id}.\n")
    return 0
