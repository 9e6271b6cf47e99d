"""Play a session again from its log: no model is called, and no tool runs."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("id", help="the session (the beginning of its id is enough)")
    parser.add_argument(
        "--strict", action="store_true", help="only check that the log can be rebuilt byte for byte; exit code 1 if not"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Replay; with `--strict` the exit code is 1 when the rebuilt log is not the recorded one."""
    from treadle.app.exits import Exit
    from treadle.app.history.replaying import replay_rows, report_lines, session_tape, shown_steps
    from treadle.app.wrapping import harmless, write_wrapped
    from treadle.protocol.codec import encode

    session_id, rows, chains = session_tape(arguments.id)
    steps = () if arguments.strict else shown_steps(rows)
    report = replay_rows(session_id, rows, chains)
    if arguments.json:
        sys.stdout.writelines(f"{encode(one).decode()}\n" for one in (*steps, report))
    else:
        lines = (f"{one.seq:>6}  step {one.step:<3}  {one.text}" for one in steps)
        write_wrapped(sys.stdout, harmless("\n".join([*lines, *report_lines(report)])))
    return Exit.DONE if report.same or not arguments.strict else Exit.FAILED
