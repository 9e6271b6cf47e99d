"""Show what happened in a session: the messages, the calls with their decisions and results, the cost."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("id", help="the session (the beginning of its id is enough)")
    parser.add_argument("--events", action="store_true", help="show the raw events of the log, one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Print the session."""
    from treadle.app.compose import read_session
    from treadle.app.report import harmless
    from treadle.app.reports.session_text import session_lines
    from treadle.app.wrapping import say
    from treadle.protocol.codec import encode

    row, events = read_session(arguments.id)
    if arguments.events:
        for event in events:
            sys.stdout.write(f"{encode(event).decode()}\n")
        return 0
    say(sys.stdout, harmless("\n".join(session_lines(row, events))))
    return 0
