"""What `treadle -p TASK --attach ID` does: a task for a session that another process has open."""

import asyncio
from typing import TYPE_CHECKING

from treadle.cli.command_line import WISHES, flags, task_content, task_from
from treadle.cli.task_words import slash_task
from treadle.headless.progress import until_known
from treadle.protocol.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from treadle.door.settings import Settings
    from treadle.protocol.messages import UserContent


def ask_session(arguments: "argparse.Namespace") -> int:
    """Send the task, and wait for the end of its turn; returns the exit code."""
    from treadle.door.settings import load_settings

    _require_as_it_is(arguments)
    if arguments.task:
        raise ConfigError(
            "task-twice",
            "There are two tasks.",
            why=f"-p has one, and {' '.join(arguments.task)!r} follows it.",
            fix="Give it with -p; quote it if it has spaces.",
        )
    task = task_from(arguments.print_task, arguments)
    _require_text(arguments, task)
    return asyncio.run(until_known(_ask(arguments, task_content(arguments, task), load_settings({}))))


def _require_text(arguments: "argparse.Namespace", task: str) -> None:
    """Raise `ConfigError` for a task that no model is sent."""
    from treadle.door.opening import session_workspace
    from treadle.door.trust import session_trust

    folder = session_workspace(arguments.attach) if arguments.attach else arguments.directory.expanduser().resolve()
    command = slash_task(task, session_trust(folder), headless=True)
    if command is not None:
        raise ConfigError(
            "task-sign",
            f"/{command[0].name} cannot be done in a session that is open elsewhere.",
            why="Nothing was sent to a model.",
            fix=f"Enter it in a terminal: treadle --attach {arguments.attach or ''}".rstrip(),
        )


def _require_as_it_is(arguments: "argparse.Namespace") -> None:
    """Raise `ConfigError` for settings: those of the session are what whoever opened it said."""
    said = [*flags(arguments), *(name for name in WISHES if vars(arguments)[name])]
    if said:
        raise ConfigError(
            "attach-settings",
            f"--{said[0].replace('_', '-')} does not go with --attach.",
            why="The session is open already, with settings of its own.",
            fix="Leave it out. /mode and /model change them in an attached terminal.",
        )


async def _ask(arguments: "argparse.Namespace", content: "tuple[UserContent, ...]", settings: "Settings") -> int:
    from treadle.door.opening import attach_session
    from treadle.headless.attached import run_attached
    from treadle.headless.headless_main import OutputFormat

    folder = arguments.directory.expanduser().resolve()
    remote = await attach_session(arguments.attach or "", folder, settings, kind="headless", name="script")
    return await run_attached(remote, content, OutputFormat(arguments.output_format))
