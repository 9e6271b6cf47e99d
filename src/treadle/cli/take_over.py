"""What `treadle import --from NAME` does: shows what another coding agent has, and takes it over after a yes."""

import argparse
import sys
from pathlib import Path

_PROGRAMS = ("claude-code", "cline", "codex")


def add_program_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--from", dest="program", choices=_PROGRAMS, help="take over rules, MCP servers and permissions of a program"
    )
    parser.add_argument("--dry-run", action="store_true", help="with --from: only show what would be taken")
    parser.add_argument("--yes", action="store_true", help="with --from: take it without asking")
    parser.add_argument(
        "--directory",
        "-C",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="with --from: the folder that allowed commands are for",
    )


def import_program(arguments: argparse.Namespace) -> int:
    """Show the plan, and do it after a yes."""
    from treadle.app.exits import Exit
    from treadle.app.importing.plan import plan_lines, take_over
    from treadle.app.importing.programs import import_plan
    from treadle.app.wrapping import harmless, write_wrapped

    plan = import_plan(arguments.program, arguments.directory.expanduser().resolve())
    write_wrapped(sys.stdout, "\n".join(plan_lines(plan, Path.home())))
    if not plan.takes:
        sys.stdout.write("There is nothing new to take over.\n")
        return Exit.DONE
    if arguments.dry_run:
        sys.stdout.write("Nothing was changed.\n")
        return Exit.DONE
    if not (arguments.yes or _agreed()):
        sys.stdout.write("Nothing was changed.\n")
        return Exit.DONE
    written = ", ".join(harmless(str(file)) for file in take_over(plan))
    write_wrapped(sys.stdout, f"Taken over. Written: {written}")
    return Exit.DONE


def _agreed() -> bool:
    """Ask the person at the terminal. Raises `ConfigError` where there is none."""
    from treadle.protocol.errors import ConfigError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "import-what",
            "Nothing was taken over.",
            why="There is nobody to ask here.",
            fix="Look at what is shown, then run it again with --yes.",
        )
    sys.stdout.write("Take this over? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
