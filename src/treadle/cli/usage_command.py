"""Show what all sessions used and cost, by model, day, project, tool, mode or session."""

import argparse
import os
import sys
from pathlib import Path

_KEYS = ("day", "model", "project", "profile", "tool", "mode", "session")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--by", choices=_KEYS, default="model", help="what to sum up by (default: model)")
    parser.add_argument(
        "--since", default="", metavar="DATE|Nd", help="from this day on, or the last N days with today"
    )
    parser.add_argument("--directory", "-C", type=Path, metavar="DIR", help="only the sessions of this folder")
    parser.add_argument("--all", action="store_true", help="every row, not only the 20 largest (days: the last 20)")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def execute(arguments: argparse.Namespace) -> int:
    """Print the sums."""
    from datetime import datetime

    from treadle.door.program import screen_width
    from treadle.door.reports import UsageKey, since_day, usage_lines, usage_report
    from treadle.protocol.codec import encode

    today = datetime.now().astimezone().date()
    since = since_day(arguments.since, today) if arguments.since else None
    folder = None if arguments.directory is None else arguments.directory.expanduser().resolve()
    report = usage_report(UsageKey(arguments.by), since, folder)
    if arguments.json:
        sys.stdout.write(f"{encode(report).decode()}\n")
        return 0
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    for line in usage_lines(report, screen_width(sys.stdout), every=arguments.all, colour=colour):
        sys.stdout.write(f"{line}\n")
    return 0
