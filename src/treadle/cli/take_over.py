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
    from treadle.cli.agreeing import agreed
    from treadle.door.history import import_plan, plan_lines, take_over
    from treadle.door.program import Exit, harmless, write_wrapped

    plan = import_plan(arguments.program, arguments.directory.expanduser().resolve())
    write_wrapped(sys.stdout, "\n".join(plan_lines(plan, Path.home())))
    if not (plan.takes or plan.sessions):
        sys.stdout.write("There is nothing new to take over.\n")
        return Exit.DONE
    if arguments.dry_run:
        sys.stdout.write("Nothing was changed.\n")
        return Exit.DONE
    if not agreed("Take this over?", yes=arguments.yes):
        sys.stdout.write("Nothing was changed.\n")
        return Exit.DONE
    written = ", ".join(harmless(str(file)) for file in take_over(plan))
    if written:
        write_wrapped(sys.stdout, f"Taken over. Written: {written}")
    return max((import_from(folder) for folder in plan.sessions), default=Exit.DONE)


def import_from(path: Path) -> int:
    """Import sessions, and say what became of each; the exit code is 1 when something could not be taken."""
    from treadle.door.history import import_sessions
    from treadle.door.program import harmless

    code = 0
    for report in import_sessions(path):
        stream = sys.stderr if report.problem else sys.stdout
        stream.write(f"{harmless(report.text)}\n")
        code = code or int(report.failed)
    return code
