"""What `treadle --bg TASK` does: starts a session that works without a terminal, and says its id."""

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from treadle.cli.command_line import WISHES, goal_of, opening_of, session_trust_of, task_content, task_from
from treadle.cli.detached import run_detached
from treadle.cli.task_words import COMMANDS, slash_task, task_of
from treadle.door.program import write_wrapped
from treadle.protocol.errors import ConfigError

if TYPE_CHECKING:
    import argparse


def start_background(arguments: "argparse.Namespace") -> int:
    """Start it; returns the exit code when the task is in the log, or what keeps it from that was said."""
    _require_possible(arguments)
    task = _task(arguments)
    code, session_id = run_detached(lambda begun: asyncio.run(_work(arguments, task, begun)))
    if session_id:
        _say(session_id)
    return code


def _say(session_id: str) -> None:
    try:
        sys.stdout.write(f"{session_id}\n")
        sys.stdout.flush()
    except OSError:
        sys.stderr.write(f"treadle: session {session_id} runs in the background.\n")
        raise
    if sys.stdout.isatty() and sys.stderr.isatty():
        text = (
            f"# It runs in the background. Join it: treadle --attach {session_id}, stop it: treadle stop {session_id}"
        )
        write_wrapped(sys.stderr, text)


def _task(arguments: "argparse.Namespace") -> str:
    """Give the one task, behind --bg or -p or without a flag; `-` is standard input. Raises `ConfigError`."""
    said = [text for text in (arguments.bg, arguments.print_task) if text]
    if arguments.task and not said:
        return task_of(arguments.task, COMMANDS)
    if len(said) + len(arguments.task) > 1:
        raise ConfigError(
            "task-twice",
            "There are two tasks.",
            why=" and ".join(repr(one) for one in (*said, *arguments.task)) + ".",
            fix='Quote the task if it has spaces: treadle --bg "..."',
        )
    return task_from(said[0] if said else "", arguments, flag="--bg")


def _require_possible(arguments: "argparse.Namespace") -> None:
    """Raise `ConfigError` for flags that mean nothing for a task whose answer nobody waits for."""
    wrong = {
        "--attach": arguments.attach != "",
        "--output-format": arguments.output_format != "text",
        "--json-schema": arguments.json_schema is not None,
    }
    flag = next((name for name, given in wrong.items() if given), "")
    if flag:
        raise ConfigError(
            "background-flag",
            f"{flag} does not go with --bg.",
            why="--bg prints the id of the session and returns before there is an answer.",
            fix="Leave it out. `treadle show ID` prints what the session said; `treadle -p TASK` waits for the answer.",
        )


async def _work(arguments: "argparse.Namespace", task: str, begun: Callable[[str], None]) -> int:
    """Work on the task in this process, which nobody waits for from the moment on that `begun` is called."""
    from treadle.door.opening import open_session
    from treadle.headless.background_task import BackgroundSignals, run_background

    with BackgroundSignals() as signals:
        trust = session_trust_of(arguments)
        command = slash_task(task, trust, headless=True)
        if command is not None:
            raise ConfigError(
                "task-sign",
                f"/{command[0].name} cannot be done in the background.",
                why="Nothing was sent to a model.",
                fix=f'Use: treadle -p "/{command[0].name}" --resume ID',
            )
        content = task_content(arguments, task)
        opening = opening_of(arguments, trust, user_present=True)
        if any(vars(arguments)[name] for name in WISHES):
            from treadle.cli.shaping import wishes_of

            opening = wishes_of(vars(arguments)).shaped(opening)
        live = await open_session(opening)
        return await run_background(live, content, lambda: begun(live.id), goal_of(arguments))
    return int(signals.code or 0)
