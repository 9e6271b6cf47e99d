"""Stop sessions: interrupt the work, drop what is queued, and close those in the background or of a page.

A session that is open in a terminal or another program is interrupted and stays open there. All can be resumed.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.cli.parser import session_operand

if TYPE_CHECKING:
    from treadle.door.past import StoppedSession


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser, nargs="*")
    parser.add_argument("--all", action="store_true", help="all sessions in the background, of every folder")
    parser.add_argument("--directory", "-C", type=Path, metavar="DIR", help="with --all: only those of this folder")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Stop them; the exit code is 1 when one could not be stopped."""
    import asyncio

    from treadle.door.past import StopResult, stop_background, stop_sessions
    from treadle.door.program import Exit
    from treadle.protocol.codec import encode
    from treadle.protocol.errors import ConfigError

    if bool(arguments.session) is arguments.all:
        raise ConfigError("session-which", "Which sessions?", fix="treadle stop ID, or --all.")
    folder = None if arguments.directory is None else arguments.directory.expanduser().resolve()
    stopping = stop_background(folder) if arguments.all else stop_sessions(arguments.session)
    stopped = asyncio.run(stopping)
    if not stopped:
        sys.stderr.write("No session runs in the background.\n")
    for one in stopped:
        if arguments.json:
            sys.stdout.write(f"{encode(one).decode()}\n")
        else:
            _show(one)
    return Exit.FAILED if any(one.result is StopResult.FAILED for one in stopped) else Exit.DONE


def _show(one: "StoppedSession") -> None:
    from treadle.door.past import SessionState, StopResult, state_words
    from treadle.door.program import harmless, write_wrapped

    match one.result:
        case StopResult.STOPPED:
            write_wrapped(sys.stdout, harmless(f"Stopped {one.id}: {one.title}"))
        case StopResult.INTERRUPTED:
            where = "" if one.process is None else f" (process {one.process})"
            write_wrapped(sys.stdout, f"Interrupted {one.id}. It stays open in the program that has it{where}.")
        case StopResult.NOT_OPEN:
            how = state_words(one.state or SessionState.STOPPED, one.ended)
            write_wrapped(sys.stderr, f"{one.id} is not open ({how}). Continue it with: treadle --resume {one.id}")
        case StopResult.FAILED:
            write_wrapped(sys.stderr, harmless(f"treadle: {one.problem}\n  fix: {one.fix.strip()}"))
