"""Write a session as a test that plays it again: a pytest file, and beside it a tape without secrets."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("id", help="the session (the beginning of its id is enough)")
    parser.add_argument("--as-test", action="store_true", required=True, help="write a pytest file that replays it")
    parser.add_argument("-o", "--output", metavar="PATH", default="", help="the file (by default test_session_ID.py)")


def execute(arguments: argparse.Namespace) -> int:
    """Write the files."""
    from treadle.app.history.as_test import export_as_test
    from treadle.app.presentation.words import counted

    made = export_as_test(arguments.id, arguments.output)
    hidden = f" Secrets are hidden in {counted(made.redacted, 'event')}." * bool(made.redacted)
    sys.stdout.write(f"Wrote {made.test} and {made.tape}: {counted(made.events, 'event')}.{hidden}\n")
    return 0
