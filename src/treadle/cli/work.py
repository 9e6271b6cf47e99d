"""Work on a task in a folder with a model: interactively, or with -p as one task of a script."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode

if TYPE_CHECKING:
    from treadle.app.compose import Opening
    from treadle.protocol.messages import UserContent


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("task", nargs="*", help="the first task of an interactive session")
    parser.add_argument(
        "-p",
        "--print",
        dest="print_task",
        metavar="TASK",
        help="work TASK off without asking, and end ('-' reads it from standard input)",
    )
    parser.add_argument(
        "--output-format",
        choices=["text", "json", "stream-json"],
        default="text",
        help="what -p writes to standard output (default: text, the answer)",
    )
    parser.add_argument(
        "--file",
        "-f",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="a text or image to go along",
    )
    add_settings(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--resume", metavar="ID", default="", help="go on with a session (an id, or its beginning)")
    which.add_argument("--continue", dest="go_on", action="store_true", help="go on with this folder's last session")
    parser.add_argument("--version", "-V", action="store_true", help="print the version and end")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the flags that override settings."""
    modes, protocols = [mode.value for mode in Mode], [protocol.value for protocol in ToolProtocol]
    parser.add_argument("--directory", "-C", type=Path, default=Path(), metavar="DIR", help="the folder to work in")
    parser.add_argument("--model", metavar="PROVIDER/MODEL", help="the model, such as anthropic/claude-sonnet-4-5")
    parser.add_argument("--base-url", metavar="URL", help="another address of the provider's API")
    parser.add_argument("--mode", choices=modes, help="how much runs without asking (default: ask)")
    parser.add_argument("--tool-protocol", choices=protocols, help="how calls are written (default: as the model can)")
    parser.add_argument("--max-steps", type=_positive, metavar="N", help="end a turn after N model calls")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def flags(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Give the settings that were said on the command line."""
    names = ("model", "base_url", "mode", "tool_protocol", "max_steps")
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}


def execute(arguments: argparse.Namespace) -> int:
    """Run the session; returns the exit code."""
    if arguments.version:
        from treadle import __version__

        sys.stdout.write(f"treadle {__version__}\n")
        return 0
    if arguments.print_task is None:
        return interactive(arguments, " ".join(arguments.task))
    if arguments.task:
        raise ConfigError(
            "task-twice",
            "The task was given twice.",
            why=f"-p has one, and {' '.join(arguments.task)!r} stands beside it.",
            fix="Give it with -p, or without -p for an interactive session; quote it if it has blanks.",
        )
    return asyncio.run(_headless(arguments, _task(arguments)))


def _task(arguments: argparse.Namespace) -> str:
    text = sys.stdin.read() if arguments.print_task == "-" else arguments.print_task
    if text.strip() or arguments.resume or arguments.go_on:
        return str(text.strip())
    raise ConfigError(
        "task-empty",
        "The task is empty.",
        why="Standard input held no text." if arguments.print_task == "-" else "-p was given no text.",
        fix='Say what to do: treadle -p "..."',
    )


async def _headless(arguments: argparse.Namespace, task: str) -> int:
    from treadle.app.compose import open_session
    from treadle.headless.main import OutputFormat, run_headless

    content = _content(arguments, task)
    live = await open_session(_opening(arguments, task, user_present=False))
    return await run_headless(live, content, OutputFormat(arguments.output_format))


def _content(arguments: argparse.Namespace, task: str) -> "tuple[UserContent, ...]":
    """Give the task as a message: its text, and what goes along."""
    from treadle.app.attachments import attach
    from treadle.protocol.messages import Text

    return (*((Text(text=task),) if task else ()), *attach(arguments.file))


def interactive(arguments: argparse.Namespace, task: str = "") -> int:
    """Open the terminal surface."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "no-terminal",
            "The interactive session needs a terminal.",
            why="Standard input or output is not one.",
            fix='For one task in a script: treadle -p "..."',
        )
    try:
        return asyncio.run(_interactive(arguments, task))
    except ConfigError as error:
        if error.code != "no-provider":
            raise
        return _offer_demo(arguments, error)


def _offer_demo(arguments: argparse.Namespace, missing: ConfigError) -> int:
    """Say how to get a model, and offer the demo to whoever has none yet."""
    from treadle.app.exits import Exit
    from treadle.app.first_start import first_start_text
    from treadle.app.settings import load_settings
    from treadle.cli.demo import run_demo

    text = asyncio.run(first_start_text(load_settings(flags(arguments)), missing))
    sys.stdout.write(f"{text}\n\nStart the demo now? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        return Exit.CONFIG
    return run_demo(ask=True)


async def _interactive(arguments: argparse.Namespace, task: str) -> int:
    from treadle.app.compose import open_session
    from treadle.tui.main import run_interactive

    content = _content(arguments, task)
    live = await open_session(_opening(arguments, task, user_present=True))
    async with live:
        return await run_interactive(live, first_prompt=content)


def _opening(arguments: argparse.Namespace, task: str, *, user_present: bool) -> "Opening":
    from treadle.app.compose import Opening, check_workspace, last_session
    from treadle.app.settings import load_settings

    given = flags(arguments)
    resume = arguments.resume
    if arguments.go_on:
        resume = last_session(check_workspace(arguments.directory))
    return Opening(
        workspace=arguments.directory,
        settings=load_settings(given),
        user_present=user_present,
        given=frozenset(given),
        resume=resume,
        title=" ".join(task.split())[:80],
    )
