"""List the sessions of a folder, the last used first."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--directory", "-C", type=Path, default=Path(), metavar="DIR", help="the folder worked in")
    parser.add_argument("--all", action="store_true", help="of every folder")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from treadle.app.compose import list_sessions
    from treadle.protocol.codec import encode

    rows = list_sessions(None if arguments.all else arguments.directory.expanduser().resolve())
    for row in rows:
        if arguments.json:
            sys.stdout.write(f"{encode(row).decode()}\n")
            continue
        used = datetime.fromtimestamp(row.updated_at / 1000, UTC).astimezone()
        place = f"  {row.workspace}" if arguments.all else ""
        sys.stdout.write(f"{row.id}  {used:%Y-%m-%d %H:%M}  {row.model}{place}  {row.title or '(no title)'}\n")
    if not rows and not arguments.json:
        sys.stderr.write("No sessions here yet.\n")
    return 0
