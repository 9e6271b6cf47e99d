"""Show what happened in a session: the messages, the calls with their decisions and results, the cost."""

import argparse
import sys

from treadle.cli.parser import LAST, named_session, session_operand


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser, nargs="?", otherwise=LAST)
    parser.add_argument("--events", action="store_true", help="show the raw events of the log, one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Print the session."""
    from treadle.door.history import as_it_ended, session_lines
    from treadle.door.opening import session_log
    from treadle.door.program import harmless, write_wrapped
    from treadle.protocol.codec import encode

    with session_log(named_session(arguments.session)) as (row, store):
        log = store.read(row.id, go_on=arguments.events)
        if arguments.events:
            sys.stdout.writelines(f"{encode(event).decode()}\n" for event in log)
        else:
            write_wrapped(sys.stdout, harmless("\n".join(session_lines(row, as_it_ended(store, row.id, log)))))
    if log.damage is not None:
        raise log.damage.error()
    return 0
