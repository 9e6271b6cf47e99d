"""Play a session again from its log, without a model and tools; --from continues from a step, with any model."""

import argparse
import sys
from pathlib import Path

from treadle.cli.parser import LAST, named_session, session_operand
from treadle.cli.work import add_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser, nargs="?", otherwise=LAST)
    parser.add_argument(
        "--strict", action="store_true", help="check that the log can be rebuilt byte for byte (the default)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--tree", action="store_true", help="replay its subagents, too, each from its own log")
    what.add_argument(
        "--from",
        dest="step",
        type=int,
        metavar="N",
        help="play up to step N, and continue from there with a model, in a copy of the files as they were",
    )
    what.add_argument(
        "--tools",
        choices=["live"],
        help="run the tools again in a copy of the files, and show what differs; exit code 1 if anything does",
    )
    parser.add_argument("--into", type=Path, metavar="DIR", help="the folder for the copy, new or empty")
    add_settings(parser, directory=False)


def execute(arguments: argparse.Namespace) -> int:
    """Replay; the exit code is 1 when the rebuilt log is not the recorded one, with `--from` that of the new run."""
    arguments.session = named_session(arguments.session)
    if arguments.step is not None:
        return _go_on(arguments)
    if arguments.tools is not None:
        return _run_tools(arguments)
    from treadle.door.history import replay_rows, report_lines, session_tape
    from treadle.door.program import Exit, harmless, write_wrapped
    from treadle.protocol.codec import encode

    session_id, rows, chains = session_tape(arguments.session)
    reports = {"": replay_rows(session_id, rows, chains)}
    for child, agent in _subagents(session_id) if arguments.tree else ():
        reports[f"{child} {agent}: "] = replay_rows(*session_tape(child))
    for name, report in reports.items():
        if arguments.json:
            sys.stdout.write(f"{encode(report).decode()}\n")
        else:
            write_wrapped(sys.stdout, harmless(name + "\n".join(report_lines(report))))
    return Exit.DONE if all(one.same for one in reports.values()) else Exit.FAILED


def _subagents(session_id: str) -> list[tuple[str, str]]:
    """Give the subagents of a session, the first one first, each with the name of its agent."""
    from treadle.door.opening import open_store

    store = open_store()
    try:
        return sorted((row.id, row.agent) for row in store.sessions(subagents=True) if row.root == session_id)
    finally:
        store.close()


def _run_tools(arguments: argparse.Namespace) -> int:
    """Run the calls again, and show the drift."""
    import asyncio

    from treadle.cli.command_line import opening_for
    from treadle.door.history import DriftOutcome, drift_lines, replay_folder, run_tools_again
    from treadle.door.program import Exit, harmless, write_wrapped
    from treadle.protocol.codec import encode

    folder = replay_folder(arguments.session, arguments.into)
    drifts = asyncio.run(run_tools_again(arguments.session, folder, lambda: opening_for(arguments, folder)))
    if arguments.json:
        sys.stdout.writelines(f"{encode(one).decode()}\n" for one in drifts)
    else:
        write_wrapped(sys.stdout, harmless("\n".join(drift_lines(drifts, folder))))
    return Exit.FAILED if any(one.outcome is DriftOutcome.DIFFERS for one in drifts) else Exit.DONE


def _go_on(arguments: argparse.Namespace) -> int:
    """Copy the session up to a step, and work on in the copy."""
    from treadle.cli.working import resume_headless
    from treadle.door.history import branch_at_step, replay_folder
    from treadle.door.program import harmless, write_wrapped

    into = replay_folder(arguments.session, arguments.into)
    branch = branch_at_step(arguments.session, arguments.step, into)
    known = "as they were at this step" if branch.exact else "as they are now: no checkpoint knows this step"
    write_wrapped(sys.stderr, harmless(f"# session {branch.id} continues in {branch.folder}, with the files {known}"))
    arguments.resume = branch.id
    return resume_headless(arguments)
