"""List the commands that sessions run in the background, show their output, or stop them."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.door.reports import JobLine

_CHUNK = 64 * 1024
_PAUSE = 0.2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--all", action="store_true", help="include commands that ended more than a day ago")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    verbs = parser.add_subparsers(dest="verb", metavar="kill|output")
    kill = verbs.add_parser("kill", help="stop a command with everything it started")
    kill.add_argument("id", help="the command")
    output = verbs.add_parser("output", help="show what a command printed")
    output.add_argument("id", help="the command")
    output.add_argument("--follow", action="store_true", help="follow the output until the command ends")


def execute(arguments: argparse.Namespace) -> int:
    """List, show or end; the exit code is 1 when a command could not be ended."""
    match arguments.verb:
        case "kill":
            return _kill(arguments.id)
        case "output":
            return _output(arguments.id, follow=arguments.follow)
        case _:
            return _list(every=arguments.all, json=arguments.json)


def _list(*, every: bool, json: bool) -> int:
    from treadle.door.reports import list_jobs
    from treadle.protocol.codec import encode

    lines = list_jobs(now=int(time.time() * 1000), every=every)
    for line in lines:
        sys.stdout.write(f"{encode(line).decode() if json else _shown(line)}\n")
    if not lines and not json:
        sys.stderr.write("No command runs in the background.\n")
    return 0


def _shown(line: "JobLine") -> str:
    from treadle.door.program import harmless

    since = datetime.fromtimestamp(line.started_at / 1000, UTC).astimezone()
    command = harmless(line.command.replace("\n", " "))
    wakes = f"  [wakes the agent on: {harmless(line.wakes_on)}]" if line.wakes_on else ""
    return f"{line.id}  {since:%Y-%m-%d %H:%M}  {line.bytes:>11,} bytes  {line.state}  {command}{wakes}"


def _kill(wanted: str) -> int:
    from treadle.door.program import Exit
    from treadle.door.reports import end_timer, find_job, kill_job

    if end_timer(wanted):
        sys.stdout.write(f"Ended the timer {wanted}.\n")
        return Exit.DONE
    line, job = find_job(wanted)
    if not line.running:
        sys.stderr.write(f"It is not running. {line.state}\n")
        return Exit.DONE
    if kill_job(job):
        sys.stdout.write(f"Stopped {line.id} and everything it started.\n")
        return Exit.DONE
    sys.stderr.write(f"{line.id} could not be stopped: some of its processes are still running.\n")
    return Exit.FAILED


def _output(wanted: str, *, follow: bool) -> int:
    from treadle.door.reports import ShownOutput, find_job

    line, job = find_job(wanted)
    if not line.output:
        sys.stderr.write("Its output was not kept.\n")
        return 1
    shown = ShownOutput()
    for chunk in _chunks(line.output, lambda: follow and job.runs):
        sys.stdout.write(shown.feed(chunk))
        sys.stdout.flush()
    sys.stdout.write(shown.finish())
    return 0


def _chunks(path: str, goes_on: Callable[[], bool]) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        while True:
            running = goes_on()
            while chunk := file.read(_CHUNK):
                yield chunk
            if not running:
                return
            time.sleep(_PAUSE)
