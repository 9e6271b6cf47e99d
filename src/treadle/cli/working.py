"""The main command: an interactive session, or one task without a person."""

import asyncio
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.cli.command_line import WISHES, flags, goal_of, opening_of, session_trust_of, task_content, task_from
from treadle.cli.task_words import COMMANDS, slash_task, task_of
from treadle.door.opening import last_session, open_session, session_workspace
from treadle.door.settings import load_settings
from treadle.protocol.errors import ConfigError
from treadle.protocol.goals import BEGIN_GOAL
from treadle.protocol.messages import Text

if TYPE_CHECKING:
    import argparse

    from treadle.door.commands import SlashCommand
    from treadle.door.open_session import LiveSession, SessionAccess
    from treadle.door.opening import Opening
    from treadle.door.settings import Settings
    from treadle.door.trust import SessionTrust
    from treadle.protocol.goals import SetGoal
    from treadle.protocol.messages import UserContent
    from treadle.tui.paint.look import Look


def work(arguments: "argparse.Namespace") -> int:
    """Work as the main command's arguments say; returns the exit code."""
    _require_id(arguments)
    _require_new(arguments)
    if arguments.variants is not None:
        from treadle.cli.side_by_side import run_variants

        return run_variants(arguments)
    goal_of(arguments)
    if arguments.bg is not None:
        from treadle.cli.background import start_background

        return start_background(arguments)
    if arguments.attach != "":
        return _attach(arguments)
    if arguments.print_task is None:
        return interactive(arguments, task_of(arguments.task, COMMANDS))
    if arguments.task:
        raise ConfigError(
            "task-twice",
            "There are two tasks.",
            why=f"-p has one, and {' '.join(arguments.task)!r} follows it.",
            fix="Give it with -p, or without -p for an interactive session; quote it if it has spaces.",
        )
    from treadle.headless.progress import until_known

    return asyncio.run(until_known(_headless(arguments, task_from(arguments.print_task, arguments))))


def _require_id(arguments: "argparse.Namespace") -> None:
    """Raise `ConfigError` for `--resume` without an id where nobody can choose one."""
    in_script = arguments.print_task is not None or arguments.bg is not None
    if arguments.resume is None and (in_script or not _on_terminal()):
        raise ConfigError(
            "resume-id",
            "--resume needs the id of a session here.",
            why="It can be chosen from a list only in an interactive session on a terminal.",
            fix="`treadle sessions` lists the sessions with their ids.",
        )


def _require_new(arguments: "argparse.Namespace") -> None:
    """Raise `ConfigError` for a session that works where it began, though a copy is wanted."""
    flag = "--resume" if arguments.resume != "" else "--attach" if arguments.attach != "" else ""
    if flag and arguments.copy is not None:
        raise ConfigError(
            "copy-name",
            f"{flag} does not go with -w.",
            why="That session continues in the folder in which it began.",
            fix="Leave one of them out. The last session in the copy: treadle -w NAME -c",
        )


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


async def _headless(arguments: "argparse.Namespace", task: str) -> int:
    from treadle.headless.headless_main import OutputFormat, run_headless, stdout_for

    trust, output = session_trust_of(arguments), OutputFormat(arguments.output_format)
    wishes = None
    if any(vars(arguments)[name] for name in WISHES):
        from treadle.cli.shaping import wishes_of

        wishes = wishes_of(vars(arguments))
    command = slash_task(task, trust, headless=True)
    if command is not None and output is OutputFormat.TEXT and (text := _without_session(command, trust)):
        sys.stdout.write(f"{text}\n")
        return 0
    out = stdout_for(output)
    content = task_content(arguments, task) if command is None else ()
    opening = opening_of(arguments, trust, user_present=False)
    if command is not None:
        from treadle.headless.slash_run import for_command

        opening = for_command(opening, *command)
    live = await open_session(opening if wishes is None else wishes.shaped(opening))
    if command is not None:
        from treadle.headless.slash_run import run_slash_command

        return await run_slash_command(live, command, output, looks=opening.looks, out=out)
    structured = None if wishes is None else wishes.structured
    return await run_headless(live, content, output, out=out, structured=structured, goal=goal_of(arguments))


def resume_headless(arguments: "argparse.Namespace") -> int:
    """Go on with the session that the arguments name, without a person; returns the exit code."""
    from treadle.headless.headless_main import OutputFormat, run_headless, stdout_for
    from treadle.headless.progress import until_known

    async def work_on() -> int:
        opening = opening_of(arguments, session_trust_of(arguments), user_present=False)
        output = OutputFormat.JSON if arguments.json else OutputFormat.TEXT
        out = stdout_for(output)
        return await run_headless(await open_session(opening), (), output, out=out)

    return asyncio.run(until_known(work_on()))


def _without_session(command: "tuple[SlashCommand, str]", trust: "SessionTrust") -> str:
    """Do a command that needs no session; empty for one that needs one."""
    from treadle.door.commands import answer_without_session
    from treadle.door.program import harmless

    row, argument = command
    return harmless(answer_without_session(row.name, argument, trust))


def interactive(arguments: "argparse.Namespace", task: str = "") -> int:
    """Open the terminal surface."""
    if any(vars(arguments).get(name) for name in WISHES):
        from treadle.cli.shaping import refuse_wishes

        refuse_wishes(vars(arguments))
    if not _on_terminal():
        raise _no_terminal()
    if task:
        slash_task(task, session_trust_of(arguments), headless=False)
    content = task_content(arguments, task)
    from treadle.tui.paint.look import prepared_terminal

    settings = load_settings(flags(arguments))
    with prepared_terminal(settings) as look:
        if arguments.resume is None:
            folder = arguments.directory.expanduser().resolve()
            if not (chosen := _chosen_session(folder, look)):
                return 0
            _go_to(arguments, chosen, folder)
            if _is_open_elsewhere(chosen):
                return _open(arguments, content, look, following=chosen)
        code = _with_model(arguments, content, look)
    if code is not None:
        return code
    from treadle.cli.demo_command import run_demo

    return run_demo(ask=True)


def _attach(arguments: "argparse.Namespace") -> int:
    """Join a session that is open elsewhere."""
    if arguments.print_task is not None:
        from treadle.cli.joined_task import ask_session

        return ask_session(arguments)
    if arguments.task:
        raise ConfigError(
            "attach-task",
            "--attach takes no task for the terminal.",
            why="It joins a session that has its own.",
            fix="Attach without a task and type it there, or wait for its answer: treadle -p TASK --attach ID.",
        )
    if not _on_terminal():
        raise _no_terminal()
    from treadle.tui.paint.look import prepared_terminal

    settings, folder = load_settings(flags(arguments)), arguments.directory.expanduser().resolve()
    with prepared_terminal(settings) as look:
        code, following = asyncio.run(_attached(arguments.attach or "", folder, settings, look))
        return _open(arguments, (), look, following=following) if following else code


async def _attached(
    prefix: str, folder: Path, settings: "Settings", look: "Look", *, content: "tuple[UserContent, ...]" = ()
) -> tuple[int, str]:
    """Work in a session of another process; gives the exit code, and the session that is to be opened next."""
    from treadle.door.opening import attach_session
    from treadle.door.program import write_wrapped
    from treadle.tui.terminal_main import run_interactive

    following: list[str] = []
    async with await attach_session(prefix, folder, settings) as remote:
        code = await run_interactive(remote, look, first_prompt=content, kept=False, switch=following.append)
        if not (following or remote.closed):
            going, back = _going_on(remote), f"To return: treadle --attach {remote.id}"
            said = f"It continues{': ' if going else ''}{', '.join(going)}."
            with suppress(OSError):
                write_wrapped(sys.stdout, f"You left session {remote.id}. {said} {back}")
    return code, following[-1] if following and code == 0 else ""


def _no_terminal() -> ConfigError:
    return ConfigError(
        "no-terminal",
        "The interactive session needs a terminal.",
        why="Standard input or output is not one.",
        fix='For one task in a script: treadle -p "..."',
    )


def _with_model(arguments: "argparse.Namespace", content: "tuple[UserContent, ...]", look: "Look") -> int | None:
    """Open the session, with a model that is chosen first where there is none; None: the person wants the demo."""
    try:
        return _open(arguments, content, look)
    except ConfigError as error:
        if error.code != "no-provider":
            raise
    from treadle.cli.first_model import first_model

    arguments.model = first_model(load_settings(flags(arguments)), look)
    return _open(arguments, content, look) if arguments.model else None


def _open(
    arguments: "argparse.Namespace", content: "tuple[UserContent, ...]", look: "Look", *, following: str = ""
) -> int:
    """Work in the session, and then in those that are chosen in its place; first in `following` where that is named.

    One that is open in another process is joined there.
    """
    folder, trust, code = arguments.directory.expanduser().resolve(), None, 0
    given = None if following else opening_of(arguments, _asked_trust(arguments, look), user_present=True)
    while given is not None or following:
        same_folder = bool(following) and _go_to(arguments, following, folder)
        if following and _is_open_elsewhere(following):
            settings = load_settings(flags(arguments))
            code, following = asyncio.run(_attached(following, folder, settings, look, content=content))
        else:
            opening = given or _following(arguments, trust if same_folder else None, look)
            folder, trust = opening.workspace, opening.trust
            goal = None if given is None else goal_of(arguments)
            code, following = asyncio.run(_interactive(opening, content, look, goal))
        given, content = None, ()
    return code


def _is_open_elsewhere(session: str) -> bool:
    from treadle.door.opening import is_session_open

    return is_session_open(session)


def _following(arguments: "argparse.Namespace", trust: "SessionTrust | None", look: "Look") -> "Opening":
    """Open a session that was chosen: one that goes on does so as it was, whatever the command line says."""
    opening = opening_of(arguments, trust or _asked_trust(arguments, look), user_present=True)
    return replace(opening, given=frozenset()) if opening.resume else opening


def _chosen_session(folder: Path, look: "Look") -> str:
    """Let the person choose a session; gives its id, empty where they chose none."""
    from treadle.tui.before.ask_session import choose_session

    return asyncio.run(choose_session(folder, look))


def _go_to(arguments: "argparse.Namespace", session: str, folder: Path) -> bool:
    """Name the session to open; gives whether it was in `folder`. Only that is trusted where `--trust` was said."""
    from treadle.door.commands import NEW_SESSION

    if session == NEW_SESSION:
        arguments.resume, arguments.go_on, arguments.directory = "", False, folder
        return True
    arguments.resume, arguments.go_on = session, False
    same_folder = session_workspace(session) == folder
    arguments.trust = arguments.trust and same_folder
    return same_folder


async def _interactive(
    opening: "Opening", content: "tuple[UserContent, ...]", look: "Look", goal: "SetGoal | None"
) -> tuple[int, str]:
    """Work in a session; gives the exit code, and the session that is to be opened next, empty for none."""
    from treadle.tui.terminal_main import run_interactive

    live = await open_session(opening)
    following: list[str] = []
    ended = ""
    try:
        async with live:
            try:
                if goal is not None:
                    await live.post(goal, live.source)
                    content = content or (Text(text=BEGIN_GOAL),)
                code = await run_interactive(live, look, first_prompt=content, switch=following.append)
            finally:
                ended = _ends_with(live)
            return code, following[-1] if following and code == 0 else ""
    finally:
        if not live.empty:
            _say_how_to_go_on(live.id, ended)


def _say_how_to_go_on(session_id: str, ended: str) -> None:
    """Name the session that was left, and what ended with it, unless the terminal is gone."""
    from treadle.door.program import resume_line, write_wrapped

    with suppress(OSError):
        write_wrapped(sys.stderr, "\n".join(filter(None, (ended, resume_line(session_id)))))


def _ends_with(live: "LiveSession") -> str:
    """Say what ends when the session is closed, and what goes on when it is resumed; empty for nothing."""
    ends = _counts((live.others, "attached program"), session=live.id)
    lines = [f"Ended with the session: {', '.join(ends)}."] if ends else []
    if live.status.turn_active:
        lines.append("The turn is not done: it continues when you resume the session.")
    return "\n".join(lines)


def _going_on(session: "SessionAccess") -> list[str]:
    """Name what goes on in a session that somebody leaves."""
    status = session.status
    working = ["the agent is working"] if status.turn_active and not status.questions else []
    asked = (len(status.questions), "open question"), (len(status.queue) + len(status.held), "queued message")
    return [*working, *_counts(*asked, session=session.id)]


def _counts(*more: tuple[int, str], session: str) -> list[str]:
    """Count the commands and the timers that a session has now, and `more`; leaves out what there is none of."""
    from treadle.door.reports import session_jobs
    from treadle.present.words import counted

    jobs = [one for one in session_jobs(session, now=int(time.time() * 1000)) if one.running]
    timers = sum(not one.number for one in jobs)
    found = (len(jobs) - timers, "background command"), (timers, "timer"), *more
    return [counted(number, noun) for number, noun in found if number]


def _asked_trust(arguments: "argparse.Namespace", look: "Look") -> "SessionTrust":
    """Ask the person about the folder where that is needed; not before there is a model, or a session to go on with."""
    from treadle.cli.trust_command import settle_trust
    from treadle.door.known_models import Models

    trust = session_trust_of(arguments)
    if arguments.go_on:
        last_session(trust.workspace)
    return settle_trust(trust, look) if trust.asks and Models(load_settings(flags(arguments))).configured() else trust
