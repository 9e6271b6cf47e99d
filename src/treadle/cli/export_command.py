"""Export a session as Markdown, HTML, JSON or a test; with --all every session, as JSON that `treadle import` reads."""

import argparse
import sys
from pathlib import Path

from treadle.cli.parser import session_operand


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser, nargs="?")
    parser.add_argument(
        "--all", action="store_true", help="every session of every folder, archived ones too; JSON only"
    )
    parser.add_argument("--format", choices=["md", "html", "json"], default="", help="md unless --all is given")
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="PATH",
        help="write to this file (.gz is compressed), not to standard output",
    )
    parser.add_argument("--as-test", action="store_true", help="write a pytest file that replays it, with a tape")
    parser.add_argument("--from-turn", type=int, default=1, metavar="N", help="leave out what was before turn N")
    parser.add_argument("--redact", action="store_true", help="hide secrets in JSON too; md and html always do")


def execute(arguments: argparse.Namespace) -> int:
    """Write it."""
    from treadle.door.history import export_all, export_session, write_export
    from treadle.protocol.errors import ConfigError

    if bool(arguments.session) is arguments.all:
        raise ConfigError("session-which", "Which session?", fix="treadle export ID, or --all for every one.")
    if arguments.as_test:
        return _as_test(arguments)
    form = arguments.format or ("json" if arguments.all else "md")
    if arguments.all and form != "json":
        raise ConfigError("session-which", "All sessions are exported as JSON only.", fix="Add --format json.")
    if arguments.all:
        pieces = export_all(redact=arguments.redact)
    else:
        pieces = export_session(arguments.session, form, redact=arguments.redact, turn=arguments.from_turn)
    if arguments.output is None:
        for piece in pieces:
            sys.stdout.write(piece.decode())
    else:
        write_export(arguments.output.expanduser().absolute(), pieces)
    return 0


def _as_test(arguments: argparse.Namespace) -> int:
    from treadle.door.history import export_as_test
    from treadle.present.words import counted
    from treadle.protocol.errors import ConfigError

    if arguments.all or arguments.format:
        raise ConfigError("session-which", "One session is exported as a test.", fix="treadle export ID --as-test")
    made = export_as_test(arguments.session, "" if arguments.output is None else str(arguments.output))
    hidden = f" Secrets are hidden in {counted(made.redacted, 'event')}." * bool(made.redacted)
    sys.stdout.write(f"Wrote {made.test} and {made.tape}: {counted(made.events, 'event')}.{hidden}\n")
    return 0
