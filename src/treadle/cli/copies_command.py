"""List the copies in which subagents and sessions worked, show what is not applied of one, apply it, or discard it."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.door.history import WriterCopy


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    parser.add_argument("--json", action="store_true", help="list them as JSON, one object a line")
    commands = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, about in (
        ("show", "show what is not applied, each change with its key"),
        ("apply", "apply the changes to the folder, or with keys only these"),
        ("discard", "remove a copy with all that is not applied"),
    ):
        command = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        command.add_argument("id", metavar="ID", help="the copy: its name, or the beginning of it")
        if name == "apply":
            command.add_argument("keys", nargs="*", metavar="KEY", help="the changes to apply (default: all)")
            command.add_argument("--into", type=Path, metavar="DIR", help="apply them to this folder instead")
            command.add_argument("--preview", action="store_true", help="show what would be written, and write nothing")
        if name != "show":
            command.add_argument("--yes", action="store_true", help="do not ask")


def execute(arguments: argparse.Namespace) -> int:
    """Do what is asked; 1 where something of what was to be applied was not."""
    from treadle.cli.agreeing import agreed
    from treadle.door.history import copies_text, copy_rows, copy_text, discard_copy, idle_copy, left_copies, named_copy
    from treadle.door.program import Exit
    from treadle.protocol.codec import encode

    match arguments.action:
        case "show":
            _write(copy_text(named_copy(arguments.id)))
        case "apply":
            return _apply(arguments)
        case "discard":
            with idle_copy(arguments.id) as copy:
                if not agreed(f"Remove the copy {copy.child_id} and what is not applied of it?", yes=arguments.yes):
                    return int(Exit.FAILED)
                _write(discard_copy(copy))
        case _ if arguments.json:
            sys.stdout.writelines(f"{encode(one).decode()}\n" for one in copy_rows())
        case _:
            _write(copies_text(left_copies()))
    return 0


def _apply(arguments: argparse.Namespace) -> int:
    from treadle.door.history import idle_copy

    with idle_copy(arguments.id) as copy:
        return _apply_idle(arguments, copy)


def _apply_idle(arguments: argparse.Namespace, copy: "WriterCopy") -> int:
    from treadle.cli.agreeing import agreed
    from treadle.door.history import applied_text, apply_copy, left_lines_of, planned_copy
    from treadle.door.program import Exit

    wanted = planned_copy(copy, arguments.keys, arguments.into)
    if arguments.preview or (not arguments.yes and sys.stdout.isatty()):
        _write("\n".join([wanted.would.diff.rstrip("\n"), *left_lines_of(wanted.would)]))
    if arguments.preview:
        return 0
    if wanted.would.merged and not agreed(f"Apply this to {arguments.into or copy.workspace}?", yes=arguments.yes):
        return int(Exit.FAILED)
    done = apply_copy(copy, wanted)
    _write(applied_text(copy, done))
    return 0 if done.complete else int(Exit.FAILED)


def _write(text: str) -> None:
    from treadle.door.program import harmless

    sys.stdout.write(f"{harmless(text)}\n")
    sys.stdout.flush()
