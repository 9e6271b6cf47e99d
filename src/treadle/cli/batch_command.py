"""Do many tasks from a file, side by side, each in a copy of its own; what ended is kept, the rest continues.

TASKS is a file of JSON lines ({"id": ..., "prompt": ..., "repo": ...}), rows of SWE-bench, or a folder of Harbor tasks.
The settings of a session can be given, too: --max-cost USD holds for all tasks together, --trust lets their projects'
programs run, and --mode is auto unless it says otherwise.
"""

import argparse
from importlib import import_module
from math import inf
from pathlib import Path

from treadle.cli.command_line import flags
from treadle.cli.work import add_settings
from treadle.protocol.errors import ConfigError, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from treadle.headless.fleet.fleet_main import FleetWishes

_ENGINES = ("own", "dbos", "absurd")
_ADOPT_AFTER = 30.0
"""Seconds after which a worker that is not heard of is taken for dead, unless the command line says otherwise."""

WORKERS = 4
"""How many tasks are done at the same time, unless the command line says otherwise."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("tasks", type=Path, metavar="TASKS", help="the tasks: a file, or a folder")
    parser.add_argument(
        "--out",
        "-o",
        type=Path,
        required=True,
        metavar="DIR",
        help="the folder of the results; with the same one again, a batch continues",
    )
    parser.add_argument(
        "--workers", "-w", type=int, default=WORKERS, metavar="N", help=f"tasks at the same time (default: {WORKERS})"
    )
    parser.add_argument("--json", action="store_true", help="write what happens as JSON lines")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only tasks whose id has this pattern")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="in an order that this number makes")
    parser.add_argument("--slice", default="", metavar="START:END", help="only these of them, such as 0:50")
    parser.add_argument(
        "--retry",
        action="append",
        default=[],
        metavar="KIND",
        help="do again what ended so, such as error, provider or check (can be given more than once)",
    )
    parser.add_argument("--redo", action="store_true", help="do the tasks again, whatever their results")
    parser.add_argument(
        "--repos", type=Path, metavar="DIR", help="where repositories are that tasks name as owner/name (else: GitHub)"
    )
    parser.add_argument("--no-image", action="store_true", help="do tasks that need an image in a plain copy")
    parser.add_argument("--keep", action="store_true", help="keep the copies of tasks that are done")
    parser.add_argument("--task-cost", type=float, metavar="USD", help="the most US dollars to spend on a task")
    add_fleet(parser)
    add_settings(parser, directory=False, costs="all tasks together")


def add_fleet(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the flags of a database that workers share."""
    parser.add_argument(
        "--database",
        required=required,
        default="",
        metavar="URL",
        help="share the tasks with workers: sqlite:///PATH on one computer, postgresql://USER@HOST/NAME on many",
    )
    parser.add_argument(
        "--store",
        default="",
        metavar="DIR|s3://BUCKET/PREFIX",
        help="keep logs and changes there, so that another computer can go on",
    )
    parser.add_argument(
        "--engine", choices=_ENGINES, default=_ENGINES[0], help=f"what hands out the tasks (default: {_ENGINES[0]})"
    )
    parser.add_argument(
        "--adopt-after",
        type=float,
        default=_ADOPT_AFTER,
        metavar="SECONDS",
        help=f"when others take a silent worker for dead (default: {_ADOPT_AFTER})",
    )


def fleet_wishes(arguments: argparse.Namespace) -> "FleetWishes":
    """Give what the command line says of a fleet. Raises `ConfigError`."""
    if not arguments.adopt_after >= 1:
        raise wrong_option(f"--adopt-after {arguments.adopt_after} is too short.", "It is at least 1 second.")
    from treadle.door.trust import trusted_by_variable
    from treadle.headless.fleet.fleet_main import FleetWishes

    return FleetWishes(
        database=arguments.database,
        store=arguments.store,
        engine=arguments.engine,
        adopt_after=arguments.adopt_after,
        full=getattr(arguments, "full", False) or getattr(arguments, "mode", None) == "full",
        trusts=arguments.trust or trusted_by_variable(),
        once=getattr(arguments, "once", False),
    )


def execute(arguments: argparse.Namespace) -> int:
    """Do them; returns the exit code."""
    if arguments.workers < (0 if arguments.database else 1):
        raise wrong_option(f"--workers {arguments.workers} is too few.", "At least one works.")
    if arguments.add_dirs:
        raise wrong_option("--add-dir does not go with batch.", "Each task works in a copy, and changes nothing else.")
    for flag, cost in (("--max-cost", arguments.max_cost), ("--task-cost", arguments.task_cost)):
        if cost is not None and not 0 < cost < inf:
            raise wrong_option(f"{flag} cannot be {cost:g}.", "It is an amount of US dollars, such as 0.5.")
    from treadle.door.trust import trusted_by_variable
    from treadle.headless.batch.batch_main import BatchWishes, run_batch
    from treadle.headless.batch.batch_tasks import TaskChoice

    run_cost, arguments.max_cost = arguments.max_cost, arguments.task_cost
    load_sessions()
    wishes = BatchWishes(
        tasks=arguments.tasks.expanduser(),
        out=arguments.out,
        workers=arguments.workers,
        max_cost=run_cost,
        choice=TaskChoice(pattern=arguments.filter, seed=arguments.shuffle, cut=arguments.slice),
        retry=tuple(arguments.retry),
        redo=arguments.redo,
        repositories=arguments.repos,
        without_images=arguments.no_image,
        keeps_copies=arguments.keep,
        trusts=arguments.trust or trusted_by_variable(),
        as_json=arguments.json,
        flags=flags(arguments),
        words=arguments.given,
    )
    if not arguments.database:
        return run_batch(wishes)
    fleet = fleet_wishes(arguments)
    from treadle.headless.fleet.fleet_main import run_fleet_batch

    return run_fleet_batch(wishes, fleet)


def wrong_option(what: str, why: str) -> ConfigError:
    """Say what is wrong with the command line."""
    return ConfigError("batch-option", what, why=why, fix="`treadle batch --help` shows the options.")


_PACKAGES = (
    *("app.session", "context", "editing", "engine", "parsing", "policy", "present"),
    *("protocol", "providers", "store", "tools", "workspace"),
)
_SELDOM = (
    *("treadle.protocol.upgrades", "treadle.providers.aws_sources", "treadle.providers.embedded_server"),
    *("treadle.providers.google_tokens", "treadle.providers.scripted", "treadle.tools.chromium"),
)
"""With the packages of others that they load, these took half of a start: 0.6 s of 1.4 s of processor time."""


def load_sessions() -> None:
    """Load what sessions need once, before workers are forked: they share it.

    What needs an extra that is not installed waits until a session uses it: the session says so then.
    """
    import pkgutil

    for name in _PACKAGES:
        package = import_module(f"treadle.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"treadle.{name}."):
            if module.name.startswith(_SELDOM):
                continue
            try:
                import_module(module.name)
            except (ImportError, ToolError):
                continue
    for name in ("httpcore2", "anyio._backends._asyncio"):  # which the first request loads
        import_module(name)
