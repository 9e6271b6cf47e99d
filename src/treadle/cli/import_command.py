"""Import sessions: files of `treadle export --format json`, transcripts of Claude Code, task folders of Cline."""

import argparse
from pathlib import Path

from treadle.cli.take_over import add_program_flags, import_from, import_program


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("path", nargs="?", type=Path, metavar="PATH", help="a file, or a folder with such files in it")
    add_program_flags(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Import them; the exit code is 1 when something could not be taken."""
    if arguments.program is not None:
        return import_program(arguments)
    if arguments.path is None:
        from treadle.protocol.errors import ConfigError

        raise ConfigError("import-nothing", "What is to be imported?", fix="treadle import PATH")
    return import_from(arguments.path.expanduser().absolute())
