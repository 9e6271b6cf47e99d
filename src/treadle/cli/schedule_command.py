"""Begin tasks at certain times: each run is a session in the background, with a limit of what it may cost."""

import argparse
import sys
from math import inf
from pathlib import Path

from treadle.cli.task_words import slash_task
from treadle.cli.work import MODES

USUAL_COST = 1.0
"""US dollars that a run may cost where nothing else is said."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    parser.add_argument("--json", action="store_true", help="list them as JSON, one object a line")
    commands = parser.add_subparsers(dest="action", metavar="ACTION")
    about = "keep a task and the times at which it is begun"
    add = commands.add_parser("add", help=about, description=about, allow_abbrev=False)
    add.add_argument("when", metavar="WHEN", help='such as "every weekday 9:00", "every 30 minutes", "2030-01-31 9:00"')
    add.add_argument("task", metavar="TASK", help="what is to be done, in quotes")
    add.add_argument("-C", "--directory", type=Path, default=Path(), metavar="DIR", help="the folder to work in")
    add.add_argument("--mode", choices=MODES, default="", help="the mode of its sessions (default: your setting)")
    add.add_argument("--model", default="", metavar="PROVIDER/NAME", help="the model (default: your setting)")
    add.add_argument("--zone", default="", metavar="ZONE", help="the time zone, such as Europe/Berlin (default: yours)")
    add.add_argument(
        "--max-cost",
        type=float,
        default=USUAL_COST,
        metavar="USD",
        help=f"the most US dollars that a run may cost (default: {USUAL_COST:g})",
    )
    about = "list the schedules: when each is due, what became of the last run, what was missed"
    listing = commands.add_parser("list", help=about, description=about, allow_abbrev=False)
    listing.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON, one object a line")
    for name, about in (
        ("pause", "begin no runs for now"),
        ("resume", "begin runs again; those in between are left out"),
        ("remove", "remove a schedule; a session of it that works continues"),
    ):
        command = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        command.add_argument("id", metavar="ID", help="the schedule, as `treadle schedule list` names it")


def execute(arguments: argparse.Namespace) -> int:
    """Do what is asked."""
    from treadle.door.opening import (
        next_words,
        pause_schedule,
        read_schedules,
        remove_schedule,
        schedule_rows,
        schedules_text,
    )
    from treadle.protocol.codec import encode

    match arguments.action:
        case "add":
            _add(arguments)
        case "pause" | "resume":
            changed = pause_schedule(arguments.id, paused=arguments.action == "pause")
            _write(f"{changed.id}: {next_words(changed)}.")
        case "remove":
            removed = remove_schedule(arguments.id)
            _write(f"Removed {removed.id}: {removed.when}, {removed.task}")
        case _ if arguments.json:
            sys.stdout.writelines(f"{encode(one).decode()}\n" for one in schedule_rows())
        case _:
            _write(schedules_text(read_schedules()))
    return 0


def _add(arguments: argparse.Namespace) -> None:
    import time

    from treadle.door.known_models import check_setting
    from treadle.door.opening import RUN_BY, Schedule, add_schedule, check_workspace, next_words, own_zone
    from treadle.door.settings import load_settings
    from treadle.door.trust import session_trust
    from treadle.protocol.errors import ConfigError

    if arguments.task.strip() in ("", "-"):
        raise ConfigError("task-empty", "There is no task.", fix="Write it behind the time, in quotes.")
    folder = check_workspace(arguments.directory)
    if (command := slash_task(arguments.task, session_trust(folder), headless=True)) is not None:
        raise ConfigError(
            "task-sign",
            f"/{command[0].name} cannot be scheduled.",
            why="Each run begins a session of its own, and this command is for one that there is.",
            fix="Say in words what is to be done.",
        )
    if not 0 < arguments.max_cost < inf:
        raise ConfigError(
            "schedule-time", f"--max-cost cannot be {arguments.max_cost:g}.", fix="Give US dollars, such as 0.5."
        )
    if arguments.model:
        check_setting(load_settings({"model": arguments.model}), ("model",))
    now = time.time()
    added = add_schedule(
        Schedule(
            id="",
            when=" ".join(arguments.when.split()),
            zone=arguments.zone or own_zone(),
            task=arguments.task,
            folder=str(folder),
            mode=arguments.mode,
            model=arguments.model,
            max_cost=arguments.max_cost,
            created=now,
            handled=now,
        )
    )
    _write(f"{added.id}: {next_words(added)}, ${added.max_cost:g} a run, in {added.folder}. {RUN_BY}")


def _write(text: str) -> None:
    from treadle.door.program import harmless

    sys.stdout.write(f"{harmless(text)}\n")
    sys.stdout.flush()
