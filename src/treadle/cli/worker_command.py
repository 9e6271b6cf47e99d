"""Do tasks of batches that share a database with other workers, until a signal ends it; then others have what is left.

`treadle batch TASKS --out DIR --database URL` puts tasks there. Rules, keys and programs are those of this computer.
"""

import argparse
import signal
from types import FrameType

from treadle.cli.batch_command import WORKERS, add_fleet, fleet_wishes, load_sessions, wrong_option


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--workers", "-w", type=int, default=WORKERS, metavar="N", help=f"tasks at the same time (default: {WORKERS})"
    )
    parser.add_argument(
        "--full", action="store_true", help="also do tasks of batches with --mode full, without a sandbox"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="use what repositories of tasks bring, where their batch has --trust, too",
    )
    parser.add_argument("--once", action="store_true", help="end when no task is left")
    add_fleet(parser, required=True)


def execute(arguments: argparse.Namespace) -> int:
    """Work; returns the exit code."""
    if arguments.workers < 1:
        raise wrong_option(f"--workers {arguments.workers} is too few.", "At least one works.")
    signal.signal(signal.SIGTERM, _leave)  # until the worker hears signals itself: it has nothing yet
    fleet = fleet_wishes(arguments)
    load_sessions()
    from treadle.headless.fleet.fleet_main import run_worker

    return run_worker(fleet, arguments.workers)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
