"""List what is remembered for this project and for you, with dates and tokens; add to it, edit it, forget something."""

import argparse
import os
import sys
from pathlib import Path

_USAGE = (
    "`treadle memory add TEXT` remembers something, `treadle memory forget N` forgets it, `treadle memory edit` opens "
    "the file in your editor; with --user it is yours in every project. Changes apply from the next session on."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    commands = parser.add_subparsers(dest="verb", metavar="ACTION")
    add = commands.add_parser("add", help="remember something, in your own words", allow_abbrev=False)
    add.add_argument("words", nargs="+", metavar="TEXT", help="what to remember")
    forget = commands.add_parser("forget", help="forget the entry of this number", allow_abbrev=False)
    forget.add_argument("n", type=int, metavar="N", help="its number in the list")
    edit = commands.add_parser("edit", help="open the file in your editor", allow_abbrev=False)
    for command in (add, edit):
        command.add_argument("--user", action="store_true", help="what holds for you, in every project")
    for command in (parser, add, forget, edit):
        own = None if command is parser else argparse.SUPPRESS
        command.add_argument(
            *("--directory", "-C"), type=Path, default=own or Path(), metavar="DIR", help="the folder to work in"
        )
        command.add_argument("--trust", action="store_true", default=own or False, help="as in a trusted folder")
    parser.add_argument("--json", action="store_true", help="list them as JSON, one object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Do what is asked."""
    from treadle.door.opening import check_workspace
    from treadle.door.program import harmless
    from treadle.door.settings import MemoryOf, file_to_edit, forget, memory_lines, memory_text, remember_text
    from treadle.door.trust import session_trust
    from treadle.protocol.codec import encode

    trust = session_trust(check_workspace(arguments.directory), once=arguments.trust)
    whose = MemoryOf.USER if getattr(arguments, "user", False) else MemoryOf.PROJECT
    match arguments.verb:
        case "add":
            text = remember_text(whose, trust, " ".join(arguments.words))
        case "forget":
            text = forget(trust, arguments.n)
        case "edit":
            return _edit(file_to_edit(whose, trust.workspace))
        case _ if arguments.json:
            sys.stdout.writelines(f"{encode(line).decode()}\n" for line in memory_lines(trust))
            return 0
        case _:
            text = memory_text(trust, _USAGE)
    sys.stdout.write(f"{harmless(text)}\n")
    return 0


def _edit(file: Path) -> int:
    import shlex
    import subprocess

    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        return subprocess.call([*shlex.split(command), str(file)])
    except (OSError, ValueError) as error:
        from treadle.protocol.errors import ConfigError

        raise ConfigError(
            "editor", f"The memory could not be edited with {command!r}.", why=str(error), fix="Set VISUAL or EDITOR."
        ) from error
