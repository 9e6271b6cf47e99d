"""Give a session another name: treadle rename ID NEW NAME."""

import argparse
import sys

from treadle.cli.parser import session_operand


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser)
    parser.add_argument("name", nargs="+", help='the new name; "" gives it the beginning of its first prompt again')


def execute(arguments: argparse.Namespace) -> int:
    """Rename it."""
    from treadle.door.past import rename_session
    from treadle.door.program import harmless

    row = rename_session(arguments.session, " ".join(arguments.name))
    sys.stdout.write(f"{row.id}  {harmless(row.title)}\n")
    return 0
