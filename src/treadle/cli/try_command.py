"""Run a command on a throw-away copy of the folder and show what it changed. The folder stays as it is, unless --apply.

Give the command after `--`: a program with its arguments, or one shell line in quotes. It has no network and reads no
secrets. The exit status is the command's.
"""

import argparse
import sys
from pathlib import Path
from typing import TextIO


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--apply", action="store_true", help="apply the changes when the command has ended")
    parser.add_argument(
        "--json", action="store_true", help='end standard output with a line {"changes": [...], "applied": ...}'
    )
    parser.add_argument("--directory", "-C", type=Path, default=Path(), metavar="DIR", help="the folder to work in")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="the command, after --")


def execute(arguments: argparse.Namespace) -> int:
    """Run it, and say what became of what it changed."""
    from treadle.door.opening import check_workspace
    from treadle.door.policy import describe_tried, record_of, try_command
    from treadle.door.program import Exit, harmless
    from treadle.protocol.codec import encode

    folder = check_workspace(arguments.directory)
    out, err = _Output(sys.stdout), _Output(sys.stderr)
    tried = try_command(arguments.command, folder, apply=arguments.apply, out=out.write, err=err.write)
    err.end_line()
    lines = describe_tried(tried, folder, apply=arguments.apply)
    sys.stderr.writelines(f"{harmless(line)}\n" for line in lines)
    sys.stderr.flush()
    if arguments.json:
        out.end_line()
        out.write(encode(record_of(tried, folder)) + b"\n")
    failed = arguments.apply and not tried.applied and tried.problem
    return tried.status or (Exit.FAILED if failed else Exit.DONE)


class _Output:
    """A stream that a command's output passes through as it is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream.buffer
        self._in_line = False

    def write(self, data: bytes) -> None:
        """Pass bytes on at once."""
        self._stream.write(data)
        self._stream.flush()
        self._in_line = not data.endswith(b"\n")

    def end_line(self) -> None:
        """Begin a new line where the last one has no end."""
        if self._in_line:
            self.write(b"\n")
